"""`check` as a command: what is wrong with it is said before anything runs."""

from __future__ import annotations

import json
import os
import re
import select
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from harness.cli import main
from harness.cli.options import writable_file
from harness.judge.cell import Judged, judge_cell
from harness.models.trying import run_models
from harness.plan import Cell
from harness.record.outcome import End, Outcome
from harness.record.store import Store
from harness.report.page import unpacked
from tests.fixtures import Capture, Patch
from tests.models import data

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
#: A target that no machine of the tests runs, and that nothing is pulled for.
NOT_HERE = "trt86"


@pytest.fixture
def ran(toy: Path, monkeypatch: Patch) -> list[str]:
    """Return, in a project with a model, a list of what is run."""
    onnx.save(data.model(), toy / "m.onnx")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    seen: list[str] = []

    def noted(*words: Any, **more: Any) -> list[Judged]:
        seen.append("ran")
        return run_models(*words, **more)

    monkeypatch.setattr("harness.models.checking.run_models", noted)
    return seen


def check(*words: str, model: str = "m.onnx") -> int:
    return main(["check", model, "--target", NOT_HERE, *words])


def test_cases_that_were_named_are_loaded_before_anything_runs(ran: list[str], capsys: Capture) -> None:
    Path("theirs").mkdir()
    Path("theirs/tool.py").write_text("import nobody_has_this")
    for folder, said in (
        ("theirs", "theirs/tool.py:1: cannot be imported: ModuleNotFoundError"),
        ("nowhere", "nowhere: no such folder of cases"),
    ):
        assert check("--cases", folder) == 2
        assert said in capsys.readouterr().err
    assert ran == []


def test_cases_that_were_only_found_cost_the_hints_when_they_are_another_tool_s(
    ran: list[str], capsys: Capture
) -> None:
    assert check() == 3
    with_hints = capsys.readouterr().out.splitlines()
    Path("cases/tool.py").write_text("import nobody_has_this")
    assert check() == 3
    assert ran == ["ran", "ran"]
    said = capsys.readouterr()
    without = [line for line in said.out.splitlines() if line not in with_hints]
    (line,) = without
    assert line.startswith("no hints")
    assert line.endswith("names another folder")
    assert said.err == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--html", "m.onnx/page"), "give another folder with --html"),
        (("--json", "cases"), "--json cases: is a folder; name a file in it"),
        (("--json", "nowhere/out.json"), "--json nowhere/out.json: cannot be written: No such file"),
        (
            ("--output", "nowhere/x.onnx", "--try-workarounds"),
            "--output nowhere/x.onnx: cannot be written",
        ),
        (
            ("--output", "m.onnx", "--try-workarounds"),
            "--output m.onnx: is the model itself; give another file",
        ),
        (("--flag", "INT88"), "--flag names the builder flag 'INT88', which no version of TensorRT has"),
        (("--jobs", "0"), "'0' is no whole number from 1"),
    ],
)
def test_what_cannot_be_written_or_asked_is_refused_before_anything_runs(
    ran: list[str], capsys: Capture, words: tuple[str, ...], said: str
) -> None:
    assert check(*words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
    assert ran == []


def test_a_report_may_be_made_in_the_folder_that_the_same_command_makes(ran: list[str]) -> None:
    """And what was only to be tried beforehand is not there afterwards."""
    words = ("--output", "new.onnx", "--try-workarounds", "--json", "page/out.json", "--html", "page")
    assert check(*words) == 3
    assert ran == ["ran"]
    assert Path("page/out.json").read_bytes() == Path("page/results.json").read_bytes()
    assert not Path("new.onnx").exists()


def test_what_nvidia_s_table_lacks_counts_as_not_built_and_is_in_json_and_page(
    ran: list[str], capsys: Capture
) -> None:
    onnx.save(data.model("BitwiseNot", number=onnx.TensorProto.INT32, opset=18), "m.onnx")
    assert check("--json", "out.json", "--html", "page") == 1
    said = capsys.readouterr().out
    assert "blocked    trt86" in said
    assert "opset 18 is above 17" in said
    results = json.loads(Path("out.json").read_bytes())
    schema = json.loads(Path("page/results.schema.json").read_bytes())
    assert not list(jsonschema.Draft202012Validator(schema).iter_errors(results))
    assert "blocked (BitwiseNot 'node_of_y':" in unpacked(Path("page/index.html").read_text())
    (cell,) = results["cells"]
    assert (cell["basis"], cell["class"], cell["stands"]) == ("listed", "not_run", "parse_failed")
    assert cell["static"] == {
        "state": "blocked",
        "node": "node_of_y",
        "operator": "BitwiseNot",
        "restriction": "no importer",
        "first": None,
    }
    assert check("--fail-on", "none") == 3
    assert ran == ["ran"] * 2


@pytest.mark.parametrize(("operator", "code"), [("Relu", 2), ("BitwiseNot", 1)])
def test_of_several_models_one_that_is_none_costs_its_own_line(
    ran: list[str], capsys: Capture, operator: str, code: int
) -> None:
    Path("empty.onnx").write_bytes(onnx.ModelProto(ir_version=8).SerializeToString())
    onnx.save(data.model(operator, number=onnx.TensorProto.INT32, opset=18), "m.onnx")
    words = ("--target", NOT_HERE, "--json", "out.json")
    assert main(["check", "empty.onnx", "m.onnx", *words]) == code
    said = capsys.readouterr().out
    assert "not checked: empty.onnx:" in said
    assert "m.onnx: 1 node" in said
    (cell,) = json.loads(Path("out.json").read_bytes())["cells"]
    assert cell["variant"] == "m"
    assert main(["check", "none.onnx", "empty.onnx", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "none.onnx: cannot be" in line
    assert "empty.onnx: has no node" in line
    assert ran == ["ran"]


def test_a_flag_that_a_version_no_longer_has_is_said_to_have_no_effect(
    ran: list[str], capsys: Capture
) -> None:
    """An engine would be built all the same, in FP32."""
    words = ("--target", "trt1016", "--target", "trt110", "--matrix", str(ROOT / "matrix.yaml"))
    assert check("--flag", "FP16", *words) == 3
    assert "effect on trt110:" in capsys.readouterr().out
    assert check("--flag", "FP16", "--typing", "weak", *words) == 3
    assert check(*words) == 3
    assert "no effect" not in capsys.readouterr().out
    assert len(ran) == 3


@pytest.mark.usefixtures("ran")
def test_a_model_without_types_is_told_what_it_loses_where_no_flag_gives_any(
    capsys: pytest.CaptureFixture[str],
) -> None:
    step = ("--matrix", str(ROOT / "matrix.yaml"), "--from", "trt106", "--to")
    for words, told in (((*step, "trt114"), 1), ((*step, "trt1016"), 0)):
        main(["check", "m.onnx", *words])
        assert capsys.readouterr().out.count("trt-compat convert m.onnx --as") == told


def test_what_fails_with_made_up_sizes_is_not_known_until_they_are_given(
    toy: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    """A parser sees no sizes: what it refuses is the model's. So is what fails with sizes that the model can have."""
    model = data.model()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "t"
    onnx.save(model, toy / "sound.onnx")
    model.graph.node[-1].output[0] = "whole"
    model.graph.initializer.append(numpy_helper.from_array(np.array([-1, 7]), "rows"))
    model.graph.node.append(helper.make_node("Reshape", ["whole", "rows"], ["y"]))
    model.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(model, toy / "m.onnx")
    phase = "build"

    def failing(cells: list[Cell], *_: object, **__: object) -> list[Judged]:
        fields = {"state": "done", "end": End("finished"), "failed_phase": phase, "error": "mismatched sizes"}
        made = (Outcome(each.id, "model", "m", each.target.name, **fields) for each in cells)  # type: ignore[arg-type]
        return [judge_cell(*pair) for pair in zip(cells, made, strict=True)]

    monkeypatch.setattr("harness.models.checking.run_models", failing)
    words = ("--no-blockers",)
    assert check(*words) == 3
    said = capsys.readouterr().out
    assert "made up" in said
    assert "--shapes x:16" in said
    assert check(*words, "--fail-on", "none") == 0
    capsys.readouterr()
    assert check(*words, "--shapes", "x:14") == 1
    assert check(*words, model="sound.onnx") == 1
    assert "made up" not in capsys.readouterr().out
    phase = "parse"
    assert check(*words) == 1
    assert "made up" not in capsys.readouterr().out


def test_a_check_that_is_interrupted_reports_what_it_has(
    ran: list[str], monkeypatch: Patch, capsys: Capture
) -> None:
    def interrupted(cells: list[Cell], *_: object, sink: Store, **__: object) -> list[Judged]:
        sink.append(Outcome.blank(cells[0], "not_run", "no GPU"))
        raise KeyboardInterrupt

    monkeypatch.setattr("harness.models.checking.run_models", interrupted)
    assert check("--html", "out", "--json", "out.json") == 130
    assert Path("out/index.html").is_file()
    assert [each["class"] for each in json.loads(Path("out.json").read_text())["cells"]] == ["not_run"]
    assert (ran, "interrupted" in capsys.readouterr().err) == ([], True)


def test_whether_a_file_can_be_written_is_asked_without_touching_it(tmp_path: Path) -> None:
    """Were a pipe opened and closed, whoever reads it would take that for the end."""
    (tmp_path / "old").write_text("old")
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    for name in ("old", "pipe"):
        writable_file(tmp_path / name, "--json")
    assert (tmp_path / "old").read_text() == "old"
    heard = select.poll()
    heard.register(reader, select.POLLHUP)
    assert heard.poll(0) == []
    os.close(reader)


def test_a_folder_stands_for_its_models_and_the_last_line_says_what_decides(
    ran: list[str], capsys: Capture
) -> None:
    for name in ("models/one.onnx", "models/deep/one.onnx"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        onnx.save(data.model(), name)
    assert check("--json", "out.json", model="models") == 3
    assert ran == ["ran"]
    said = capsys.readouterr().out.splitlines()
    assert {"models/one.onnx", "models/deep/one.onnx"} <= {line.partition(": ")[0] for line in said}
    assert (said[-1].partition(":")[0], said[-1].endswith(NOT_HERE)) == ("not decided", True)
    cells = [cell for cell in json.loads(Path("out.json").read_text())["cells"] if cell["target"] == NOT_HERE]
    assert {cell["variant"] for cell in cells} == {"one", "deep-one"}
    Path("empty").mkdir()
    assert check(model="empty") == 2


def test_a_way_round_is_sought_for_a_target_that_does_not_run(ran: list[str], capsys: Capture) -> None:
    """Read by 8.6 the Reduce leaves no second axis for TopK; at opset 17 its axes are an attribute."""
    value, node = helper.make_tensor_value_info, helper.make_node
    nodes = [
        node("ReduceMax", ["x", "axes"], ["r"], name="reduce", keepdims=0),
        node("TopK", ["r", "k"], ["v", "i"], name="topk", axis=1),
    ]
    stored = [numpy_helper.from_array(np.array([each]), name) for each, name in ((-1, "axes"), (5, "k"))]
    outputs = [value("v", 1, [1, 5]), value("i", 7, [1, 5])]
    graph = helper.make_graph(nodes, "g", [value("x", 1, [1, 100, 3])], outputs, stored)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), "m.onnx")
    assert check("--try-workarounds", "-o", "made.onnx") == 1
    assert ran == ["ran"]
    said = capsys.readouterr().out
    assert re.search(r"blocked +trt86\n +TopK 'topk'", said)
    assert re.search(r"opset-17: .*clear in NVIDIA's tables\) \(the best\).*all outputs the same", said)
    assert onnx.load("made.onnx").opset_import[0].version == 17
    assert check(model="made.onnx") == 3
    assert "clear      trt86" in capsys.readouterr().out
