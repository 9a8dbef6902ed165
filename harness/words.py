"""The closed vocabularies of the project; docs/architecture.md explains each word."""

from __future__ import annotations

from enum import Enum


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


#: Classes in which the engine did all that was asked of it on this machine.
GOOD = frozenset({Class.OK, Class.BUILT})
#: Classes that say nothing about the engine.
UNJUDGED = frozenset({Class.NOT_APPLICABLE, Class.NOT_RUN, Class.INFRA_ERROR})


#: A class as the predicate of a sentence whose subject is the variant.
PREDICATE = {
    Class.OK: "works",
    Class.BUILT: "builds",
    Class.PRECISION_LOST: "loses precision",
    Class.INACCURATE: "gives wrong numbers",
    Class.PARSE_FAILED: "fails to parse",
    Class.BUILD_FAILED: "fails to build",
    Class.NEEDS_GPU_TO_BUILD: "needs a GPU to build",
    Class.LOAD_FAILED: "fails to load",
    Class.RUN_FAILED: "fails to run",
    Class.CRASHED: "crashes",
    Class.TIMED_OUT: "times out",
    Class.OUT_OF_MEMORY: "runs out of memory",
    Class.API_REMOVED: "needs a call that it lacks",
    Class.NOT_APPLICABLE: "does not apply",
    Class.NOT_RUN: "was not run",
    Class.INFRA_ERROR: "was not judged (infrastructure)",
}


#: Verbs whose infinitive has more taken off than an s.
_INFINITIVE = {"crashes": "crash", "does": "do", "was": "be"}


def to_do(cls: Class) -> str:
    """Return a class as an infinitive: "fail to build"."""
    verb, _, rest = PREDICATE[cls].partition(" ")
    return f"{_INFINITIVE.get(verb, verb.removesuffix('s'))} {rest}".rstrip()


class Verdict(Word):
    """An outcome's class held against the claims about it.

    NOT_REPRODUCED: a failure that others claim does not happen, and nobody measured that it ever did.
    FAILS_WHEN_RUN: the engine was only built here, and others say that it does not run or gives wrong numbers.
    """

    EXPECTED = "expected"
    KNOWN_FAILURE = "known_failure"
    FAILS_WHEN_RUN = "fails_when_run"
    FIXED = "fixed"
    NOT_REPRODUCED = "not_reproduced"
    REGRESSED = "regressed"
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
    """Where a recipe's precision comes from.

    GRAPH: the graph carries it (Q/DQ, Cast, FP16 tensors); versions that need a builder flag to permit the types get
    the recipe's flags, versions that are always strongly typed get none.
    WEAK: builder flags and calibration decide; a version without them is `api_removed`.
    STRONG: a strongly typed network is demanded; a version without it is `api_removed`.
    """

    GRAPH = "graph"
    WEAK = "weak"
    STRONG = "strong"
