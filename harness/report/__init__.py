"""The report: `results.json`, its exports, and the one-file page `index.html`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

#: The folder of the models, beside the page.
MODELS = "models"
#: The published description of results.json, shipped beside it.
SCHEMA_FILE = "results.schema.json"
#: The files of a report that `harness.report.writer.report_texts` makes.
FILES = ("results.json", SCHEMA_FILE, "results.csv", "summary.md", "index.html")


def is_current(folder: Path, sources: Iterable[Path]) -> bool:
    """Tell whether the report in a folder is newer than its records, other sources and this package, as make would."""
    package = Path(__file__).parents[1]
    if not (folder / MODELS).is_dir():
        return False
    try:
        written = min((folder / name).stat().st_mtime_ns for name in FILES)
        return not any(
            path.stat().st_mtime_ns >= written
            for source in (*sources, folder / "records", folder / "suites", package)
            for path in (source, *source.rglob("*"))
            if path.exists() and "__pycache__" not in path.parts
        )
    except OSError:
        return False
