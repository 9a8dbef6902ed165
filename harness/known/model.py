"""A `Known`, and the targets, cases and variants around it, as results.json and comparisons hold them: frozen data."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.case import Expectation, Link
from harness.engines import ENGINES
from harness.history.changes import CellHistory
from harness.known.listed import Finding
from harness.record.outcome import Accuracy, Stamps
from harness.words import UNJUDGED, Basis, Class, Engine, Precision, Role, Verdict


@dataclass(frozen=True)
class TargetView:
    """A column. `family` is the group it stands in; `series` names targets whose versions can be compared.

    `short` is the version as a reader says it ("8.6"); `stamps` are those of the latest run shown, if any; `commands`
    are the lines that make its container by hand; the last one starts it, and takes a command. `gpus` are those that it
    runs on, by product, of the compute capabilities that `compute_capability` takes in; these and the following are ""
    where nothing says so.
    """

    id: str
    label: str
    family: str
    series: str
    engine: str
    version: str
    short: str
    platform: str
    image: str
    needs: str
    notes: str = ""
    stamps: Stamps | None = None
    commands: tuple[str, ...] = ()
    gpus: str = ""
    compute_capability: str = ""
    driver: str = ""
    cuda: str = ""
    jetpack: str = ""
    released: str = ""
    sources: tuple[Link, ...] = ()

    @property
    def product(self) -> str:
        """Return product and platform: "TensorRT on Jetson"."""
        name = ENGINES[Engine(self.engine)].product
        return f"{name} on Jetson" if self.platform == "jetson" else name

    @property
    def name(self) -> str:
        """Return its name for owners of the hardware: the board and its JetPack first, the id last."""
        if self.jetpack:
            board = f"{self.gpus or 'Jetson'}, JetPack {self.jetpack}"
            return f"{board} \N{EN DASH} TensorRT {self.version} ({self.id})"
        chosen = f": {self.gpus}" if ", SM" in self.series and self.gpus else ""
        return f"{self.label}{chosen} ({self.id})"


@dataclass(frozen=True)
class NodeView:
    """A node: the name that engines report it under, operator, and tensors in the operator's order ("" for none)."""

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class GraphView:
    """A model's graph; `types` are "float32 1x3x64x64" by tensor, of initialisers too, where they can be inferred."""

    nodes: tuple[NodeView, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    types: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Span:
    """One sentence on how a variant fares along one series."""

    series: str
    text: str


@dataclass(frozen=True)
class VariantView:
    """A row; `reproduced` says where a claimed failure was measured, "" where nobody claims one.

    `wanted` are nodes with the precision that they should run in; readers filter rows by `topics`.
    """

    case: str
    name: str
    title: str
    role: Role
    counterpart: str | None
    wanted: tuple[tuple[str, Precision], ...]
    recipe: dict[str, Any]
    recipe_text: str
    recipe_sha256: str
    model_sha256: str
    claims: tuple[Expectation, ...]
    tags: tuple[str, ...]
    topics: tuple[str, ...] = ()
    sentences: tuple[Span, ...] = ()
    reproduced: str = ""
    graph: GraphView = field(default_factory=GraphView)

    @property
    def id(self) -> str:
        """Return `case.variant`."""
        return f"{self.case}.{self.name}"


@dataclass(frozen=True)
class CaseView:
    """A section of rows; `seed` is its place among the problems that the project began with, None for others."""

    name: str
    title: str
    summary: str
    links: tuple[Link, ...]
    variants: tuple[VariantView, ...]
    seed: int | None = None


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
    over the median, `upload` the median of copying the inputs to the device; `before` and `after` are readings of the
    GPU's sensors.
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
    """The one account of a cell: class, basis, precision, numbers, claims.

    `cls` is the record's class; of a cell without one that of the nearest claim. `basis` is None where nothing is known
    and `evidence` is False where cases/measured.yaml alone has the measurement. `stands` is the class that a step
    compares: that of the claim where an engine was only built and others say that it fails when it is run. `text` is a
    predicate ("builds (INT8 1/1)"), `reason` a sentence. `claims` are indices into the variant's claims, the nearest
    first. `stale` says that a result of another model, recipe or engine version exists and is not shown. `precision` is
    by node, `other` of the nodes that are wanted in no precision and not fused with one that is; `chip` is it in short.
    `why` has a sentence for each node that multiplies and ran coarser than asked or allowed, from the tactics tried.
    `demanded` is False for the baseline, which need not keep a precision. `instead` are `case.variant` ids to use
    meanwhile on this target. `static` is the gravest finding against the graph without a run: with no record and no
    claim a blocked, reported or restricted one is the basis, and a blocked one stands. `gpu` is compute capability and
    product, `by_gpu` the results of all GPUs that took part, the worst first, where any did. `stamps` is the id of the
    run, `when` the cell's UTC time, `by_hand` lines to paste that do the same without this project.
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
    why: tuple[str, ...] = ()
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
    static: Finding | None = None
    stamps: str = ""
    when: str = ""
    by_hand: tuple[str, ...] = ()

    @property
    def measured(self) -> bool:
        """Tell whether a record is the evidence."""
        return self.basis is Basis.MEASURED and self.evidence

    @property
    def claim(self) -> int | None:
        """Return the claim that the cell stands on where no record does, or that says how a built engine fails."""
        rests = self.claims and (not self.measured or self.verdict is Verdict.FAILS_WHEN_RUN)
        return self.claims[0] if rests and self.stands is not None else None

    def nodes(self, wanted: Sequence[tuple[str, Precision]]) -> tuple[str, ...]:
        """Return the precision of each wanted node, "" where that is not told; () where no layers are known."""
        if self.layers is None:
            return ()
        found = (self.precision.get(node, Precision.UNKNOWN) for node, _ in wanted)
        return tuple("" if kind is Precision.UNKNOWN else str(kind) for kind in found)

    @property
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
    """Return a short hash of a timing's stack: the clock and the machine."""
    seen = (clock, *(stamps.environment.get(key, "") for key in _STACK))
    return hashlib.sha256("\n".join(seen).encode()).hexdigest()[:12]
