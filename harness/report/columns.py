"""A target's column of a report, for steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.compare.step import Column, Trouble
from harness.known.advice import general_advice, without_blanks

if TYPE_CHECKING:
    from harness.report.model import Results


def column(results: Results, target: str, name: str = "") -> Column:
    """Return one target's column; `name` is what to call it where two reports have a target of this id."""
    return Column(
        name or target,
        {variant.id: variant for variant in results.variants},
        {f"{cell.case}.{cell.variant}": cell for cell in results.cells if cell.target == target},
    )


def troubles_after(results: Results, before: str, after: str) -> list[Trouble]:
    """Return the signatures that are reported of one target's version and not of another's."""
    known = {one.signature for one in results.troubles.get(before, ())}
    found = []
    for one in results.troubles.get(after, ()):
        advice = general_advice(one.signature)
        if one.signature not in known and advice:
            found.append(Trouble(one.signature, without_blanks(advice.title), advice.advice, one.seen))
    return found
