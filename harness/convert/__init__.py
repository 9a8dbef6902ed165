"""Models with the types that an older engine ran in, written into the graph for strongly typed engines."""
