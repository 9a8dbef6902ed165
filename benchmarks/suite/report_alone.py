"""(i) The report without a run: made-up matrices of three sizes.

As a program it makes the page of so many cells, and prints the seconds that this took.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

from benchmarks.report_scale import results
from benchmarks.suite.figures import Figure, Section
from benchmarks.suite.running import Ran, ran
from harness.report.page.html import render

if TYPE_CHECKING:
    from benchmarks.suite.running import Setting

TITLE = "the report alone"


def measure(setting: Setting) -> Section:
    """Make the page of each size."""
    figures: list[Figure] = []
    for cells in (100, 200) if setting.small else (1_000, 10_000, 100_000):
        found = [_page(cells) for _ in setting.rounds(f"i, {cells} cells")]
        figures += [
            Figure(f"the page of {cells} cells", "s", tuple(seconds for seconds, _ in found)),
            Figure(f"the page of {cells} cells: peak memory", "MB", tuple(one.peak_mb for _, one in found)),
        ]
    return Section("i", TITLE, tuple(figures))


def _page(cells: int) -> tuple[float, Ran]:
    done = ran([sys.executable, "-m", "benchmarks.suite.report_alone", str(cells)])
    return float(json.loads(done.said.splitlines()[-1])), done


def main() -> None:
    """Make the page and print the seconds."""
    made = results(int(sys.argv[1]))
    start = time.monotonic()
    render(made)
    print(json.dumps(time.monotonic() - start))


if __name__ == "__main__":
    main()
