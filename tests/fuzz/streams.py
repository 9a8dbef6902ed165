"""What fuzzing does with bytes of the stream, and with records, history and reports.

A function here makes a reader: it imports what that needs and makes ready what every input shares, once a process.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any
from unittest import mock

from tests.fuzz.base import JOB, PART, Read, of_file, scratch, toy

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

    def read(data: bytes) -> None:
        # The agent's code is the same each time, and packing it takes longer than all else.
        with mock.patch.object(session, "pack", return_value=b""):
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

    top = scratch() / "suite"
    return of_file(f"suite/{LOGS}/a.txt", lambda _: SuiteStore(top)._texts)


def history() -> Read:
    from harness.history import histories
    from harness.history.runs import FOLDER, from_text, read_history

    folder = scratch() / "reports"
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

    top = scratch() / "suites"
    other = SuiteRun("rtx17", "1.7", "other", "2026-01-02T03:04:05", {"add": "ok"})
    keep_suite_runs(top, "a", [other])
    name = f"suites/{FOLDER}/{SUITES}/a/2026-01-02-run-t.json"
    return of_file(name, lambda _: before(kept(top, "a"), other))


def results() -> Read:
    from harness.report.loading import load_results

    return of_file("results.json", load_results)


def further() -> Read:
    from harness.report.further import FURTHER, further_beside, further_rows

    return of_file(FURTHER, lambda path: further_rows(further_beside(path.parent)))


def runs() -> Read:
    from harness.record import runs as kept

    folder = scratch() / "runs"
    last = folder / kept.LAST
    unfinished = of_file(f"runs/{kept.UNFINISHED}/a.json", lambda _: kept.stopped(folder))

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

    return of_file("a.jsonl", read)
