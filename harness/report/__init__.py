"""The report: `results.json`, its exports, and the one-file page `index.html`."""

from harness.report.model import Results
from harness.report.verify import record_faults, verify_published, verify_report
from harness.report.writer import build_report, write_pages, write_report

__all__ = [
    "Results",
    "build_report",
    "record_faults",
    "verify_published",
    "verify_report",
    "write_pages",
    "write_report",
]
