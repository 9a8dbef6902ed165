"""Models that are no cases of this project."""
