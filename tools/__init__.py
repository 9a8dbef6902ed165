"""Programs for those who work on the harness; nothing of it is needed to run a matrix."""
