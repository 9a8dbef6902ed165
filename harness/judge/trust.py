"""How far what was measured of a cell on one GPU architecture can be relied on; pure.

The project's own measurements count as measured. Somebody else's is observed once, until two who are independent (other
accounts on other GPUs) agree. Where witnesses disagree the cell is disputed, and nobody is outvoted: all are shown.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.judge.cell import judge_cell
from harness.words import GOOD, UNJUDGED, Class, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from harness.judge.cell import Judged
    from harness.plan import Cell
    from harness.record.outcome import Outcome

OBSERVED_ONCE, MEASURED, DISPUTED = "observed once", "measured", "disputed"
#: A cell's id and a compute capability, "" where no GPU took part.
Place = tuple[str, str]


@dataclass(frozen=True, order=True)
class Witness:
    """Who found what, when and on what; `submission`, `account` and `gpu_hash` are empty for the project itself."""

    when: str
    cls: Class
    submission: str = ""
    account: str = ""
    gpu_hash: str = ""
    gpu: str = ""

    def __str__(self) -> str:
        return f"{self.cls} by {self.account or 'this project'} ({self.gpu or 'no GPU'}, {self.when[:10]})"


@dataclass(frozen=True)
class Trust:
    """The word, and the witnesses, the latest first."""

    word: str
    by: tuple[Witness, ...]

    @property
    def sentence(self) -> str:
        """Return who says what."""
        return f"{self.word}: {'; '.join(map(str, self.by))}"


def trust(witnesses: Iterable[Witness]) -> Trust:
    """Return how far witnesses of one place can be relied on; of one account and GPU the latest counts alone."""
    latest: dict[tuple[str, str], Witness] = {}
    for witness in sorted(witnesses):
        latest[witness.account.casefold(), witness.gpu_hash] = witness
    by = tuple(sorted(latest.values(), reverse=True))
    if len({_said(witness.cls) for witness in by}) > 1:
        return Trust(DISPUTED, by)
    own = any(not witness.submission for witness in by)
    return Trust(MEASURED if own or _independent(latest) else OBSERVED_ONCE, by)


def _said(cls: Class) -> str:
    return "good" if cls in GOOD else cls


def _independent(keys: Iterable[tuple[str, str]]) -> bool:
    """Tell whether two of these are of different accounts and different GPUs."""
    known = list(keys)
    return any(a[0] != b[0] and a[1] != b[1] for a in known for b in known)


def trusts(
    cells: Iterable[Cell], outcomes: Sequence[Outcome], stale: Callable[[Outcome], bool]
) -> dict[Place, Trust]:
    """Return the trust in each place of which there is a submission; the others are the project's own."""
    sent = {outcome.cell for outcome in outcomes if outcome.stamps.submission}
    known = {cell.id: cell for cell in cells if cell.id in sent}
    found: dict[Place, list[Witness]] = {}
    for outcome in outcomes:
        if outcome.cell not in known or outcome.state != "done" or stale(outcome):
            continue
        judged = judge_cell(known[outcome.cell], outcome)
        if judged.classification.cls not in UNJUDGED:
            found.setdefault(_place(outcome), []).append(_witness(judged))
    return {
        place: trust(witnesses)
        for place, witnesses in found.items()
        if any(witness.submission for witness in witnesses)
    }


def believed(judged: Judged, known: Mapping[Place, Trust]) -> Judged:
    """Return a judged cell as far as those who measured it are to be believed.

    Where they disagree it is disputed; what one stranger alone observed neither breaks a claim nor proves it mended.
    """
    found = known.get(_place(judged.outcome))
    if found is None or judged.classification.cls in UNJUDGED:
        return judged
    judgement = judged.judgement
    verdict = judgement.verdict
    if found.word == DISPUTED:
        verdict = Verdict.DISPUTED
    elif found.word == OBSERVED_ONCE and verdict in (Verdict.REGRESSED, Verdict.FIXED):
        verdict = Verdict.NEW
    said = replace(judgement, verdict=verdict, sentence=f"{found.sentence}; {judgement.sentence}")
    return replace(judged, judgement=said, trust=found.word)


def _place(outcome: Outcome) -> Place:
    return outcome.cell, outcome.stamps.environment.get("compute_capability", "")


def _witness(judged: Judged) -> Witness:
    stamps = judged.outcome.stamps
    return Witness(
        stamps.when,
        judged.classification.cls,
        stamps.submission,
        stamps.account,
        stamps.environment.get("gpu_hash", ""),
        stamps.environment.get("gpu", ""),
    )
