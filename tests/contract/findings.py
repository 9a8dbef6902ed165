"""What a probe's report says against the adapter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.contract.scenarios import Scenario


def findings(report: Mapping[str, Any], jobs: Mapping[str, Scenario]) -> list[str]:
    """Return one sentence for every job that ended as it must not; empty for an adapter that keeps to the API.

    A job may end as its scenario says, or with the name of an API that is missing, if that name is really not there.
    Anything that Python or the bindings raise, and a crash, is a finding.
    """
    names = set(report["names"])
    found = []
    for name, result in report["results"].items():
        end, detail = result["end"], result["detail"]
        if end == "missing_api":
            if detail in names:
                found.append(f"{name}: says that {detail} is missing, and it is there")
        elif end == "impossible":
            # No such answer: DataType.FP8 where there is no such type.
            continue
        elif end != wanted_end(jobs[name], names):
            found.append(f"{name}: ended as {end}, not {wanted_end(jobs[name], names)}: {detail}")
    return found


def wanted_end(scenario: Scenario, names: set[str]) -> str:
    """Return how a job must end on a version that has what its recipe asks for."""
    lacked, end = scenario.lacking
    return end if lacked and lacked not in names else scenario.ends
