"""What is known of a variant on one target: what the comparison of two targets is made from."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import quantiles
from typing import TYPE_CHECKING

from harness.report.labels import CERTAINTIES
from harness.report.text import clip
from harness.words import GOOD, UNJUDGED, Class

if TYPE_CHECKING:
    from harness.report.model import CellView, VariantView

#: What two timings must share to be compared; the engine itself, its libraries and its image may differ.
STACK = ("cpu", "cpus", "kernel", "machine", "gpu", "gpu_uuid", "cuda_driver_api", "driver")


@dataclass(frozen=True)
class Box:
    """A cell's timing: median and quartiles in milliseconds to six digits, the clock and the stack it was taken on."""

    median: float
    low: float
    high: float
    stack: tuple[str, ...]


@dataclass(frozen=True)
class Side:
    """What is known of a variant on one target.

    `cls` is None where nothing is; `sure` is "measured", or how sure the claim is. `nodes` are the precisions that
    the variant's wanted nodes ran in, "" where not told; `why` says why nothing is known, or why it failed.
    """

    cls: Class | None
    sure: str = ""
    chip: str = ""
    nodes: tuple[str, ...] = ()
    why: str = ""
    signature: str | None = None
    proofs: tuple[str, ...] = ()
    box: Box | None = None


def side(cell: CellView, variant: VariantView) -> Side:
    """Return what is known of a cell: measured, or else documented, or else why neither."""
    if cell.measured:
        return Side(
            cell.cls,
            "measured",
            cell.chip,
            tuple(str(cell.precision.get(node, "")) for node, _ in variant.wanted) if cell.layers else (),
            cell.diagnosis.title if cell.diagnosis else "",
            cell.signature,
            cell.diagnosis.proofs if cell.diagnosis else (),
            _box(cell),
        )
    if cell.cls is Class.NOT_APPLICABLE:
        return Side(None, why="does not apply")
    if cell.documented:
        claim = variant.expectations[cell.documented[0]]
        if claim.outcome not in UNJUDGED:
            why = clip(claim.note, 200) if claim.outcome not in GOOD else ""
            return Side(claim.outcome, CERTAINTIES[claim.certainty], why=why, signature=claim.signature)
    if cell.cls is Class.INFRA_ERROR:
        return Side(None, why="could not be judged")
    return Side(None, why="result out of date" if cell.stale else "not run")


def _box(cell: CellView) -> Box | None:
    timing = cell.latency
    if timing is None:
        return None
    low, _, high = quantiles(timing.samples, n=4) if len(timing.samples) > 1 else timing.samples * 3
    environment = cell.stamps.environment if cell.stamps else {}
    stack = (timing.clock, *(environment.get(key, "") for key in STACK))
    return Box(_six(timing.median), _six(low), _six(high), stack)


def _six(value: float) -> float:
    return float(f"{value:.6g}")
