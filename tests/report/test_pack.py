"""`pack`: a reports folder in few files, from which nothing is lost and everything is read as before."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from harness.errors import HandledError, InfraError
from harness.history import read_history
from harness.record import archive
from harness.record.archive import archive_of, unpack
from harness.record.archive import pack as packed
from harness.record.store import Store
from harness.report import build_report, pack_report
from harness.report.packed import content, results_file
from tests.report import factory
from tests.report.test_verify import faults, finished

if TYPE_CHECKING:
    from pathlib import Path

    from harness.record.outcome import Outcome

pytestmark = pytest.mark.unit

FILES = {
    *("index.html", "summary.md", "results.schema.json"),
    *("results.json.xz", "results.csv.xz"),
    *("records.tar.xz", "logs.tar.xz", "models.tar.xz", "history.tar.xz"),
}


def pack(folder: Path, out: Path | None = None) -> tuple[Path, ...]:
    return pack_report(factory.matrix(), (factory.case(),), Store(folder), out)


def held(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder by its place."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def recorded(folder: Path) -> list[tuple[Outcome, str]]:
    store = Store(folder)
    return [(each, store.log(str(each.log_sha256))) for each in store.outcomes()]


def test_a_packed_folder_is_few_files_and_has_no_fault(tmp_path: Path) -> None:
    """Records, logs, history and results are those of the plain folder."""
    plain = finished(tmp_path / "plain")
    before = (recorded(plain), read_history(plain), content(results_file(plain)))
    made = tmp_path / "made"
    shutil.copytree(plain, made)
    assert {path.name for path in pack(made)} == FILES
    assert {path.name for path in made.iterdir()} == FILES
    assert (recorded(made), read_history(made), content(results_file(made))) == before
    assert faults(made) == ""


def test_packing_into_another_folder_leaves_the_first_as_it_is(tmp_path: Path) -> None:
    """And gives what packing in place gives."""
    plain = finished(tmp_path / "plain")
    before = held(plain)
    pack(plain, tmp_path / "made")
    assert held(plain) == before
    pack(plain)
    assert held(plain) == held(tmp_path / "made")


def test_packing_again_changes_nothing(tmp_path: Path) -> None:
    """Not a byte: a published folder is kept in a repository."""
    folder = finished(tmp_path)
    pack(folder)
    before = held(folder)
    pack(folder)
    assert held(folder) == before


def test_a_history_that_was_never_written_is_packed(tmp_path: Path) -> None:
    """Records were kept and no report made of them."""
    with Store(tmp_path) as store:
        for outcome in factory.outcomes().values():
            store.append(outcome, "the log")
    pack(tmp_path)
    assert read_history(tmp_path)
    assert faults(tmp_path) == ""


def test_a_packed_folder_that_is_run_into_holds_both_and_packs_again(tmp_path: Path) -> None:
    """Also where the second run's files are called as those of the first."""
    first, second = factory.outcome("qdq", "rtx15"), factory.ran("fp32", "ort131")
    folder = finished(tmp_path, first)
    pack(folder)
    with Store(folder) as store:
        store.append(second, "another log")
    both = [each.cell for each, _ in recorded(folder)]
    assert both == [first.cell, second.cell]
    build_report(factory.matrix(), (factory.case(),), Store(folder), folder)
    assert faults(folder) == ""
    assert not {"results.json.xz", "models.tar.xz"} & set(held(folder))
    pack(folder)
    assert {path.name for path in folder.iterdir()} == FILES
    assert sorted(unpack(folder / "records.tar.xz")) == ["run-main.2.jsonl", "run-main.jsonl"]
    assert {(each.cell, log) for each, log in recorded(folder)} == {
        (first.cell, "the log"),
        (second.cell, "another log"),
    }
    assert faults(folder) == ""


def test_a_folder_beside_its_archive_packs_into_one_copy(tmp_path: Path) -> None:
    """As a pack that was killed before it removed anything leaves it, or one whose run went on."""
    folder = finished(tmp_path / "a")
    before = recorded(folder)
    shutil.copytree(folder, tmp_path / "copy")
    pack(folder)
    shutil.copytree(tmp_path / "copy", folder, dirs_exist_ok=True)
    pack(folder)
    assert recorded(folder) == before
    assert {path.name for path in folder.iterdir()} == FILES


def test_a_torn_line_stays_as_it_is(tmp_path: Path) -> None:
    """Nothing is joined to it."""
    folder = finished(tmp_path)
    path = folder / "records" / "run-main.jsonl"
    torn = path.read_bytes() + b'{"cell":'
    path.write_bytes(torn)
    pack(folder)
    assert unpack(folder / "records.tar.xz")["run-main.jsonl"] == torn


def test_a_folder_that_a_run_writes_into_is_not_packed(tmp_path: Path) -> None:
    """What it appended after its file was read would be lost."""
    with Store(tmp_path) as store:
        store.append(factory.outcome("qdq", "rtx15"), "the log")
        before = held(tmp_path)
        with pytest.raises(HandledError, match=r"run-main\.jsonl: a run is writing it"):
            pack(tmp_path)
        assert held(tmp_path) == before
    pack(tmp_path)


@pytest.mark.parametrize("data", [b"no gzip", b""], ids=["no gzip", "empty"])
def test_nothing_is_packed_over_a_log_that_cannot_be_read(tmp_path: Path, data: bytes) -> None:
    """Nor is anything removed."""
    folder = finished(tmp_path)
    path = next((folder / "logs").rglob("*.gz"))
    path.write_bytes(data)
    before = held(folder)
    with pytest.raises(HandledError, match=path.name):
        pack(folder)
    assert held(folder) == before


def test_records_that_cannot_be_read_are_one_sentence(tmp_path: Path) -> None:
    folder = finished(tmp_path)
    (folder / "records" / "odd.jsonl").mkdir()
    with pytest.raises(HandledError, match=r"odd\.jsonl: cannot be read"):
        pack(folder)
    assert (folder / "results.json").is_file()


def test_a_log_under_the_name_of_another_is_not_packed(tmp_path: Path) -> None:
    folder = finished(tmp_path)
    path = next((folder / "logs").rglob("*.gz"))
    path.rename(path.with_name(f"{'0' * 64}.txt.gz"))
    with pytest.raises(HandledError, match=f"{'0' * 64}.txt.gz: the log is not what its name says"):
        pack(folder)


def test_what_is_too_large_to_pack_stays_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = finished(tmp_path)
    before = held(folder)
    monkeypatch.setattr(archive, "LIMIT", 1000)
    with pytest.raises(HandledError, match="leave this folder unpacked"):
        pack(folder)
    assert held(folder) == before


def test_nothing_is_removed_that_does_not_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever went wrong between."""
    folder = finished(tmp_path)
    monkeypatch.setattr(
        "harness.report.pack.pack", lambda name, files: packed(name, dict(list(files.items())[1:]))
    )
    with pytest.raises(InfraError, match="does not read back"):
        pack(folder)
    assert recorded(folder)
    assert (folder / "results.json").is_file()
    assert list((folder / "models").iterdir())


def test_what_pack_does_not_know_stays(tmp_path: Path) -> None:
    """A note that somebody put beside the records."""
    folder = finished(tmp_path)
    (folder / "records" / "note.txt").write_text("mine")
    pack(folder)
    assert (folder / "records" / "note.txt").read_text() == "mine"
    assert not (folder / "logs").exists()


@pytest.mark.parametrize("name", sorted(FILES - {"records.tar.xz", "logs.tar.xz", "history.tar.xz"}))
def test_every_packed_file_is_held_against_the_records(tmp_path: Path, name: str) -> None:
    """Other contents, or no file at all; of an archive, one member."""
    folder = finished(tmp_path)
    pack(folder)
    path = folder / name
    if name == "models.tar.xz":
        models = unpack(path)
        path.write_bytes(packed("models", models | {"conv_silu-qdq.onnx": b"another"}))
        where = "models.tar.xz/conv_silu-qdq.onnx"
    else:
        data = content(path) + b"\n"
        path.write_bytes(archive.compress(name, data) if name.endswith(".xz") else data)
        where = name
    assert f"{where}: does not follow from the records; run `trt-compat pack`" in faults(folder)
    path.unlink()
    missing = where.removesuffix(".xz") if name == "results.json.xz" else where
    assert f"{missing}: missing; write it with `trt-compat" in faults(folder)


def test_a_model_that_no_case_has_is_told(tmp_path: Path) -> None:
    folder = finished(tmp_path)
    pack(folder)
    path = folder / "models.tar.xz"
    path.write_bytes(packed("models", unpack(path) | {"stranger.onnx": b"x"}))
    assert "models.tar.xz/stranger.onnx: is of no case; run `trt-compat pack`" in faults(folder)


def test_a_lost_or_spoilt_log_of_an_archive_is_told(tmp_path: Path) -> None:
    folder = finished(tmp_path)
    pack(folder)
    path = archive_of(folder / "logs")
    (name,) = unpack(path)
    path.write_bytes(packed("logs", {name: b"another log"}))
    assert f"logs.tar.xz/{name}: the log is not the one that was recorded" in faults(folder)
    path.write_bytes(packed("logs", {}))
    assert f"logs/{name}.gz: the log cannot be read" in faults(folder)


def test_a_lost_history_is_told(tmp_path: Path) -> None:
    folder = finished(tmp_path)
    pack(folder)
    (folder / "history.tar.xz").unlink()
    assert "missing or short" in faults(folder)
