"""The grading engine: bytes of a submission in, a verdict and a graded notebook out.

``grade`` is the pure core. Learner code runs in a sandboxed session (``grader.session``); test cells run here, with
stand-ins for the learner's functions that carry plain values only.
"""
