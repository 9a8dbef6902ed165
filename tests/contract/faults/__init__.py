"""Faults seeded into copies of the agent, one at a time, that the contract test has to tell."""

from __future__ import annotations

from tests.contract.faults import building, running
from tests.contract.faults.fault import Fault, seeded

FAULTS = (*building.FAULTS, *running.FAULTS)

__all__ = ["FAULTS", "Fault", "seeded"]
