"""What a stranger could send instead of a submission, and the sentence with which each is refused."""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from harness.record.archive import compress, decompress, members

#: The files of an archive by name.
Files = dict[str, bytes]
#: Makes other files of a submission's.
Forge = Callable[[Files], Files]

PROVENANCE, RECORDS, LOGS = "submission/provenance.json", "submission/records.jsonl", "submission/logs/"


def unpacked(data: bytes, folder: Path) -> Files:
    """Return the files of a submission by name."""
    path = folder / "unpacked.tar.xz"
    path.write_bytes(data)
    return {name: content for name, _, content in members(path, decompress(path))}


def packed(files: Files, *more: tarfile.TarInfo) -> bytes:
    """Return an archive of files, with members behind them."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, data in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        for member in more:
            tar.addfile(member, io.BytesIO(bytes(member.size)))
    return compress("x", buffer.getvalue())


def provenance(**fields: Any) -> Forge:
    """Change fields of the provenance."""
    return lambda files: files | {PROVENANCE: json.dumps(json.loads(files[PROVENANCE]) | fields).encode()}


def records(change: Callable[[dict[str, Any]], object], *, first: bool = True) -> Forge:
    """Change the first record, or every one."""

    def forge(files: Files) -> Files:
        found = [json.loads(line) for line in files[RECORDS].splitlines()]
        for record in found[: 1 if first else None]:
            change(record)
        return files | {RECORDS: b"".join(json.dumps(record).encode() + b"\n" for record in found)}

    return forge


def field(place: str, value: object) -> Forge:
    """Set a field of the first record."""

    def change(record: dict[str, Any]) -> None:
        inner: Any = record
        *path, last = place.split(".")
        for name in path:
            inner = inner[int(name) if name.isdigit() else name]
        inner[last] = value

    return records(change)


def stamp(name: str, value: str) -> Forge:
    """Set a stamp of every record, and what the provenance says of it."""
    return together(
        records(lambda record: record["stamps"].update({name: value}), first=False),
        provenance(**{name: value}),
    )


def fact(name: str, value: str) -> Forge:
    """Set what the agent saw, in every record, and what the provenance says of it."""
    return together(
        records(lambda record: record["stamps"]["environment"].update({name: value}), first=False),
        provenance(**{name: value}),
    )


def together(*forges: Forge) -> Forge:
    """Do one after the other."""

    def forge(files: Files) -> Files:
        for each in forges:
            files = each(files)
        return files

    return forge


def log(old: bytes, new: bytes) -> Forge:
    """Change the text of every log, and the hashes by which records and archive know it."""

    def forge(files: Files) -> Files:
        lines, found = files[RECORDS], {}
        for name, data in files.items():
            if name.startswith(LOGS):
                assert old in data, f"no log has {old!r}"
                changed = data.replace(old, new)
                sha256 = hashlib.sha256(changed).hexdigest()
                lines = lines.replace(Path(name).stem.encode(), sha256.encode())
                found[f"{LOGS}{sha256}.txt"] = changed
        kept = {name: data for name, data in files.items() if not name.startswith(LOGS)}
        return kept | {RECORDS: lines} | found

    return forge


def _log_named(text: bytes) -> Files:
    return {f"{LOGS}{hashlib.sha256(text).hexdigest()}.txt": text}


def _spoilt_log(files: Files) -> Files:
    name = next(name for name in files if name.startswith(LOGS))
    return files | {name: files[name] + b"more"}


def _lost_log(files: Files) -> Files:
    name = next(name for name in files if name.startswith(LOGS))
    return {key: data for key, data in files.items() if key != name}


def _swapped_logs(files: Files) -> Files:
    found = [json.loads(line) for line in files[RECORDS].splitlines()]
    one, other = found[0]["log_sha256"], found[1]["log_sha256"]
    found[0]["log_sha256"], found[1]["log_sha256"] = other, one
    return files | {RECORDS: b"".join(json.dumps(record).encode() + b"\n" for record in found)}


def _text(old: bytes, new: bytes, name: str = RECORDS) -> Forge:
    def forge(files: Files) -> Files:
        assert old in files[name], f"{name} has no {old!r}"
        return files | {name: files[name].replace(old, new, 1)}

    return forge


def _member(name: str, kind: bytes, size: int = 0) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.size, member.linkname = kind, size, "/etc/passwd"
    return member


def _bomb() -> bytes:
    maker = lzma.LZMACompressor(preset=0)
    return b"".join([*(maker.compress(bytes(1 << 20)) for _ in range(100)), maker.flush()])


class Forgery(NamedTuple):
    """What is sent in the place of an archive, and what is said of it."""

    make: Callable[[bytes, Files], bytes]
    said: str


def _files(forge: Forge, said: str) -> Forgery:
    return Forgery(lambda _, files: packed(forge(files)), said)


def _added(said: str, *more: tarfile.TarInfo) -> Forgery:
    return Forgery(lambda _, files: packed(files, *more), said)


FOREIGN = "f" * 64
UNPUBLISHED = "a commit that is not published"
LINKED = "submission/logs/" + FOREIGN + ".txt"
#: By what is wrong.
ARCHIVES: dict[str, Forgery] = {
    "not an archive": Forgery(lambda *_: b"#!/bin/sh\necho owned\n", "cannot be unpacked"),
    "empty": Forgery(lambda *_: b"", "it is cut short"),
    "truncated": Forgery(lambda data, _: data[:-40], "it is cut short"),
    "something behind it": Forgery(lambda data, _: data + b"\x00more", "something follows its end"),
    "too large a file": Forgery(lambda *_: bytes((8 << 20) + 1), "is no file of at most 8 MiB"),
    "a bomb": Forgery(lambda *_: _bomb(), "it unpacks to more than 96 MiB"),
    "traversal": _files(lambda files: files | {"submission/../../x": b""}, "leads out of the archive"),
    "traversal by a backslash": _files(lambda files: files | {"submission\\..\\x": b""}, "leads out of the"),
    "an absolute name": _files(lambda files: files | {"/etc/cron.d/x": b""}, "is an absolute place"),
    "a drive": _files(lambda files: files | {"C:\\x": b""}, "is an absolute place"),
    "another folder": _files(lambda files: files | {"elsewhere/x": b""}, "is no part of a submission"),
    "a file too many": _files(
        lambda files: files | {"submission/plan.engine": b""}, "is no part of a submission"
    ),
    "a symbolic link": _added("is a symbolic link", _member(LINKED, tarfile.SYMTYPE)),
    "a hard link": _added("is a hard link", _member(LINKED, tarfile.LNKTYPE)),
    "a device": _added("is a device", _member(LINKED, tarfile.CHRTYPE)),
    "a pipe": _added("is a pipe", _member(LINKED, tarfile.FIFOTYPE)),
    "a folder": _added("is a folder", _member("submission/logs", tarfile.DIRTYPE)),
    "a name twice": _added("is in it twice", _member(RECORDS, tarfile.REGTYPE, 3)),
    "too many members": _files(
        lambda files: files | {name: b"" for n in range(1001) for name in _log_named(str(n).encode())},
        "has more than 1000 members",
    ),
    "too large a member": _added("is larger than 24 MiB", _member(LINKED, tarfile.REGTYPE, (24 << 20) + 1)),
    "no provenance": _files(
        lambda files: {name: data for name, data in files.items() if name != PROVENANCE},
        "has no submission/prov",
    ),
}
CONTENT: dict[str, Forgery] = {
    "provenance of another schema": _files(provenance(schema=2), "its schema is 2"),
    "provenance that is no object": _files(lambda files: files | {PROVENANCE: b"[]"}, "its schema is None"),
    "provenance with a wrong type": _files(provenance(cells="all"), "cells: Expected `int`"),
    "provenance with a field of its own": _files(
        provenance(note="hello"), "has 'note', which means nothing here"
    ),
    "a record of another schema": _files(field("schema", 99), "its schema is 99"),
    "a wrong type": _files(field("phases", "fast"), "phases: Expected `object`"),
    "a field that means nothing": _files(
        field("stamps.trusted", True), "has 'stamps.trusted', which means nothing"
    ),
    "no JSON": _files(_text(b"{", b"(", RECORDS), "it is not JSON"),
    "NaN": _files(_text(b'"cosine": 1.0', b'"cosine": NaN'), "it holds NaN"),
    "infinity by digits": _files(_text(b'"cosine": 1.0', b'"cosine": 1e999'), "number that is not finite"),
    "too deep": _files(
        lambda files: files | {RECORDS: b"[" * 200_000 + b"]" * 200_000}, "nested too deeply to be read"
    ),
    "no records": _files(lambda files: files | {RECORDS: b""}, "has 0 records"),
    "a second record of a cell": _files(
        lambda files: files | {RECORDS: files[RECORDS] * 2}, "a second record of"
    ),
    "a log that is missing": _files(_lost_log, "its log is not in the archive"),
    "a log of another hash": _files(_spoilt_log, "the log is not the one that its name says"),
    "a log that nobody names": _files(lambda files: files | _log_named(b"x"), "a log that no record names"),
    "a record without a log": _files(field("log_sha256", None), "names no log"),
    "a log that is no text": _files(log(b"[INFO] building", b"[INFO] \xff"), "is not UTF-8"),
    "a UUID": _files(
        log(b"[INFO] building", b"[INFO] GPU-11111111-1111-1111-1111-111111111111"), "it was not scrubbed"
    ),
    "a submission's id of its own": _files(field("stamps.submission", "0" * 12), "that is intake's to say"),
    "no account's name": _files(provenance(account="../alice"), "its account is '../alice', which is none"),
    "no GPU's hash": _files(provenance(gpu_hash=""), "its gpu_hash is missing"),
    "another GPU's hash": _files(provenance(gpu_hash="0" * 24), "its gpu_hash is"),
    "an option for a commit": _files(
        provenance(commit="--output=x"), "its commit is '--output=x', which is none"
    ),
    "a commit of nobody's": _files(provenance(commit="0" * 40), "is not on main"),
    UNPUBLISHED: _files(provenance(commit="0" * 40), "is not on main"),
    "a changed checkout": _files(field("stamps.harness_commit", "0123456789ab+"), "by a changed checkout"),
    "another commit": _files(field("stamps.harness_commit", "0123456789ab"), "its commit is '0123456789ab'"),
    "another run": _files(field("stamps.run", "0123456789ab"), "its run is '0123456789ab'"),
    "the future": _files(field("stamps.when", "2099-01-01T00:00:00+00:00"), "is yet to come"),
    "before the commit": _files(
        field("stamps.when", "2001-01-01T00:00:00+00:00"), "before its commit was made"
    ),
    "no time": _files(field("stamps.when", "soon"), "'soon' is no time"),
    "trouble of the machine": _files(field("state", "infra_error"), "is infra_error: that says nothing"),
    "contention kept quiet": _files(
        provenance(contended=["rig[plain]-rig", "toy[relu]-trt86"]), "its contention is"
    ),
}
AGAINST_THE_LOG: dict[str, Forgery] = {
    "an unknown cell": _files(field("cell", "nothing[here]-rig"), "have no such cell"),
    "another case": _files(field("case", "elsewhere"), "case, variant and target are not those of the cell"),
    "a foreign model": _files(field("stamps.model_sha256", FOREIGN), "its model is not the one"),
    "a foreign recipe": _files(field("stamps.recipe_sha256", FOREIGN), "its recipe is not the one"),
    "an engine that matrix.yaml has not": _files(
        together(stamp("engine_version", "7.0.0"), fact("engine_version", "7.0.0")), "matrix.yaml declares"
    ),
    "an engine that the agent did not see": _files(
        records(lambda record: record["stamps"]["environment"].update(engine_version="7.0.0")),
        "the engine that its agent saw is not the one",
    ),
    "an image that the log does not name": _files(
        stamp("image_digest", f"sha256:{FOREIGN}"), "and its log says|and matrix.yaml pins"
    ),
    "another architecture": _files(
        fact("compute_capability", "7.5"), "its compute_capability is '7.5', and its log"
    ),
    "the log of another cell": _files(_swapped_logs, "its cell is"),
    "a failure that did not happen": _files(
        field("failed_phase", "build"), "its failed_phase is 'build', and its"
    ),
    "a crash that did not happen": _files(
        field("end", {"kind": "signalled", "detail": "killed by SIGSEGV"}), "how its process ended is not"
    ),
    "a failure kept quiet": _files(
        log(b" s\n[end]", b" s failed\n[end]"), "its failed_phase is None, and its log"
    ),
    "an error kept quiet": _files(
        log(b"[INFO] building", b"[failed] refused"), "its error is ''|its messages are"
    ),
    "better numbers": _files(
        log(b'"max_rel": 0.0', b'"max_rel": 0.9'), "its numbers are not those in its log"
    ),
    "layers in another precision": _files(
        field("layers.0.precision", "int8"), "its layers are not those in its"
    ),
    "layers out of thin air": _files(
        records(lambda record: record["layers"].append(record["layers"][0])), "its layers are not those"
    ),
    "nodes of another model": _files(field("nodes", []), "its nodes are not those of the model"),
    "words of the engine": _files(
        records(lambda record: record["messages"].append({"severity": "ERROR", "text": "bad product"})),
        "its messages are not those in its log",
    ),
    "an entry that nobody writes": _files(
        log(b"[INFO] building", b"[GOSSIP] building"), "'GOSSIP', which no harness"
    ),
    "a log without its stamps": _files(log(b"[stamps] ", b"[INFO] "), "entries of the kind 'stamps'"),
    "a log that never began": _files(log(b"[stamps] ", b"stamps "), "no entry begins with"),
    "samples that take too long": _files(
        records(lambda record: record["latency"].update(samples_ms=[9e5])), "its samples take longer"
    ),
    "samples below nothing": _files(
        records(lambda record: record["latency"].update(samples_ms=[-1.0])), "its samples take longer"
    ),
    "a run that did not happen": _files(log(b'"ran": true', b'"ran": false'), "its ran is True, and its log"),
}
FORGED = ARCHIVES | CONTENT | AGAINST_THE_LOG


def forged(name: str, data: bytes, folder: Path, unpublished: str) -> bytes:
    """Return the archive of a forgery, made of an honest one; `unpublished` is a commit beside the main branch."""
    files = unpacked(data, folder)
    if name == UNPUBLISHED:
        return packed(provenance(commit=unpublished)(files))
    return FORGED[name].make(data, files)
