"""What a class made of a unit, on one page: ``grader report UNIT``."""
