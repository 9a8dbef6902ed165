"""What every part of the report is made from: the whole matrix with what is known of each cell.

Plain, frozen data. `Results.to_json` is the contract behind `reports/results.json`, and `Results.from_json` reads it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from harness.case import Expectation, Link
from harness.engines import ENGINES
from harness.history import CellHistory
from harness.record.from_json import check_schema, decode, fields_of
from harness.record.outcome import Accuracy, End, Layer, Message, ParserError, Stamps
from harness.report.by_gpu import GpuResult
from harness.report.graph import GraphView
from harness.report.model_json import cell_fields, cells_of, check_claims, graded
from harness.words import Class, Engine, Grade, Precision, Role, Verdict

#: Raised when the meaning of a field of results.json changes.
RESULTS_SCHEMA = 2


@dataclass(frozen=True)
class TargetView:
    """A column. `family` is the group it stands in; `series` names targets whose versions can be compared.

    `short` is the version as a reader says it ("8.6"); `stamps` are those of the latest run shown, if any; `commands`
    are the lines that make its container by hand; the last one starts it, and takes a command. `gpus` are those that it
    runs on, by product, of the compute capabilities that `compute_capability` takes in; these and what follows are ""
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
        """Return what it is a version of, and on which platform: "TensorRT on Jetson"."""
        name = ENGINES[Engine(self.engine)].product
        return f"{name} on Jetson" if self.platform == "jetson" else name


@dataclass(frozen=True)
class Span:
    """One sentence on how a variant fares along one series; `claimed` says that nothing in it was run here."""

    series: str
    text: str
    claimed: bool = False


@dataclass(frozen=True)
class Change:
    """What changed for a variant between two versions of a series with none measured between them.

    `what` is "class", "precision" or "layers"; `better` is None where neither side is the better one. `versions` is
    "1.6 to 1.7"; `shared` is what other variants may have in common with this one, `detail` what is its own.
    """

    case: str
    variant: str
    series: str
    before: str
    after: str
    what: str
    better: bool | None
    versions: str = ""
    shared: str = ""
    detail: str = ""

    @property
    def text(self) -> str:
        """Return the change in a sentence."""
        return f"{self.versions}: {', '.join(filter(None, (self.shared, self.detail)))}"


@dataclass(frozen=True)
class VariantView:
    """A row; `reproduced` says where a claimed failure was measured, "" where nobody claims one.

    `scripts` are Python files that do by hand what its cells do, each without its first line, which is the cell's.
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
    expectations: tuple[Expectation, ...]
    tags: tuple[str, ...]
    spans: tuple[Span, ...] = ()
    reproduced: str = ""
    scripts: tuple[str, ...] = ()
    graph: GraphView = field(default_factory=GraphView)

    @property
    def ops(self) -> dict[str, str]:
        """Return the operator by node name."""
        return {node.name: node.op for node in self.graph.nodes}

    @cached_property
    def int8(self) -> list[tuple[int, str]]:
        """Return of the nodes that are wanted in INT8 the place among the wanted ones, and the operator."""
        ops = self.ops
        wanted = enumerate(self.wanted)
        return [(at, ops.get(node, "?")) for at, (node, want) in wanted if want is Precision.INT8]


@dataclass(frozen=True)
class CaseView:
    """A section of rows."""

    name: str
    title: str
    summary: str
    links: tuple[Link, ...]
    variants: tuple[VariantView, ...]


@dataclass(frozen=True)
class Advice:
    """A diagnosis as the reader sees it: what it is called, why it happens, what to do.

    `proofs` are `case.variant` ids that show that the advice helps; `place` is the operator and node, where known.
    """

    id: str
    title: str
    cause: str
    advice: str
    proofs: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    place: str = ""


@dataclass(frozen=True)
class Timing:
    """Latency in milliseconds: median and 95th percentile of all samples, and the samples as taken.

    `spread` is the interquartile range over the median; `noise` says why the samples carry no comparison, and is
    empty where they do. `upload` is the median of copying the inputs to the device, apart from the samples. `before`
    and `after` are what the GPU's sensors said.
    """

    median: float
    p95: float
    samples: tuple[float, ...]
    warmup: int
    clock: str
    spread: float
    noise: str = ""
    scope: str = ""
    upload: float | None = None
    before: dict[str, str] = field(default_factory=dict)
    after: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CellView:
    """One cell: what it amounts to, and the evidence.

    `claims` are indices into the variant's expectations that are about this target, the one that is judged first, and
    `grade` is how sure that one is.
    `chip` is the precision in short ("INT8 2/2"). `stale` says that an outcome of another model, recipe or engine
    version exists and is not shown. `flaky` are the classes seen where runs on the same stack disagree. `by_hand` are
    lines to paste that do the same without this project, in the folder of the model and of the Python file, if there is
    one: its first line is `script_head`, the rest the variant's script number `script`. Lines with # are remarks.
    `command` is what they run, for where the engine is installed. `demanded` says that the engine has to keep the
    precision wanted; the baseline need not. `by_gpu` are the results on all GPUs that took part, of which the worst is
    the cell's own. `attention_kernel` is the fused kernel that runs the graph's attention, "" where there is none.
    """

    id: str
    case: str
    variant: str
    target: str
    cls: Class
    verdict: Verdict
    reason: str
    sentence: str
    signature: str | None = None
    expectation: int | None = None
    claims: tuple[int, ...] = ()
    grade: Grade | None = None
    stale: bool = False
    lost: tuple[str, ...] = ()
    diagnosis: Advice | None = None
    notes: tuple[str, ...] = ()
    chip: str = ""
    phases: dict[str, float] = field(default_factory=dict)
    failed_phase: str | None = None
    missing_api: str | None = None
    end: End | None = None
    error: str = ""
    parser_errors: tuple[ParserError, ...] = ()
    messages: tuple[Message, ...] = ()
    messages_left_out: int = 0
    native_output: str = ""
    log_sha256: str | None = None
    precision: dict[str, Precision] = field(default_factory=dict)
    layers: tuple[Layer, ...] = ()
    attention_kernel: str | None = None
    layer_source: str = ""
    unparsed_layers: int = 0
    engine_bytes: int | None = None
    accuracy: tuple[Accuracy, ...] = ()
    latency: Timing | None = None
    stamps: Stamps | None = None
    flaky: tuple[Class, ...] = ()
    history: CellHistory | None = None
    by_hand: tuple[str, ...] = ()
    command: str = ""
    script: int | None = None
    script_head: str = ""
    demanded: bool = True
    by_gpu: tuple[GpuResult, ...] = ()

    @property
    def measured(self) -> bool:
        """Tell whether the cell shows what an engine did here."""
        return self.cls not in (Class.NOT_RUN, Class.NOT_APPLICABLE, Class.INFRA_ERROR)


@dataclass(frozen=True)
class RanOn:
    """What one run measured of a target on one stack: so many cells, by this engine version, on this GPU or CPU."""

    target: str
    engine: str
    device: str
    driver: str
    cells: int


@dataclass(frozen=True)
class RunView:
    """A run of the past: its id, the UTC time of its first cell, and what it measured."""

    id: str
    when: str
    on: tuple[RanOn, ...] = ()


@dataclass(frozen=True)
class SentIn:
    """Of how many cells an account sent records in, measured on one GPU with one commit of the harness."""

    account: str
    gpu: str = ""
    commit: str = ""
    cells: int = 0


@dataclass(frozen=True, repr=False)
class Results:
    """The whole matrix; cells are in case, variant, target order, runs from the oldest on.

    `matrix_sha256` is the hash of all that matrix.yaml decides of what runs where.
    """

    targets: tuple[TargetView, ...]
    cases: tuple[CaseView, ...]
    cells: tuple[CellView, ...]
    changes: tuple[Change, ...] = ()
    runs: tuple[RunView, ...] = ()
    matrix_sha256: str = ""
    submissions: tuple[SentIn, ...] = ()
    #: What a check tried beyond its models as they are; plain data, as results.schema.json has it.
    further: tuple[dict[str, Any], ...] = ()

    def __repr__(self) -> str:
        measured = sum(cell.measured for cell in self.cells)
        return f"<Results: {len(self.cells)} cells on {len(self.targets)} targets, {measured} measured>"

    def cell(self, case: str, variant: str, target: str) -> CellView:
        """Return one cell; KeyError if the matrix has no such cell."""
        for cell in self.cells:
            if (cell.case, cell.variant, cell.target) == (case, variant, target):
                return cell
        raise KeyError(f"{case}.{variant}-{target}")

    def to_json(self) -> dict[str, Any]:
        """Return the contract of results.json by key; `vars` makes plain data of the dataclasses in it."""
        return {
            "schema": RESULTS_SCHEMA,
            "matrix_sha256": self.matrix_sha256,
            "targets": self.targets,
            "cases": self.cases,
            "changes": [{**fields_of(change), "text": change.text} for change in self.changes],
            "runs": self.runs,
            "submissions": self.submissions,
            "cells": list(cells_of(self)),
            **({"further": self.further} if self.further else {}),
        }

    @staticmethod
    def from_json(data: Any) -> Results:  # noqa: ANN401  (JSON)
        """Rebuild what `to_json` returned, of this or another version of the harness.

        Raises ValueError for another schema and for cells of no variant, TypeError for a missing or wrong field.
        """
        check_schema(data, RESULTS_SCHEMA)
        cells = data.get("cells")
        fields = {**data, "cells": list(map(cell_fields, cells)) if isinstance(cells, list) else cells}
        results = decode(Results, fields)
        check_claims(results)
        return graded(results)
