"""What the exercises' tests are worth: wrong answers that must lose marks, right ones that must not."""
