"""What the panel concludes of a cell, and the claims that it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.engines import ENGINES
from harness.record.from_json import fields_of
from harness.report import past
from harness.report.advice import general_advice
from harness.report.claimed import says, source
from harness.report.labels import BUCKETS, CLAIMED, MARKS, bucket, drawn_as
from harness.text import capital
from harness.words import UNJUDGED, Grade

if TYPE_CHECKING:
    from harness.case import Expectation
    from harness.report.model import CellView, VariantView


def concluded(cell: CellView, variant: VariantView, meanwhile: str) -> dict[str, Any]:
    """Return the headline, the claims that are shown, the cause and what to use meanwhile."""
    about = {index: variant.expectations[index] for index in cell.claims}
    # What stands in no column is told with the row: of something alike, or of no version.
    beside = [index for index, claim in enumerate(variant.expectations) if not claim.stands]
    # The sentence of a result has told the measurement that it is held against.
    once = {
        index
        for index, claim in about.items()
        if cell.measured and index == cell.expectation and claim.grade is Grade.MEASURED
    }
    first = next(iter(about.values()), None) if bucket(cell) in CLAIMED.values() else None
    advice = cell.diagnosis or (general_advice(first.signature) if first else None)
    return {
        "state": _state(cell, first),
        "claims": [*(index for index in about if index not in once), *beside],
        "diagnosis": fields_of(advice) if advice else None,
        "meanwhile": meanwhile,
    }


def _state(cell: CellView, claim: Expectation | None) -> str:
    """Return the headline of the panel: bucket, class or what is claimed, and whether it is flaky."""
    title, known = BUCKETS[bucket(cell)][0], MARKS[drawn_as(cell)].name
    if claim and claim.outcome not in UNJUDGED:
        title, known = (capital(claim.graded) if claim.kind else title), says(claim)
    flaky = "; flaky" if "flaky" in past.history_words(cell) else ""
    return f"{title}{'' if title == known else f': {known[0].lower()}{known[1:]}'}{flaky}"


def claim_evidence(entry: Expectation) -> dict[str, Any]:
    """Return a claim: what it says, how sure that is, who says so and where it holds."""
    said = says(entry)
    where = [
        f"{ENGINES[entry.engine].product} {entry.on_versions}",
        entry.platform or "",
        f"compute capability {entry.compute_capability}" if entry.compute_capability else "",
        *entry.targets,
    ]
    return slim(
        {
            "says": f"{said[0].upper()}{said[1:]}",
            "how": _how(entry),
            "url": entry.source.url if entry.source else "",
            "source": source(entry),
            "where": "" if entry.grade is Grade.MEASURED else f"About {', '.join(filter(None, where))}.",
            "note": "" if entry.grade is Grade.MEASURED else entry.note,
        }
    )


def _how(entry: Expectation) -> str:
    """Say how sure a claim is and who says so, up to its source's name; a measurement says when in its note."""
    if entry.grade is Grade.MEASURED:
        return f"{entry.note or entry.graded}, and accepted as what to expect"
    return f"{entry.graded} in"


def slim(data: dict[str, Any]) -> dict[str, Any]:
    """Return the data without what is empty; that no claim was judged is a fact of its own."""
    return {key: value for key, value in data.items() if value or key == "expectation"}
