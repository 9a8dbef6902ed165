"""The tables of suites, apart from the matrix: `suites/<name>.html`, `.json` and `.md` beside the report."""

from harness.report.suites.compare import Step, compare
from harness.report.suites.files import (
    absorb_suites,
    build_suite,
    build_suites,
    suite_stores,
    verify_suites,
)
from harness.report.suites.model import SuiteResults
from harness.report.suites.results import judge_item, suite_results
from harness.report.suites.summary import suite_lines

__all__ = [
    "Step",
    "SuiteResults",
    "absorb_suites",
    "build_suite",
    "build_suites",
    "compare",
    "judge_item",
    "suite_lines",
    "suite_results",
    "suite_stores",
    "verify_suites",
]
