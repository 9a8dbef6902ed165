"""The one account of a cell: measured, else reported, else listed in NVIDIA's tables, else unknown."""
