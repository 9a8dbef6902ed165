"""The append-only store of outcomes.

    records/<run>-<worker>.jsonl   one record a line, flushed and synced before `append` returns
    logs/<aa>/<sha256>.txt.gz      whole logs by the hash of their text, written before the record that names them

Every writer makes a file of its own and never opens one that exists, so several processes append at once without
waiting for one another. A process that is killed can leave one torn last line in its file, which readers pass
over, and logs that no record names.
"""

from __future__ import annotations

import dataclasses
import errno
import gzip
import hashlib
import itertools
import json
import os
import re
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import BinaryIO, Protocol

from harness.bounded import files_of, parse_json, read_bytes
from harness.errors import SHORT_OF, HandledError, InfraError
from harness.record.from_json import OutdatedError
from harness.record.outcome import Outcome
from harness.record.speaking import speaking

RECORDS, LOGS = "records", "logs"
#: The folder, beside records, that holds one for each suite: a reports folder of its own.
SUITES = "suites"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@cache
def tell_once(sentence: str) -> None:
    """Print a sentence on standard error, the first time that it is told."""
    print(sentence, file=sys.stderr)


def write_whole(path: Path, data: bytes, *, sync: bool = False) -> None:
    """Write a file into a folder that exists, whole or not at all; `sync` also onto the disk. Raises OSError."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        os.chmod(temporary, 0o644)  # noqa: PTH101  (mkstemp gives 0600, and web servers refuse a site with that)
        os.replace(temporary, path)  # noqa: PTH105  (the same call on every platform, and it is atomic)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_files(folder: Path, files: Mapping[str, bytes]) -> tuple[Path, ...]:
    """Write files by their places in a folder, each whole or not at all; return their paths.

    Raises HandledError if that fails, InfraError if the disk is full.
    """
    try:
        for parent in {(folder / name).parent for name in files}:
            parent.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            write_whole(folder / name, data)
        return tuple(folder / name for name in files)
    except OSError as error:
        kind = InfraError if error.errno in SHORT_OF else HandledError
        raise kind(f"{folder}: cannot be written ({error.strerror}); give another folder") from error


class RecordSource(Protocol):
    """Records to take into a store: another store, or an archive that somebody sent."""

    def outcomes(self) -> Iterable[Outcome]:
        """Return the records."""

    def log(self, sha256: str) -> str:
        """Return the whole log of a record."""


class Store:
    """A folder of outcomes; `run` and `worker` name the file that this process appends to.

    `tell` is given a sentence on each line that is no record, by default once a process on standard error.
    """

    def __init__(
        self, path: Path, *, run: str = "run", worker: str = "main", tell: Callable[[str], None] = tell_once
    ) -> None:
        for name in (run, worker):
            if not _NAME.fullmatch(name):
                raise HandledError(f"store name {name!r}: use letters, digits, '-', '_' and '.'")
        self.path = path
        self._name = f"{run}-{worker}"
        self._tell = tell
        self._faults: dict[str, None] = {}
        self._open: BinaryIO | None = None

    @property
    def holds_records(self) -> bool:
        """Whether anything was ever recorded here."""
        return (self.path / RECORDS).is_dir()

    def append(self, outcome: Outcome, log_text: str | None = None) -> Outcome:
        """Record an outcome for good, its log first; return it as recorded, with its log's hash."""
        if log_text:
            outcome = dataclasses.replace(outcome, log_sha256=self._write_log(log_text))
        line = _line(outcome)
        file = self._writer()
        file.write(line + b"\n")
        file.flush()
        # Why a cell did not run is found again in no time; a whole matrix has thousands of such cells.
        if outcome.state == "done":
            os.fsync(file.fileno())
        return outcome

    def absorb(self, other: RecordSource) -> int:
        """Append the records that another holds and this one lacks, with their logs; return how many.

        Doing it again has no effect. A record whose log the other lacks is taken in without it, with a sentence to the
        user.
        """
        known = {_line(outcome) for outcome in self.outcomes()}
        before, lost = len(known), []
        for outcome in other.outcomes():
            if _line(outcome) in known:
                continue
            try:
                log, missing = other.log(outcome.log_sha256) if outcome.log_sha256 else None, ""
            except HandledError as error:
                log, missing = None, str(error)
            kept = dataclasses.replace(outcome, log_sha256=None) if missing else outcome
            if (line := _line(kept)) not in known:
                known.add(line)
                lost += [missing] if missing else []
                self.append(kept, log)
        if lost:
            self._tell(f"{len(lost)} records are taken in without their logs: {lost[0]}")
        return len(known) - before

    @property
    def faults(self) -> tuple[str, ...]:
        """A sentence on each line that was no record, of those read so far."""
        return tuple(self._faults)

    def _pass_over(self, sentence: str) -> None:
        self._faults[sentence] = None
        self._tell(sentence)

    def close(self) -> None:
        """Close the file; a later `append` starts another."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def __enter__(self) -> Store:  # noqa: PYI034  (Self is Python 3.11)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def outcomes(self) -> Iterator[Outcome]:
        """Yield every record, file by file in name order, each in the order written.

        A torn last line is passed over. Any other line that is no record costs a sentence with file and line, and the
        rest is read: in silence it could turn a recorded regression into "not run".
        """
        for path, data in files_of(self.path / RECORDS, ".jsonl"):
            yield from read_records(path, data, self._pass_over)

    def speaking(self, stale: Callable[[Outcome], bool] = lambda _: False) -> dict[str, tuple[Outcome, ...]]:
        """Return the outcomes of the store that speak for each cell; see `speaking`."""
        return speaking(self.outcomes(), stale)

    def log(self, sha256: str) -> str:
        """Return a whole log; raises HandledError if it is missing or does not have the hash in its name."""
        if not _SHA256.fullmatch(sha256):
            raise HandledError(f"{sha256[:80]!r}: is the name of no log; run the cell again")
        path = self._log_path(sha256)
        try:
            text = inflate(path)
        except OSError as error:
            raise HandledError(f"{path}: the log cannot be read ({error}); run the cell again") from error
        if hashlib.sha256(text).hexdigest() != sha256:
            raise HandledError(f"{path}: the log is not the one that was recorded; run the cell again")
        return text.decode("utf-8")

    def _writer(self) -> BinaryIO:
        if self._open is None:
            folder = self.path / RECORDS
            folder.mkdir(parents=True, exist_ok=True)
            numbers = itertools.count(2)
            name = self._name
            while self._open is None:
                try:
                    self._open = (folder / f"{name}.jsonl").open("xb")
                except FileExistsError:
                    name = f"{self._name}.{next(numbers)}"
        return self._open

    def _log_path(self, sha256: str) -> Path:
        return self.path / LOGS / sha256[:2] / f"{sha256}.txt.gz"

    def _write_log(self, text: str) -> str:
        # A native library may write bytes that are no UTF-8; decoded with surrogates they must not stop the record.
        data = text.encode("utf-8", "backslashreplace")
        if len(data) > LIMIT:
            data = _cut(text).encode("utf-8", "backslashreplace")
        sha256 = hashlib.sha256(data).hexdigest()
        path = self._log_path(sha256)
        if path.exists():
            return sha256
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, gzip.compress(data, mtime=0), sync=True)
        return sha256


def _cut(text: str) -> str:
    """Return a log without its middle, so that it can be read: a character may take six bytes."""
    half = LIMIT // 16
    return f"{text[:half]}\n[left out] {len(text) - 2 * half} characters: no log is longer\n{text[-half:]}"


def _line(outcome: Outcome) -> bytes:
    text = json.dumps(outcome.to_json(), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # A lone surrogate, from bytes that were no UTF-8, becomes its JSON escape.
    return text.encode("utf-8", "backslashreplace")


def read_records(path: Path, data: bytes, tell: Callable[[str], None]) -> Iterator[Outcome]:
    """Yield the records of a file's bytes, without a torn last line; report each other line that is no record."""
    *lines, tail = data.split(b"\n")
    for number, line in enumerate([*lines, tail], start=1):
        if not line.strip():
            continue
        try:
            record = parse_json(line)
        except ValueError as error:
            if number > len(lines):
                # Its writer was killed in mid-line: `append` had not returned, so no promise is broken.
                return
            tell(f"{path}:{number}: not a record ({error}); it is passed over: mend or delete that line")
            continue
        try:
            outcome = Outcome.from_json(record)
        except OutdatedError as error:
            # The same sentence for all of them, which is told once.
            tell(f"{path.parent}: holds records of {error}, which are passed over; run again")
            continue
        except (ValueError, TypeError, AttributeError) as error:
            tell(
                f"{path}:{number}: not a record this harness reads, and passed over: {error}; "
                "mend or delete that line"
            )
            continue
        yield outcome


try:
    import lzma
except ImportError:  # A Python built without liblzma runs everything but xz files.
    lzma = None  # type: ignore[assignment]

#: Bytes that one packed file may unpack to.
LIMIT = 256 << 20
#: Tells zlib that its data has gzip's head.
_GZIP = 16 + zlib.MAX_WBITS
#: Bytes of memory for unpacking: as many as preset 9 needs, in case another program packed the file with it.
_MEMORY = 80 << 20


def compress(name: str, data: bytes) -> bytes:
    """Return data packed by itself; an error for too much data calls it `name`."""
    _need_lzma(name)
    if len(data) > LIMIT:
        raise HandledError(
            f"{name}: {len(data) >> 20} MiB, and a packed file may hold {LIMIT >> 20} MiB; take fewer cells"
        )
    # Preset 9 needs 674 MB to pack and saves not a tenth of a per cent of a run.
    return lzma.compress(data, lzma.FORMAT_XZ)


def decompress(path: Path, limit: int | None = None) -> bytes:
    """Return the content of an xz file; raises InfraError if it is damaged, or holds more bytes than the limit."""
    _need_lzma(str(path))
    limit = limit or LIMIT
    try:
        # Incompressible data become a little longer.
        packed = read_bytes(path, 2 * limit)
    except OSError as error:
        raise InfraError(f"{path}: cannot be read ({error.strerror})") from error
    reader = lzma.LZMADecompressor(lzma.FORMAT_XZ, _MEMORY)
    try:
        found = reader.decompress(packed, limit + 1)
    except lzma.LZMAError as error:
        raise _damaged(path, str(error)) from error
    if len(found) > limit:
        raise _damaged(path, f"it unpacks to more than {limit >> 20} MiB")
    if not reader.eof:
        raise _damaged(path, "it is cut short")
    if reader.unused_data:
        raise _damaged(path, "something follows its end")
    return found


def inflate(path: Path) -> bytes:
    """Return the content of a gzip file; raises OSError if it is damaged, or holds more than the limit."""
    reader = zlib.decompressobj(_GZIP)
    try:
        found = reader.decompress(read_bytes(path, 2 * LIMIT), LIMIT + 1)
    except zlib.error as error:
        raise OSError(errno.EINVAL, str(error), str(path)) from error
    if len(found) > LIMIT:
        raise OSError(errno.EFBIG, f"it unpacks to more than {LIMIT >> 20} MiB", str(path))
    if not reader.eof or reader.unused_data:
        raise OSError(errno.EINVAL, "it is cut short, or something follows its end", str(path))
    return found


def _need_lzma(name: str) -> None:
    if lzma is None:
        raise HandledError(f"{name}: this Python was built without lzma; use one that has it")


def _damaged(path: Path, why: str) -> InfraError:
    return InfraError(f"{path}: cannot be unpacked ({why}); get it again from where it came from")
