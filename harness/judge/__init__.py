"""Class, cause and verdict of a record; pure functions of records."""
