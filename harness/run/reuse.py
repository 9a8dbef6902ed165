"""Which recorded outcomes answer for which cells of a run, so that these need not be run again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.errors import HandledError, InfraError
from harness.plan import inapplicable_because
from harness.record.outcome import OTHERS
from harness.record.speaking import speaking
from harness.run.key import cell_key, place_of, placed_in
from harness.run.provision import NotMade, Unavailable, can_run, host_of, look_at_host, prepare

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness.matrix import Target
    from harness.plan import Cell
    from harness.record.outcome import Outcome
    from harness.record.staleness import Today
    from harness.run.provision import Host, Via


def keys_of(
    cells: Iterable[Cell], today: Mapping[str, Today], via: Via = "auto", *, ignore_needs: bool = False
) -> dict[str, str]:
    """Return the keys that cells would be recorded under if they were run now, by cell id; "" where nobody can say.

    Their models are built. This machine is looked at, and nothing is made, pulled or started.
    """
    places = _Places(via, ignore_needs=ignore_needs)
    return {
        cell.id: cell_key(
            cell, today[cell.id].model_sha256, places.of(cell.target, inapplicable_because(cell))
        )
        for cell in cells
    }


class _Places:
    """Looks up where targets would run here, each once."""

    def __init__(self, via: Via, *, ignore_needs: bool) -> None:
        self._via, self._ignore_needs = via, ignore_needs
        self._host: Host | None = None
        self._found: dict[tuple[str, bool, str | None], str] = {}

    def of(self, target: Target, reason: str | None) -> str:
        """Return where a target runs; `reason` says why a cell means nothing on it, wherever that is."""
        # A case may be untrusted on a target that others trust.
        place = (target.name, target.untrusted, reason)
        if place not in self._found:
            self._found[place] = placed_in(target, reason or self._place(target))
        return self._found[place]

    def _place(self, target: Target) -> str:
        self._host = self._host or look_at_host()
        host = host_of(target, self._host)
        try:
            lacking = can_run(target, host, self._via, ignore_needs=self._ignore_needs)
            return lacking or place_of(
                prepare(target, self._via, allow_build=False, ignore_needs=self._ignore_needs, host=host)
            )
        except (NotMade, Unavailable, InfraError, HandledError):
            # What is wrong is said when the cells are run.
            return ""


def answering(
    today: Mapping[str, Today], outcomes: Iterable[Outcome], keys: Mapping[str, str]
) -> dict[str, Outcome]:
    """Return the outcomes that need not be made anew, by cell id: the latest of today's key.

    One in which an engine took part must speak for its cell, as it would if it were made anew. What was timed beside
    others on its GPU is none, nor is what somebody else sent in, nor an infra_error.
    """
    mine = [each for each in outcomes if each.cell in today]
    speaks = speaking(mine, lambda each: bool(today[each.cell].stale_because(each)))
    found: dict[str, Outcome] = {}
    for each in sorted(mine, key=lambda outcome: outcome.stamps.when):
        if _may_answer(each, keys.get(each.cell, "")):
            found[each.cell] = each
    return {
        cell: outcome
        for cell, outcome in found.items()
        if outcome.state != "done" or any(outcome is each for each in speaks[cell])
    }


def recorded_by(
    run: str, today: Mapping[str, Today], outcomes: Iterable[Outcome], keys: Mapping[str, str]
) -> dict[str, Outcome]:
    """Return what a run has recorded of cells, by cell id, without an infra_error and what has changed since."""
    return {
        each.cell: each
        for each in outcomes
        if each.stamps.run == run
        and each.cell in today
        and each.state != "infra_error"
        and not today[each.cell].stale_because(each)
        and (each.key == keys.get(each.cell) or "" in {each.key, keys.get(each.cell, "")})
    }


def _may_answer(outcome: Outcome, key: str) -> bool:
    latency = outcome.latency
    disturbed = latency is not None and OTHERS in {**latency.before, **latency.after}
    theirs = outcome.stamps.account or outcome.state == "infra_error"
    return bool(key) and outcome.key == key and not disturbed and not theirs
