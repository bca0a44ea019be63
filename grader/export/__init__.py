"""Scores out of the gradebook: tables of our own, and the files that Canvas and Moodle take back."""
