"""A reports folder -> few files: what is recorded in an archive a folder, the report made anew in its packed form."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING

from harness.bounded import SMALL, read_bytes
from harness.errors import HandledError, InfraError
from harness.history import FOLDER, read_history
from harness.history.runs import missing, to_text
from harness.record.archive import ARCHIVE, archive_of, compress, files_of, inflate, pack, unpack
from harness.record.revoked import FILE as REVOKED
from harness.record.revoked import SUBMISSIONS
from harness.record.store import LOGS, RECORDS, log_name
from harness.report.further import FURTHER
from harness.report.packed import MODELS, PACKABLE, RESULTS, twin
from harness.report.results import recorded, results_of, run_records
from harness.report.suite_pages import suites_beside
from harness.report.writer import model_files, report_texts, write_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.case import Case
    from harness.history.runs import RunRecord
    from harness.matrix import Matrix
    from harness.record.store import Store
    from harness.report.model import Results
    from harness.report.results import Commands, Recorded

    #: Files of a folder by their names in it.
    Files = dict[str, bytes]


def pack_report(
    matrix: Matrix,
    cases: Sequence[Case],
    store: Store,
    folder: Path | None = None,
    commands: Commands | None = None,
) -> tuple[Path, ...]:
    """Write what a store's folder holds, packed, into another folder or in its own place; return the files' paths.

    In place, what was packed then goes, once the archives were read back. Raises HandledError where a run is writing
    into the folder, or something in it cannot be read: then nothing is changed.
    """
    out = folder or store.path
    with nobody_writes(store.path / RECORDS) as records:
        loose = [*records, *_loose(store.path)]
        found = recorded(matrix, cases, store, commands)
        history = history_of(store.path, found)
        results = results_of(found, history)
        models = model_files(found.models)
        files = {
            RECORDS: _records(store.path / RECORDS),
            LOGS: logs_of(store.path),
            FOLDER: {record.file_name: to_text(record).encode() for record in history},
            MODELS: {Path(name).name: data for name, data in models.items()},
        }
        files = {name: every for name, every in files.items() if every}
        packed = {f"{name}{ARCHIVE}": pack(name, every) for name, every in files.items()}
        archives = (*({LOGS} & set(files)), MODELS, RESULTS)
        report = packed_texts(results, archives, models, suites_beside(out))
        written = write_files(out, packed | report | _provenance(store.path))
        if folder is None:
            read_back(out, files)
            remove(out, loose)
    return written


def history_of(reports: Path, found: Recorded) -> list[RunRecord]:
    """Return the history of the runs in a folder, the oldest first, with those that are only in its records so far."""
    kept = {record.file_name: record for record in read_history(reports)}
    kept |= {record.file_name: record for record in missing(reports, run_records(found))}
    return sorted(kept.values(), key=lambda record: (record.when, record.run))


def _provenance(reports: Path) -> Files:
    """Return what is kept beside the records: of submissions, whose revoked ones would count again, and of a check."""
    folder = reports / SUBMISSIONS
    found = [folder / REVOKED, *folder.glob("*/*.json"), reports / FURTHER]
    return {str(path.relative_to(reports)): read_bytes(path, SMALL) for path in found if path.is_file()}


def packed_texts(
    results: Results, archives: Sequence[str], models: Files, suites: Mapping[str, str] | None = None
) -> Files:
    """Return the report's own files by their names, the large ones packed; it links to the pages of `suites`."""
    texts = report_texts(results, archives, models, suites)
    files = {name: text.encode() for name, text in texts.items()}
    for name in PACKABLE:
        files[twin(Path(name)).name] = compress(name, files.pop(name))
    return files


def _loose(reports: Path) -> list[Path]:
    """Return the files, but for records, of which a packed folder has no need."""
    folders = {LOGS: "*/*.txt.gz", FOLDER: "*.json", MODELS: "*.onnx"}
    found = [path for name, pattern in folders.items() for path in (reports / name).glob(pattern)]
    return [*found, *(reports / name for name in PACKABLE)]


@contextlib.contextmanager
def nobody_writes(records: Path) -> Iterator[list[Path]]:
    """Return the files of records, with the lock of each, which a writer keeps for as long as it may append."""
    with contextlib.ExitStack() as held:
        found = sorted(records.glob("*.jsonl"))
        for path in filter(Path.is_file, found):
            try:
                file = held.enter_context(path.open("rb"))
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise HandledError(
                    f"{path}: a run is writing it; pack the folder when that has ended"
                ) from None
            except OSError:
                # A file system without locks: the writer had none either. What cannot be opened is told by its reader.
                continue
        yield found


def _records(folder: Path) -> Files:
    """Return the files of records; of two that are called the same the later gets a name of its own.

    One that is a copy, or the beginning, of the other is left out.
    """
    found: Files = {}
    for path, data in files_of(folder, ".jsonl"):
        for number in itertools.count(1):
            name = path.name if number == 1 else f"{path.stem}.{number}.jsonl"
            before = found.get(name, b"")
            if data.startswith(before) or before.startswith(data):
                found[name] = max(before, data, key=len)
                break
    return found


def logs_of(reports: Path) -> Files:
    """Return the logs of a folder by their names in `logs/`; raises HandledError for one that cannot be read."""
    folder = reports / LOGS
    archive = archive_of(folder)
    found = unpack(archive) if archive.is_file() else {}
    for path in sorted(folder.glob("*/*.txt.gz")):
        try:
            text = inflate(path)
        except OSError as error:
            raise HandledError(f"{path}: the log cannot be read ({error}); mend or delete it") from error
        name = log_name(hashlib.sha256(text).hexdigest())
        if path != folder / f"{name}.gz":
            raise HandledError(f"{path}: the log is not what its name says; mend or delete it")
        found[name] = text
    return found


def read_back(out: Path, files: dict[str, Files]) -> None:
    """Raise InfraError where an archive does not hold what was written, or may not outlive a power cut."""
    for name, every in files.items():
        archive = archive_of(out / name)
        with archive.open("rb") as file:
            os.fsync(file.fileno())
        if unpack(archive) != every:
            raise InfraError(f"{archive}: does not read back as it was written; nothing was removed")
    # The archives' names, too, have to outlive a power cut that comes after the first removal.
    folder = os.open(out, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def remove(out: Path, packed: Sequence[Path]) -> None:
    """Remove files, and folders that are empty without them."""
    for path in packed:
        path.unlink(missing_ok=True)
    for folder in sorted(
        {path.parent for path in packed} | {path.parent.parent for path in packed}, reverse=True
    ):
        if folder != out and folder.is_relative_to(out):
            with contextlib.suppress(OSError):
                folder.rmdir()
