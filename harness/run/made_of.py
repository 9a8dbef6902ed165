"""What a report is made of, as one hash: where it is the same, the report need not be written again."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.record.archive import PACKED
from harness.record.revoked import SUBMISSIONS
from harness.record.store import RECORDS
from harness.record.suites import SUITES
from harness.run.kept_models import made_of
from harness.run.key import hash_of_files

#: Folders of a report whose files it is made of, and the one that it is made of and adds to.
_SOURCES = (RECORDS, SUBMISSIONS, SUITES)
_ADDED_TO = "history"
_HARNESS = Path(__file__).resolve().parents[1]


def made_of_project(matrix: Path, cases: Path) -> str:
    """Return a hash of the matrix and of imported cases; to be asked as soon as they are."""
    return _hash([made_of(cases), *map(_content, (matrix, *sorted(cases.glob("*.yaml"))))])


def made_of_report(project: str, reports: Path) -> tuple[str, str]:
    """Return a hash of all that a report of a project is made of, and one of what it leaves."""
    files = (path for path in _HARNESS.rglob("*") if path.is_file() and path.suffix != ".pyc")
    made = [project, hash_of_files(_HARNESS, files), *_sizes(reports, *_SOURCES)]
    beside = sorted(reports.iterdir())
    left = [_content(path) if path.name.endswith(PACKED) else path.name for path in beside]
    return _hash(made), _hash([*left, *_sizes(reports, _ADDED_TO)])


def _sizes(reports: Path, *names: str) -> Iterator[str]:
    for path in (path for name in names for path in sorted((reports / name).rglob("*"))):
        # Another run's temporary file may be gone by now.
        with contextlib.suppress(OSError):
            found = path.stat()
            yield f"{path} {found.st_size} {found.st_mtime_ns}"


def _hash(words: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(words).encode("utf-8", "surrogateescape")).hexdigest()


def _content(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        return f"cannot be read: {error.strerror}"
