"""The cases, one module a problem, each ending in `CASE = Case(...)`; they are found by their path."""
