"""What a report is made of, as one hash: where it is the same, the report need not be written again."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from harness.record.archive import PACKED
from harness.record.revoked import SUBMISSIONS
from harness.record.store import RECORDS
from harness.record.suites import SUITES
from harness.run.kept_models import made_of
from harness.run.key import hash_of_files

#: Folders of a report whose files it is made of.
_SOURCES = (RECORDS, "history", SUBMISSIONS, SUITES)
_HARNESS = Path(__file__).resolve().parents[1]


def made_of_report(matrix: Path, cases: Path, reports: Path) -> str:
    """Return a hash of all that a report is made of, and of which of its files are there; of imported cases."""
    files = (path for path in _HARNESS.rglob("*") if path.is_file() and path.suffix != ".pyc")
    words = [made_of(cases), hash_of_files(_HARNESS, files)]
    words += map(_content, (matrix, *sorted(cases.glob("*.yaml"))))
    beside = sorted(reports.iterdir())
    words += (_content(path) if path.name.endswith(PACKED) else path.name for path in beside)
    for name in _SOURCES:
        for path in sorted((reports / name).rglob("*")):
            # Another run's temporary file may be gone by now.
            with contextlib.suppress(OSError):
                found = path.stat()
                words.append(f"{path} {found.st_size} {found.st_mtime_ns}")
    return hashlib.sha256("\n".join(words).encode("utf-8", "surrogateescape")).hexdigest()


def _content(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        return f"cannot be read: {error.strerror}"
