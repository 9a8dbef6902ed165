"""A use of TensorRT's interface in somebody's code, before it is judged by any version, and what stands before it."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from harness.judge.names import load_names
from harness.matrix.interface import Interface, Name, Numbers, interfaces, numbers

_COMPARED: Mapping[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ">=": operator.ge, ">": operator.gt, "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_OPPOSITE = {">=": "<", "<": ">=", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
SIGNS = frozenset(_OPPOSITE)
#: Below these a number is a major, two digits and one, or a major of one digit.
_MOST_MAJOR, _MOST_TENS, _MOST_THOUSANDS = 40, 1000, 10_000
_LEAST_HUNDREDS, _LEAST_THOUSANDS = 500, 5000


@dataclass(frozen=True)
class Condition:
    """A test of the version, `sign` and `numbers`; one that cannot be read has no sign, and holds for none."""

    sign: str = ""
    numbers: tuple[int, ...] = ()

    def holds(self, version: Numbers) -> bool:
        """Tell whether a version is known to pass."""
        return bool(self.sign) and _COMPARED[self.sign](version[: len(self.numbers)], self.numbers)

    def negated(self) -> Condition:
        """Return the test of what stands behind `else`."""
        return Condition(_OPPOSITE[self.sign], self.numbers) if self.sign else self


UNREAD = Condition()


def decoded(number: int) -> tuple[int, ...]:
    """Return the version that one number stands for: a major, MAJOR * 10 + MINOR, or one of NVIDIA's own ways."""
    if number < _MOST_MAJOR:
        return (number,)
    if number < _MOST_TENS:
        # 85 and 100, but 805 by MAJOR * 100.
        return divmod(number, 100) if number >= _LEAST_HUNDREDS else divmod(number, 10)
    if number < _MOST_THOUSANDS:
        # 8601 is 8.6.1; 1006 is 10.6 by MAJOR * 100.
        return (number // 1000, number // 100 % 10) if number >= _LEAST_THOUSANDS else divmod(number, 100)
    return number // 10_000, number // 100 % 100


@dataclass(frozen=True)
class Use:
    """A name at a place, and the tests of the version that it stands behind.

    `sure`: by a module, a type or a tool; False if by its own name and that of the variable before it.
    `callers` has the tests before each call of the function that it is in, () if the file calls it nowhere.
    """

    path: str
    line: int
    column: int
    name: Name
    guards: tuple[Condition, ...] = ()
    sure: bool = True
    callers: tuple[tuple[Condition, ...], ...] = ()

    def reached(self, version: Numbers) -> bool:
        """Tell whether a version gets here, as far as its tests can be read."""
        ways = self.callers or ((),)
        return any(all(each.holds(version) for each in (*way, *self.guards)) for way in ways)


@dataclass(frozen=True)
class Remark:
    """A place to look at that is no name: a file that does not parse, a package without a version, an image.

    `version` is the TensorRT that the place asks for, "" for none.
    """

    path: str
    line: int
    text: str
    instead: str = ""
    version: str = ""


#: What one file gives.
Found = list[Use | Remark]
#: Shorter names are words of everybody's.
_DISTINCT = 9
#: Classes whose objects code gets and calls; those of others it writes itself, or they are plain data.
_HELD = re.compile(
    r"I?(?:CudaEngine|ExecutionContext|Builder|BuilderConfig|NetworkDefinition|\w*Layer|Tensor|Runtime|Refitter"
    r"|OptimizationProfile|PluginRegistry)|OnnxParser|IParser"
)
#: Plugins whose names no other operator has.
_PLUGIN = re.compile(r"\w+_TRT|\w+(?:PluginDynamic|Plugin)|CoordConvAC|CropAndResizeDynamic")


def by_name(interface: Interface, bare: str) -> Name | None:
    """Return the name that a member of an unknown type can only be; of several alike the one that lived longest."""
    some = [each for each in interface.by_bare.get(bare, ()) if _HELD.fullmatch(each.owner)]
    ends = {tuple(each.spans[-1]) for each in some}
    # One that is still there may be meant.
    there = ("", "") in ends or (len(ends) > 1 and not all(gone for _, gone in ends))
    if not some or there or len(bare) < _DISTINCT or not re.search("_|[a-z][A-Z]", bare):
        return None
    return max(some, key=lambda each: numbers(each.spans[-1][1] or "0.0.0"))


@cache
def older() -> dict[str, Name]:
    """Return members of the builder that went before the oldest bindings, by their rows among the names."""
    rows = [row for row in load_names() if row.since == "8.0" and row.signature != "name-not-yet"]
    some = [(row, name.partition("Builder.")[2] or name) for row in rows for name in row.names]
    return {
        bare: Name("python", f"Builder.{bare}", (("", f"{row.since}.0"),))
        for row, bare in some
        if re.fullmatch("[a-z0-9_]+", bare)
    }


def plugin_named(text: str) -> Name | None:
    """Return the plugin that a string names alone."""
    return interfaces()["plugin"].names.get(text) if _PLUGIN.fullmatch(text) else None
