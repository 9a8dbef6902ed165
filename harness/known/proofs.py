"""Which variants prove an advice for somebody's own model on a target: measured to work there, of its operators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx

from harness.case import Case, Variant
from harness.judge.cell import Judged
from harness.judge.diagnosis import Diagnosis
from harness.layers.operators import MULTIPLYING
from harness.words import GOOD, Basis


def proofs_on(found: Diagnosis, judged: Judged, cases: Iterable[Case]) -> tuple[str, ...]:
    """Return the proofs of a diagnosis that were measured to work on the target, and are about its operator.

    Without an operator they are about the multiplying ones of the model.
    """
    own = {node.op for node in judged.outcome.nodes}
    failing = {found.operator} if found.operator in own else own & MULTIPLYING
    target = judged.cell.target.name
    return tuple(
        f"{case.name}.{variant.name}"
        for case in cases
        for variant in case
        if f"{case.name}.{variant.name}" in found.advice_variants
        and _works(variant, target)
        and failing & _about(case, variant)
    )


def _works(variant: Variant, target: str) -> bool:
    ends = {
        claim.outcome
        for claim in variant.expectations
        if claim.basis is Basis.MEASURED and target in claim.targets
    }
    return bool(ends) and ends <= GOOD


def _about(case: Case, variant: Variant) -> set[str]:
    """Return the operators of a variant and of those that it is read against."""
    pair = (
        other
        for other in case
        if other.name in (variant.name, variant.counterpart) or other.counterpart == variant.name
    )
    return {op for other in pair for op in _operators(other)}


def _operators(variant: Variant) -> Iterator[str]:
    for node in onnx.load_model_from_string(variant.model_bytes()).graph.node:
        yield node.op_type
