"""Which version to take: what is known of the steps from one version to each later one, a line a step."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from packaging.version import Version

from harness.report.compare.kinds import Kind
from harness.words import Grade

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.report.compare.upgrade import Upgrade
    from harness.report.model import Results

#: What is counted of a step.
HEADS = (
    "Known on both",
    "Breaks",
    "Loses precision",
    "Fails, unknown before",
    "Now works",
    "Other troubles reported",
)
NOBODY = "nobody knows"


def later(results: Results, target: str) -> list[str]:
    """Return the later versions of the series of a target, by id; KeyError where there is no such target."""
    known = {each.id: each for each in results.targets}
    start = known[target]
    found = [
        each
        for each in known.values()
        if each.series == start.series and Version(each.version) > Version(start.version)
    ]
    return [each.id for each in sorted(found, key=lambda each: Version(each.version))]


def choice(step: Upgrade) -> tuple[str, ...]:
    """Return what stands under each of the heads, with its grade; () where nobody knows anything of the step."""
    if not (step.known or step.alone or step.troubles):
        return ()
    rows = [
        _counted(Grade.REPORTED if row.seen else Grade.MEASURED for row in step.rows if row.kind is kind)
        if step.known
        else "\N{EN DASH}"
        for kind in (Kind.BROKEN, Kind.PRECISION_LOST, Kind.FIXED)
    ]
    alone, met = _counted(one.grade for one in step.alone), str(len(step.troubles))
    return str(step.known), *rows[:2], alone, rows[2], met


def _counted(grades: Iterable[Grade]) -> str:
    counts = Counter(grades)
    return ", ".join(f"{counts[grade]} {grade}" for grade in Grade if counts[grade]) or "0"
