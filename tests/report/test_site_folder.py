"""The site in a folder: whole, its own files alone replaced and removed, whatever else lies there untouched."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

import pytest

from harness.errors import HandledError
from harness.record.store import Store
from harness.report import build_report, build_site
from harness.report.site_writer import MANIFEST, packed_logs, write_site
from harness.report.suites import build_suites
from tests.report import factory, suite_records
from tests.report.test_pack import held
from tests.report.test_pack import pack as packed
from tests.report.test_verify import finished

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

PAGES = {"index.html": b"entry", "cases/a/index.html": b"a", "cases/b/index.html": b"b"}


def build(reports: Path, out: Path, base: str = "") -> dict[str, bytes]:
    build_site(factory.matrix(), (factory.case(),), Store(reports), out, base=base)
    return held(out)


def test_the_site_of_a_folder_is_whole_and_leaves_the_folder_as_it_is(tmp_path: Path) -> None:
    """Pages, models, the report with its archives; records and history stay where they are."""
    reports = finished(tmp_path / "reports")
    before = held(reports)
    made = build(reports, tmp_path / "site", "https://site.example/")
    assert held(reports) == before
    assert {
        "index.html",
        "cases/conv_silu/qdq/index.html",
        "latest/index.html",
        "latest/results.json",
        "latest/results.schema.json",
        "latest/models.tar.xz",
        "latest/logs.tar.xz",
        "models/conv_silu-qdq.onnx",
        "sitemap.xml",
    } <= set(made)
    assert json.loads(made["latest/results.json"]) == json.loads(before["results.json"])
    assert not [name for name in made if name.startswith(("records", "history"))]
    assert set(json.loads(made[MANIFEST])["files"]) == set(made) - {MANIFEST}


def test_the_pages_of_suites_come_and_go_with_the_report(tmp_path: Path) -> None:
    reports = finished(tmp_path / "reports")
    suite_records.record(reports, suite_records.FIRST)
    build_suites(factory.matrix(), reports)
    made = build(reports, tmp_path / "site")
    mine = {f"latest/suites/onnx-node.{kind}" for kind in ("html", "json", "md")}
    assert {name for name in made if "suites" in name} == mine
    shutil.rmtree(reports / "suites")
    assert not mine & set(build(reports, tmp_path / "site"))


def test_a_packed_folder_makes_the_same_site(tmp_path: Path) -> None:
    """Byte for byte, again and again."""
    reports = finished(tmp_path / "reports")
    first = build(reports, tmp_path / "one")
    packed(reports)
    assert packed_logs(reports) == (reports / "logs.tar.xz").read_bytes()
    assert build(reports, tmp_path / "two") == first
    assert build(reports, tmp_path / "one") == first


def test_a_folder_without_history_of_its_own_tells_its_runs(tmp_path: Path) -> None:
    """What is only in the records so far is a run as well."""
    reports = finished(tmp_path / "reports")
    build_report(factory.matrix(), (factory.case(),), Store(reports), reports)
    for path in (reports / "history").iterdir():
        path.unlink()
    page = build(reports, tmp_path / "site")["runs/index.html"].decode()
    assert re.search(r"2026-11-20 10:15.*TensorRT for RTX 1\.5", page, re.DOTALL)
    assert not any((reports / "history").iterdir())


def test_pages_that_are_gone_go_and_files_of_others_stay(tmp_path: Path) -> None:
    """A list of what was written tells one from the other."""
    out = tmp_path / "site"
    write_site(out, PAGES)
    (out / "CNAME").write_text("site.example")
    (out / "cases" / "b" / "mine.txt").write_text("mine")
    write_site(out, {"index.html": b"entry 2", "cases/c/index.html": b"c"})
    assert {name: data for name, data in held(out).items() if name != MANIFEST} == {
        "index.html": b"entry 2",
        "cases/c/index.html": b"c",
        "CNAME": b"site.example",
        "cases/b/mine.txt": b"mine",
    }
    assert not (out / "cases" / "a").exists()


def test_a_file_of_somebody_elses_is_never_written_over(tmp_path: Path) -> None:
    """A reports folder has an index.html as well."""
    out = tmp_path / "site"
    out.mkdir()
    (out / "index.html").write_text("mine")
    with pytest.raises(
        HandledError, match=r"index\.html: is there and is no page of an earlier site; give --site"
    ):
        write_site(out, PAGES)
    assert held(out) == {"index.html": b"mine"}


def test_a_writing_that_was_cut_short_is_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list names all that may be there before the first page is written."""
    out = tmp_path / "site"
    write_site(out, PAGES)
    real = write_site.__globals__["write_files"]

    def cut(folder: Path, files: dict[str, bytes]) -> tuple[Path, ...]:
        if MANIFEST not in files:
            real(folder, dict(list(files.items())[:1]))
            raise KeyboardInterrupt
        return tuple(real(folder, files))

    monkeypatch.setattr("harness.report.site_writer.write_files", cut)
    with pytest.raises(KeyboardInterrupt):
        write_site(out, {"new/index.html": b"n", "index.html": b"e"})
    monkeypatch.undo()
    write_site(out, {"new/index.html": b"n2"})
    assert {name for name in held(out) if name != MANIFEST} == {"new/index.html"}


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"schema": 2, "files": []}',
        '{"schema": 1, "files": ["../x"]}',
        '{"schema": 1, "files": ["/etc/x"]}',
    ],
)
def test_a_list_that_is_none_of_ours_is_one_sentence(tmp_path: Path, text: str) -> None:
    """Whoever can write it must not have files elsewhere removed by it."""
    (tmp_path / "x").write_text("outside")
    out = tmp_path / "site"
    out.mkdir()
    (out / MANIFEST).write_text(text)
    with pytest.raises(HandledError, match="give --site another folder"):
        write_site(out, PAGES)
    assert (tmp_path / "x").exists()
    assert set(held(out)) == {MANIFEST}


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    """A file in its place, for one."""
    (tmp_path / "file").write_text("x")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(HandledError, match=r"give (--site another|another folder)"):
            write_site(out, PAGES)
