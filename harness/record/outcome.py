"""The record of one cell, all observations and no conclusions, and the form of its log.

Records are immutable and round-trip through JSON. Everything right of the store works from these alone. A log is
entries `[kind] text`. A line that continues an entry and looks like the beginning of another gets a blank before it, so
that an engine's text can neither pass for a note of the harness nor get lost. The first entry, `stamps`, names the cell
and run; `left out` counts texts beyond the bounds of log and record.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.plan import Cell
from harness.record.from_json import check_schema, decode

#: Raised when the meaning of a field changes; the store refuses records of another number.
RECORD_SCHEMA = 2

STAMPS, LEFT_OUT = "stamps", "left out"
#: The stamps and facts of a record that its log repeats.
_STAMPED = (
    "model_sha256",
    "recipe_sha256",
    "engine_version",
    "via",
    "image",
    "image_digest",
    "when",
    "run",
    "harness_commit",
)
_FACTS = ("compute_capability", "driver", "gpu")
#: A format of a tensor; strides of a dynamic shape are terms, `Half((* 512 (# 1 (SHAPE x))):2,8,1)`.
FORMAT = r"\w+\((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*\)"
_FORMAT = re.compile(FORMAT)
_LOOKS_LIKE_AN_ENTRY = re.compile(r"\n(?= *\[)")
_BLANK = "\n "

#: How the reason of a variant begins that applies to no target, as one of its inputs cannot be fed.
UNFED = "input "
State = Literal["done", "not_run", "not_applicable", "infra_error"]
#: How the process that held the engine ended.
EndKind = Literal["finished", "exited", "signalled", "out_of_memory", "timed_out"]


@dataclass(frozen=True)
class Message:
    """One line of the engine's logger: severity (ERROR, WARNING, INFO, VERBOSE, INTERNAL_ERROR) and text."""

    severity: str
    text: str


@dataclass(frozen=True)
class ParserError:
    """One entry of the ONNX parser's error list; `node` is the ONNX node name if the version gives it."""

    text: str
    code: str = ""
    node: str = ""
    operator: str = ""


@dataclass(frozen=True)
class End:
    """The end of a job, and of its child process unless that was kept for the next.

    detail: a sentence ("killed by SIGSEGV").
    peak_rss_bytes: the high-water mark of the job's processes, None for a child that had done other cells' jobs.
    jobs_before: how many jobs the child had done.
    cuda_error: the first error of CUDA that the job left behind.
    """

    kind: EndKind
    detail: str = ""
    exit_code: int | None = None
    signal: str | None = None
    peak_rss_bytes: int | None = None
    jobs_before: int = 0
    cuda_error: str = ""


@dataclass(frozen=True)
class TensorUse:
    """A tensor at a layer's edge; `precision` is a word of `harness.words.Precision`."""

    name: str
    precision: str
    dimensions: tuple[int, ...] = ()
    format: str = ""


@dataclass(frozen=True)
class Layer:
    """One engine layer, normalised across engines and schemas.

    precision: the type that the layer computes in; for a convolution that of its data and weights.
    onnx_nodes: the effective names (`harness.case.effective_name`) of the nodes it came from.
    time_ms: the median of a profiled run, None if it was not profiled.
    """

    name: str
    type: str
    precision: str
    inputs: tuple[TensorUse, ...] = ()
    weights: tuple[TensorUse, ...] = ()
    outputs: tuple[TensorUse, ...] = ()
    tactic: str = ""
    onnx_nodes: tuple[str, ...] = ()
    time_ms: float | None = None


@dataclass(frozen=True)
class Combination:
    """One combination of formats that the builder offered for a layer, `Int8(4096,4096:32,64,1) -> Float(4096,64,1)`.

    time_us: the time of the fastest tactic, None if the builder timed no tactic.
    tactic: the fastest of the `timed` ones.
    refused: the number of runners without a valid tactic.
    short_of_memory: a tactic was skipped for lack of memory.
    """

    formats: str
    time_us: float | None = None
    tactic: str = ""
    timed: int = 0
    refused: int = 0
    short_of_memory: bool = False

    @property
    def sides(self) -> tuple[str, ...]:
        """Return the formats of the inputs, then of the outputs."""
        return (*self.inputs, *self.outputs)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Return the formats of the inputs."""
        return _formats(self.formats.partition("->")[0])

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the formats of the outputs."""
        return _formats(self.formats.partition("->")[2])


def _formats(text: str) -> tuple[str, ...]:
    return tuple(_FORMAT.findall(text))


@dataclass(frozen=True)
class Conversion:
    """A conversion between two formats: its price, or one that the engine makes at input or output `at` of a layer.

    A price with a `side` is that of the node there, a Cast, Q or DQ, whose name is `tensor`: it converts anyway.
    """

    source: str
    target: str
    time_us: float | None = None
    tensor: str = ""
    side: str = ""
    at: int = 0


@dataclass(frozen=True)
class Tactics:
    """The builder's tries for a layer: its combinations, prices of their conversions, and the conversions made."""

    layer: str
    combinations: tuple[Combination, ...]
    prices: tuple[Conversion, ...] = ()
    added: tuple[Conversion, ...] = ()


@dataclass(frozen=True)
class Accuracy:
    """One output against the ONNX reference evaluator on the same inputs.

    `max_abs` is absolute, `max_rel` is max_abs over the reference's largest magnitude, `cosine` in [-1, 1];
    `not_finite` counts NaN and infinities that the reference does not have (the other figures then leave them out).
    `elements` are those compared, 0 in old records; `differing` counts those of an output of BOOL, INT32 or INT64 that
    differ, indices and classes, whose distance says little.
    """

    output: str
    max_abs: float
    max_rel: float
    cosine: float
    not_finite: int = 0
    shape_matches: bool = True
    elements: int = 0
    differing: int | None = None


#: Phases that need a built engine.
ON_AN_ENGINE = frozenset({"load", "run", "time", "profile"})
#: The entry beside the sensors: the processes of others that nvidia-smi listed on the GPU.
OTHERS = "other_processes"


@dataclass(frozen=True)
class Latency:
    """All samples of the timed run, in milliseconds, in the order taken.

    clock: the clock of the samples: CUDA's events around the launches of an engine, or around one of its CUDA graph.
    scope: the work between its two readings, in words.
    before, after: readings of the GPU's sensors, by name with unit; empty if no sensor can be read.
    """

    samples_ms: tuple[float, ...]
    warmup: int
    clock: Literal["cuda_events", "cuda_graph", "monotonic"]
    scope: str = ""
    before: dict[str, str] = field(default_factory=dict)
    after: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Node:
    """An ONNX node of the model: its effective name and operator, and the precision that the graph itself asks of it.

    precision: a word of `harness.words.Precision`, "" without a request; for a node that only changes a type, the
        type that it brings into the graph (harness/layers/asked.py).
    fed: the way in which quantised data come to it, if engines are known to stumble over that.
    """

    name: str
    op: str
    precision: str = ""
    fed: str = ""


@dataclass(frozen=True)
class Stamps:
    """The machine, versions and inputs of an outcome, by which two outcomes are comparable or not.

    when: UTC, ISO 8601.
    environment: facts from the agent: engine and Python version, CUDA, driver, GPU, its UUID and compute capability,
        CPU, C library. A record that was sent in lacks the UUID.
    harness_commit: the commit of the harness's checkout, with a "+" for local changes; "" if it was installed.
    account: the sender of the record; "" for the project's own.
    """

    model_sha256: str = ""
    recipe_sha256: str = ""
    engine_version: str = ""
    via: str = ""
    image: str = ""
    image_digest: str = ""
    packages: tuple[str, ...] = ()
    harness_version: str = ""
    when: str = ""
    run: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    harness_commit: str = ""
    account: str = ""


_NONE = Stamps()


@dataclass(frozen=True)
class Outcome:
    """Everything observed in one cell.

    reason: one sentence for a cell that did not run.
    phases: seconds, in the order they ran.
    failed_phase: the phase that did not finish.
    missing_api: the exact name that the recipe needs and this version lacks.
    messages: the engine's, cut, without VERBOSE lines and repetitions beyond three.
    log_sha256: the hash of the whole log in the store, with the native library's own output.
    uncompared: one sentence on why the numbers of a cell that ran were not compared. If they have an `accuracy` all the
        same, it is against ONNX Runtime without its optimisations.
    builds_beside: the number of other builds on the GPU during its own.
    key: a hash of all that could have changed it (`run/key.py`), "" if another run must not reuse it.
    """

    cell: str
    case: str
    variant: str
    target: str
    state: State
    reason: str = ""
    end: End | None = None
    phases: dict[str, float] = field(default_factory=dict)
    failed_phase: str | None = None
    missing_api: str | None = None
    error: str = ""
    parser_errors: tuple[ParserError, ...] = ()
    messages: tuple[Message, ...] = ()
    native_output: str = ""
    log_sha256: str | None = None
    nodes: tuple[Node, ...] = ()
    layers: tuple[Layer, ...] = ()
    layer_source: str = ""
    unparsed_layers: int = 0
    tactics: tuple[Tactics, ...] = ()
    engine_bytes: int | None = None
    ran: bool = False
    accuracy: tuple[Accuracy, ...] = ()
    uncompared: str = ""
    latency: Latency | None = None
    builds_beside: int = 0
    stamps: Stamps = field(default_factory=Stamps)
    key: str = ""
    schema: int = RECORD_SCHEMA

    @staticmethod
    def blank(cell: Cell, state: State, reason: str, stamps: Stamps | None = None) -> Outcome:
        """Return the record of a cell without observations, with the reason."""
        return Outcome(
            cell=cell.id,
            case=cell.case.name,
            variant=cell.variant.name,
            target=cell.target.name,
            state=state,
            reason=reason,
            stamps=stamps or _NONE,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain JSON data."""
        return dataclasses.asdict(self)

    def as_read(self) -> Outcome:
        """Return the record as it comes back from its JSON; raises ValueError or TypeError if it would not.

        A record that was written and cannot be read cost every reader of its folder.
        """
        return Outcome.from_json(json.loads(json.dumps(self.to_json(), allow_nan=False)))

    @staticmethod
    def from_json(data: dict[str, Any]) -> Outcome:
        """Rebuild a record; raises ValueError for another schema, TypeError for a missing or wrong field."""
        check_schema(data, RECORD_SCHEMA)
        return decode(Outcome, data)


def entry(kind: str, text: str) -> str:
    """Return an entry as it stands in a log."""
    blank = "" if text.startswith("\n") else " "
    return f"[{kind}]{blank}{_LOOKS_LIKE_AN_ENTRY.sub(_BLANK, text)}"


def whole_log(outcome: Outcome, lines: Sequence[str]) -> str:
    """Return a cell's log: its stamps, then the entries noted while it ran."""
    stamps = outcome.stamps
    facts = {name: stamps.environment.get(name, "") for name in _FACTS}
    stamped = {"cell": outcome.cell, **{name: str(getattr(stamps, name)) for name in _STAMPED}, **facts}
    return "\n".join([entry(STAMPS, json.dumps(stamped, sort_keys=True)), *lines])
