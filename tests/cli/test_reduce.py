"""`reduce`, `bisect` and `new` as commands, with an engine that refuses Softmax before version 1.6."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import onnx
import pytest
from packaging.version import Version

from harness.case import Data, Recipe, load_cases
from harness.cli import main
from harness.judge.cell import Judged, judge_cell
from harness.layers.asked import asked, wished
from harness.matrix import Target, load_matrix
from harness.models.bisect import Reply, Told
from harness.models.own.model import Wanted
from harness.plan import Cell
from harness.record.outcome import ParserError
from harness.words import Class, Precision
from tests.fixtures import Capture, Patch
from tests.models.test_check import judged as built
from tests.models.test_reduce import chain, ops, quantised

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[2]
REFUSED_BEFORE = Version("1.6")


class Engine:
    """Stands in for `Tries`: no engine, but one refusal; `asked` are the models by operators, `spoilt` the targets."""

    asked: list[list[str]]
    spoilt: str = ""

    def __init__(self, **_: object) -> None:
        pass

    def __enter__(self) -> Engine:  # noqa: PYI034  (Self is Python 3.11)
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def own(self, model: onnx.ModelProto, target: Target, wanted: Wanted) -> Judged:
        del wanted
        type(self).asked.append(ops(model))
        base = built("int8", "int8", name=target.name)
        outcome = replace(base.outcome, nodes=asked(model), layers=())
        if target.name == self.spoilt:
            outcome = replace(outcome, state="infra_error", reason="the agent was lost")
        odd = next((node for node in model.graph.node if node.op_type == "Softmax"), None)
        if odd is not None and Version(target.version) < REFUSED_BEFORE:
            error = ParserError("no such thing here", "UNSUPPORTED_NODE", odd.name, "Softmax")
            outcome = replace(outcome, failed_phase="parse", parser_errors=(error,))
        cell = Cell(base.cell.id, base.cell.case, base.cell.variant, target)
        return judge_cell(cell, outcome)

    def judged(self, model: bytes, target: Target, recipe: Recipe, *, allowed: Data | None) -> Judged:
        del recipe, allowed
        return self.own(onnx.load_model_from_string(model), target, Wanted())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: Patch) -> Path:
    onnx.save(chain(30), tmp_path / "model.onnx")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("harness.cli.reduce.Tries", Engine)
    monkeypatch.setattr("harness.cli.bisect.Tries", Engine)
    monkeypatch.setattr(Engine, "asked", [], raising=False)
    return tmp_path


def trt_compat(*words: str) -> int:
    return main([*words, "--matrix", str(ROOT / "matrix.yaml")])


def test_the_small_model_is_written_with_what_it_shows_and_how_to_try_it(
    folder: Path, capsys: Capture
) -> None:
    """Without -o it lies here, named after the model; a second call writes the same."""
    assert trt_compat("reduce", "model.onnx", "--target", "rtx15") == 0
    out = capsys.readouterr().out
    first = (folder / "model-reduced.onnx").read_bytes()
    assert ops(onnx.load_model_from_string(first)) == ["Softmax"]
    assert "model.onnx: 31 nodes;" in out
    assert "model-reduced.onnx: 31 ->" in out
    assert "model-reduced.onnx --target rtx15" in out
    assert trt_compat("reduce", "model.onnx", "--target", "rtx15") == 0
    assert (folder / "model-reduced.onnx").read_bytes() == first


def test_a_search_that_is_stopped_says_so_and_what_it_wrote_makes_a_case(
    folder: Path, capsys: Capture
) -> None:
    words = ("reduce", "model.onnx", "--target", "rtx15", "-o", "out/small.onnx")
    assert trt_compat(*words, "--tries", "1") == 0
    assert "--seconds or --tries" in capsys.readouterr().out
    assert trt_compat(*words) == 0
    assert trt_compat("new", "own", "--from", "out/small.onnx", "--max-rel", "0", "--cases", ".") == 0
    (case,) = load_cases(folder)
    assert ops(case.variants[0].build()) == ["Softmax"]
    assert case.variants[0].data is not None
    assert case.variants[0].data.max_rel == 0


def test_the_model_itself_is_never_overwritten(folder: Path, capsys: Capture) -> None:
    before = (folder / "model.onnx").read_bytes()
    assert trt_compat("reduce", "model.onnx", "--target", "rtx15", "-o", "./model.onnx") == 2
    assert "is the model itself" in capsys.readouterr().err
    assert (folder / "model.onnx").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-o", "."), "-o .: is a folder; name a file in it"),
        (("-o", "made"), "-o made: is a folder; name a file in it"),
        (
            ("-o", "model.onnx/x.onnx"),
            "model.onnx: cannot be written: File exists; give another folder with -o",
        ),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_tried(
    folder: Path, capsys: Capture, words: tuple[str, ...], said: str
) -> None:
    (folder / "made").mkdir()
    assert trt_compat("reduce", "model.onnx", "--target", "rtx15", *words) == 2
    assert f"error: {said}" in capsys.readouterr().err
    assert Engine.asked == []


@pytest.mark.usefixtures("folder")
def test_a_machinery_that_fails_is_no_failure_of_the_model(monkeypatch: Patch, capsys: Capture) -> None:
    monkeypatch.setattr(Engine, "spoilt", "rtx15")
    assert trt_compat("reduce", "model.onnx", "--target", "rtx15") == 3
    assert "rtx15: the agent" in capsys.readouterr().err
    assert trt_compat("bisect", "model.onnx", "--good", "rtx17", "--bad", "rtx15") == 3
    assert "rtx15 cannot be" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_an_end_that_asks_for_a_gpu_says_nothing(monkeypatch: Patch, capsys: Capture) -> None:
    """A build that nobody could try is no good one."""
    seen = Engine().own(onnx.load("model.onnx"), load_matrix(ROOT / "matrix.yaml").target("rtx17"), Wanted())
    asks = replace(seen, classification=replace(seen.classification, cls=Class.NEEDS_GPU_TO_BUILD))
    monkeypatch.setattr(Engine, "judged", lambda *_, **__: asks)
    assert trt_compat("bisect", "model.onnx", "--good", "rtx17", "--bad", "rtx15") == 3
    assert "rtx17 cannot be" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_an_end_that_tells_nothing_is_named(capsys: Capture) -> None:
    words = ("bisect", "model.onnx", "--good", "rtx17", "--bad", "rtx15", "--symptom", "numbers")
    assert trt_compat(*words) == 3
    assert capsys.readouterr().out.endswith("rtx17 says neither good nor bad; name another end\n")


@pytest.mark.usefixtures("folder")
def test_a_row_of_versions_is_bisected_and_what_cannot_be_tried_is_skipped(
    monkeypatch: Patch, capsys: Capture
) -> None:
    assert trt_compat("bisect", "model.onnx", "--good", "rtx17", "--bad", "rtx14") == 0
    out = capsys.readouterr().out.splitlines()
    assert json.loads(out[-1]) == {"last_bad": "rtx15", "first_good": "rtx16", "skipped": []}
    monkeypatch.setattr(Engine, "spoilt", "rtx16")
    assert (
        trt_compat("bisect", "model.onnx", "--good", "rtx17", "--bad", "rtx14", "--symptom", "signature") == 0
    )
    out = capsys.readouterr().out.splitlines()
    assert json.loads(out[-1]) == {"last_bad": "rtx15", "first_good": "rtx17", "skipped": ["rtx16"]}
    assert "rtx16 may be" in out[-2]
    assert trt_compat("bisect", "model.onnx", "--good", "rtx14", "--bad", "rtx15") == 1
    assert "give the same" in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
def test_a_good_end_that_is_bad_is_named(monkeypatch: Patch, capsys: Capture) -> None:
    """Something may be found with the ends the other way round."""
    monkeypatch.setattr("harness.cli.bisect.Symptom.told", lambda *_: Told(Reply.BAD, "ran in fp32"))
    words = ("bisect", "model.onnx", "--good", "rtx17", "--bad", "rtx15", "--symptom", "numbers")
    assert trt_compat(*words) == 1
    assert capsys.readouterr().out.endswith("rtx17 is no good end (ran in fp32); name another end\n")


@pytest.mark.usefixtures("folder")
def test_a_case_of_a_model_is_written_once(capsys: Capture) -> None:
    words = ("new", "own", "--from", "model.onnx", "--issue", "https://example.org/1", "--cases", "mine")
    assert trt_compat(*words) == 0
    assert "mine/own.py: 31 nodes;" in capsys.readouterr().out
    (case,) = load_cases(Path("mine"))
    assert [link.url for link in case.links] == ["https://example.org/1"]
    assert len(case.variants[0].build().graph.node) == 31
    assert trt_compat(*words) == 2
    assert "is there already" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_the_variant_is_called_after_the_model(capsys: Capture) -> None:
    """Not by a word of ours, which other names hold: "ort" is in reported."""
    shutil.copy("model.onnx", "Yolo v8 (int8).onnx")
    assert trt_compat("new", "own", "--from", "Yolo v8 (int8).onnx", "--cases", "mine") == 0
    (case,) = load_cases(Path("mine"))
    assert [variant.name for variant in case] == ["yolo-v8-int8"]
    capsys.readouterr()


def test_a_case_names_the_precision_that_its_graph_asks_for(
    tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    """So a later export of the model that asks for less has lost it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.onnx").write_bytes(quantised(64).SerializeToString())
    assert main(["new", "own", "--from", "model.onnx", "--cases", "mine"]) == 0
    (case,) = load_cases(Path("mine"))
    (variant,) = case
    assert variant.precision == wished(replace(variant, precision=None), asked(variant.build()))
    assert {precision for _, precision in variant.precision or ()} == {Precision.INT8}
    capsys.readouterr()


def test_a_case_hides_none_of_those_that_come_with_the_harness(
    tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.onnx").write_bytes(quantised(64).SerializeToString())
    assert main(["new", "own", "--from", "model.onnx"]) == 2
    assert "with `trt-compat init`," in capsys.readouterr().err
    assert not (tmp_path / "cases").exists()
    assert main(["init"]) == 0
    assert main(["new", "own", "--from", "model.onnx"]) == 0
