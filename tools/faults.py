"""Runs the tests that do the harness harm, and prints what was tried, what was to be expected and what came of it.

    python -m tools.faults [OPTIONS OF PYTEST]

A test is one of them by its mark: `@pytest.mark.fault("files", "a FIFO in the folder of records", "one sentence")`.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The name under which tests/conftest.py hands on what a mark says.
PROPERTY = "fault"


@dataclass(eq=False)
class Campaign:
    """A plugin of pytest that counts how tests of each fault ended; it works where xdist runs the tests too."""

    ends: dict[tuple[str, str, str], Counter[str]] = field(default_factory=dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take in how a test ended: what its setup or its end does wrong counts as well."""
        marks = [value for name, value in report.user_properties if name == PROPERTY]
        how = "broke" if report.failed else "not tried" if report.skipped else "held"
        if how == "held" and report.when != "call":
            return
        for mark in marks:
            group, tried, expected = map(str, cast("list[str]", mark))
            self.ends.setdefault((group, tried, expected), Counter())[how] += 1

    def table(self) -> str:
        """Return the table in Markdown, a line a fault."""
        lines = ["| group | fault | expected | observed |", "| --- | --- | --- | --- |"]
        for (group, tried, expected), ends in sorted(self.ends.items()):
            lines.append(f"| {group} | {tried} | {expected} | {_observed(ends)} |")
        return "\n".join(lines)


def _observed(ends: Counter[str]) -> str:
    many = ends.total()
    parts = [f"{how} {count} of {many}" if many > 1 else how for how, count in sorted(ends.items())]
    return ", ".join(parts)


def main(arguments: Sequence[str]) -> int:
    """Run the campaign and print its table; returns pytest's exit code."""
    campaign = Campaign()
    root = Path(__file__).resolve().parents[1]
    code = pytest.main([str(root / "tests"), "-m", "fault", "-q", *arguments], plugins=[campaign])
    print(campaign.table())
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
