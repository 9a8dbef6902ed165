"""The one account of a cell: measured, else reported, else nothing."""
