"""Measurements of the helper module's speed."""
