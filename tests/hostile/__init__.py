"""Hostile and unlucky submissions of a small exercise, each with the verdict and the score that are right for it."""
