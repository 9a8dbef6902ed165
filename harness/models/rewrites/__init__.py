"""Models rewritten: pure functions that give another model, or None where they have nothing to change."""

from harness.models.rewrites.half import half
from harness.models.rewrites.known import REWRITES, Rewrite
from harness.models.rewrites.unquantised import unquantised

__all__ = ["REWRITES", "Rewrite", "half", "unquantised"]
