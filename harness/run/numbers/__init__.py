"""Inputs, the reference on them, and how far an engine's outputs are from it."""
