"""A matrix of odd cases beside healthy ones: the healthy ones have their results, each odd one its own sentence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.cli import main
from tests import needs
from tests.cli import project
from tests.fixtures import Capture, Patch

pytestmark = pytest.mark.integration

ODD = '''
"""Odd variants, and builders that fail."""

from harness.case import Case, Graph, Link, Precision, Recipe, Variant


def relu(side=4):
    g = Graph("relu")
    g.node("Relu", [g.input("x", [side, side])], name="/act", output="y")
    g.output("y", [side, side])
    return g.model()


def raises():
    return {}["weights"]


def garbage():
    return b"not a model"


CASE = Case(
    name="odd",
    title="Odd",
    summary="For tests.",
    links=(Link("https://example.org/1"),),
    variants=(
        Variant("raises", "Raises", raises),
        Variant("garbage", "Garbage", garbage),
        Variant("huge", "Huge", lambda: relu(1 << 20)),
        Variant("node-typo", "A typo in a node", relu, precision=(("/actt", Precision.FP32),)),
        Variant("flag-typo", "A typo in a flag", relu, recipe=Recipe(flags=("INT88",))),
    ),
)
'''

#: What each odd variant says, whatever the target.
SENTENCES = {
    "raises": "odd.py:15: the model of variant 'raises' cannot be built: KeyError: 'weights'",
    "garbage": "odd.py:18: the model of variant 'garbage' cannot be built: TypeError: a model is",
    "huge": "1099511627776 elements",
    "node-typo": "/actt",
    "flag-typo": "INT88",
}


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: Patch) -> Path:
    """Make a project of healthy and odd cases on a real builder and the baseline, and enter it."""
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "toy.py").write_text(project.CASE)
    (tmp_path / "cases" / "odd.py").write_text(ODD)
    targets = {name: project.TARGETS["targets"][name] for name in ("rtx14", "rtx15", "rtx17", "ort131")}
    (tmp_path / "matrix.yaml").write_text(yaml.safe_dump({"schema": 1, "targets": targets}, sort_keys=False))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cells(folder: Path) -> dict[str, Any]:
    data = json.loads((folder / "reports" / "results.json").read_text())
    return {cell["id"]: cell for cell in data["cells"]}


def test_each_odd_case_costs_its_own_cells(hostile: Path, capsys: Capture) -> None:
    needs.network()
    assert main(["run", "--via", "venv", "--target", "rtx17", "--target", "ort131"]) == 3
    said, found = capsys.readouterr().out, cells(hostile)
    assert (hostile / "reports" / "index.html").is_file()
    for name, cls in (("toy.relu-ort131", "ok"), ("toy.relu-rtx17", "built")):
        assert (found[name]["class"], name) == (cls, name), found[name]["reason"]
    for name, sentence in SENTENCES.items():
        for target in ("rtx17", "ort131"):
            cell = found[f"odd.{name}-{target}"]
            assert cell["class"] == "infra_error", cell["reason"]
            assert sentence in cell["reason"]
        assert sentence in said
    assert "Traceback" not in said


def test_what_cannot_be_built_costs_nothing_where_it_was_not_selected(hostile: Path) -> None:
    needs.network()
    assert main(["run", "--via", "venv", "-k", "relu and ort131"]) == 0
    found = cells(hostile)
    assert found["toy.relu-ort131"]["class"] == "ok"
    assert found["odd.raises-ort131"]["class"] == "not_run"
    assert "built: KeyError: 'weights'" in found["odd.raises-ort131"]["reason"]
    assert main(["report"]) == 0
    assert main(["verify"]) == 0
    assert main(["accept"]) == 0


def test_a_full_disk_elsewhere_leaves_a_report(hostile: Path, monkeypatch: Patch, capsys: Capture) -> None:
    """An environment that cannot be made for want of room is that target's trouble."""
    from harness.run.provision import packages

    def no_room(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setenv("TRT_COMPAT_CACHE_DIR", str(hostile / "cache"))
    monkeypatch.setattr(packages, "_make_venv", no_room)
    assert main(["run", "--via", "venv", "-k", "relu"]) == 3
    assert "for the environment" in capsys.readouterr().out
    assert cells(hostile)["toy.relu-ort131"]["class"] == "infra_error"
    shutil.rmtree(hostile / "cache")
