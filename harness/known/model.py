"""A `Known`: class, basis, precision, numbers and claims of one cell, as results.json holds it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from harness.history import CellHistory
from harness.record.outcome import Accuracy
from harness.words import UNJUDGED, Basis, Class, Precision, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.record.outcome import Stamps

#: Stamps that two timings share where they are compared; the engine, its libraries and its image may differ.
_STACK = ("cpu", "cpus", "kernel", "machine", "gpu", "gpu_uuid", "cuda_driver_api", "driver")


@dataclass(frozen=True)
class Advice:
    """A signature for readers: title, cause, advice; `proofs` are `case.variant` ids, `place` is operator and node."""

    id: str
    title: str
    cause: str
    advice: str
    proofs: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    place: str = ""


@dataclass(frozen=True)
class Timing:
    """Latency in milliseconds over `n` samples.

    `low` and `high` enclose the median with 99.5 %; None where the samples carry no comparison, and `noise` says why.
    `stack` is short for the machine: timings of different stacks are not compared. `spread` is the interquartile range
    over the median, `upload` the median of copying the inputs to the device; `before` and `after` are what the GPU's
    sensors read.
    """

    median: float
    p95: float
    n: int
    clock: str
    low: float | None = None
    high: float | None = None
    noise: str = ""
    stack: str = ""
    spread: float = 0.0
    warmup: int = 0
    scope: str = ""
    upload: float | None = None
    before: dict[str, str] = field(default_factory=dict)
    after: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class OnGpu:
    """A cell on one GPU; both names are "" for a result without one beside others. `driver` is the version.

    `median_ms` is the latency, `when` the UTC time, `log` the log's hash.
    """

    compute_capability: str
    gpu: str
    driver: str
    cls: Class
    verdict: Verdict
    text: str
    reason: str
    signature: str | None = None
    chip: str = ""
    median_ms: float | None = None
    when: str = ""
    log: str | None = None
    flaky: tuple[Class, ...] = ()

    @property
    def key(self) -> tuple[str, str] | None:
        """Return compute capability and product; None where no GPU took part."""
        return (self.compute_capability, self.gpu) if self.compute_capability else None


@dataclass(frozen=True)
class Layers:
    """Where a cell's layers lie beside the report, by hash, and how many there are."""

    sha256: str
    count: int
    source: str = ""
    unparsed: int = 0


@dataclass(frozen=True)
class Known:
    """What is known of a cell.

    `cls` is the record's class; of a cell without one that of the nearest claim. `basis` is None where nothing is known
    and `evidence` is False where cases/measured.yaml alone has the measurement. `stands` is the class that a step
    compares: that of the claim where an engine was only built and others say that it fails when it is run. `text` is a
    predicate ("builds (INT8 1/1)"), `reason` a sentence. `claims` are indices into the variant's claims, the nearest
    first. `stale` says that a result of another model, recipe or engine version exists and is not shown. `precision` is
    by node, `other` of the nodes that are wanted in no precision and not fused with one that is; `chip` is it in short.
    `demanded` is False for the baseline, which need not keep a precision. `instead` are `case.variant` ids to use
    meanwhile on this target. `gpu` is compute capability and product, `by_gpu` the results of all GPUs that took part,
    the worst first, where any did. `stamps` is the id of the run, `when` the cell's UTC
    time, `by_hand` lines to paste that do the same without this project.
    """

    id: str
    case: str
    variant: str
    target: str
    cls: Class
    verdict: Verdict
    basis: Basis | None = None
    evidence: bool = True
    stands: Class | None = None
    text: str = ""
    reason: str = ""
    signature: str | None = None
    diagnosis: Advice | None = None
    claims: tuple[int, ...] = ()
    stale: bool = False
    precision: dict[str, Precision] = field(default_factory=dict)
    other: dict[str, Precision] = field(default_factory=dict)
    chip: str = ""
    lost: tuple[str, ...] = ()
    demanded: bool = True
    accuracy: tuple[Accuracy, ...] = ()
    latency: Timing | None = None
    phases: dict[str, float] = field(default_factory=dict)
    failed_phase: str | None = None
    missing_api: str | None = None
    engine_bytes: int | None = None
    attention_kernel: str | None = None
    errors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    log: str | None = None
    layers: Layers | None = None
    instead: tuple[str, ...] = ()
    flaky: tuple[Class, ...] = ()
    past: CellHistory | None = None
    gpu: tuple[str, str] | None = None
    by_gpu: tuple[OnGpu, ...] = ()
    stamps: str = ""
    when: str = ""
    by_hand: tuple[str, ...] = ()

    @property
    def measured(self) -> bool:
        """Tell whether a record shows what an engine did."""
        return self.basis is Basis.MEASURED and self.evidence

    @property
    def claim(self) -> int | None:
        """Return the claim that the cell stands on where no record does, or that says how a built engine fails."""
        rests = self.claims and (not self.measured or self.verdict is Verdict.FAILS_WHEN_RUN)
        return self.claims[0] if rests and self.stands is not None else None

    def nodes(self, wanted: Sequence[tuple[str, Precision]]) -> tuple[str, ...]:
        """Return what each wanted node ran in, "" where that is not told; () where no layers are known."""
        if self.layers is None:
            return ()
        found = (self.precision.get(node, Precision.UNKNOWN) for node, _ in wanted)
        return tuple("" if kind is Precision.UNKNOWN else str(kind) for kind in found)

    @cached_property
    def beside(self) -> tuple[Known, ...]:
        """Return the cell on each further GPU, of which neither nodes nor samples are at hand."""
        return tuple(self._on_gpus())

    def _on_gpus(self) -> Iterator[Known]:
        for each in self.by_gpu[1:]:
            if each.cls not in UNJUDGED:
                yield replace(
                    self,
                    cls=each.cls,
                    stands=each.cls,
                    verdict=each.verdict,
                    text=each.text,
                    signature=each.signature,
                    chip=each.chip,
                    gpu=each.key,
                    flaky=each.flaky,
                    precision={},
                    other={},
                    layers=None,
                    latency=None,
                    by_gpu=(),
                )


def stack_of(clock: str, stamps: Stamps) -> str:
    """Return what a timing stands on, in short: the clock and the machine."""
    seen = (clock, *(stamps.environment.get(key, "") for key in _STACK))
    return hashlib.sha256("\n".join(seen).encode()).hexdigest()[:12]
