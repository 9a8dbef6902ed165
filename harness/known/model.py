"""A `Known`, and the targets, cases and variants around it, as results.json and comparisons hold them: frozen data."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from harness.case import Expectation, Link
from harness.engines import ENGINES
from harness.history import CellHistory
from harness.known.listed import Objection
from harness.record.outcome import Accuracy, Stamps
from harness.words import UNJUDGED, Basis, Class, Engine, Precision, Role, Verdict


@dataclass(frozen=True)
class TargetView:
    """A column; a fact without a source is "".

    family: the group of the column.
    series: the name of targets whose versions can be compared.
    short: the version as readers write it ("8.6").
    stamps: the stamps of the latest run shown, if any.
    commands: the lines that make its container by hand; the last one starts it and takes a command.
    gpus: the products that it runs on, by `compute_capability`.
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
    """A node: the engines' name of it, operator, and tensors in the operator's order ("" for one left out)."""

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class GraphView:
    """A model's graph; `types` are "float32 1x3x64x64" by tensor or initialiser, as far as inferred."""

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
    """A row.

    wanted: nodes with the precision that they should run in.
    topics: the words that readers filter rows by.
    reproduced: the targets that showed a claimed failure in a measurement, "" without such a claim.
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
    """A section of rows; `seed` is its place among the project's first problems, None for others."""

    name: str
    title: str
    summary: str
    links: tuple[Link, ...]
    variants: tuple[VariantView, ...]
    seed: int | None = None


#: Two timings are compared if they share these stamps; the engine, its libraries and its image may differ.
_STACK = ("cpu", "cpus", "kernel", "machine", "gpu", "cuda_driver_api", "driver")


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
class Yet:
    """A type, an operator or a call that a version does not have yet, and the first release that has it."""

    what: str
    since: str

    def __str__(self) -> str:
        """Return it with the first release in words."""
        return f"{self.what}, from {self.since} on"


#: The predicate of a variant that a version lacks something for that came later.
NOT_THERE_YET = "not there yet"


@dataclass(frozen=True)
class Timing:
    """Latency in milliseconds over `n` samples.

    low, high: an interval that holds the median with 99.5 %; None if the samples allow no comparison.
    noise: why the samples allow no comparison.
    stack: a hash of the machine; timings of different stacks are not compared.
    spread: the interquartile range over the median.
    before, after: readings of the GPU's sensors.
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
        """Return compute capability and product; None without a GPU."""
        return (self.compute_capability, self.gpu) if self.compute_capability else None


@dataclass(frozen=True)
class Layers:
    """The file of a cell's layers beside the report, by hash, and their number."""

    sha256: str
    count: int
    source: str = ""
    unparsed: int = 0


@dataclass(frozen=True)
class Known:
    """The one account of a cell: class, basis, precision, numbers, claims.

    cls: the record's class; without a record, the class of the nearest claim.
    basis: None if the cell is not known.
    evidence: False if only cases/measured.yaml has the measurement.
    stands: the class that a step compares; for an engine that only built here and that a claim says fails when
        run, the claim's class.
    text: a predicate, "builds (INT8 1/1)".
    reason: a sentence.
    claims: indices into the variant's claims, the nearest first.
    stale: a result of another model, recipe or engine version exists and is not shown.
    precision: the precision of each node.
    other: the precision of nodes without a wanted one that share no layer with a wanted node.
    chip: the precision in short.
    why: a sentence for each node that multiplies and ran coarser than asked or allowed.
    toss_ups: those of the nodes whose choice another build may make otherwise.
    demanded: False for the baseline, which need not keep a precision.
    instead: `case.variant` ids to use meanwhile, measured to work on this target unless `instead_tried` says where.
    not_yet: what it failed for that its version does not have yet.
    static: the gravest finding against the graph without a run; the basis if there is no record and no claim.
    gpu: compute capability and product.
    by_gpu: the results of all GPUs that took part, the worst first.
    stamps: the id of the run.
    when: the cell's UTC time.
    by_hand: lines to paste that do the same without this project.
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
    toss_ups: tuple[str, ...] = ()
    demanded: bool = True
    accuracy: tuple[Accuracy, ...] = ()
    latency: Timing | None = None
    phases: dict[str, float] = field(default_factory=dict)
    failed_phase: str | None = None
    missing_api: str | None = None
    not_yet: Yet | None = None
    engine_bytes: int | None = None
    attention_kernel: str | None = None
    errors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    log: str | None = None
    layers: Layers | None = None
    instead: tuple[str, ...] = ()
    instead_tried: str = ""
    flaky: tuple[Class, ...] = ()
    past: CellHistory | None = None
    gpu: tuple[str, str] | None = None
    by_gpu: tuple[OnGpu, ...] = ()
    static: Objection | None = None
    stamps: str = ""
    when: str = ""
    by_hand: tuple[str, ...] = ()

    @property
    def measured(self) -> bool:
        """Tell whether a record is the evidence."""
        return self.basis is Basis.MEASURED and self.evidence

    @property
    def claim(self) -> int | None:
        """Return the claim that stands in for a record, or that says how a built engine fails."""
        rests = self.claims and (not self.measured or self.verdict is Verdict.FAILS_WHEN_RUN)
        return self.claims[0] if rests and self.stands is not None else None

    def nodes(self, wanted: Sequence[tuple[str, Precision]]) -> tuple[str, ...]:
        """Return the precision of each wanted node, "" if it is not reported; () without layers."""
        if self.layers is None:
            return ()
        found = (self.precision.get(node, Precision.UNKNOWN) for node, _ in wanted)
        return tuple("" if kind is Precision.UNKNOWN else str(kind) for kind in found)

    @cached_property
    def beside(self) -> tuple[Known, ...]:
        """Return the cell on each further GPU, without nodes and samples."""
        return tuple(
            replace(
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
                toss_ups=(),
                layers=None,
                latency=None,
                by_gpu=(),
            )
            for each in self.by_gpu[1:]
            if each.cls not in UNJUDGED
        )


def stack_of(clock: str, stamps: Stamps) -> str:
    """Return a short hash of a timing's stack: the clock and the machine."""
    seen = (clock, *(stamps.environment.get(key, "") for key in _STACK))
    return hashlib.sha256("\n".join(seen).encode()).hexdigest()[:12]
