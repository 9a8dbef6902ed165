"""Case, Variant, Recipe, Expectation: frozen data that says what to build and what is known about it."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import re
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, Literal

import onnx
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from harness.case.typed import check_types
from harness.errors import HandledError
from harness.words import Class, Engine, Grade, Precision, Role, Typing

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*")


@dataclass(frozen=True)
class Calibrator:
    """An INT8 calibrator for implicit quantisation; `fault` makes it wrong on purpose (a negative control)."""

    kind: Literal["entropy", "minmax"]
    batches: int = 4
    fault: Literal["host_pointer", "float64", "non_contiguous"] | None = None

    def __post_init__(self) -> None:
        check_types(self)


@dataclass(frozen=True)
class Plugin:
    """The identity plugin of this project, by the tensor formats that it accepts."""

    op: str
    formats: Literal["int8_linear", "int8_vectorised", "fp32", "int8_fp32"]

    def __post_init__(self) -> None:
        check_types(self)


@dataclass(frozen=True)
class Profile:
    """An optimisation profile's shape range for one network input."""

    input: str
    minimum: tuple[int, ...]
    optimum: tuple[int, ...]
    maximum: tuple[int, ...]

    def __post_init__(self) -> None:
        check_types(self)


@dataclass(frozen=True)
class Recipe:
    """How an engine is asked to build a graph.

    `flags` are BuilderFlag names ("INT8", "FP16"); `parser_flags` are (OnnxParserFlag name, on or off), and what
    is not listed keeps the version's default; `mark_outputs` are ONNX tensor names made network outputs. Without a
    `workspace_mib` the limit is the engine's own, which is all of the device's memory.
    """

    typing: Typing = Typing.GRAPH
    flags: tuple[str, ...] = ()
    calibrator: Calibrator | None = None
    parser_flags: tuple[tuple[str, bool], ...] = ()
    mark_outputs: tuple[str, ...] = ()
    plugin: Plugin | None = None
    profiles: tuple[Profile, ...] = ()
    workspace_mib: int | None = None

    def __post_init__(self) -> None:
        check_types(self)

    def as_dict(self) -> dict[str, Any]:
        """Return the recipe as plain JSON data."""
        plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self)))
        return plain

    def sha256(self) -> str:
        """Return the hash of everything in the recipe, stable across machines."""
        return hashlib.sha256(json.dumps(self.as_dict(), sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Link:
    """A source that a reader can open."""

    url: str
    title: str = ""

    def __post_init__(self) -> None:
        check_types(self)
        if not self.url.startswith("https://"):
            raise ValueError(f"link {self.url!r}: give an https address")


#: Who reported a claim: users, NVIDIA's documentation or staff, source code or headers, or a summary of others.
Kind = Literal["users", "nvidia", "source", "summary"]
#: The stage that a claim speaks of, where it says so.
Level = Literal["builds", "runs", "right numbers", "precision"]
_KINDS: dict[Kind | None, str] = {
    "users": "reported by users",
    "nvidia": "reported by NVIDIA",
    "source": "reported by source code",
    "summary": "reported in a summary",
}


@dataclass(frozen=True)
class Expectation:
    """A claim about a variant: on these versions of this engine, on this platform, it ends in this class.

    `versions` is a version specifier such as ">=8.6,<10.2" ("" is every version). `platform` is matched against
    the target's platform, "linux/amd64", "linux/arm64" or "jetson"; None is every platform. `signature` is the
    diagnosis id that goes with a failure, where known. A measured one has no source but the measurement, which its
    note names; a reported one has the source and its `kind`, a guess a source or a note that it comes from.
    """

    outcome: Class
    versions: str
    source: Link | None
    grade: Grade
    note: str = ""
    engine: Engine = Engine.TENSORRT
    platform: str | None = None
    targets: tuple[str, ...] = ()
    signature: str | None = None
    kind: Kind | None = None
    level: Level | None = None

    def __post_init__(self) -> None:
        check_types(self)
        fault = self._fault()
        if fault:
            raise ValueError(f"expectation {self.outcome} on {self.versions!r}: {fault}")
        try:
            SpecifierSet(self.versions)
        except InvalidSpecifier as error:
            raise ValueError(
                f'expectation versions {self.versions!r}: not a version specifier (write ">=8.6,<10.2")'
            ) from error

    @classmethod
    def reported(  # noqa: PLR0913  (the parts of a claim)
        cls,
        outcome: Class,
        versions: str,
        link: Link,
        kind: Kind = "users",
        *,
        level: Level | None = None,
        note: str = "",
        platform: str | None = None,
        engine: Engine = Engine.TENSORRT,
        targets: tuple[str, ...] = (),
        signature: str | None = None,
    ) -> Expectation:
        """Return a claim that somebody makes; `link` is where it was read."""
        where = (engine, platform, targets)
        return cls(outcome, versions, link, Grade.REPORTED, note, *where, signature, kind, level)

    @classmethod
    def guessed(  # noqa: PLR0913  (the parts of a claim)
        cls,
        outcome: Class,
        versions: str,
        note: str = "",
        *,
        link: Link | None = None,
        level: Level | None = None,
        platform: str | None = None,
        engine: Engine = Engine.TENSORRT,
        targets: tuple[str, ...] = (),
        signature: str | None = None,
    ) -> Expectation:
        """Return a claim that nobody makes; `link` or `note` says what it is guessed from."""
        where = (engine, platform, targets)
        return cls(outcome, versions, link, Grade.GUESSED, note, *where, signature, level=level)

    @property
    def graded(self) -> str:
        """Return the grade for readers, with who reported it."""
        return _KINDS.get(self.kind, str(self.grade))

    def _fault(self) -> str:
        """Return what a claim of this grade lacks or may not have; "" where nothing."""
        if (self.grade is Grade.REPORTED) != (self.kind is not None):
            return "a reported claim has a kind, and no other has"
        if self.grade is Grade.REPORTED and self.source is None:
            return "a reported claim needs its source"
        if self.grade is Grade.GUESSED and self.source is None and not self.note:
            return "a guess needs a source or a note that says what it is guessed from"
        return ""

    def covers(self, *, target: str, engine: Engine, version: str, platform: str) -> bool:
        """Tell whether the claim is about this target."""
        if self.targets and target not in self.targets:
            return False
        return (
            self.engine is engine
            and self.platform in (None, platform)
            and SpecifierSet(self.versions).contains(version, prereleases=True)
        )


@dataclass(frozen=True)
class Variant:
    """One graph plus one recipe.

    `precision` names the ONNX nodes (see `effective_name`) and the precision each must run in for the variant to
    be worth anything; a node not named may run in any. None leaves that to the graph's own types (`harness.layers`,
    `wished`), and () says that nothing is wanted. `build` returns the model, the same bytes at every call.
    `title` is the one-line claim that the report shows. `counterpart` names the variant of the same case that a
    workaround, control or twin is to be read against.
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

    def __post_init__(self) -> None:
        check_types(self)
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"variant name {self.name!r}: use lower-case letters, digits, '-', '_' and '.'")
        wished = [node for node, _ in self.precision or ()]
        for node in wished:
            if wished.count(node) > 1:
                raise ValueError(f"variant {self.name!r}: precision names {node!r} twice")

    def model_bytes(self) -> bytes:
        """Return the serialised model, the same bytes on every machine; raises HandledError where `build` fails."""
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
class Case:
    """One problem that users met, with every variant that reproduces, avoids or controls for it."""

    name: str
    title: str
    summary: str
    links: tuple[Link, ...]
    variants: tuple[Variant, ...]

    def __post_init__(self) -> None:
        check_types(self)
        if not re.fullmatch(r"[a-z][a-z0-9_]*", self.name):
            raise ValueError(f"case name {self.name!r}: use lower-case letters, digits and '_'")
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
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == code.co_filename]
    return f"{code.co_filename}:{lines[-1] if lines else code.co_firstlineno}"


def source(build: Callable[..., Any]) -> CodeType | None:
    """Return the code of a builder, which says where it stands; None for one that is no Python function."""
    while isinstance(build, functools.partial):
        build = build.func
    code: CodeType | None = getattr(build, "__code__", None)
    return code


def serialise(model: onnx.ModelProto) -> bytes:
    """Serialise a model deterministically (protobuf maps and unknown fields do not occur in these models).

    Raises TypeError for what is no model.
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
