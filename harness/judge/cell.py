"""One outcome with all that is concluded from it; pure."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.errors import described
from harness.judge.classify import Classification, Wish, classify
from harness.judge.diagnosis import Diagnosis, diagnose
from harness.judge.verdict import Judgement, judge
from harness.layers import node_precision, wished
from harness.plan import Cell, claims_about, failed_before
from harness.record.speaking import took_part
from harness.words import GOOD, UNJUDGED, Class, Precision, Verdict

if TYPE_CHECKING:
    from harness.case import Expectation
    from harness.record.gpu import Gpu
    from harness.record.outcome import Outcome


@dataclass(frozen=True)
class Judged:
    """A cell's record, the precision each node ran in and is wished in, its class, diagnosis and verdict.

    `claims` are those about the cell on the GPU that took part, the nearest first; about any where it was not run.
    """

    cell: Cell
    outcome: Outcome
    precision: dict[str, Precision]
    wished: dict[str, Precision]
    classification: Classification
    diagnosis: Diagnosis | None
    judgement: Judgement
    claims: tuple[Expectation, ...] = ()

    @property
    def signature(self) -> str | None:
        """Return the diagnosis' id."""
        return self.diagnosis.id if self.diagnosis else None

    @property
    def demanded(self) -> bool:
        """Tell whether the engine has to keep the precision that the variant wants."""
        return _demanded(self.cell)

    @property
    def failed(self) -> bool:
        """Tell whether the engine did not do what the recipe asks, known or not."""
        verdict = self.judgement.verdict
        if verdict is Verdict.NEW:
            return self.classification.cls not in GOOD
        return verdict in (Verdict.REGRESSED, Verdict.KNOWN_FAILURE)


def _demanded(cell: Cell) -> bool:
    # ONNX Runtime is the baseline for the graph and its numbers: that it runs a Q/DQ convolution in FP32 unless a
    # QuantizeLinear follows says nothing about TensorRT. What it ran in is recorded and shown.
    return not cell.target.traits.baseline


def judge_cell(cell: Cell, outcome: Outcome) -> Judged:
    """Return a cell's record with its conclusions; a record that cannot be judged is `infra_error` and says why."""
    try:
        return _judge_cell(cell, outcome)
    except Exception as error:  # noqa: BLE001  (an engine's text, of any shape: one record must not cost the rest)
        reason = f"the harness could not judge the record: {described(error)}"
        classification = Classification(Class.INFRA_ERROR, reason)
        judgement = Judgement(Verdict.INFRA, None, reason)
        return Judged(cell, outcome, {}, {}, classification, None, judgement, claims_about(cell))


def _judge_cell(cell: Cell, outcome: Outcome) -> Judged:
    precision = node_precision(outcome.nodes, outcome.layers)
    wish = _wish(cell, outcome)
    classification = classify(outcome, wish, precision)
    diagnosis = diagnose(outcome, classification)
    gpu = took_part(outcome)
    claims = _claims(cell, gpu, classification.cls)
    before = failed_before(cell, gpu.compute_capability if gpu else None)
    judgement = judge(classification, claims, diagnosis.id if diagnosis else None, failed_before=before)
    wishes = dict(wish.nodes)
    return Judged(
        cell, outcome, precision, wishes, classification, diagnosis, _by_product(judgement, gpu), claims
    )


def _claims(cell: Cell, gpu: Gpu | None, cls: Class) -> tuple[Expectation, ...]:
    """Return the claims about an outcome, first what was measured on its product, then on its compute capability."""
    none = None if cls in UNJUDGED else ""
    claims = claims_about(cell, gpu.compute_capability if gpu else none)
    product = gpu.product if gpu else ""
    return tuple(sorted(claims, key=lambda claim: (claim.product != product, not claim.product)))


def _by_product(judgement: Judgement, gpu: Gpu | None) -> Judgement:
    """Call what contradicts a measurement on another product new: that may be the product's doing, and no change."""
    claim, product = judgement.expectation, gpu.product if gpu else "no GPU"
    told = judgement.verdict in (Verdict.REGRESSED, Verdict.FIXED)
    if not (told and claim and claim.product) or claim.product == product:
        return judgement
    sentence = f"on {product}, where the measurement was made on {claim.product}: {judgement.sentence}"
    return Judgement(Verdict.NEW, claim, sentence)


def _wish(cell: Cell, outcome: Outcome) -> Wish:
    demanded, data = _demanded(cell), cell.variant.data
    return Wish(
        nodes=dict(wished(cell.variant, outcome.nodes)),
        derived=cell.variant.precision is None,
        demanded=demanded,
        permitted=_permitted(cell.variant.recipe.flags) if demanded else frozenset(),
        allowed=(data.max_rel, data.cosine) if data else (None, None),
    )


@functools.cache
def _permitted(flags: tuple[str, ...]) -> frozenset[Precision]:
    """Return the precisions that builder flags let the engine choose."""
    words = {str(precision) for precision in Precision}
    return frozenset(Precision(flag.lower()) for flag in flags if flag.lower() in words)
