"""The autograder of the course: releases units, grades submissions, hands results back."""
