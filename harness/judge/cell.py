"""One outcome with all conclusions from it, and the same in plain text; pure."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Collection
from dataclasses import dataclass

from harness.case import Calibrator, Expectation, Recipe, Typing
from harness.errors import described
from harness.judge.classify import Classification, Wish, classify
from harness.judge.diagnosis import Diagnosis, diagnose
from harness.judge.reasons import Reason, reasons
from harness.judge.verdict import Judgement, Seen, against, judge
from harness.layers.asked import wished
from harness.layers.precision import node_precision
from harness.plan import Cell, claims_about, failed_before
from harness.record.outcome import Outcome
from harness.record.speaking import Gpu, took_part
from harness.words import FINISHED, GOOD, UNJUDGED, Class, Precision, Verdict


@dataclass(frozen=True)
class Judged:
    """A cell's record, the precision each node ran in and is wished in, its class, diagnosis and verdict.

    reasons: why nodes did not run in the precision that they should or might have run in.
    claims: the claims about the cell on the GPU that took part, the nearest first; on any GPU if it was not run.
    """

    cell: Cell
    outcome: Outcome
    precision: dict[str, Precision]
    wished: dict[str, Precision]
    classification: Classification
    diagnosis: Diagnosis | None
    judgement: Judgement
    claims: tuple[Expectation, ...] = ()
    reasons: tuple[Reason, ...] = ()

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
        """Tell whether the engine failed, whether that was known or not."""
        verdict = self.judgement.verdict
        if verdict is Verdict.NEW:
            return self.classification.cls not in GOOD
        return verdict in (Verdict.REGRESSED, Verdict.KNOWN_FAILURE)


def _demanded(cell: Cell) -> bool:
    # ONNX Runtime is the baseline for the graph and its numbers: that it runs a Q/DQ convolution in FP32 unless a
    # QuantizeLinear follows does not concern TensorRT. Its precision is recorded and shown.
    return not cell.target.traits.baseline


def judge_cell(cell: Cell, outcome: Outcome) -> Judged:
    """Return a cell's record with its conclusions; a record that cannot be judged is `infra_error` and says why."""
    try:
        return _judge_cell(cell, outcome)
    except Exception as error:  # noqa: BLE001  (an engine's text, of any shape: one record must not cost the rest)
        reason = f"the harness could not judge the record: {described(error)}"
        classification = Classification(Class.INFRA_ERROR, reason)
        judgement = Judgement(Verdict.INFRA, None, reason)
        return Judged(cell, outcome, {}, {}, classification, None, judgement, cell.claims)


#: Verdicts on an expected class, and on one that only another machine would show.
_NO_NEWS = (
    *(Verdict.EXPECTED, Verdict.KNOWN_FAILURE, Verdict.FAILS_WHEN_RUN, Verdict.VARIES, Verdict.NOT_RUN),
)


def is_news(cell: Cell, outcome: Outcome) -> bool:
    """Return True if an outcome differs from the known one of its cell, and so is worth a second look."""
    return judge_cell(cell, outcome).judgement.verdict not in _NO_NEWS


def _judge_cell(cell: Cell, outcome: Outcome) -> Judged:
    precision = node_precision(outcome.nodes, outcome.layers)
    wish = _wish(cell, outcome)
    classification = classify(outcome, wish, precision)
    diagnosis = diagnose(outcome, classification, model=cell.variant.model_bytes, network=network_of(cell))
    gpu = took_part(outcome)
    claims = _claims(cell, gpu, classification.cls)
    capability = gpu.compute_capability if gpu else None
    before = failed_before(cell, capability) if classification.cls in GOOD else ""
    judgement = judge(classification, claims, diagnosis.id if diagnosis else None, failed_before=before)
    wishes = dict(wish.nodes)
    why = reasons(outcome, cell.variant.recipe, precision, wishes) if wish.demanded else ()
    seen = Seen(outcome, classification, wish, why, gpu)
    found = against(_by_product(judgement, gpu), cell.variant, claims, seen)
    return Judged(cell, outcome, precision, wishes, classification, diagnosis, found, claims, why)


def network_of(cell: Cell) -> str:
    """Return engine and typing of a cell's network in words: "tensorrt, weakly typed"."""
    strong = cell.target.strong_alone or cell.variant.recipe.typing is Typing.STRONG
    return f"{cell.target.engine}, {'strongly' if strong else 'weakly'} typed"


def _claims(cell: Cell, gpu: Gpu | None, cls: Class) -> tuple[Expectation, ...]:
    """Return the claims about an outcome: measured on its product first, then on its compute capability."""
    judged = gpu or cls not in UNJUDGED
    claims = claims_about(cell, gpu.compute_capability if gpu else "") if judged else cell.claims
    product = gpu.product if gpu else ""
    return tuple(sorted(claims, key=lambda claim: (claim.product != product, not claim.product)))


def _by_product(judgement: Judgement, gpu: Gpu | None) -> Judgement:
    """Call a contradiction to a measurement on another product new: it may be the product's doing, and no change."""
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
        # ONNX Runtime is told not to.
        tf32=demanded,
        allowed=(data.max_rel, data.cosine) if data else (None, None),
    )


@functools.cache
def _permitted(flags: tuple[str, ...]) -> frozenset[Precision]:
    """Return the precisions that builder flags let the engine choose."""
    words = {str(precision) for precision in Precision}
    return frozenset(Precision(flag.lower()) for flag in flags if flag.lower() in words)


def as_json(judged: Judged) -> dict[str, object]:
    """Return the conclusions on a record as plain data."""
    return {
        "id": judged.cell.id,
        "class": judged.classification.cls,
        "verdict": judged.judgement.verdict,
        "reason": judged.judgement.sentence,
        "regressed": judged.judgement.part,
        "signature": judged.signature,
        "wanted": judged.wished,
        "precision": judged.precision,
        "lost": [lost.node for lost in judged.classification.lost],
        "run": judged.outcome.stamps.run,
        "when": judged.outcome.stamps.when,
    }


_MOST_MESSAGES = 8
_WIDEST = 300


def failure_text(judged: Judged, matrix: str = "", cases: str = "") -> str:
    """Return the text that a failed test prints: verdict, diagnosis, offending messages, recipe, the next command.

    The command names `matrix` and `cases` if given.
    """
    cell = judged.cell
    lines = [
        f"{judged.classification.cls} ({judged.judgement.verdict}): {headline(judged)}",
        f"  cell     {cell.id}: {cell.variant.title}",
        f"  claim    {claim(judged)}",
        f"  why      {judged.classification.reason[:_WIDEST]}",
    ]
    lines += [f"  {line}" for line in complaints(judged)]
    lines += [
        f"  recipe   {describe_recipe(cell.variant.recipe)}",
        "  again    " + shlex.join(pytest_command(cell.id, matrix, cases)),
    ]
    lines.append("  more     " + shlex.join(["trt-compat", "show", cell.id, *_named(matrix, cases)]))
    return "\n".join(lines)


def headline(judged: Judged) -> str:
    """Return why a cell failed, in one line: the known cause and its place, else the reason of its class.

    An engine that finished without a known cause gets the verdict's sentence.
    """
    found = judged.diagnosis
    if found:
        return f"{found.title}, at {found.place}" if found.place else found.title
    # A finished engine printed no text about its fault.
    if judged.classification.cls in FINISHED | UNJUDGED:
        return judged.judgement.sentence
    return f"no known signature: {judged.classification.reason[:_WIDEST]}"


def claim(judged: Judged) -> str:
    """Return how a cell stands to its claim, without the reason of its failure."""
    return judged.judgement.sentence.removesuffix(f": {judged.classification.reason}")


def complaints(judged: Judged) -> list[str]:
    """Return the diagnosis and the engine's complaints, a line each; messages only of a cell that failed."""
    lines = []
    if judged.diagnosis:
        lines += [
            f"known as {judged.diagnosis.id}: {judged.diagnosis.title}",
            f"place    {judged.diagnosis.place or 'the record does not tell'}",
            f"cause    {judged.diagnosis.cause}",
            f"advice   {judged.diagnosis.advice}",
        ]
        if judged.diagnosis.skipped_tactic:
            lines.append(f"last     {judged.diagnosis.skipped_tactic[:_WIDEST]}")
        lines += [f"see      {link}" for link in judged.diagnosis.links]
    lines += [f"why      {each}" for each in judged.reasons]
    said = _offending(judged.outcome) if judged.failed else []
    if said:
        lines.append("messages")
        lines += [f"  {' '.join(line.split())[:_WIDEST]}" for line in said[:_MOST_MESSAGES]]
    return lines


def _offending(outcome: Outcome) -> list[str]:
    said = [
        f"[{message.severity}] {message.text}"
        for message in outcome.messages
        if message.severity in ("INTERNAL_ERROR", "ERROR")
    ]
    said += [f"[parser] {error.node or error.operator}: {error.text}" for error in outcome.parser_errors]
    return said or outcome.native_output.strip().splitlines()[-_MOST_MESSAGES:]


def pytest_command(cell_id: str, matrix: str = "", cases: str = "") -> list[str]:
    """Return the command that runs one cell again; it names `matrix` and `cases` if given."""
    return ["pytest", f"{matrix or 'matrix.yaml'}::{cell_id}", *_named("", cases)]


def _named(matrix: str, cases: str) -> list[str]:
    # pytest takes a file or folder behind a blank for one of tests.
    return [f"--{name}={path}" for name, path in (("matrix", matrix), ("cases", cases)) if path]


def describe_recipe(recipe: Recipe) -> str:
    """Return a recipe in one line."""
    parts = [f"{recipe.typing} typing", _listed("flags ", recipe.flags, "+")]
    parts += [_calibrated(recipe.calibrator)] if recipe.calibrator else []
    parts += [f"{name} {'on' if on else 'off'}" for name, on in recipe.parser_flags]
    parts.append(_listed("outputs marked: ", recipe.mark_outputs))
    if recipe.plugin:
        parts.append(f"plugin {recipe.plugin.op} accepting {recipe.plugin.formats}")
    parts.append(_listed("plugins of ", [library.name for library in recipe.libraries]))
    parts += [f"profile {profile.input} {profile.minimum}..{profile.maximum}" for profile in recipe.profiles]
    if recipe.workspace_mib is not None:
        parts.append(f"workspace {recipe.workspace_mib} MiB")
    return "; ".join(filter(None, parts))


def _listed(what: str, names: Collection[str], sign: str = ", ") -> str:
    return what + sign.join(names) if names else ""


def _calibrated(calibrator: Calibrator) -> str:
    own = f" with {calibrator.batches} own batches" if calibrator.data else ""
    fault = f", wrong on purpose: {calibrator.fault}" if calibrator.fault else ""
    return f"{calibrator.kind} calibrator{own}{fault}"
