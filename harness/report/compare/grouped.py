"""What changed between neighbouring versions, told once for all variants that it happened to; pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.report.model import Change

#: What changed, as readers call it, in the order in which it matters.
_WHAT = ("result", "precision", "layers")
_BETTER = {True: "better", False: "worse", None: "other"}
_ORDER = ("worse", "better", "other")


@dataclass(frozen=True)
class ChangeGroup:
    """One change that several variants share.

    `versions` is "1.6 to 1.7"; `way` is "better", "worse" or "other"; `text` is what they share, empty where each has
    its own. `count` counts the variants; `named` has some or all of them.
    """

    series: str
    versions: str
    what: str
    way: str
    text: str
    count: int
    named: tuple[Change, ...]

    @property
    def kind(self) -> str:
        """Return "result, better", or "layers" where neither side is the better one."""
        return self.what if self.way == "other" else f"{self.what}, {self.way}"

    @property
    def head(self) -> str:
        """Return where and how many, without the kind: "RTX 1.6 to 1.7: 47 variants"."""
        return f"{self.series} {self.versions}: {self.count} variant{'' if self.count == 1 else 's'}"

    def by_detail(self) -> list[tuple[str, list[Change]]]:
        """Return the named changes by what each adds, in the order in which it first occurs."""
        found: dict[str, list[Change]] = {}
        for change in self.named:
            found.setdefault(change.detail, []).append(change)
        return list(found.items())


def grouped(changes: Sequence[Change], most: int) -> list[ChangeGroup]:
    """Return the changes by series, versions, what, direction and shared text: results first, worse before better.

    At most `most` variants are named over all groups; the counts are whole.
    """
    found: dict[tuple[str, str, str, str, str], list[Change]] = {}
    for change in changes:
        what = "result" if change.what == "class" else change.what
        way = _BETTER[change.better]
        found.setdefault((change.series, change.versions, what, way, change.shared), []).append(change)
    groups = [ChangeGroup(*key, len(named), tuple(named)) for key, named in found.items()]
    return _named([group for _, group in sorted(enumerate(groups), key=_rank)], most)


def _rank(entry: tuple[int, ChangeGroup]) -> tuple[int, int, int]:
    at, group = entry
    return (_WHAT.index(group.what) if group.what in _WHAT else len(_WHAT), _ORDER.index(group.way), at)


def _named(groups: Sequence[ChangeGroup], most: int) -> list[ChangeGroup]:
    made = []
    for group in groups:
        made.append(replace(group, named=group.named[: max(0, most)]))
        most -= group.count
    return made
