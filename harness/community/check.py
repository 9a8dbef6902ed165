"""One record of a submission against its log, and both against the cases and the matrix; run in a bounded child."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.case import load_cases
from harness.community.replay import replayed, stamps_in, subject
from harness.errors import HandledError
from harness.judge.cell import judge_cell
from harness.matrix import load_matrix
from harness.plan import all_cells, inapplicable_because
from harness.record.from_json import fields_of
from harness.record.log import stamped
from harness.words import Class

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from harness.matrix import Target
    from harness.plan import Cell
    from harness.record.outcome import Outcome
    from harness.run.prepared import Prepared

#: What each item may take: models are small, but the log is a stranger's.
SECONDS, MEMORY_MIB = 120.0, 4096
#: Fields of a record that are not made from its log, and sentences on those that are too long to be shown.
_APART = frozenset({"cell", "case", "variant", "target", "stamps", "log_sha256", "latency", "schema"})
_SAID = {
    "end": "how its process ended is not what its log says",
    "layers": "its layers are not those in its log",
    "nodes": "its nodes are not those of the model",
    "accuracy": "its numbers are not those in its log",
    "messages": "its messages are not those in its log",
}
_SHOWN = 80
#: Times the phase's length that its samples may take: they are timed by another clock than the phase.
_SLACK = 1.05


def findings(cases: Path, matrix: Path, items: Sequence[tuple[Outcome, str]]) -> Iterator[Class | str]:
    """Yield for each record with its log the class that it amounts to, or the sentence on why it is refused."""
    cells = {cell.id: cell for cell in all_cells(load_matrix(matrix), load_cases(cases))}
    made: dict[tuple[str, str], Prepared] = {}
    for outcome, log in items:
        try:
            yield _class(cells, made, outcome, log)
        except HandledError as error:
            yield f"{outcome.cell[:120]}: {error}"


def rederived(cell: Cell, outcome: Outcome, log: str) -> Outcome:
    """Return a record with nothing in it but what its log gives, as intake will hold it against that."""
    return replayed(cell, subject(cell.variant), outcome, log)


def _class(
    cells: Mapping[str, Cell], made: dict[tuple[str, str], Prepared], outcome: Outcome, log: str
) -> Class:
    cell = cells.get(outcome.cell)
    if cell is None:
        raise HandledError("the cases and the matrix of its commit have no such cell")
    if (outcome.case, outcome.variant, outcome.target) != (
        cell.case.name,
        cell.variant.name,
        cell.target.name,
    ):
        raise HandledError("its case, variant and target are not those of the cell")
    if reason := inapplicable_because(cell):
        raise HandledError(f"nothing can be measured there: {reason}")
    _held_against_matrix(cell.target, outcome)
    key = (cell.case.name, cell.variant.name)
    ready = made[key] = made.get(key) or subject(cell.variant)
    stamps = outcome.stamps
    if stamps.model_sha256 != ready.sha256:
        raise HandledError("its model is not the one that the case makes")
    if stamps.recipe_sha256 != cell.variant.recipe_sha256:
        raise HandledError("its recipe is not the one of the variant")
    _held_against_log(cell, ready, outcome, log)
    return judge_cell(cell, outcome).classification.cls


def _held_against_matrix(target: Target, outcome: Outcome) -> None:
    stamps = outcome.stamps
    if target.traits.baseline:
        raise HandledError(
            f"{target.traits.short} lists no layers in its log: the project measures it itself"
        )
    if not target.runs_version(stamps.engine_version):
        raise HandledError(
            f"its engine is {stamps.engine_version!r:.40}, and matrix.yaml declares {target.version}"
        )
    if stamps.environment.get("engine_version") != stamps.engine_version:
        raise HandledError("the engine that its agent saw is not the one that it is stamped with")
    if stamps.via == "docker":
        pinned = target.digest
        if pinned and stamps.image_digest != pinned:
            raise HandledError(f"its image is {stamps.image_digest[:19]}, and matrix.yaml pins {pinned[:19]}")
        if target.build is None and stamps.image != target.pull_reference:
            raise HandledError(
                f"its image is {stamps.image!r:.80}, and matrix.yaml names {target.pull_reference}"
            )
        if not stamps.image_digest:
            raise HandledError("it does not say the digest of its image")
    elif stamps.via != "venv" or not stamps.packages:
        raise HandledError("it says neither image nor packages")
    capability = stamps.environment.get("compute_capability", "")
    if not target.needs.compute_capability_fits(capability):
        raise HandledError(f"{target.name} does not run on a GPU of compute capability {capability}")


def _held_against_log(cell: Cell, ready: Prepared, outcome: Outcome, log: str) -> None:
    try:
        said, again = stamps_in(log), replayed(cell, ready, outcome, log)
    except (ValueError, TypeError) as error:
        raise HandledError(f"its log is none that this harness writes: {error}") from error
    for name, value in stamped(outcome).items():
        if said.get(name) != value:
            raise HandledError(f"its {name} is {value!r:.80}, and its log says {said.get(name)!r:.80}")
    for name, found in fields_of(again).items():
        value = getattr(outcome, name)
        if name not in _APART and found != value:
            said_of = _SAID.get(name, f"its {name} is {_short(value)}, and its log says {_short(found)}")
            raise HandledError(said_of)
    _held_against_clock(outcome)


def _held_against_clock(outcome: Outcome) -> None:
    if outcome.latency is None:
        return
    took = outcome.phases.get("time", 0.0) * 1000 * _SLACK + 1
    if not all(sample > 0 for sample in outcome.latency.samples_ms) or sum(outcome.latency.samples_ms) > took:
        raise HandledError("its samples take longer than its log says that it was timed, or are not above 0")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
