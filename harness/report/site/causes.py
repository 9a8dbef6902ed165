"""Why variants fail, told once for all that fail so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.report.advice import shared_advice
from harness.report.labels import MARKS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.report.model import Advice
    from harness.report.site.facts import Fact


@dataclass(frozen=True)
class Cause:
    """A cause and what fails by it; `advice` is None where nothing is known but how it ended."""

    title: str
    advice: Advice | None
    facts: tuple[Fact, ...]

    @property
    def grades(self) -> str:
        """Return how many are of each grade: "3 measured, 1 reported by users"."""
        names = [each.graded for each in self.facts]
        return ", ".join(f"{names.count(name)} {name}" for name in dict.fromkeys(names))


def causes(facts: Iterable[Fact]) -> list[Cause]:
    """Return what fails, grouped by cause or else by how it ended: those with a cause first, then the largest."""
    groups: dict[str, list[Fact]] = {}
    for each in facts:
        if each.cls is not None and not each.good:
            groups.setdefault(each.advice.id if each.advice else f"\0{each.cls}", []).append(each)
    made = [_cause(found) for _, found in sorted(groups.items())]
    return sorted(made, key=lambda made: (made.advice is None, -len(made.facts), made.title))


def _cause(facts: list[Fact]) -> Cause:
    advice = facts[0].advice
    if advice is None or facts[0].cls is None:
        name = MARKS[facts[0].cls].name if facts[0].cls else ""
        return Cause(f"{name}, no known cause", None, tuple(facts))
    shared = shared_advice([each.advice for each in facts if each.advice])
    return Cause(shared.title, shared, tuple(facts))
