"""A report whose records are elsewhere, as one is published: what the verbs make of its results.json."""

from __future__ import annotations

import lzma
import shutil
from pathlib import Path

import pytest

from harness.cli import main
from harness.record.outcome import Message
from tests.cli import project
from tests.cli.test_diff import two_reports  # noqa: F401  (a fixture)
from tests.fixtures import Capture

pytestmark = pytest.mark.unit

CELL = "toy.relu-ort131"


@pytest.fixture
def published(toy: Path, capsys: Capture) -> Path:
    """Return a folder with what is published of a run of the small project: three files."""
    said = (Message("ERROR", "no luck"),)
    project.record(toy, CELL, failed_phase="build", error="no luck", messages=said)
    assert main(["report"]) == 0
    folder = toy / "published"
    folder.mkdir()
    for name in ("index.html", "summary.md"):
        shutil.copy(toy / "reports" / name, folder)
    data = (toy / "reports" / "results.json").read_bytes()
    (folder / "results.json.xz").write_bytes(lzma.compress(data))
    shutil.rmtree(toy / "reports")
    capsys.readouterr()
    return folder


def test_cells_are_listed_and_shown_as_the_report_has_them(published: Path, capsys: Capture) -> None:
    assert main(["show", CELL, "--reports", str(published)]) == 0
    assert "build_failed (new)" in capsys.readouterr().out
    assert main(["list", "--reports", str(published)]) == 0
    assert f"{CELL} build_failed (new)" in " ".join(capsys.readouterr().out.split())


def test_verify_checks_results_json_and_the_summary(published: Path, capsys: Capture) -> None:
    words = ["verify", "--reports", str(published)]
    assert main(words) == 0
    assert "consistent; without records" in capsys.readouterr().out
    (published / "summary.md").write_text("all is well\n", encoding="utf-8")
    assert main(words) == 3
    assert "follow from results.json.xz" in capsys.readouterr().out
    data = lzma.decompress((published / "results.json.xz").read_bytes())
    (published / "results.json.xz").write_bytes(
        lzma.compress(data.replace(b'"schema": 2', b'"schema": 3', 1))
    )
    assert main(words) == 3
    assert "results.json.xz: $.schema" in capsys.readouterr().out


def test_no_record_is_made_of_it(published: Path, capsys: Capture) -> None:
    """`merge` and `report` say so in one sentence, and write nothing."""
    assert main(["merge", str(published), "--reports", "other"]) == 2
    assert "of a results.json" in capsys.readouterr().err
    assert main(["report", "--reports", str(published)]) == 2
    assert "holds no records" in capsys.readouterr().err
    assert not Path("other").exists()


def test_diff_compares_packed_reports(
    two_reports: tuple[Path, Path],  # noqa: F811
    capsys: Capture,
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
    assert "results.json.xz: cannot be" in capsys.readouterr().err
