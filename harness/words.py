"""The closed vocabularies of the project; docs/architecture.md explains each word."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal, get_args


class Word(str, Enum):
    """A member of a closed vocabulary that prints and serialises as its own value."""

    def __str__(self) -> str:
        return str(self.value)


class Class(Word):
    """The class of a cell's outcome."""

    OK = "ok"
    BUILT = "built"
    PRECISION_LOST = "precision_lost"
    INACCURATE = "inaccurate"
    PARSE_FAILED = "parse_failed"
    BUILD_FAILED = "build_failed"
    NEEDS_GPU_TO_BUILD = "needs_gpu_to_build"
    LOAD_FAILED = "load_failed"
    RUN_FAILED = "run_failed"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    API_REMOVED = "api_removed"
    NOT_APPLICABLE = "not_applicable"
    NOT_RUN = "not_run"
    INFRA_ERROR = "infra_error"


#: The subject of a claim, and the part that a class breaks; each is reached after those before it.
Level = Literal["builds", "runs", "right numbers", "precision"]


@dataclass(frozen=True)
class Mark:
    """A class's state on the page, its badge (letters, and a shape of the style sheet), its name and meaning."""

    state: str
    letters: str
    shape: str
    name: str
    meaning: str


@dataclass(frozen=True)
class ClassRow:
    """All that is true of a class, for every room that has to tell one from another."""

    #: The class as the predicate of a sentence whose subject is the variant.
    predicate: str
    mark: Mark
    #: The levels that it reaches if it is good, and that it may break if not.
    levels: tuple[Level, ...] = ()
    #: The engine did all that was asked of it on this machine.
    good: bool = False
    #: The class is about the engine, and not about this machine or the harness.
    judged: bool = True
    #: An engine came of it, and everything finished.
    finished: bool = False
    #: The version lacks a call or a GPU, so that the graph itself was not put to the test.
    untried: bool = False
    #: A node of the graph may be the one to blame.
    of_a_node: bool = False
    #: The sizes of the inputs may be to blame.
    of_sizes: bool = False
    #: How a node's line begins where the engine says nothing of the failure (diagnosis.yaml, `graph`).
    silently: str = ""

    @property
    def breaks(self) -> Level | None:
        """Return the one level that a failing class breaks; None for one that may break either of two."""
        return self.levels[0] if not self.good and len(self.levels) == 1 else None

    @property
    def claimed(self) -> tuple[Level, ...]:
        """Return the levels that a claim of the class may name; () if there is but one to break."""
        return () if self.breaks else self.levels


#: A row for each class: first the unjudged ones, then by how far a cell got. The later, the worse.
CLASSES = {
    Class.NOT_APPLICABLE: ClassRow(
        "does not apply",
        Mark("unknown", "\N{EN DASH}", "none", "Not applicable", "makes no sense on this target"),
        judged=False,
    ),
    Class.NOT_RUN: ClassRow(
        "was not run",
        Mark("unknown", "·", "none", "Not run", "no result, and nothing claimed"),
        judged=False,
    ),
    Class.INFRA_ERROR: ClassRow(
        "was not judged (infrastructure)",
        Mark("unknown", "?", "tab", "Infrastructure", "the harness or machine failed, not the engine"),
        judged=False,
    ),
    Class.OK: ClassRow(
        "works",
        Mark("works", "OK", "circle", "Works", "built, ran, right numbers, wanted precision"),
        get_args(Level),
        good=True,
        finished=True,
    ),
    Class.BUILT: ClassRow(
        "builds",
        Mark("builds", "✓", "ring", "Built", "built in the wanted precision; no GPU here to run it on"),
        ("builds",),
        good=True,
        finished=True,
    ),
    Class.PRECISION_LOST: ClassRow(
        "loses precision",
        Mark("lost", "↓", "drop", "Precision lost", "a node does not run in the precision wanted"),
        ("precision",),
        finished=True,
        silently="lost",
    ),
    Class.INACCURATE: ClassRow(
        "gives wrong numbers",
        Mark("wrong", "≠", "drop", "Wrong numbers", "outputs differ from the ONNX reference"),
        ("right numbers",),
        finished=True,
        silently="wrong",
    ),
    Class.RUN_FAILED: ClassRow(
        "fails to run",
        Mark("fails", "R", "square", "Run failed", "the engine does not execute"),
        ("runs",),
        of_sizes=True,
    ),
    Class.LOAD_FAILED: ClassRow(
        "fails to load",
        Mark("fails", "L", "square", "Load failed", "the engine does not deserialise"),
        ("runs",),
        of_sizes=True,
    ),
    Class.API_REMOVED: ClassRow(
        "API removed",
        Mark(
            "removed", "A", "pill", "API removed", "the recipe needs a call that this version does not have"
        ),
        ("builds",),
        untried=True,
    ),
    Class.NEEDS_GPU_TO_BUILD: ClassRow(
        "needs a GPU to build",
        Mark(
            "unknown",
            "G",
            "square",
            "Needs a GPU to build",
            "this version makes no engine on a machine without a GPU",
        ),
        ("builds",),
        untried=True,
    ),
    Class.BUILD_FAILED: ClassRow(
        "fails to build",
        Mark("fails", "B", "square", "Build failed", "the builder makes no engine"),
        ("builds",),
        of_a_node=True,
        of_sizes=True,
    ),
    Class.PARSE_FAILED: ClassRow(
        "fails to parse",
        Mark("fails", "P", "square", "Parse failed", "the ONNX parser refuses the model"),
        ("builds",),
        of_a_node=True,
    ),
    Class.OUT_OF_MEMORY: ClassRow(
        "runs out of memory",
        Mark("fails", "M", "diamond", "Out of memory", "killed at the memory limit"),
        ("builds", "runs"),
        of_sizes=True,
    ),
    Class.TIMED_OUT: ClassRow(
        "times out",
        Mark("fails", "T", "diamond", "Timed out", "stopped at the time limit"),
        ("builds", "runs"),
        of_sizes=True,
    ),
    Class.CRASHED: ClassRow(
        "crashes",
        Mark("fails", "C", "diamond", "Crashed", "the process died"),
        ("builds", "runs"),
        of_a_node=True,
        of_sizes=True,
        silently="crashed",
    ),
}

PREDICATE = {cls: row.predicate for cls, row in CLASSES.items()}
#: The rank of a class, 0 for the one that says least.
BADNESS = {cls: number for number, cls in enumerate(CLASSES)}
GOOD = frozenset(cls for cls, row in CLASSES.items() if row.good)
UNJUDGED = frozenset(cls for cls, row in CLASSES.items() if not row.judged)
FINISHED = frozenset(cls for cls, row in CLASSES.items() if row.finished)
#: A version that lacks an API, or asks for a GPU, has not shown the failure that others report.
SHOWS_NO_FAILURE = GOOD | UNJUDGED | {cls for cls, row in CLASSES.items() if row.untried}
OF_A_NODE = frozenset(cls for cls, row in CLASSES.items() if row.of_a_node)
OF_SIZES = frozenset(cls for cls, row in CLASSES.items() if row.of_sizes)
#: Failures that only a run shows, or may show.
WHEN_RUN = frozenset(
    cls for cls, row in CLASSES.items() if not row.good and {"runs", "right numbers"} & {*row.levels}
)


#: The predicate of an `ok` claim at each level: "it builds" does not mean "it works".
_AT_LEVEL: dict[Level, str] = {
    "builds": "builds",
    "runs": "runs",
    "right numbers": "gives the right numbers",
    "precision": "works in the precision wanted",
}


def claimed(cls: Class, level: Level | None) -> str:
    """Return the predicate of a claim: "fails to build"; of an `ok` at a level what it says of that level."""
    return _AT_LEVEL[level] if cls is Class.OK and level else PREDICATE[cls]


#: The part of a cell that may regress.
Part = Literal["class", "precision", "latency"]


class Verdict(Word):
    """An outcome's class held against the claims about it.

    NOT_REPRODUCED: a claimed failure does not happen, and was never measured.
    FAILS_WHEN_RUN: the engine was only built here, and a claim says that it does not run or gives wrong numbers.
    VARIES: a precision that was kept is lost, by a choice of the builder's that another build may make otherwise.
    """

    EXPECTED = "expected"
    KNOWN_FAILURE = "known_failure"
    FAILS_WHEN_RUN = "fails_when_run"
    FIXED = "fixed"
    NOT_REPRODUCED = "not_reproduced"
    REGRESSED = "regressed"
    VARIES = "varies"
    NEW = "new"
    NOT_RUN = "not_run"
    INFRA = "infra"


class Precision(Word):
    """The data type a node computed in; `.._weights` is a float times weights stored in something narrower."""

    FP32 = "fp32"
    TF32 = "tf32"
    FP16 = "fp16"
    BF16 = "bf16"
    FP8 = "fp8"
    FP4 = "fp4"
    INT8 = "int8"
    UINT8 = "uint8"
    INT4 = "int4"
    INT8_WEIGHTS = "int8_weights"
    INT4_WEIGHTS = "int4_weights"
    FP8_WEIGHTS = "fp8_weights"
    FP4_WEIGHTS = "fp4_weights"
    INT32 = "int32"
    INT64 = "int64"
    BOOL = "bool"
    UNKNOWN = "unknown"


def said(precision: str) -> str:
    """Return a precision as readers have it: "int8", "int4 weights"."""
    return str(precision).replace("_weights", " weights")


class Basis(Word):
    """Why something is known: it was measured, somebody reports it, or NVIDIA's operator tables list it."""

    MEASURED = "measured"
    REPORTED = "reported"
    LISTED = "listed"


class Role(Word):
    """Why a variant is in its case."""

    REPRODUCER = "reproducer"
    WORKAROUND = "workaround"
    CONTROL = "control"
    NEGATIVE_CONTROL = "negative_control"
    TWIN = "twin"


class Engine(Word):
    """The families of engines that the harness drives; harness/engines.py describes each."""

    TENSORRT = "tensorrt"
    TENSORRT_RTX = "tensorrt_rtx"
    ONNXRUNTIME = "onnxruntime"


class Typing(Word):
    """The source of a recipe's precision.

    GRAPH: the graph carries it (Q/DQ, Cast, FP16 tensors); versions that need a builder flag to permit the types get
    the recipe's flags, strongly typed versions do not.
    WEAK: builder flags and calibration decide; a version without them is `api_removed`.
    STRONG: a strongly typed network is demanded; a version without it is `api_removed`.
    """

    GRAPH = "graph"
    WEAK = "weak"
    STRONG = "strong"
