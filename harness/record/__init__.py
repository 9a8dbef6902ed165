"""Record the outcome of each cell as observed, keep it, and pick the records that speak for today's cell."""
