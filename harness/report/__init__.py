"""Results to readers: `results.json`, `summary.md` and the one-file page `index.html`."""

from harness.report.model import Results
from harness.report.results import assemble
from harness.report.writer import build_report, verify_report, write_report

__all__ = ["Results", "assemble", "build_report", "verify_report", "write_report"]
