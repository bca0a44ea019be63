"""From a download of a learning management system to submissions as nbgrader and the engine read them.

``names`` reads file names, ``roster`` a list of learners, ``plan`` decides who handed in what: these only compute.
``archive`` opens what a stranger made, ``place`` writes, and ``run`` puts them together.
"""
