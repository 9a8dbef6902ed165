"""What each fuzz target does with its bytes: it calls the reader that the harness calls, and lets everything escape.

A function here makes a reader: it imports what that needs and makes ready what every input shares, once a process.
"""

from __future__ import annotations

import contextlib
import io
import json
import lzma
import tarfile
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

#: Reads bytes that may be anything.
Read = Callable[[bytes], object]

TOP = Path(__file__).resolve().parents[2]
#: Parts the members of one input: no JSON and no text of an engine holds it.
PART = b"\0\0"
#: Stands in an input for the id of the job that is under way, or for the hash of the log that is in it.
JOB, LOG = b"the id of a job.", b"0" * 64


@cache
def _folder() -> Path:
    """Return a folder of this process for the files that readers open; it goes when the process ends."""
    _KEPT.append(tempfile.TemporaryDirectory(prefix="trt-compat-fuzz-"))
    return Path(_KEPT[0].name)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def _of_file(name: str, read: Callable[[Path], object]) -> Read:
    """Return a reader of bytes that reads the file that holds them."""
    path = _folder() / name
    path.parent.mkdir(parents=True, exist_ok=True)

    def reader(data: bytes) -> None:
        path.write_bytes(data)
        read(path)

    return reader


@cache
def toy() -> Any:
    """Return a cell of a quantised convolution, and its variant made ready."""
    from harness.case import Case, Graph, Link, Precision, Variant
    from harness.matrix import load_matrix
    from harness.plan import all_cells
    from harness.run.prepared import prepare_variant

    def conv() -> Any:
        g = Graph("conv")
        x, w = g.qdq(g.input("x", [1, 4, 8, 8]), name="/x", scale=0.01), g.weight("w", (4, 4, 3, 3))
        g.conv(x, g.weight_qdq(w, name="/w"), name="/conv", output="z")
        g.node("Relu", ["z"], name="/act", output="y")
        g.output("y", [1, 4, 8, 8])
        return g.model()

    variant = Variant("int8", "In INT8", conv, precision=(("/conv", Precision.INT8),))
    case = Case("toy", "A toy", "For tests.", (Link("https://example.org/1", "one"),), (variant,))
    cells = all_cells(load_matrix(TOP / "matrix.yaml"), [case])
    return next(each for each in cells if each.target.name == "trt86"), prepare_variant(variant)


# The stream.


def frames() -> Read:
    from harness.agent.protocol import FROM_CHILD, GREETINGS, OF_A_JOB, Decoder, Frame, ProtocolError, Reader

    def decoded(*pieces: bytes) -> list[Frame | str]:
        found: list[Frame | str] = []
        decoder = Decoder(1 << 20)
        try:
            for piece in pieces:
                found += decoder.feed(piece)
        except ProtocolError:
            found.append("broken")
        return found

    def read(data: bytes) -> None:
        found = decoded(data)
        step = 1 + len(data) // 7
        assert decoded(*(data[at : at + step] for at in range(0, len(data), step))) == found
        for known in (FROM_CHILD, OF_A_JOB, GREETINGS):
            reader = Reader(known)
            for frame in found:
                with contextlib.suppress(ProtocolError):
                    if isinstance(frame, Frame):
                        reader.read(frame)

    return read


def stream() -> Read:
    from harness.run import session
    from harness.run.transport.api import ExitStatus

    class Said:
        """A transport on which a stranger speaks."""

        def __init__(self, data: bytes) -> None:
            self._left = data
            self._sent: list[bytes] = []

        def send(self, data: bytes, _: float = 0) -> None:
            self._sent.append(data)

        def receive(self, _: float | None = None) -> bytes:
            if len(self._sent) > 1:
                self._left = self._left.replace(JOB, self._sent[1][4:20])
            data, self._left = self._left[:4096], self._left[4096:]
            return data

        def exit_status(self) -> ExitStatus:
            return ExitStatus(code=1)

        def stderr_tail(self) -> str:
            return ""

    # The agent's code is the same each time, and packing it takes longer than all else.
    vars(session)["pack"] = lambda _: b""

    def read(data: bytes) -> None:
        live = session.Session(Said(data), engine="tensorrt", adapter="x")  # type: ignore[arg-type]
        _recorded(live.run(session.Job("run", 60, 512)))

    return read


def events() -> Read:
    from harness.agent.protocol import OF_A_JOB, Frame, ProtocolError, Reader
    from harness.run.session import Event

    def read(data: bytes) -> None:
        reader, said = Reader(OF_A_JOB), []
        for part in data.split(PART):
            head, _, body = part.partition(b"\n")
            with contextlib.suppress(ProtocolError):
                said.append(Event(reader.read(Frame(head, body, b"")), body))
        _recorded(said)

    return read


def _recorded(said: Any) -> None:
    """Make a record and a log of events, as a run does, and read both again."""
    from harness.record.log import entries, whole_log
    from harness.record.outcome import Stamps
    from harness.record.store import readable
    from harness.run.observation import Observation

    cell, ready = toy()
    seen = Observation()
    seen.hear(said)
    outcome = readable(seen.outcome(cell, ready, Stamps()))
    outcome.as_read()
    for _ in entries(whole_log(outcome, seen.log)):
        pass


# Records, history, reports.


def records() -> Read:
    from harness.history.runs import records as runs_of
    from harness.judge.cell import judge_cell
    from harness.judge.diagnosis import notes
    from harness.judge.explain import explain
    from harness.record.speaking import speaking
    from harness.record.store import read_records

    path, told = Path("r.jsonl"), set[str]()
    cell, _ = toy()

    def read(data: bytes) -> None:
        told.clear()
        found = tuple(read_records(path, data, told.add))
        speaking(found)
        judged = [judge_cell(cell, outcome) for outcome in found[:4]]
        for each in judged:
            explain(each)
            notes(each.outcome)
            each.outcome.to_json()
        runs_of(judged)

    return read


def suite_records() -> Read:
    from harness.record.suites import _read

    path, told = Path("r.jsonl"), set[str]()

    def read(data: bytes) -> None:
        told.clear()
        for kept in _read(path, data, told.add):
            assert kept.place
            kept.outcome.to_json()

    return read


def suite_logs() -> Read:
    from harness.record.store import LOGS
    from harness.record.suites import SuiteStore

    top = _folder() / "suite"
    return _of_file(f"suite/{LOGS}/a.txt", lambda _: SuiteStore(top)._texts)


def history() -> Read:
    from harness.history import histories
    from harness.history.runs import FOLDER, from_text, read_history

    folder = _folder() / "reports"
    kept = folder / FOLDER
    kept.mkdir(parents=True, exist_ok=True)
    first = kept / "2026-01-02-run.json"

    def read(data: bytes) -> None:
        name = first
        with contextlib.suppress(Exception):
            called = from_text(data.decode()).file_name
            # The name belongs to what is read, and is no more than a name where it can be a file's.
            name = kept / called if "/" not in called and len(called.encode()) < 200 else first
            name.touch()
        name = name if name.exists() else first
        name.write_bytes(data)
        try:
            histories(read_history(folder))
        finally:
            name.unlink()

    return read


def suite_history() -> Read:
    from harness.history.runs import FOLDER
    from harness.history.suites import SuiteRun, before, keep_suite_runs
    from harness.history.suites import suite_history as kept
    from harness.record.suites import SUITES

    top = _folder() / "suites"
    other = SuiteRun("rtx17", "1.7", "other", "2026-01-02T03:04:05", {"add": "ok"})
    keep_suite_runs(top, "a", [other])
    name = f"suites/{FOLDER}/{SUITES}/a/2026-01-02-run-t.json"
    return _of_file(name, lambda _: before(kept(top, "a"), other))


def results() -> Read:
    from harness.report.loading import load_results

    return _of_file("results.json", load_results)


def further() -> Read:
    from harness.report.further import FURTHER, further_beside, further_rows

    return _of_file(FURTHER, lambda path: further_rows(further_beside(path.parent)))


def runs() -> Read:
    from harness.record import runs as kept

    folder = _folder() / "runs"
    last = folder / kept.LAST
    unfinished = _of_file(f"runs/{kept.UNFINISHED}/a.json", lambda _: kept.stopped(folder))

    def read(data: bytes) -> None:
        last.write_bytes(data)
        kept.read_last(folder)
        unfinished(data)

    return read


def journal() -> Read:
    from harness.models.reduce.journal import Journal

    def read(path: Path) -> None:
        with Journal(path, {"model": "a"}):
            pass

    return _of_file("a.jsonl", read)


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

    path = _folder() / "theirs.tar.xz"

    def read(data: bytes) -> None:
        provenance, records, *logs = (data.split(PART, 2) + [b""] * 2)[:3]
        names = [sha256(log).hexdigest() for log in logs]
        for name in names:
            records = records.replace(LOG, name.encode())
        files = {PROVENANCE: provenance, RECORDS: records}
        files |= {f"logs/{name}.txt": log for name, log in zip(names, logs, strict=True)}
        path.write_bytes(_packed(_tar({f"{FOLDER}/{name}": each for name, each in files.items()})))
        found = read_submission(path)
        _account(found.provenance, "")
        for outcome in found.records:
            _held_against_provenance(outcome, found.provenance)

    return read


def packed_archive() -> Read:
    from harness.record.archive import unpack

    return _of_file("a.tar.xz", unpack)


def archive_members() -> Read:
    from harness.record.archive import unpack

    path = _folder() / "b.tar.xz"

    def read(data: bytes) -> None:
        path.write_bytes(_packed(data))
        unpack(path)

    return read


def _packed(data: bytes) -> bytes:
    # The quickest form that the reader takes: the bytes are not about xz.
    return lzma.compress(data, lzma.FORMAT_XZ, lzma.CHECK_NONE, preset=0)


def _tar(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def stored_log() -> Read:
    from harness.record.store import LOGS, Store, log_name

    name = "ab" + "0" * 62
    top = _folder() / "store"
    return _of_file(f"store/{LOGS}/{log_name(name)}.gz", lambda _: Store(top).log(name))


# What users write.


def matrix() -> Read:
    from harness.matrix import load_matrix

    return _of_file("matrix.yaml", load_matrix)


def measured() -> Read:
    from harness.case.measured import read

    return _of_file("measured.yaml", read)


def signatures() -> Read:
    from harness.judge.diagnosis import load_signatures

    return _of_file("diagnosis.yaml", load_signatures.__wrapped__)


def revoked() -> Read:
    from harness.record.revoked import FILE
    from harness.record.revoked import revoked as read

    return _of_file(f"revoked/{FILE}", lambda path: read(path.parent))


def arrays() -> Read:
    from harness.run.numbers.given import read_npz

    return _of_file("a.npz", partial(read_npz, option="--inputs"))


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
