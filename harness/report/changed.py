"""What changed between neighbouring versions, told once for all variants that it happened to; pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.report.model import Change

#: How readers call what changed; the order in which it matters.
WHAT = {"class": "result", "precision": "precision", "layers": "layers"}
_BETTER = {True: "better", False: "worse", None: "other"}
_ORDER = ("worse", "better", "other")


@dataclass(frozen=True)
class ChangeGroup:
    """One change that several variants share.

    `versions` is "1.6 to 1.7"; `way` is "better", "worse" or "other"; `text` is what they share, empty where each has
    its own. `count` counts the variants; `named` has some or all of them, each with what it adds to `text`.
    """

    series: str
    versions: str
    what: str
    way: str
    text: str
    count: int
    named: tuple[tuple[Change, str], ...]

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
        for change, detail in self.named:
            found.setdefault(detail, []).append(change)
        return list(found.items())


def grouped(changes: Sequence[Change], most: int) -> list[ChangeGroup]:
    """Return the changes by series, versions, what, direction and shared text: results first, worse before better.

    At most `most` variants are named over all groups; the counts are whole.
    """
    found: dict[tuple[str, str, str, str, str], list[tuple[Change, str]]] = {}
    for change in changes:
        versions, text, detail = _parts(change)
        way = _BETTER[change.better]
        key = (change.series, versions, WHAT.get(change.what, change.what), way, text)
        found.setdefault(key, []).append((change, detail))
    groups = [ChangeGroup(*key, len(named), tuple(named)) for key, named in found.items()]
    return _named([group for _, group in sorted(enumerate(groups), key=_rank)], most)


def _parts(change: Change) -> tuple[str, str, str]:
    """Return the versions, what a change has in common with others of its kind, and what it adds to that.

    A result is in common ("fails to build before, builds after"), the precision that follows it is not; nodes and
    layers have their own names in each variant.
    """
    versions, _, said = change.text.partition(": ")
    if change.what != "class":
        return versions, "", said
    before, _, rest = said.partition(", ")
    after, _, detail = rest.partition(", ")
    return versions, ", ".join(filter(None, (before, after))), detail


def _rank(entry: tuple[int, ChangeGroup]) -> tuple[int, int, int]:
    at, group = entry
    kinds = list(WHAT.values())
    return (kinds.index(group.what) if group.what in kinds else len(kinds), _ORDER.index(group.way), at)


def _named(groups: Sequence[ChangeGroup], most: int) -> list[ChangeGroup]:
    made = []
    for group in groups:
        made.append(replace(group, named=group.named[: max(0, most)]))
        most -= group.count
    return made
