"""What is to be run: cells, the selection of some of them, and those that mean nothing on their target."""

from harness.plan.applicable import applicability
from harness.plan.cells import Cell, claims_about, plan
from harness.plan.select import find, select

__all__ = ["Cell", "applicability", "claims_about", "find", "plan", "select"]
