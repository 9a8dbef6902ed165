"""What is known of a variant on one target: what the comparison of two targets is made from."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.judge.timing import RUN_TO_RUN, interval
from harness.record.gpu import gpu_of
from harness.report.advice import general_advice
from harness.report.claimed import drawn, on_precision, says, seen_by
from harness.report.compare.ranges import unasked
from harness.words import GOOD, PREDICATE, UNJUDGED, Class, Grade, Precision, Verdict

if TYPE_CHECKING:
    from harness.case import Expectation
    from harness.record.outcome import Stamps
    from harness.report.by_gpu import GpuResult
    from harness.report.model import CellView, Timing, VariantView

#: Why nothing is known of a cell that nobody ran.
NOT_RUN = "not run"
#: What two timings must share to be compared; the engine itself, its libraries and its image may differ.
STACK = ("cpu", "cpus", "kernel", "machine", "gpu", "gpu_uuid", "cuda_driver_api", "driver")


@dataclass(frozen=True)
class SideTiming:
    """A cell's timing: its median in milliseconds to six digits, and the clock and stack it was taken on.

    `interval` encloses the median with 99.5 %; None where the samples carry no comparison.
    """

    median: float
    stack: tuple[str, ...]
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Side:
    """What is known of a variant on one target.

    `cls` is None where nothing is; `graded` is the grade for readers. `nodes` are the precisions that the variant's
    wanted nodes ran in, "" where not told; `rest` is, by name, what the other nodes ran in, those that ran in a narrow
    type or in a float. `why` says why nothing is known, or why it failed: the cause, never where that was read, which
    is `seen`. `flaky` are the classes seen where runs on the same stack disagree. `demanded` says that the engine has
    to keep the precision. `gpu` is the compute capability and product of the GPU that took part, `beside` what other
    GPUs found. `claim` is what a side rests on that nobody ran; with `built` the engine was built here, and the claim
    is of what it does when it is run.
    """

    cls: Class | None
    grade: Grade | None = None
    graded: str = ""
    chip: str = ""
    nodes: tuple[str, ...] = ()
    why: str = ""
    signature: str | None = None
    proofs: tuple[str, ...] = ()
    timing: SideTiming | None = None
    flaky: tuple[Class, ...] = ()
    demanded: bool = True
    rest: tuple[tuple[str, str], ...] = ()
    gpu: tuple[str, str] | None = None
    beside: tuple[Side, ...] = ()
    claim: Expectation | None = None
    seen: str = ""
    built: bool = False

    @property
    def on_precision(self) -> bool:
        """Tell whether the side says anything of the precision; a claim that something builds does not."""
        return self.claim is None or on_precision(self.claim)

    @property
    def had_gpu(self) -> bool:
        """Tell whether it is about a machine with a GPU, as what others say of a version is unless they say so."""
        if self.claim and self.grade is not Grade.MEASURED:
            return self.cls is not Class.NEEDS_GPU_TO_BUILD
        return self.gpu is not None or bool(self.claim and self.claim.compute_capability)

    def does(self) -> str:
        """Return what it does, as a predicate; of a claim no more than it says."""
        return says(self.claim) if self.claim else PREDICATE[self.cls or Class.NOT_RUN]

    def told(self, predicate: str = "") -> str:
        """Return what is known in words: "builds (INT8 1/1)"; a predicate stands in place of that of the class."""
        if self.cls is None:
            return self.why
        claimed = "" if self.grade is Grade.MEASURED and not self.built else f"{self.grade}: "
        built = f"{PREDICATE[Class.BUILT]}; " if self.built else ""
        return f"{built}{claimed}{predicate or self.does()}{f' ({self.chip})' if self.chip else ''}"


def side(cell: CellView, variant: VariantView) -> Side:
    """Return what is known of a cell: measured, or else claimed, or else why neither."""
    if cell.claims and cell.verdict is Verdict.FAILS_WHEN_RUN:
        return replace(_claimed(variant.expectations[cell.claims[0]]), chip=cell.chip, built=True)
    if cell.measured:
        return Side(
            cell.cls,
            Grade.MEASURED,
            str(Grade.MEASURED),
            cell.chip,
            tuple(_ran_in(cell, node) for node, _ in variant.wanted) if cell.layers else (),
            cell.diagnosis.title if cell.diagnosis else "",
            cell.signature,
            cell.diagnosis.proofs if cell.diagnosis else (),
            _timing_of(cell),
            cell.flaky,
            cell.demanded,
            tuple(sorted((node, str(kind)) for node, kind in unasked(cell, variant).items())),
            _gpu(cell.stamps) if cell.stamps else None,
            tuple(_beside(each, cell) for each in cell.by_gpu[1:] if each.cls not in UNJUDGED),
        )
    if cell.cls is Class.NOT_APPLICABLE:
        return Side(None, why="does not apply")
    if cell.claims:
        claim = variant.expectations[cell.claims[0]]
        if claim.outcome not in UNJUDGED:
            return _claimed(claim)
    if cell.cls is Class.INFRA_ERROR:
        return Side(None, why="could not be judged")
    return Side(None, why="result out of date" if cell.stale else NOT_RUN)


def _claimed(claim: Expectation) -> Side:
    """Return what a claim says, with the cause that its signature has whatever the model."""
    advice = None if claim.outcome in GOOD else general_advice(claim.signature)
    return Side(
        drawn(claim),
        claim.grade,
        claim.graded,
        why=advice.title if advice else "",
        signature=claim.signature,
        proofs=advice.proofs if advice else (),
        claim=claim,
        seen=seen_by(claim),
    )


def _beside(result: GpuResult, cell: CellView) -> Side:
    """Return what another GPU found, of which no nodes and samples are at hand."""
    return Side(
        result.cls,
        Grade.MEASURED,
        str(Grade.MEASURED),
        result.chip,
        signature=result.signature,
        flaky=result.flaky,
        demanded=cell.demanded,
        gpu=result.key,
    )


def _gpu(stamps: Stamps) -> tuple[str, str] | None:
    gpu = gpu_of(stamps)
    return (gpu.compute_capability, gpu.product) if gpu else None


def _ran_in(cell: CellView, node: str) -> str:
    """Return the precision that a node ran in; "" where that is not told, which is not to have lost it."""
    found = cell.precision.get(node, Precision.UNKNOWN)
    return "" if found is Precision.UNKNOWN else str(found)


def _timing_of(cell: CellView) -> SideTiming | None:
    timing = cell.latency
    if timing is None:
        return None
    environment = cell.stamps.environment if cell.stamps else {}
    stack = (timing.clock, *(environment.get(key, "") for key in STACK))
    return SideTiming(_six(timing.median), stack, _interval(timing))


def _interval(timing: Timing) -> tuple[float, float] | None:
    if timing.noise or not timing.samples or timing.clock not in RUN_TO_RUN:
        return None
    low, high = interval(timing.samples)
    return (_six(low), _six(high)) if 0 < low <= high < math.inf else None


def _six(value: float) -> float:
    return float(f"{value:.6g}")
