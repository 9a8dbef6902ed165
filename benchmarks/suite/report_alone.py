"""(i) The report without a run: made-up matrices of three sizes, and the run that is published here.

As a program it makes the page of so many cells, and prints the seconds that this took.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from typing import TYPE_CHECKING

from benchmarks.report_scale import results
from benchmarks.suite.figures import Figure, Section
from benchmarks.suite.running import ROOT, Ran, harness, ran
from harness.report.page.html import render

if TYPE_CHECKING:
    from benchmarks.suite.running import Setting

TITLE = "the report alone"


def measure(setting: Setting) -> Section:
    """Make the page of each size, and the whole report of the published records."""
    figures: list[Figure] = []
    for cells in (100, 200) if setting.small else (1_000, 10_000, 100_000):
        found = [_page(cells) for _ in setting.rounds(f"i, {cells} cells")]
        figures += [
            Figure(f"the page of {cells} cells", "s", tuple(seconds for seconds, _ in found)),
            Figure(f"the page of {cells} cells: peak memory", "MB", tuple(one.peak_mb for _, one in found)),
        ]
    reports = setting.folder()
    shutil.copytree(ROOT / "reports" / "published", reports, dirs_exist_ok=True)
    whole = [
        ran(harness("report", "--reports", str(reports)), accepted=(0, 1))
        for _ in setting.rounds("i, published")
    ]
    figures += [
        Figure("`report` of the published records", "s", tuple(one.seconds for one in whole)),
        Figure("`report` of the published records: peak memory", "MB", tuple(one.peak_mb for one in whole)),
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
