"""`share`: an archive that a maintainer can use, in which nothing tells whose machine it was."""

from __future__ import annotations

import io
import json
import socket
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli import main
from harness.errors import HandledError
from harness.judge.cell import Judged, judge_cell
from harness.plan import all_cells, find
from harness.share.issue import share
from harness.words import Class
from tests.fixtures import Capture, Patch
from tests.report import factory

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
CELLS = all_cells(factory.matrix(), (factory.case(),))


def judged(cls: Class) -> Judged:
    """Return a cell of the small report that ended so."""
    return next(
        found
        for name, outcome in factory.outcomes().items()
        if (found := judge_cell(find(CELLS, name), outcome)).classification.cls is cls
    )


def test_the_archive_has_what_a_maintainer_asks_for_and_the_same_bytes_each_time() -> None:
    failed = judged(Class.BUILD_FAILED)
    made = share(failed, "[ERROR] the whole log")
    with zipfile.ZipFile(io.BytesIO(made.archive())) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    model, recipe = (next(name for name in files if name.endswith(end)) for end in (".onnx", ".json"))
    assert files[model] == failed.cell.variant.model_bytes()
    assert json.loads(files[recipe])["model"] == model
    assert "repro.py" in files
    assert files["log.txt"] == b"[ERROR] the whole log"
    said = files["issue.md"].decode()
    assert said.startswith(f"# {made.title}\n")
    assert failed.classification.reason in said
    assert f"| engine | {failed.cell.target.traits.product} " in said
    assert made.archive() == share(failed, "[ERROR] the whole log").archive()


def test_names_of_this_machine_are_taken_out(monkeypatch: Patch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "annas-laptop")
    failed, home = judged(Class.BUILD_FAILED), str(Path("/") / "home" / "anna")
    spoilt = replace(failed, outcome=replace(failed.outcome, error=f"seen on annas-laptop in {home}/x"))
    made = share(spoilt, f"annas-laptop: {home}/model.onnx is not readable")
    told = b"".join(data for name, data in made.files.items() if not name.endswith(".onnx"))
    assert b"annas-laptop" not in told
    assert home.encode() not in told


def test_a_cell_that_nobody_ran_has_nothing_to_share(tmp_path: Path, capsys: Capture) -> None:
    with pytest.raises(HandledError, match="run it first"):
        share(judged(Class.NOT_RUN), "")
    places = (
        "--matrix",
        str(ROOT / "matrix.yaml"),
        "--cases",
        str(ROOT / "cases"),
        "--reports",
        str(tmp_path),
    )
    assert main(["share", "mish.qdq-rtx17", *places]) == 2
    assert "no result is recorded in" in capsys.readouterr().err
