"""`pack`, and what the other verbs make of a folder that is packed, or whose archive is damaged."""

from __future__ import annotations

import io
import lzma
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.cli import main
from harness.record.outcome import Outcome, Stamps
from harness.record.store import Store
from tests.cli.test_diff import two_reports  # noqa: F401  (a fixture)

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.unit


@pytest.fixture
def packed(toy: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Return the folder `reports` of the small project with one record, packed."""
    outcome = Outcome(
        "toy[relu]-ort131", "toy", "relu", "ort131", "not_run", "no GPU", stamps=Stamps(when="2026")
    )
    with Store(toy / "reports") as store:
        store.append(outcome, "a log")
    assert main(["pack"]) == 0
    assert "reports: 10 files, 0." in capsys.readouterr().out
    return toy / "reports"


def test_the_other_verbs_read_a_packed_folder(packed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`verify` as it is; `merge` into it and out of it; `report` makes it plain again."""
    assert main(["verify"]) == 0
    assert main(["show", "toy[relu]-ort131"]) == 0
    assert main(["merge", "reports", "--reports", "other"]) == 0
    assert "reports: 1 records and 0 runs of the past taken in" in capsys.readouterr().out
    assert main(["verify", "--reports", "other"]) == 0
    assert main(["merge", "other"]) == 0
    assert "other: 0 records and 0 runs of the past taken in" in capsys.readouterr().out
    assert main(["report"]) == main(["verify"]) == 0
    assert (packed / "results.json").is_file()
    assert not (packed / "results.json.xz").exists()


MERGE = ("merge", "reports", "--reports", "other")


@pytest.mark.parametrize(
    ("name", "verb"),
    # A report is made of records; logs are for those who read them.
    [("records", verb) for verb in (("report",), ("verify",), ("pack",), MERGE)]
    + [("logs", verb) for verb in (("verify",), ("pack",), MERGE)],
    ids=lambda each: each if isinstance(each, str) else each[0],
)
def test_a_damaged_archive_is_one_sentence_and_infrastructure(
    packed: Path, name: str, verb: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """It says nothing of a regression, and no file is changed."""
    path = packed / f"{name}.tar.xz"
    path.write_bytes(path.read_bytes()[:-9])
    before = {each: each.read_bytes() for each in packed.iterdir()}
    capsys.readouterr()
    assert main(verb) == 3
    said = capsys.readouterr().err
    assert said.startswith(f"infrastructure: reports/{name}.tar.xz: cannot be unpacked (it is cut short); ")
    assert said.count("\n") == 1
    assert {each: each.read_bytes() for each in packed.iterdir()} == before
    assert not list(Path("other").rglob("*.jsonl"))


def test_an_archive_that_leads_out_of_its_folder_writes_nothing_there(
    packed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A merge takes records of machines that it knows nothing of."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as made:
        member = tarfile.TarInfo("logs/../../outside.txt")
        member.size = 5
        made.addfile(member, io.BytesIO(b"hello"))
    (packed / "logs.tar.xz").write_bytes(lzma.compress(buffer.getvalue()))
    assert main(MERGE) == 3
    assert "no place inside logs/" in capsys.readouterr().err
    assert not list(packed.parent.parent.rglob("outside*"))


@pytest.mark.parametrize("name", ["file", "folder"])
def test_pack_writes_over_nothing(packed: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Another folder is a new one."""
    Path("file").touch()
    Path("folder").mkdir()
    Path("folder", "mine").touch()
    assert main(["pack", "--output", name]) == 2
    assert f"{name}: is there already" in capsys.readouterr().err
    assert main(["pack", "--output", "new"]) == main(["verify", "--reports", "new"]) == 0
    assert {path.name for path in Path("new").iterdir()} == {path.name for path in packed.iterdir()}


def test_diff_compares_packed_reports(
    two_reports: tuple[Path, Path],  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Folder or file, as plain ones."""
    old, new = two_reports
    code = main(["diff", str(old), str(new)])
    said = capsys.readouterr().out
    path = new / "results.json"
    (new / "results.json.xz").write_bytes(lzma.compress(path.read_bytes()))
    path.unlink()
    assert main(["diff", str(old), str(new)]) == code
    assert capsys.readouterr().out == said
    assert main(["diff", "rtx16", "rtx17", "--reports", str(new)]) in (0, 1)
    capsys.readouterr()
    (new / "results.json.xz").write_bytes(b"")
    assert main(["diff", str(old), str(new / "results.json.xz")]) == 3
    assert "results.json.xz: cannot be unpacked" in capsys.readouterr().err
