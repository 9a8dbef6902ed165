"""Results to readers: `results.json`, what is exported of it, and the one-file page `index.html`."""

from harness.report.model import Results
from harness.report.pack import pack_report
from harness.report.results import assemble
from harness.report.verify import verify_report
from harness.report.writer import build_report, write_pages, write_report

__all__ = [
    "Results",
    "assemble",
    "build_report",
    "pack_report",
    "verify_report",
    "write_pages",
    "write_report",
]
