"""Variants made ready in this process, where the harness takes a child."""

from __future__ import annotations

from harness.case import Variant
from harness.run.prepared import Prepared, evaluated, unevaluated


def prepare_variant(variant: Variant) -> Prepared:
    """Return a variant with its reference numbers; raises as `unevaluated` does."""
    return evaluated(variant, unevaluated(variant))
