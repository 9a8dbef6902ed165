"""Link and Expectation: what is claimed of a variant, by whom, and which targets that is about."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Literal, get_args

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from harness.case.typed import check_types
from harness.words import Class, Engine, Grade


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
#: What a claim is about, where it says so: that the engine builds, runs, gives the right numbers, keeps the precision.
Level = Literal["builds", "runs", "right numbers", "precision"]
#: "7.5"
CAPABILITY = re.compile(r"[0-9]{1,2}\.[0-9]")
#: The levels that a claim may name, by its class; the level of any other class goes without saying.
_LEVELS: dict[Class, tuple[Level, ...]] = {
    Class.OK: get_args(Level),
    Class.BUILT: ("builds",),
    **dict.fromkeys((Class.CRASHED, Class.TIMED_OUT, Class.OUT_OF_MEMORY), ("builds", "runs")),
}
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
    the target's platform, "linux/amd64", "linux/arm64" or "jetson"; None is every platform. `compute_capability` is
    that of the GPUs that it is about ("7.5"), None is every GPU; `product` is the GPU that a measured one was measured
    on. `signature` is the diagnosis id that goes with a failure, where known. A measured one has no source but the
    measurement, which its note names; a reported one has the source and its `kind`, a guess a source or a note that
    says what it is guessed from. `targets` names the targets that it is about, () is every one; `level` says what
    it is about where its class leaves that open.
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
    compute_capability: str | None = None
    product: str = ""

    def __post_init__(self) -> None:
        check_types(self)
        fault = self._fault() or self._level_fault()
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
        compute_capability: str | None = None,
    ) -> Expectation:
        """Return a claim that somebody makes; `link` is where it was read."""
        where = (engine, platform, targets)
        return cls(
            outcome, versions, link, Grade.REPORTED, note, *where, signature, kind, level, compute_capability
        )

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
        compute_capability: str | None = None,
    ) -> Expectation:
        """Return a claim of our own, which nobody reported; `link` or `note` says what it is guessed from."""
        where = (engine, platform, targets)
        return cls(
            outcome, versions, link, Grade.GUESSED, note, *where, signature, None, level, compute_capability
        )

    @property
    def graded(self) -> str:
        """Return the grade for readers, with who reported it."""
        return _KINDS.get(self.kind, str(self.grade))

    def _level_fault(self) -> str:
        may = _LEVELS.get(self.outcome, ())
        if self.level is None or self.level in may:
            return ""
        return f"its class has no level {self.level!r}; it may name {', '.join(may) or 'none'}"

    def _fault(self) -> str:
        """Return what a claim of this grade lacks or may not have; "" where nothing."""
        if (self.grade is Grade.REPORTED) != (self.kind is not None):
            return "a reported claim has a kind, and no other has"
        if self.grade is Grade.REPORTED and self.source is None:
            return "a reported claim needs its source"
        if self.grade is Grade.GUESSED and self.source is None and not self.note:
            return "a guess needs a source or a note that says what it is guessed from"
        if self.compute_capability is not None and not CAPABILITY.fullmatch(self.compute_capability):
            return f"{self.compute_capability!r} is no compute capability; write one such as '8.9'"
        if self.product and (self.compute_capability is None or self.grade is not Grade.MEASURED):
            return "only a measurement by compute capability names the product that it was made on"
        return ""

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

        None is any GPU, as of a cell that was not run; "" is none, of which a claim about a GPU says nothing.
        """
        if self.engine is not engine or (self.targets and target not in self.targets):
            return False
        if compute_capability is not None and self.compute_capability not in (None, compute_capability):
            return False
        return self.platform in (None, platform) and _contains(self.versions, version)


@functools.cache
def _contains(versions: str, version: str) -> bool:
    return SpecifierSet(versions).contains(version, prereleases=True)
