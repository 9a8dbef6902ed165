"""The store: a record that `append` returned for is never lost."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import hashlib
import json
import lzma
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from harness.errors import HandledError, InfraError
from harness.record import store
from harness.record.outcome import End, Layer, Message, Outcome, Stamps
from harness.record.store import Store, compress, decompress, read_records
from tests.fixtures import Capture, Patch
from tests.near import SAME, near
from tests.waiting import PATIENCE

pytestmark = pytest.mark.unit
ROOT = Path(__file__).parents[2]


def outcome(cell: str = "c.v-t", when: str = "2026-01-01T00:00:00Z", **changes: Any) -> Outcome:
    stamps = Stamps(when=when, **changes.pop("stamps", {}))
    base = Outcome(cell, "c", "v", "t", "done", end=End("finished"), stamps=stamps)
    return dataclasses.replace(base, **changes)


def test_round_trip(tmp_path: Path) -> None:
    """A record and its log come back as they went in, whatever characters they hold."""
    record = outcome(
        phases={"parse": 0.1},
        messages=(Message("ERROR", "Zeile\nμ\u2028\U0001f600 \udc80"),),
        layers=(Layer("l", "Conv", "int8", onnx_nodes=("/a",)),),
    )
    with Store(tmp_path) as store:
        kept = store.append(record, "log\nμ")
    (found,) = Store(tmp_path).outcomes()
    assert found == kept
    assert found.messages[0].text == "Zeile\nμ\u2028\U0001f600 \udc80"
    (line,) = (tmp_path / "records" / "run-main.jsonl").read_bytes().splitlines()
    assert line.startswith(b'{"cell":"c.v-t","case":"c"'), "and lies in one line"
    assert found.log_sha256 is not None
    assert Store(tmp_path).log(found.log_sha256) == "log\nμ"
    with Store(tmp_path / "new" / "folder") as store:
        odd = store.append(record, "no UTF-8: \udc80")
    assert Store(tmp_path / "new" / "folder").log(str(odd.log_sha256)) == r"no UTF-8: \udc80"


def test_layout(tmp_path: Path) -> None:
    """The folder is as documented: merge and other tools rely on it.

    GitHub Pages deploys no site in which a file is its owner's alone.
    """
    with Store(tmp_path, run="r1", worker="w2") as store:
        sha = store.append(outcome(), "x").log_sha256
        assert store.append(outcome(), "x").log_sha256 == sha, "equal logs are kept once"
    assert sha is not None
    files = {str(path.relative_to(tmp_path)): path for path in tmp_path.rglob("*") if path.is_file()}
    log = f"logs/{sha[:2]}/{sha}.txt.gz"
    assert sorted(files) == sorted([log, "records/r1-w2.jsonl"])
    assert {path.stat().st_mode & 0o444 for path in files.values()} == {0o444}
    assert files[log].stat().st_mode & 0o777 == 0o644


def test_what_append_returned_for_is_on_the_disk(tmp_path: Path, monkeypatch: Patch) -> None:
    """A machine that loses power has written neither the buffers of this process nor those of the system."""
    synced: dict[int, int] = {}

    def fsync(descriptor: int) -> None:
        found = os.fstat(descriptor)
        synced[found.st_ino] = found.st_size

    monkeypatch.setattr(os, "fsync", fsync)
    with Store(tmp_path) as store:
        store.append(outcome("a"), "the log")
        store.append(outcome("b"))
        kept = [path.stat() for path in tmp_path.rglob("*") if path.is_file()]
        assert len(kept) == 2
        assert synced == {each.st_ino: each.st_size for each in kept}


def test_a_log_comes_into_its_place_whole_or_not_at_all(tmp_path: Path, monkeypatch: Patch) -> None:
    """It is written beside it, under a name that is no log's, and a failure leaves no file behind."""
    moved: list[str] = []

    def replace(written: str, path: Path) -> None:
        assert Path(written).parent == path.parent
        assert gzip.decompress(Path(written).read_bytes()) == b"the log"
        moved.append(Path(written).name)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", replace)
    with Store(tmp_path) as store, pytest.raises(OSError, match="No space"):
        store.append(outcome(), "the log")
    assert [name.startswith(".writing-") for name in moved] == [True]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_an_interrupt_stays_one_wherever_it_comes(tmp_path: Path, monkeypatch: Patch) -> None:
    """Just after the log came into its place no file is left to clean up."""
    into_place = os.replace

    def replace(written: str, path: Path) -> None:
        into_place(written, path)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", replace)
    with Store(tmp_path) as store, pytest.raises(KeyboardInterrupt):
        store.append(outcome(), "the log")


def test_the_same_log_is_the_same_bytes(tmp_path: Path) -> None:
    """Without the time it was written at; the folder may be there already."""
    sha = hashlib.sha256(b"the log").hexdigest()
    (tmp_path / "logs" / sha[:2]).mkdir(parents=True)
    with Store(tmp_path) as store:
        store.append(outcome(), "the log")
    path = tmp_path / "logs" / sha[:2] / f"{sha}.txt.gz"
    assert path.read_bytes() == gzip.compress(b"the log", mtime=0)


def test_records_that_cannot_be_read_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "records" / "a.jsonl").mkdir(parents=True)
    with pytest.raises(HandledError, match=r"a\.jsonl: cannot be read"):
        list(Store(tmp_path).outcomes())


def test_a_store_holds_records_once_something_was_recorded(tmp_path: Path) -> None:
    assert not Store(tmp_path).holds_records
    assert list(Store(tmp_path / "none").outcomes()) == []
    (tmp_path / "records").mkdir()
    assert Store(tmp_path).holds_records
    assert not Store(tmp_path / "records").holds_records


def test_a_writer_never_opens_a_file_that_exists(tmp_path: Path) -> None:
    """The same run and worker again, at once or after a `close`, write files of their own; other files stay unread."""
    with Store(tmp_path) as one, Store(tmp_path) as two, Store(tmp_path) as three:
        one.append(outcome("a"))
        two.append(outcome("b"))
        one.append(outcome("c"))
        three.append(outcome("d"))
        one.close()
        one.append(outcome("e"))
    (tmp_path / "records" / "notes.txt").write_text("why this was run\n")
    assert [o.cell for o in Store(tmp_path).outcomes()] == ["b", "d", "e", "a", "c"]
    assert sorted(path.name for path in (tmp_path / "records").glob("*.jsonl")) == [
        *(f"run-main.{number}.jsonl" for number in (2, 3, 4)),
        "run-main.jsonl",
    ]


def test_every_prefix_of_a_file_is_readable(tmp_path: Path) -> None:
    """Cut anywhere, a file gives the records whose lines are whole (or lack the newline alone)."""
    with Store(tmp_path) as store:
        for cell in "abc":
            store.append(outcome(cell, messages=(Message("INFO", "μ{}"),)))
    path = tmp_path / "records" / "run-main.jsonl"
    whole = path.read_bytes()
    ends = [i for i, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        assert len(list(Store(tmp_path).outcomes())) == sum(end <= cut for end in ends)


@pytest.mark.parametrize(
    "line",
    [
        b"garbage",
        b'{"cell": "half',
        b"[]",
        b'"text"',
        b'{"schema": 99}',
        b'{"schema": 2}',
        b"[" * 200_000,
        b"\xff",
        json.dumps(dataclasses.asdict(outcome(phases={"build": float("nan")}))).encode(),
        # A field that may be null was not written as null.
        json.dumps({**outcome().to_json(), "engine_bytes": float("nan")}).encode(),
    ],
)
def test_a_bad_line_that_is_not_torn_is_told_of_and_the_others_are_read(
    tmp_path: Path, line: bytes, capsys: Capture
) -> None:
    """Leaving it out in silence could turn a recorded regression into "not run"."""
    with Store(tmp_path) as store:
        store.append(outcome("a"))
    path = tmp_path / "records" / "run-main.jsonl"
    path.write_bytes(path.read_bytes() + line + b"\n" + path.read_bytes())
    told: list[str] = []
    assert [each.cell for each in Store(tmp_path, tell=told.append).outcomes()] == ["a", "a"]
    (sentence,) = told
    assert sentence.startswith(f"{path}:2: not a record")
    assert sentence.endswith("mend or delete that line")
    assert "\n" not in sentence
    for _ in range(2):
        list(Store(tmp_path).outcomes())
    assert capsys.readouterr().err == f"{sentence}\n"


def test_records_of_an_older_schema_are_one_sentence_in_all(tmp_path: Path) -> None:
    """However many there are, in however many files: a user needs to hear no more than that they are old."""
    for run in ("one", "two"):
        with Store(tmp_path, run=run) as store:
            store.append(outcome("a"))
        path = tmp_path / "records" / f"{run}-main.jsonl"
        path.write_bytes(path.read_bytes() + path.read_bytes().replace(b'"schema":2', b'"schema":1') * 3)
    store = Store(tmp_path, tell=lambda _: None)
    assert [each.cell for each in store.outcomes()] == ["a", "a"]
    said = "holds records of schema 1, written by an older version, which are passed over; run again"
    assert store.faults == (f"{tmp_path / 'records'}: {said}",)


@pytest.mark.parametrize("damage", ["missing", "cut", "other"])
def test_a_damaged_log_is_named(tmp_path: Path, damage: str) -> None:
    with Store(tmp_path) as store:
        sha = store.append(outcome(), "text " * 100).log_sha256
    assert sha is not None
    (path,) = (tmp_path / "logs").rglob("*.gz")
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:20] if damage == "cut" else gzip.compress(b"other"))
    with pytest.raises(HandledError, match=sha):
        Store(tmp_path).log(sha)


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden"])
def test_names_that_are_no_file_names(tmp_path: Path, name: str) -> None:
    for names in ({"worker": name}, {"run": name}):
        with pytest.raises(HandledError, match="store name"):
            Store(tmp_path, **names)  # type: ignore[arg-type]


def test_absorbing_another_store_twice_adds_once(tmp_path: Path) -> None:
    """Records come with their logs; those already here stay single, also when the two stores overlap."""
    with Store(tmp_path / "a") as one, Store(tmp_path / "b", run="other") as two:
        shared = one.append(outcome("shared"), "log shared")
        two.append(shared)
        two.append(outcome("new"), "log new")
        two.append(outcome("bare"))
        two.append(outcome("bare"))
        assert one.absorb(two) == 2
        assert one.absorb(two) == 0
    found = {each.cell: each for each in Store(tmp_path / "a").outcomes()}
    assert sorted(found) == ["bare", "new", "shared"]
    assert Store(tmp_path / "a").log(str(found["new"].log_sha256)) == "log new"


def test_a_record_whose_log_is_missing_is_taken_in_without_it(tmp_path: Path) -> None:
    """Once, and the rest of the folder with it."""
    said: list[str] = []
    with Store(tmp_path / "a", tell=said.append) as one, Store(tmp_path / "b", run="other") as two:
        lost = two.append(outcome("lost"), "log lost")
        two.append(outcome("whole"), "log whole")
        (log,) = (
            path for path in (tmp_path / "b" / "logs").rglob("*.gz") if str(lost.log_sha256) in path.name
        )
        log.unlink()
        assert one.absorb(two) == 2
        assert one.absorb(two) == 0
    (sentence,) = said
    assert sentence.startswith("1 records are")
    assert str(log) in sentence
    assert {each.cell: bool(each.log_sha256) for each in Store(tmp_path / "a").outcomes()} == {
        "lost": False,
        "whole": True,
    }


#: Appends records until it is killed or has appended as many as it is to, and tells the number of each.
WRITER = """
import sys
from pathlib import Path
from harness.record.outcome import End, Message, Outcome, Stamps
from harness.record.store import Store
folder, worker, first, count = Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:])
with Store(folder, run="kill", worker=worker) as store:
    for number in range(first, first + count):
        text = "x" * (number * 7919 % 200000 if number % 4 == 3 else 9)
        record = Outcome(str(number), "c", "v", "t", "done", messages=(Message("INFO", text),))
        store.append(record, text + str(number % 7))
        sys.stdout.write(f"{number}\\n")
        sys.stdout.flush()
"""


def writer(folder: Path, worker: str, first: int, count: int) -> subprocess.Popen[str]:
    """Start a process that appends to a store."""
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), worker, str(first), str(count)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
    )


def test_several_processes_append_at_once(tmp_path: Path) -> None:
    """Two of them with the same name even; logs are shared."""
    writers = [writer(tmp_path, name, 1000 * at, 40) for at, name in enumerate(("w1", "w2", "w2"))]
    assert [each.communicate(timeout=PATIENCE)[0].count("\n") for each in writers] == [40] * 3
    found = list(Store(tmp_path).outcomes())
    assert len({each.cell for each in found}) == len(found) == 120
    assert {Store(tmp_path).log(str(each.log_sha256))[-1] for each in found} == set("0123456")


def test_a_killed_writer_loses_nothing_that_was_appended(tmp_path: Path) -> None:
    """SIGKILL at random moments: every acknowledged record is there with its log, and all is readable."""
    acknowledged: set[int] = set()
    chance = random.Random(4)  # noqa: S311  (moments, not secrets)
    for attempt in range(5):
        doomed = writer(tmp_path, "main", attempt * 100_000, 100_000)
        assert doomed.stdout is not None
        acknowledged.update(int(doomed.stdout.readline()) for _ in range(3))
        time.sleep(chance.random() * 0.08)
        doomed.send_signal(signal.SIGKILL)
        acknowledged.update(int(line) for line in doomed.stdout.read().split("\n")[:-1])
        doomed.stdout.close()
        assert doomed.wait(PATIENCE) == -signal.SIGKILL
        store = Store(tmp_path)
        found = {int(each.cell): each for each in store.outcomes()}
        assert acknowledged <= set(found)
    for number in acknowledged:
        assert store.log(str(found[number].log_sha256)).endswith(str(number % 7))


def test_a_record_names_its_log_only_once_that_is_written(tmp_path: Path, monkeypatch: Patch) -> None:
    """Killed between the two, a log without a record stays behind, never a record without its log."""
    store = Store(tmp_path)
    monkeypatch.setattr(store, "_writer", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        store.append(outcome(), "text")
    assert len(list((tmp_path / "logs").rglob("*.gz"))) == 1
    assert not (tmp_path / "records").exists()


def test_blank_lines_are_no_records(tmp_path: Path) -> None:
    """An editor may leave some; lines are still counted as it counts them."""
    with Store(tmp_path) as store:
        store.append(outcome("a"))
    path = tmp_path / "records" / "run-main.jsonl"
    path.write_bytes(b"\n" + path.read_bytes() + b"  \n" + path.read_bytes())
    assert [each.cell for each in Store(tmp_path).outcomes()] == ["a", "a"]
    path.write_bytes(path.read_bytes() + b"{}\n")
    store = Store(tmp_path, tell=lambda _: None)
    assert len(list(store.outcomes())) == 2
    (fault,) = store.faults
    assert fault.startswith(f"{path}:5: not a record")


RECORDS = tuple(
    f"{json.dumps(each.to_json())}\n".encode() * 2
    for each in (outcome(), outcome(phases={"parse": 0.1}, messages=(Message("ERROR", "text"),)))
)


@SAME
@given(near(*RECORDS))
def test_lines_near_records_are_read_or_told_of(data: bytes) -> None:
    """A record that is read can be written."""
    told: list[str] = []
    for found in read_records(Path("r.jsonl"), data, told.append):
        assert found.as_read() == found
    assert all("\n" not in sentence for sentence in told)


GOOD = lzma.compress(b"x" * 5000)
#: The damaged bytes, and why they cannot be unpacked.
DAMAGED: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "it is cut short"),
    "no xz": (b"what a web server says of a missing file", "Input format not supported"),
    "cut short": (GOOD[: len(GOOD) // 2], "it is cut short"),
    "cut short by a byte": (GOOD[:-1], "it is cut short"),
    "a byte differs": (GOOD[:60] + bytes([GOOD[60] ^ 1]) + GOOD[61:], "Corrupt input data"),
    "goes on": (GOOD + b"x", "something follows its end"),
    "another form": (lzma.compress(b"x" * 99, lzma.FORMAT_ALONE), "Input format not supported"),
    "a bomb": (lzma.compress(bytes(3 << 20)), "it unpacks to more than 2 MiB"),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_file_is_one_sentence(tmp_path: Path, kind: str, monkeypatch: Patch) -> None:
    monkeypatch.setattr(store, "LIMIT", 2 << 20)
    data, why = DAMAGED[kind]
    path = tmp_path / "results.json.xz"
    path.write_bytes(data)
    message = rf"results\.json\.xz: cannot be unpacked \(.*{re.escape(why)}.*\); get it again"
    with pytest.raises(InfraError, match=message) as caught:
        decompress(path)
    assert "\n" not in str(caught.value)


def test_no_more_than_the_limit_is_unpacked_of_a_bomb(tmp_path: Path, monkeypatch: Patch) -> None:
    """However small it is packed: a gigabyte of zeros is 150 KB."""
    asked: list[int] = []

    class Counting:
        eof, needs_input, unused_data = False, False, b""

        def decompress(self, _data: bytes, most: int) -> bytes:
            asked.append(most)
            return bytes(most)

    monkeypatch.setattr(store, "LIMIT", 3 << 20)
    monkeypatch.setattr(lzma, "LZMADecompressor", lambda *_: Counting())
    path = tmp_path / "x.xz"
    path.touch()
    with pytest.raises(InfraError, match="more than 3 MiB"):
        decompress(path)
    assert asked == [(3 << 20) + 1]


def test_what_asks_for_much_memory_to_be_unpacked_is_refused(tmp_path: Path) -> None:
    """A dictionary of 128 MiB is no harm in itself, and no program's usual one; `xz -9` asks for 65 MiB."""
    (tmp_path / "best.xz").write_bytes(lzma.compress(b"x", preset=9))
    assert decompress(tmp_path / "best.xz") == b"x"
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 128 << 20}]
    data = lzma.LZMACompressor(filters=filters)
    try:
        (tmp_path / "x.xz").write_bytes(data.compress(b"x") + data.flush())
    except MemoryError:
        pytest.skip("this machine has no memory to make one")
    with pytest.raises(InfraError, match=r"[Mm]emory usage limit"):
        decompress(tmp_path / "x.xz")


def test_as_much_as_the_limit_is_packed_and_unpacked(tmp_path: Path, monkeypatch: Patch) -> None:
    """Incompressible data too, which become longer."""
    monkeypatch.setattr(store, "LIMIT", 1 << 20)
    data = random.Random(1).randbytes(1 << 20)  # noqa: S311
    (tmp_path / "x.xz").write_bytes(compress("x", data))
    assert (tmp_path / "x.xz").stat().st_size > 1 << 20
    assert decompress(tmp_path / "x.xz") == data
    with pytest.raises(InfraError, match=r"no\.xz: cannot be read \(No such file"):
        decompress(tmp_path / "no.xz")
    with pytest.raises(InfraError, match=r"x\.xz: cannot be unpacked \(it unpacks to more than 0 MiB\)"):
        decompress(tmp_path / "x.xz", (1 << 20) - 1)
    with pytest.raises(HandledError, match="records: 1 MiB, and a packed file may hold 1 MiB"):
        compress("records", data + b"x")


def test_a_python_without_lzma_says_so(tmp_path: Path) -> None:
    """Some are built without, and whatever else works is to work there."""
    (tmp_path / "x.xz").write_bytes(GOOD)
    for call in ('store.decompress(pathlib.Path("x.xz"))', 'store.compress("records", b"x")'):
        code = f"import pathlib, sys; sys.modules['lzma'] = None; from harness.record import store; {call}"
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert "HandledError: " in done.stderr
        assert "without lzma" in done.stderr


@SAME
@given(near(GOOD))
def test_what_is_near_a_packed_file_is_read_or_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.xz").write_bytes(data)
    with contextlib.suppress(InfraError):
        assert decompress(tmp_path / "x.xz") == b"x" * 5000
