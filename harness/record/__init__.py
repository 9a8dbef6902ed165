"""What was observed in a cell, how it is kept, and whether it is of today's cell."""
