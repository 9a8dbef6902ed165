"""A job and its trace, and what a job asks of a version that has certain names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.contract.scenarios import Scenario
from tests.contract.traces import Call


@dataclass(frozen=True)
class Job:
    """A scenario as it went on one version, which has `names`: how it ended, and every call."""

    scenario: Scenario
    names: frozenset[str]
    end: str
    detail: str
    trace: tuple[Call, ...]

    @property
    def kind(self) -> str:
        """Return preflight, build or run."""
        return str(self.scenario.job["kind"])

    @property
    def recipe(self) -> dict[str, Any]:
        """Return the job's recipe; of a preflight, whose network is empty, that of a graph without any wish."""
        asked = {"typing": "graph", "flags": (), "calibrator": None, "plugin": None, "workspace_mib": None}
        nothing: dict[str, Any] = {"parser_flags": (), "mark_outputs": (), "profiles": ()}
        return {**asked, **nothing, **self.scenario.job.get("recipe", {})}

    @property
    def done(self) -> bool:
        """Tell whether the job came to its end, so that nothing of it may be missing."""
        return self.end == "done"

    @property
    def weak_typing(self) -> bool:
        """Tell whether builder flags decide precision here where the recipe leaves it open."""
        return {"BuilderFlag.INT8", "IBuilderConfig.int8_calibrator"} <= self.names

    def part(self, name: str) -> bytes:
        """Return a part of the job."""
        return self.scenario.parts[name].encode("latin-1")

    def find(self, *names: str) -> Iterator[tuple[int, Call]]:
        """Return every call with one of the names, with its place."""
        return ((at, call) for at, call in enumerate(self.trace) if call.call in names)

    def before(self, at: int, *names: str) -> list[Call]:
        """Return every call with one of the names that began before a place."""
        return [call for place, call in self.find(*names) if place < at]

    def within(self, at: int) -> list[Call]:
        """Return the calls that were made during the one at a place."""
        found = []
        for call in self.trace[at + 1 :]:
            if call.depth <= self.trace[at].depth:
                break
            found.append(call)
        return found


def words(names: Iterable[str]) -> str:
    """Return names as a sentence holds them, those of a set in the alphabet's order; "nothing" for none."""
    return ", ".join(sorted(names) if isinstance(names, (set, frozenset)) else names) or "nothing"
