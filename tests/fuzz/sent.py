"""What fuzzing does with logs and layers, with what others send in, and with what users write.

A function here makes a reader: it imports what that needs and makes ready what every input shares, once a process.
"""

from __future__ import annotations

import json
from functools import partial

from tests.fuzz.base import LOG, PART, Read, of_file, packed, scratch, tar, toy

# Logs and layers.


def layers(source: str) -> Read:
    from harness.layers import int8_coverage, node_precision, parse_layers
    from harness.record.outcome import Outcome

    cell, ready = toy()

    def read(data: bytes) -> None:
        found = parse_layers(source, data, nodes=ready.nodes, model=ready.model)  # type: ignore[arg-type]
        node_precision(ready.nodes, found.layers)
        int8_coverage(ready.nodes, found.layers)
        outcome = Outcome(cell.id, "toy", "int8", "trt86", "done", layers=found.layers)
        # What layers are read from is bytes of a stranger: the record of them has to be one that is read again.
        json.dumps(outcome.to_json(), allow_nan=False)

    return read


def profile() -> Read:
    from harness.layers import ort_node_times

    return lambda data: ort_node_times(data.decode("utf-8", "replace"))


def diagnosis() -> Read:
    from harness.judge import engine_errors
    from harness.judge.cell import judge_cell
    from harness.judge.diagnosis import notes
    from harness.record.outcome import End, Message, Outcome, ParserError

    cell, ready = toy()

    def read(data: bytes) -> None:
        text, *more = data.decode("utf-8", "replace").split("\0")
        native = more[0] if more else ""
        outcome = Outcome(
            cell.id,
            "toy",
            "int8",
            "trt86",
            "done",
            end=End("finished"),
            failed_phase="build",
            messages=tuple(Message("ERROR", line) for line in text.split("\x1e")[:20]),
            parser_errors=tuple(ParserError(line) for line in more[1:3]),
            native_output=native,
            nodes=ready.nodes,
        )
        judged = judge_cell(cell, outcome)
        assert "could not judge" not in judged.classification.reason, judged.classification.reason
        notes(outcome)
        engine_errors.fatal(outcome)

    return read


def log_entries() -> Read:
    from harness.community.replay import stamps_in
    from harness.record.log import entries, entry

    def read(data: bytes) -> None:
        text = data.decode("utf-8", "replace")
        assert list(entries(entry("a", text))) == [("a", text)]
        stamps_in(text)

    return read


# What somebody else sends in.


def replayed() -> Read:
    from harness.community.archive import _json, _record
    from harness.community.check import _held_against_log

    cell, ready = toy()

    def read(data: bytes) -> None:
        record, _, log = data.decode("utf-8", "replace").partition("\0\0")
        _held_against_log(cell, ready, _record(_json(record)), log)

    return read


def submission() -> Read:
    from hashlib import sha256

    from harness.community.archive import FOLDER, PROVENANCE, RECORDS
    from harness.community.archive import read as read_submission
    from harness.community.intake import _account, _held_against_provenance

    path = scratch() / "theirs.tar.xz"

    def read(data: bytes) -> None:
        provenance, records, *logs = (data.split(PART, 2) + [b""] * 2)[:3]
        names = [sha256(log).hexdigest() for log in logs]
        for name in names:
            records = records.replace(LOG, name.encode())
        files = {PROVENANCE: provenance, RECORDS: records}
        files |= {f"logs/{name}.txt": log for name, log in zip(names, logs, strict=True)}
        path.write_bytes(packed(tar({f"{FOLDER}/{name}": each for name, each in files.items()})))
        found = read_submission(path)
        _account(found.provenance, "")
        for outcome in found.records:
            _held_against_provenance(outcome, found.provenance)

    return read


def packed_archive() -> Read:
    from harness.record.archive import unpack

    return of_file("a.tar.xz", unpack)


def archive_members() -> Read:
    from harness.record.archive import unpack

    path = scratch() / "b.tar.xz"

    def read(data: bytes) -> None:
        path.write_bytes(packed(data))
        unpack(path)

    return read


def stored_log() -> Read:
    from harness.record.store import LOGS, Store, log_name

    name = "ab" + "0" * 62
    top = scratch() / "store"
    return of_file(f"store/{LOGS}/{log_name(name)}.gz", lambda _: Store(top).log(name))


# What users write.


def matrix() -> Read:
    from harness.matrix import load_matrix

    return of_file("matrix.yaml", load_matrix)


def measured() -> Read:
    from harness.case.measured import read

    return of_file("measured.yaml", read)


def signatures() -> Read:
    from harness.judge.diagnosis import load_signatures

    return of_file("diagnosis.yaml", load_signatures.__wrapped__)


def revoked() -> Read:
    from harness.record.revoked import FILE
    from harness.record.revoked import revoked as read

    return of_file(f"revoked/{FILE}", lambda path: read(path.parent))


def arrays() -> Read:
    from harness.run.numbers.given import read_npz

    return of_file("a.npz", partial(read_npz, option="--inputs"))


def slurm() -> Read:
    from harness.run.slurm import parse

    def read(data: bytes) -> None:
        text = data.decode("utf-8", "replace")
        for seen in parse.parse_queue(text).values():
            assert seen.ended + seen.running <= 1
        for end in (parse.parse_job(text), parse.parse_accounting(text)):
            assert end is None or (end.code >= 0 and end.sentence())
        parse.parse_architectures(text)
        parse.is_silence(parse.complaint(text))

    return read
