"""What the calls of a job have to mean, whatever the version: a sentence for each that means something else.

Each rule is a function of one job's trace, and of what its recipe and the version's names are. It knows the adapter's
code in nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.contract.meaning import building, callbacks, lifetimes, running
from tests.contract.meaning.job import Job
from tests.contract.scenarios import Scenario
from tests.contract.traces import calls

RULES = (*building.RULES, *callbacks.RULES, *running.RULES, *lifetimes.RULES)


def misread(report: Mapping[str, Any], jobs: Mapping[str, Scenario]) -> list[str]:
    """Return one sentence for every way in which a job's calls do not mean what they must, the same one once."""
    names = frozenset(report["names"])
    found: dict[str, None] = {}
    for name, result in report["results"].items():
        if result["end"] in ("impossible", "crashed"):
            continue
        job = Job(jobs[name], names, result["end"], result["detail"] or "", tuple(calls(result)))
        for rule in RULES:
            found.update(dict.fromkeys(f"{name}: {sentence}" for sentence in rule(job)))
    return list(found)
