"""Case, Variant, Recipe: frozen data that says how to build, and its names held to the graph and to TensorRT's flags.

A version is asked itself for its flags; the lists here, of every version, only catch a mistyped name. tests/contract
holds them to the bindings.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import json
import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any, Literal, NamedTuple

import onnx

from harness.case.claims import Expectation, Link, Typed
from harness.case.floor import Asked
from harness.case.graph_reader import extents
from harness.errors import HandledError
from harness.text import did_you_mean
from harness.words import Precision, Role, Typing

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*")


@dataclass(frozen=True)
class Calibrator(Typed):
    """An INT8 calibrator for implicit quantisation; `fault` makes it wrong on purpose (a negative control).

    Its batches are made up, unless `data` is the hash of own ones.
    """

    kind: Literal["entropy", "minmax"]
    batches: int = 4
    fault: Literal["host_pointer", "float64", "non_contiguous"] | None = None
    data: str = ""


@dataclass(frozen=True)
class Plugin(Typed):
    """The identity plugin of this project, by the tensor formats that it accepts."""

    op: str
    formats: Literal["int8_linear", "int8_vectorised", "fp32", "int8_fp32"]


@dataclass(frozen=True)
class Library(Typed):
    """A compiled library of own plugins, which registers them when it is loaded: its file's name and hash."""

    name: str
    sha256: str


@dataclass(frozen=True)
class Profile(Typed):
    """An optimisation profile's shape range for one network input."""

    input: str
    minimum: tuple[int, ...]
    optimum: tuple[int, ...]
    maximum: tuple[int, ...]


#: Fields that came when recipes had been hashed: left out where nothing is given, or every record would be stale.
_LATER = ("libraries",)


@dataclass(frozen=True)
class Recipe(Typed):
    """How an engine is asked to build a graph.

    `flags` are BuilderFlag names ("INT8", "FP16"); `parser_flags` are (OnnxParserFlag name, on or off), the
    others keep the version's default; `mark_outputs` are ONNX tensor names made network outputs. Without a
    `workspace_mib` the limit is the engine's own, which is all of the device's memory. `libraries` are loaded in order,
    before the model is parsed.
    """

    typing: Typing = Typing.GRAPH
    flags: tuple[str, ...] = ()
    calibrator: Calibrator | None = None
    parser_flags: tuple[tuple[str, bool], ...] = ()
    mark_outputs: tuple[str, ...] = ()
    plugin: Plugin | None = None
    profiles: tuple[Profile, ...] = ()
    workspace_mib: int | None = None
    libraries: tuple[Library, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the recipe as plain JSON data; own data, and fields of `_LATER`, stand there only if given."""
        plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self)))
        for name in _LATER:
            if not plain[name]:
                del plain[name]
        if self.calibrator and not self.calibrator.data:
            del plain["calibrator"]["data"]
        return plain

    def sha256(self) -> str:
        """Return the hash of everything in the recipe, stable across machines."""
        return hashlib.sha256(json.dumps(self.as_dict(), sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Data(Typed):
    """Files of arrays (.npz) by their paths from the case's folder, "" for arrays made up or computed.

    `inputs` are by network input, `expected` by network output, `calibration` batches by network input, along the first
    axis. `max_rel` and `cosine` are how far an output may be off, None to go by its precision. Loading a case
    fills in its `folder`, and the hash of all of it.
    """

    inputs: str = ""
    expected: str = ""
    calibration: str = ""
    max_rel: float | None = None
    cosine: float | None = None
    folder: str = ""
    sha256: str = ""

    def path(self, what: str) -> Path | None:
        """Return the path of the "inputs", "expected" or "calibration", if there are any."""
        name = getattr(self, what)
        return Path(self.folder) / name if name else None


@dataclass(frozen=True)
class Variant(Typed):
    """One graph plus one recipe.

    `precision` names the ONNX nodes (see `effective_name`) and the precision each must run in for the variant to
    be worth anything; a node not named may run in any. None leaves that to the graph's own types (`harness.layers`,
    `wished`), and () wants no precision. `build` returns the model, the same bytes at every call.
    `title` is the one-line claim that the report shows. `counterpart` names the variant of the same case that a
    workaround, control or twin is to be read against. `data` are arrays of its own, beside the case.
    `accepted` is what it asked for when it was accepted; measured.yaml fills it in. None is not known.
    """

    name: str
    title: str
    build: Callable[[], onnx.ModelProto]
    recipe: Recipe = field(default_factory=Recipe)
    role: Role = Role.REPRODUCER
    counterpart: str | None = None
    precision: tuple[tuple[str, Precision], ...] | None = None
    expectations: tuple[Expectation, ...] = ()
    tags: tuple[str, ...] = ()
    data: Data | None = None
    accepted: tuple[Asked, ...] | None = None

    @property
    def recipe_sha256(self) -> str:
        """Return the hash of the recipe and of own data: a result of others than today's is stale."""
        if self.data is None:
            return self.recipe.sha256()
        return hashlib.sha256(f"{self.recipe.sha256()} {self.data.sha256}".encode()).hexdigest()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"variant name {self.name!r}: use lower-case letters, digits, '-', '_' and '.' alone"
            )
        wished = [node for node, _ in self.precision or ()]
        for node in wished:
            if wished.count(node) > 1:
                raise ValueError(f"variant {self.name!r}: precision names {node!r} twice")

    def model_sha256(self) -> str:
        """Return the hash of the model; raises as `model_bytes` does."""
        return self._model_sha256

    def model_bytes(self) -> bytes:
        """Return the serialised model, the same bytes on every machine; raises HandledError if `build` fails."""
        return self._model

    @functools.cached_property
    def _model_sha256(self) -> str:
        return model_sha256(self._model)

    @functools.cached_property
    def _model(self) -> bytes:
        if isinstance(self.build, Built):
            return self.build.model
        try:
            return serialise(self.build())
        except HandledError:
            raise
        except Exception as error:
            # A case module is user code: anything may come out of it.
            raise HandledError(
                f"{_where(error, self.build)}: the model of variant {self.name!r} cannot be built: "
                f"{type(error).__name__}: {error}"
            ) from error


@dataclass(frozen=True)
class Built:
    """The `build` of a variant whose model is made already."""

    model: bytes = field(repr=False)

    def __call__(self) -> onnx.ModelProto:
        """Return the model."""
        return onnx.load_model_from_string(self.model)


@dataclass(frozen=True)
class Unbuildable:
    """The `build` of a variant whose model cannot be made: it raises the sentence that says why."""

    reason: str

    def __call__(self) -> onnx.ModelProto:
        """Raise HandledError."""
        raise HandledError(self.reason)


@dataclass(frozen=True)
class Case(Typed):
    """One problem that users met, with every variant that reproduces, avoids or controls for it.

    An `untrusted` one has a stranger's models: each of its cells has a container of its own. `seed` is its place among
    the problems that the project began with; `topics` are those that its graphs do not show.
    """

    name: str
    title: str
    summary: str
    links: tuple[Link, ...]
    variants: tuple[Variant, ...]
    untrusted: bool = False
    seed: int | None = None
    topics: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not re.fullmatch(r"[a-z][a-z0-9_]*", self.name):
            # A dot begins the variant in a cell's id.
            raise ValueError(f"case name {self.name!r}: use lower-case letters, digits and '_', and no dot")
        names = [variant.name for variant in self.variants]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"case {self.name}: two variants are called {name!r}")
        for variant in self.variants:
            if variant.counterpart is not None and variant.counterpart not in names:
                raise ValueError(
                    f"case {self.name}: {variant.name} names the counterpart {variant.counterpart!r}, "
                    "which is no variant of this case"
                )

    def __iter__(self) -> Iterator[Variant]:
        return iter(self.variants)


def _where(error: Exception, build: Callable[[], onnx.ModelProto]) -> str:
    """Return file and line of the innermost frame in the module that a builder comes from."""
    code = source(build)
    if code is None:
        return repr(build)
    return f"{code.co_filename}:{line_in(code.co_filename, error) or code.co_firstlineno}"


def line_in(file: str, error: BaseException) -> int | None:
    """Return the line of the innermost frame of an error that is in a file."""
    lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == file]
    return lines[-1] if lines else None


def source(build: Callable[..., Any]) -> CodeType | None:
    """Return the code of a builder, with its file and line, if it is a Python function."""
    while isinstance(build, functools.partial):
        build = build.func
    code: CodeType | None = getattr(build, "__code__", None)
    return code


def serialise(model: onnx.ModelProto) -> bytes:
    """Serialise a model deterministically (protobuf maps and unknown fields do not occur in these models).

    Raises TypeError for another object.
    """
    if not isinstance(model, onnx.ModelProto):
        raise TypeError(f"a model is an onnx.ModelProto, and this is a {type(model).__name__}")
    data: bytes = model.SerializeToString(deterministic=True)
    return data


def model_sha256(model: bytes) -> str:
    """Return the hash that stamps a model."""
    return hashlib.sha256(model).hexdigest()


def effective_name(node: onnx.NodeProto) -> str:
    """Return the name under which TensorRT reports a node.

    The ONNX parser calls a node without a name `node_of_<first output>` (onnx-tensorrt, getNodeName).
    """
    return node.name or f"node_of_{node.output[0]}"


class NetworkInput(NamedTuple):
    """One network input; `shape` has the profile's optimum, else the declared sizes, -1 for unknown ones."""

    name: str
    elem_type: int
    shape: tuple[int, ...]


def network_inputs(model: onnx.ModelProto, profiles: Sequence[Profile] = ()) -> tuple[NetworkInput, ...]:
    """Return the inputs that are fed: those that no initialiser gives."""
    optimum = {profile.input: profile.optimum for profile in profiles}
    return tuple(
        NetworkInput(
            value.name,
            value.type.tensor_type.elem_type,
            optimum.get(value.name)
            or tuple(each if isinstance(each, int) else -1 for each in extents(value)),
        )
        for value in fed_inputs(model)
    )


def fed_inputs(model: onnx.ModelProto) -> tuple[onnx.ValueInfoProto, ...]:
    """Return the graph's own entries of the inputs that are fed."""
    constants = {initializer.name for initializer in model.graph.initializer}
    constants |= {initializer.values.name for initializer in model.graph.sparse_initializer}
    return tuple(value for value in model.graph.input if value.name not in constants)


def input_seed(name: str, seed: int = 0) -> int:
    """Return the seed of an input's values: keyed by name, so that adding an input leaves the others' values alone."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{name}".encode()).digest()[:8], "little")


_NO_FLAG = "which no version of TensorRT has"


def check_flags(where: str, flags: Iterable[str]) -> None:
    """Raise HandledError, naming its place, for a builder flag that no version of TensorRT has."""
    _check(f"{where} names the builder flag", flags, sorted(BUILDER_FLAGS), _NO_FLAG)


def check_variant(variant: Variant, model: onnx.ModelProto) -> None:
    """Raise HandledError if a variant names a flag that no version has, or a name that is not in its graph."""
    nodes = list(map(effective_name, model.graph.node))
    tensors = list(filter(None, itertools.chain.from_iterable(node.output for node in model.graph.node)))
    inputs = [value.name for value in fed_inputs(model)]
    recipe, code = variant.recipe, source(variant.build)
    where = f"{code.co_filename if code else repr(variant.build)}: variant {variant.name!r}:"
    check_flags(f"{where} flags", recipe.flags)
    _check(
        f"{where} parser_flags names the parser flag",
        dict(recipe.parser_flags),
        sorted(PARSER_FLAGS),
        _NO_FLAG,
    )
    gone = "which is not in its graph (without precision the graph's own types count)"
    _check(f"{where} precision names the node", dict(variant.precision or ()), nodes, gone)
    _check(f"{where} mark_outputs names the tensor", recipe.mark_outputs, tensors)
    _check(f"{where} a profile is for the input", (profile.input for profile in recipe.profiles), inputs)


def _check(
    what: str, names: Iterable[str], known: Sequence[str], wrong: str = "which is not in its graph"
) -> None:
    for name in names:
        if name not in known:
            raise HandledError(f"{what} {name!r}, {wrong}; {did_you_mean(name, known)}")


BUILDER_FLAGS = frozenset(
    {
        *("BF16", "DEBUG", "DIRECT_IO", "DISABLE_COMPILATION_CACHE", "DISABLE_TIMING_CACHE"),
        *("DISTRIBUTIVE_INDEPENDENCE", "EDITABLE_TIMING_CACHE", "ENABLE_TACTIC_HEURISTIC"),
        *("ERROR_ON_TIMING_CACHE_MISS", "EXCLUDE_LEAN_RUNTIME", "FP16", "FP4", "FP8", "GPU_FALLBACK", "INT4"),
        *("INT8", "MONITOR_MEMORY", "OBEY_PRECISION_CONSTRAINTS", "PREFER_PRECISION_CONSTRAINTS", "REFIT"),
        *("REFIT_IDENTICAL", "REFIT_INDIVIDUAL", "REJECT_EMPTY_ALGORITHMS", "REQUIRE_USER_ALLOCATION"),
        *("SAFETY_SCOPE", "SPARSE_WEIGHTS", "STRICT_NANS", "STRICT_TYPES", "STRIP_PLAN", "TF32"),
        *("VERSION_COMPATIBLE", "WEIGHTLESS", "WEIGHT_STREAMING"),
    }
)
PARSER_FLAGS = frozenset(
    {
        *("ADJUST_FOR_DLA", "ENABLE_PLUGIN_OVERRIDE", "ENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA"),
        *("NATIVE_INSTANCENORM", "REPORT_CAPABILITY_DLA"),
    }
)
