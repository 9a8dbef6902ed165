"""Whatever a stranger's reports folder holds costs one clear sentence: no fault of the program, and no wait."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import HandledError, InfraError
from harness.record import store as packing
from harness.record.store import Store
from harness.report.model import load_results
from harness.report.verify import verify_report
from harness.report.writer import build_report
from tests.report import factory
from tests.report.test_verify import finished as write

pytestmark = pytest.mark.unit

DEEP = b"[" * 100_000
LIMIT = 1 << 20


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a report, to be copied."""
    return write(tmp_path_factory.mktemp("finished"))


def pipe(path: Path) -> None:
    _away(path)
    os.mkfifo(path)


def loop(path: Path) -> None:
    _away(path)
    path.symlink_to(path.name)


def folder(path: Path) -> None:
    _away(path)
    path.mkdir()


def endless(path: Path) -> None:
    _away(path)
    path.symlink_to("/dev/zero")


def file(path: Path) -> None:
    _away(path)
    path.write_bytes(b"x")


def deep(path: Path) -> None:
    path.write_bytes(DEEP)


def bomb(path: Path) -> None:
    path.write_bytes(gzip.compress(bytes(2 * LIMIT)))


def _away(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


def record(reports: Path) -> Path:
    return next(reports.glob("records/*.jsonl"))


def past(reports: Path) -> Path:
    return next(reports.glob("history/*.json"))


def log(reports: Path) -> Path:
    return next(reports.glob("logs/*/*.txt.gz"))


def page(reports: Path) -> Path:
    beside = reports / "suites" / "own" / "index.html"
    beside.parent.mkdir(parents=True, exist_ok=True)
    beside.touch()
    return beside.with_name("suite.json")


def named(name: str) -> Callable[[Path], Path]:
    return lambda reports: reports / name


NO_FILE = (pipe, loop, folder, endless)
DAMAGE: list[tuple[Callable[[Path], Path], Callable[[Path], None]]] = [
    *((place, damage) for place in (record, past, log) for damage in NO_FILE),
    *((named(name), damage) for name in ("records", "history", "logs") for damage in (pipe, loop, file)),
    *((named("results.json"), damage) for damage in (*NO_FILE, deep)),
    *((page, damage) for damage in (*NO_FILE, deep)),
    (past, deep),
    (log, bomb),
]


def called(place: Callable[[Path], Path], damage: Callable[[Path], None]) -> str:
    name = place(Path("x")).name if place.__name__ == "<lambda>" else place.__name__
    return f"{name}-{damage.__name__}"


def absorb(folder: Path, other: Path) -> None:
    with Store(folder) as store:
        store.absorb(Store(other))


@pytest.mark.parametrize(("place", "damage"), DAMAGE, ids=[called(*each) for each in DAMAGE])
def test_a_hostile_folder(
    tmp_path: Path,
    finished: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: Callable[[Path], Path],
    damage: Callable[[Path], None],
) -> None:
    monkeypatch.setattr(packing, "LIMIT", LIMIT)
    reports = tmp_path / "reports"
    shutil.copytree(finished, reports)
    damage(place(reports))
    given = factory.matrix(), (factory.case(),), Store(reports)
    for work in (
        lambda: verify_report(*given, reports),
        lambda: build_report(*given, tmp_path / "out"),
        lambda: absorb(tmp_path / "all", reports),
        lambda: load_results(reports),
    ):
        try:
            work()
        except (HandledError, InfraError) as error:
            assert str(reports) in str(error)  # noqa: PT017  (it may or may not be refused)
            assert len(str(error).splitlines()) == 1  # noqa: PT017


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "../../../etc/passwd", "A" * 64, "", "0" * 5000])
def test_a_name_that_no_log_has_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(HandledError, match=r"is the name of no log; run the cell again") as refused:
        Store(tmp_path).log(name)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_a_record_that_names_such_a_log_is_told_of(tmp_path: Path, finished: Path, name: str) -> None:
    reports = tmp_path / "reports"
    shutil.copytree(finished, reports)
    path = record(reports)
    first, *rest = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps({**json.loads(first), "log_sha256": name}), *rest]) + "\n")
    found = verify_report(factory.matrix(), (factory.case(),), Store(reports), reports)
    assert any("is the name of no log" in fault for fault in found)


def test_a_log_unpacks_to_no_more_than_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three gigabytes of one letter are three megabytes when packed."""
    monkeypatch.setattr(packing, "LIMIT", LIMIT)
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(bytes(LIMIT)))
    assert packing.inflate(path) == bytes(LIMIT)
    path.write_bytes(gzip.compress(bytes(LIMIT + 1)))
    with pytest.raises(OSError, match="it unpacks to more than 1 MiB"):
        packing.inflate(path)
    for data in (gzip.compress(b"a")[:-1], gzip.compress(b"a") + b"b", zlib.compress(b"a"), b""):
        path.write_bytes(data)
        with pytest.raises(OSError, match=r"cut short|something follows|Error -3"):
            packing.inflate(path)


def test_a_log_is_written_no_longer_than_it_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cell that talks for hours filled the memory of whoever read its log."""
    monkeypatch.setattr(packing, "LIMIT", 1600)
    with Store(tmp_path) as store:
        kept = store.append(next(iter(factory.outcomes().values())), "\udc80" * 1000 + "b" * 1000)
    assert Store(tmp_path).log(str(kept.log_sha256)).splitlines() == [
        r"\udc80" * 100,
        "[left out] 1800 characters: no log is longer",
        "b" * 100,
    ]
