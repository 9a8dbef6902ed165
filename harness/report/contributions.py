"""Whose measurements a report shows: the submissions that are in it, and those that were taken back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.record.outcome import Outcome


@dataclass(frozen=True)
class Contribution:
    """A submission: who sent it, what it measured on which GPU, and when; `revoked` says why it no longer counts.

    Of one that is revoked nothing but its id and that reason is told.
    """

    id: str
    account: str = ""
    target: str = ""
    gpu: str = ""
    compute_capability: str = ""
    gpu_hash: str = ""
    cells: int = 0
    when: str = ""
    revoked: str = ""


def contributions(outcomes: Sequence[Outcome], revoked: Mapping[str, str]) -> tuple[Contribution, ...]:
    """Return the submissions among outcomes, the earliest first, and behind them those that are revoked."""
    found: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.stamps.submission:
            found.setdefault(outcome.stamps.submission, []).append(outcome)
    counted = [_contribution(key, every) for key, every in found.items()]
    gone = [Contribution(key, revoked=why) for key, why in sorted(revoked.items())]
    return (*sorted(counted, key=lambda each: (each.when, each.id)), *gone)


def _contribution(key: str, outcomes: Sequence[Outcome]) -> Contribution:
    first = min(outcomes, key=lambda outcome: outcome.stamps.when)
    seen = first.stamps.environment
    return Contribution(
        id=key,
        account=first.stamps.account,
        target=", ".join(sorted({outcome.target for outcome in outcomes})),
        gpu=seen.get("gpu", ""),
        compute_capability=seen.get("compute_capability", ""),
        gpu_hash=seen.get("gpu_hash", ""),
        cells=len({outcome.cell for outcome in outcomes}),
        when=first.stamps.when,
    )
