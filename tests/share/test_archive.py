"""What is sent in is read within bounds, and a record that would spoil a report is refused with a sentence."""

from __future__ import annotations

import json
import lzma
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.errors import HandledError
from harness.record.store import Store
from harness.share import submission as archive
from harness.share.submission import submission
from tests.fixtures import Capture, Patch
from tests.share.measured import UUID, cells, make_project, measure, send

pytestmark = pytest.mark.unit

Line = dict[str, Any]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: Patch) -> Path:
    """Return a project in which this process works."""
    folder = make_project(tmp_path / "project", monkeypatch)
    monkeypatch.chdir(folder)
    return folder


def changed(path: Path, change: Callable[[Line], object]) -> None:
    """Change the first line of an archive."""
    first, *others = map(json.loads, lzma.decompress(path.read_bytes()).splitlines())
    change(first)
    packed(path, [first, *others])


def packed(path: Path, lines: list[Line]) -> None:
    path.write_bytes(lzma.compress("".join(f"{json.dumps(line)}\n" for line in lines).encode()))


def said(capsys: Capture, *words: object) -> tuple[int, str]:
    """Run `merge`; returns the exit code and what was said."""
    capsys.readouterr()
    code = main(["merge", *map(str, words)])
    done = capsys.readouterr()
    assert "Traceback" not in done.err
    return code, done.out + done.err


def test_what_holds_is_taken_in_once_with_account_gpu_and_commit(project: Path, capsys: Capture) -> None:
    path = send(project)
    for taken in (2, 0):
        code, told = said(capsys, "--account", "Alice", path)
        assert (code, f"{path}: {taken} records taken in, of alice on NVIDIA L4" in told) == (0, True), told
    store = Store(project / "reports")
    for outcome in store.outcomes():
        assert outcome.stamps.account == "alice"
        assert store.log(str(outcome.log_sha256)).startswith("[stamps] ")
    assert main(["verify"]) == 0
    results = json.loads((project / "reports" / "results.json").read_text(encoding="utf-8"))
    (told_of,) = results["submissions"]
    assert {"account": "alice", "gpu": "NVIDIA L4", "cells": 2}.items() <= told_of.items()
    assert {on["stamps"]["account"] for run in results["runs"] for on in run["on"]} == {"alice"}


def test_the_same_measurements_give_the_same_bytes(project: Path) -> None:
    measured = [measure(cell)[1:] for cell in cells(project)]
    assert submission(measured, "alice") == submission(measured, "alice")


def stamp(**fields: Any) -> Callable[[Line], object]:
    return lambda line: line["record"]["stamps"].update(fields)


def fact(**fields: Any) -> Callable[[Line], object]:
    return lambda line: line["record"]["stamps"]["environment"].update(fields)


def record(**fields: Any) -> Callable[[Line], object]:
    return lambda line: line["record"].update(fields)


#: Changes of a record, each with the fault that it is refused for.
SPOILT = {
    "no log": (lambda line: line.update(log=[]), "its log is empty"),
    "a log of numbers": (lambda line: line.update(log=[1]), "expected str instance"),
    "a log that is none": (lambda line: line.update(log="x"), "it is no record with its log"),
    "no record": (lambda line: line.pop("record"), "it is no record with its log"),
    "half a character": (lambda line: line.update(log=["\ud800"]), "surrogates not allowed"),
    "another schema": (record(schema=99), "schema 99, this harness reads 2"),
    "a field of another kind": (record(phases={"build": "long"}), "phases"),
    "no account": (stamp(account=""), "names no account"),
    "an odd account": (stamp(account="a b"), "names no account"),
    "somebody else's": (stamp(account="mallory"), "is by mallory, and alice sends it"),
    "not run": (record(state="not_run"), "is not_run: that says nothing of the engine"),
    "no GPU": (fact(gpu=""), "does not say on which GPU"),
    "the GPU's UUID": (fact(gpu_uuid="1"), "or says more than that"),
    "a UUID in the log": (lambda line: line["log"].append(UUID), "it was not scrubbed"),
    "a changed checkout": (stamp(harness_commit="0123456789ab+"), "was measured by a changed checkout"),
    "no commit": (stamp(harness_commit=""), "was measured by a changed checkout, or by none"),
    "no model": (stamp(model_sha256=""), "has no model_sha256 among its stamps"),
    "no samples": (
        lambda line: line["record"]["latency"].update(samples_ms=[]),
        "was timed and has no samples",
    ),
}
#: Of today's cells, model and version is no such record.
OTHER = {"another model": stamp(model_sha256="0" * 64), "another version": stamp(engine_version="8.5.1")}


@pytest.mark.parametrize("name", SPOILT)
def test_a_record_that_is_not_whole_is_refused(project: Path, capsys: Capture, name: str) -> None:
    path = send(project)
    change, why = SPOILT[name]
    changed(path, change)
    code, told = said(capsys, "--account", "alice", path)
    assert (code, why in told, len(told.splitlines())) == (2, True, 1), told
    assert not (project / "reports").exists()


@pytest.mark.parametrize("name", OTHER)
def test_a_record_of_another_model_or_version_is_taken_in_and_out_of_date(
    project: Path, capsys: Capture, name: str
) -> None:
    path = send(project)
    changed(path, OTHER[name])
    assert said(capsys, path)[0] == 0
    results = json.loads((project / "reports" / "results.json").read_text(encoding="utf-8"))
    assert any(cell.get("stale") for cell in results["cells"])


def test_a_second_record_of_a_cell_is_refused(project: Path, capsys: Capture) -> None:
    path = send(project)
    first, _ = (json.loads(line) for line in lzma.decompress(path.read_bytes()).splitlines())
    packed(path, [first, first])
    code, told = said(capsys, path)
    assert (code, "line 2: " in told) == (2, True)


def bombs(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield files that are no archive, each with a word of what is to be said of it."""
    contents = {
        "text": (b"no archive", "cannot be unpacked"),
        "empty": (lzma.compress(b""), "has not 1 to 1000 lines"),
        "many": (lzma.compress(b"\n" * 1001), "has not 1 to 1000 lines"),
        "wide": (lzma.compress(b" " * (archive.MOST_OF_ONE + 1)), "of at most 24 MiB"),
        "huge": (lzma.compress(bytes(archive.MOST_UNPACKED + 1)), "unpacks to more than 96 MiB"),
        "large": (bytes(archive.MOST_PACKED + 1), "and may have 8"),
        "cut": (lzma.compress(b"{}\n")[:-4], "it is cut short"),
        "deep": (lzma.compress(b"[" * 500_000), "nested too deeply"),
        "number": (lzma.compress(b'{"log": NaN}'), "NaN is no number"),
        "bytes": (lzma.compress(b"\xff"), "invalid start byte"),
    }
    for name, (data, why) in contents.items():
        path = folder / name
        path.write_bytes(data)
        yield path, why


def test_what_is_no_archive_costs_a_sentence(project: Path, tmp_path: Path, capsys: Capture) -> None:
    """However large, deep or damaged."""
    for path, why in bombs(tmp_path):
        code, told = said(capsys, path)
        assert (code, why in told, len(told.splitlines())) == (2, True, 1), told
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(HandledError, match="it is no plain file"):
        archive.read(tmp_path / "pipe")
    assert "holds no records" in said(capsys, tmp_path / "pipe")[1]
    assert "is no account" in said(capsys, "--account", "a b", send(project))[1]


def test_what_the_project_measured_itself_comes_before_what_was_sent_in(
    project: Path, capsys: Capture
) -> None:
    """Whichever is the later; and of two that were sent in the later one counts."""
    first, second = send(project, fails=True), send(project, "bob")
    assert said(capsys, second, first)[0] == 0

    def shown() -> set[tuple[str, str]]:
        results = json.loads((project / "reports" / "results.json").read_text(encoding="utf-8"))
        accounts = {run["id"]: run["on"][0]["stamps"]["account"] for run in results["runs"] if run["on"]}
        found = [cell for cell in results["cells"] if cell["stamps"]]
        return {(accounts[cell["stamps"]], cell["class"]) for cell in found}

    assert shown() == {("bob", "ok")}
    with Store(project / "reports", run="own") as store:
        for cell in cells(project):
            _, outcome, log = measure(cell, fails=True)
            old = replace(outcome.stamps, when="2026-01-01T00:00:00+00:00")
            store.append(replace(outcome, stamps=old), log)
    assert main(["report"]) == 0
    assert shown() == {("", "build_failed")}
