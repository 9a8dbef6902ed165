"""Link and Expectation: a claim about a variant, its source, and the targets that it is about.

The fields of a case's dataclasses are held to their type hints: a mistake is one sentence at load, not a strange cell.
The commonest is a lone string: `flags=("INT8")` is no tuple, and would be read letter by letter.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from harness.words import CLASSES, Basis, Class, Engine, Level


class Typed:
    """A dataclass that raises TypeError, with the field and the type that belongs there, if a field does not fit it."""

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for field, hint, fits in _hints(kind):
            value = getattr(self, field)
            if not fits(value):
                known = re.sub(r"\b(\w+\.)+(?=\w)", "", str(hint)) if typing.get_args(hint) else hint.__name__
                advice = (
                    f": write ({value!r},)" if isinstance(value, str) and known == "tuple[str, ...]" else ""
                )
                raise TypeError(f"{kind.__name__}: {field} is {value!r:.80}; it must be {known}{advice}")


_Fits = Callable[[Any], bool]


@functools.cache
def _hints(kind: Any) -> tuple[tuple[str, Any, _Fits], ...]:  # noqa: ANN401  (a class is no Hashable to mypy)
    hints = typing.get_type_hints(kind)
    return tuple((each.name, hints[each.name], _fits(hints[each.name])) for each in dataclasses.fields(kind))


def _fits(hint: Any) -> _Fits:  # noqa: ANN401  (walks type hints)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return arguments.__contains__
    if origin not in (tuple, typing.Union, types.UnionType):
        kind, no = origin or hint, _NO.get(hint, ())
        return lambda value: isinstance(value, kind) and not isinstance(value, no)
    parts = [_fits(each) for each in arguments if each is not Ellipsis]
    if origin is not tuple:
        return lambda value: any(part(value) for part in parts)
    if Ellipsis in arguments:
        return lambda value: isinstance(value, tuple) and all(map(parts[0], value))
    return lambda value: (
        isinstance(value, tuple)
        and len(value) == len(parts)
        and all(part(one) for part, one in zip(parts, value, strict=True))
    )


#: Python holds True for an integer, and an enumeration's members here are strings.
_NO: dict[object, type] = {int: bool, str: Enum}


@dataclass(frozen=True)
class Link(Typed):
    """A source that a reader can open."""

    url: str
    title: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.url.startswith("https://"):
            raise ValueError(f"link {self.url!r}: give an https address")


#: Who reported a claim: users, NVIDIA's documentation or staff, source code or headers, or a summary of others.
Kind = Literal["users", "nvidia", "source", "summary"]
#: How near a claim is to its variant: made of this graph; of a whole model, of which the graph is our reduction; of
#: something alike, which gives no cell its class and is a line in the panel.
Scope = Literal["graph", "model", "sibling"]
#: "7.5"
CAPABILITY = re.compile(r"[0-9]{1,2}\.[0-9]")
_KINDS: dict[Kind | None, str] = {
    "users": "reported by users",
    "nvidia": "reported by NVIDIA",
    "source": "reported by source code",
    "summary": "reported in a summary",
}
_SCOPES: dict[Scope, str] = {"graph": "", "model": "a whole model", "sibling": "something alike"}


@dataclass(frozen=True)
class Expectation(Typed):
    """A claim about a variant: on these versions of this engine, on this platform, it ends in this class.

    `versions` is a version specifier such as ">=8.6,<10.2", no wider than the source: "" is every version, and None a
    source that names no version, which stands in no column, only with the row. `platform` is that of targets,
    "linux/amd64", "linux/arm64" or "jetson", None for every one; `compute_capability` is "7.5" for such GPUs, None for
    every GPU, and `product` the GPU of a measurement; `targets` are names, () for every one. `signature` is the
    diagnosis id of a failure, if it is known, and `nodes` those that a measurement blames; `untold`, `ms` and `graph`
    are as in `harness.case.measured.Result`. A reported claim has a
    source and its `kind`; the note of a measured one names the measurement. `level` names the level if the class leaves
    that open. `of` is a detail of the source's that the column lacks, printed with the claim: "8.6.11, Quadro T2000".
    """

    outcome: Class
    versions: str | None
    source: Link | None
    basis: Basis
    note: str = ""
    engine: Engine = Engine.TENSORRT
    platform: str | None = None
    targets: tuple[str, ...] = ()
    signature: str | None = None
    kind: Kind | None = None
    level: Level | None = None
    compute_capability: str | None = None
    product: str = ""
    scope: Scope = "graph"
    of: str = ""
    nodes: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
    ms: tuple[float, ...] = ()
    graph: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        fault = next((sentence for wrong, sentence in self._faults() if wrong), "")
        if fault:
            raise ValueError(f"expectation {self.outcome} on {self.versions!r}: {fault}")
        try:
            _specifier(self.versions or "")
        except InvalidSpecifier as error:
            raise ValueError(
                f'expectation versions {self.versions!r}: not a version specifier (write ">=8.6,<10.2")'
            ) from error

    @classmethod
    def reported(
        cls,
        outcome: Class,
        versions: str | None,
        link: Link,
        kind: Kind = "users",
        **more: Any,  # noqa: ANN401  (the fields that are left)
    ) -> Expectation:
        """Return a claim that somebody makes, read at `link`, with other fields by their names."""
        return cls(outcome, versions, link, Basis.REPORTED, kind=kind, **more)

    @property
    def provenance(self) -> str:
        """Return the basis for readers, with its kind, scope and `of`: "reported by users of a whole model, 8.6.11"."""
        of = ", ".join(filter(None, (_SCOPES[self.scope], self.of)))
        return f"{_KINDS.get(self.kind, str(self.basis))}{f' of {of}' if of else ''}"

    @property
    def on_versions(self) -> str:
        """Return the versions for readers."""
        return "of no version that is named" if self.versions is None else self.versions or "of every version"

    @property
    def stands(self) -> bool:
        """Tell whether it may stand in a column: of this graph or its whole model, and of versions that are named."""
        return self.scope != "sibling" and self.versions is not None

    def _faults(self) -> Iterator[tuple[bool, str]]:
        """Yield each rule for a claim of this basis: whether it is broken, and a sentence."""
        reported, gpu = self.basis is Basis.REPORTED, self.compute_capability
        may = CLASSES[self.outcome].claimed
        yield reported != (self.kind is not None), "a reported claim has a kind, and no other has"
        yield reported and self.source is None, "a reported claim needs its source"
        yield (
            gpu is not None and not CAPABILITY.fullmatch(gpu),
            f"{gpu!r} is no compute capability; write one such as '8.9'",
        )
        yield (
            bool(self.product) and (gpu is None or self.basis is not Basis.MEASURED),
            "only a measurement by compute capability names the product that it was made on",
        )
        yield (
            not reported and (self.scope != "graph" or bool(self.of) or self.versions is None),
            "only a reported claim has a scope, says what it is of, or may name no version",
        )
        yield (
            self.level is not None and self.level not in may,
            f"its class has no level {self.level!r}; it may name {', '.join(may) or 'none'}",
        )

    def covers(
        self,
        *,
        target: str,
        engine: Engine,
        version: str,
        platform: str,
        compute_capability: str | None = None,
    ) -> bool:
        """Tell whether the claim is about this target, on a GPU of this compute capability.

        A compute capability of None is any GPU, as for a cell that was not run; "" is a run without a GPU.
        """
        if self.engine is not engine or (self.targets and target not in self.targets):
            return False
        if compute_capability is not None and self.compute_capability not in (None, compute_capability):
            return False
        return self.platform in (None, platform) and _contains(self.versions, version)


_specifier, _version = functools.cache(SpecifierSet), functools.cache(Version)


@functools.cache
def _contains(versions: str | None, version: str) -> bool:
    return versions is not None and _specifier(versions).contains(_version(version), prereleases=True)
