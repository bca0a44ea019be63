"""The instructor's handbook, read and run as a person would."""
