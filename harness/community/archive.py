"""The file of a submission: `submission/provenance.json`, `records.jsonl` and `logs/<sha256>.txt`, read with bounds.

It comes from a stranger. Nothing of it is written to disk before all of it has been checked; what is unpacked is
counted while it is unpacked, and a member has to be a plain file of one of these names.
"""

from __future__ import annotations

import hashlib
import json
import re
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from harness.community.provenance import Provenance, exactly, from_data
from harness.community.scrub import identifying
from harness.errors import HandledError, InfraError
from harness.record.archive import PLAIN_FILES, decompress, members, pack
from harness.record.outcome import RECORD_SCHEMA, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FOLDER, PROVENANCE, RECORDS = "submission", "provenance.json", "records.jsonl"
#: Bytes of the file, of all that it holds, and of one member; members; records.
MOST_PACKED, MOST_UNPACKED, MOST_OF_ONE = 8 << 20, 96 << 20, 24 << 20
MOST_MEMBERS, MOST_RECORDS = 1000, 998
_LOG = re.compile(r"logs/([0-9a-f]{64})\.txt")
_KINDS = {
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.LNKTYPE: "a hard link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a pipe",
    tarfile.DIRTYPE: "a folder",
}
_ID_DIGITS = 12


@dataclass(frozen=True)
class Submission:
    """A submission as it was read: its id, what it says of itself, records, and logs by hash."""

    id: str
    provenance: Provenance
    records: tuple[Outcome, ...]
    logs: Mapping[str, str]


def write(provenance: Provenance, records: list[Outcome], logs: Mapping[str, str]) -> bytes:
    """Return the file of a submission; the same content gives the same bytes."""
    lines = "".join(
        json.dumps(outcome.to_json(), sort_keys=True, allow_nan=False) + "\n" for outcome in records
    )
    files = {PROVENANCE: provenance.to_text().encode(), RECORDS: lines.encode("ascii")}
    return pack(FOLDER, files | {f"logs/{sha256}.txt": log.encode() for sha256, log in logs.items()})


def read(path: Path) -> Submission:
    """Read a submission; raises HandledError with one sentence for whatever is wrong with it."""
    files = _files(path)
    for name in (PROVENANCE, RECORDS):
        if name not in files:
            raise HandledError(f"{path}: has no {FOLDER}/{name}")
    logs = {}
    for name, data in files.items():
        text = _text(path, name, data)
        if found := _LOG.fullmatch(name):
            if hashlib.sha256(data).hexdigest() != found[1]:
                raise HandledError(f"{path}: {name[:17]}...: the log is not the one that its name says")
            logs[found[1]] = text
    try:
        provenance = from_data(_json(files[PROVENANCE].decode()))
    except HandledError as error:
        raise HandledError(f"{path}: {PROVENANCE}: {error}") from error
    records = _records(path, files[RECORDS].decode())
    _refuse_unnamed(path, records, logs)
    return Submission(submission_id(path), provenance, records, logs)


def submission_id(path: Path) -> str:
    """Return the id of a submission: the beginning of its file's hash."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:_ID_DIGITS]


def _files(path: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    try:
        size = path.stat().st_size
        if not path.is_file() or size > MOST_PACKED:
            raise HandledError(f"{path}: is no file of at most {MOST_PACKED >> 20} MiB")
        for name, kind, content in members(path, decompress(path, MOST_UNPACKED)):
            if len(found) >= MOST_MEMBERS:
                raise HandledError(f"{path}: has more than {MOST_MEMBERS} members")
            if kind not in PLAIN_FILES:
                raise HandledError(
                    f"{path}: {name!r:.100} is {_KINDS.get(kind, 'something else')}, and no file"
                )
            inside = _place(path, name)
            if inside in found:
                raise HandledError(f"{path}: {name!r:.100} is in it twice")
            if len(content) > MOST_OF_ONE:
                raise HandledError(f"{path}: {name!r:.100} is larger than {MOST_OF_ONE >> 20} MiB")
            found[inside] = content
    except InfraError as error:
        sentence = str(error).partition(";")[0]
        raise HandledError(
            f"{sentence}; a submission is what `trt-compat submit` wrote, unchanged"
        ) from error
    except OSError as error:
        raise HandledError(f"{path}: cannot be read: {error.strerror}") from error
    return found


def _place(path: Path, name: str) -> str:
    """Return a member's place in the folder; raises HandledError for any but those that a submission has."""
    if name.startswith(("/", "\\")) or re.match(r"[A-Za-z]:", name):
        raise HandledError(f"{path}: {name!r:.100} is an absolute place")
    if ".." in re.split(r"[/\\]", name):
        raise HandledError(f"{path}: {name!r:.100} leads out of the archive")
    top, _, inside = name.partition("/")
    if top != FOLDER or not (inside in (PROVENANCE, RECORDS) or _LOG.fullmatch(inside)):
        raise HandledError(f"{path}: {name!r:.100} is no part of a submission")
    return inside


def _text(path: Path, name: str, data: bytes) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise HandledError(f"{path}: {name}: byte {error.start} is not UTF-8") from error
    if uuid := identifying(text):
        raise HandledError(
            f"{path}: {name[:17]} holds {uuid[:12]!r}..., which tells whose GPU it was: it was not scrubbed"
        )
    return text


def _records(path: Path, text: str) -> tuple[Outcome, ...]:
    lines = [line for line in text.split("\n") if line]
    if not 0 < len(lines) <= MOST_RECORDS:
        raise HandledError(f"{path}: {RECORDS}: has {len(lines)} records, and not 1 to {MOST_RECORDS}")
    found: dict[str, Outcome] = {}
    for number, line in enumerate(lines, start=1):
        where = f"{path}: {RECORDS}:{number}"
        try:
            outcome = _record(_json(line))
        except HandledError as error:
            raise HandledError(f"{where}: {error}") from error
        if outcome.cell in found:
            raise HandledError(f"{where}: a second record of {outcome.cell!r:.120}")
        found[outcome.cell] = outcome
    return tuple(found.values())


def _record(data: object) -> Outcome:
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != RECORD_SCHEMA or isinstance(schema, bool):
        raise HandledError(f"its schema is {schema!r:.60}, and this harness reads {RECORD_SCHEMA}")
    outcome = exactly(Outcome, data)
    if outcome.stamps.submission or outcome.stamps.account:
        raise HandledError("it says of itself which submission or account it is of; that is intake's to say")
    if "gpu_uuid" in outcome.stamps.environment:
        raise HandledError("it holds the UUID of a GPU: it was not scrubbed")
    return outcome


def _json(text: str) -> object:
    try:
        found: object = json.loads(text, parse_constant=_refuse_number)
    except RecursionError as error:
        raise HandledError("it is nested too deeply to be read") from error
    except ValueError as error:
        raise HandledError(f"it is not JSON: {error}") from error
    return found


def _refuse_number(word: str) -> NoReturn:
    raise HandledError(f"it holds {word}, which is no number")


def _refuse_unnamed(path: Path, records: tuple[Outcome, ...], logs: Mapping[str, str]) -> None:
    named = set()
    for outcome in records:
        if not outcome.log_sha256:
            raise HandledError(f"{path}: {outcome.cell[:120]}: names no log")
        if outcome.log_sha256 not in logs:
            raise HandledError(f"{path}: {outcome.cell[:120]}: its log is not in the archive")
        named.add(outcome.log_sha256)
    if unnamed := sorted(set(logs) - named):
        raise HandledError(f"{path}: logs/{unnamed[0][:12]}...: a log that no record names")
