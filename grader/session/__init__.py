"""What runs inside the sandbox: the warm fork server, and the learner sessions that it forks.

This package is bound into the sandbox on its own. It imports nothing of the grader's, holds no test and no solution.
"""
