"""Models rewritten: pure functions that give another model, or None where they have nothing to change."""

from harness.models.rewrites.floats import half, unquantised
from harness.models.rewrites.known import REWRITES, Rewrite

__all__ = ["REWRITES", "Rewrite", "half", "unquantised"]
