"""`check` gives one answer of a model on a target: on the terminal, as JSON, on the page, as CSV and in Python."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import onnx
import pytest
from onnx import TensorProto

import harness
from harness.case import load_cases
from harness.cli import main
from harness.judge.cell import Judged, judge_cell
from harness.layers.asked import asked
from harness.models.answers import Answer, Trouble
from harness.plan import Cell
from harness.record.outcome import Accuracy, End, Layer, Outcome, ParserError
from harness.run.local import Sink
from tests.fixtures import Capture, Patch
from tests.models import data
from tests.report.crawl import data_of

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
#: One with a table, one between two tables, one of a Jetson, two without tables; the last is held to no precision.
TARGETS = ("trt86", "trt106", "l4t86", "rtx17", "ort131")
MATRIX = ("--matrix", str(ROOT / "matrix.yaml"))
#: All that is to be printed of some model somewhere.
ENDS = {
    *("blocked", "restricted", "ignored", "reported", "clear", "unknown"),
    *("ok", "built", "precision_lost", "inaccurate", "parse_failed", "build_failed", "load_failed"),
    *("crashed", "timed_out", "out_of_memory", "api_removed"),
}
RIGHT, WRONG = Accuracy("y", 0.0, 0.0, 1.0), Accuracy("y", 9.0, 9.0, 0.1)
#: Fields of a record by a word.
RECORDS: dict[str, dict[str, Any]] = {
    "not here": {"state": "not_run", "reason": "needs a GPU that is not here"},
    "spoiled": {"state": "infra_error", "reason": "the daemon went away"},
    "works": {"ran": True, "accuracy": (RIGHT,)},
    "builds": {},
    "wrong": {"ran": True, "accuracy": (WRONG,)},
    "refused": {
        "failed_phase": "parse",
        "parser_errors": (ParserError("no such thing", "UNSUPPORTED_NODE", "node_of_y", "Relu"),),
    },
    "known cause": {
        "failed_phase": "build",
        "error": "Could not find any implementation for node node_of_y.",
    },
    "unbuilt": {"failed_phase": "build", "error": "nobody knows why"},
    "unloaded": {"failed_phase": "load", "error": "no such engine"},
    "lacking": {"missing_api": "BuilderFlag.INT8"},
    "crashed": {"failed_phase": "build", "end": End("signalled", "killed by SIGSEGV", signal="SIGSEGV")},
    "late": {"failed_phase": "build", "end": End("timed_out", "not finished after 1 s")},
    "large": {"failed_phase": "build", "end": End("out_of_memory", "a limit")},
}


def quantised() -> onnx.ModelProto:
    """Return a model that loses its precision on 8.6, as was measured."""
    (case,) = (each for each in load_cases(ROOT / "cases") if each.name == "qdq_shapes")
    (variant,) = (each for each in case if each.name == "up3d")
    return onnx.load_model_from_string(variant.model_bytes())


def scattered() -> onnx.ModelProto:
    """Return a sum that the importers of 8.6 do not make."""
    value = onnx.helper.make_tensor_value_info
    node = onnx.helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], reduction="add")
    inputs = [value("x", 1, [2]), value("i", TensorProto.INT64, [2]), value("u", 1, [2])]
    graph = onnx.helper.make_graph([node], "g", inputs, [value("y", 1, [2])])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8)


def drawn_at_random() -> onnx.ModelProto:
    """Return a model of which the table says that its seed is ignored."""
    model = data.model("RandomNormalLike")
    model.graph.node[0].attribute.append(onnx.helper.make_attribute("seed", 1.0))
    return model


#: By its name each model, and what becomes of it on each of `TARGETS`.
MODELS: dict[str, tuple[Callable[[], onnx.ModelProto], tuple[str, ...]]] = {
    "good": (data.model, ("works", "builds", "not here", "works", "works")),
    "blocked": (lambda: data.model("BitwiseNot", number=TensorProto.INT32, opset=18), ("not here",) * 5),
    "restricted": (drawn_at_random, ("not here",) * 5),
    "ignored": (scattered, ("not here", "not here", "not here", "builds", "works")),
    "reported": (quantised, ("not here", "builds", "not here", "builds", "works")),
    "refused": (data.model, ("refused", "known cause", "not here", "unbuilt", "works")),
    "ended": (data.model, ("crashed", "late", "not here", "large", "unloaded")),
    "wrong": (data.model, ("wrong", "lacking", "not here", "wrong", "wrong")),
    "spoiled": (data.model, ("spoiled", "not here", "not here", "spoiled", "spoiled")),
    "hopeless": (
        lambda: data.model("BitwiseNot", number=TensorProto.INT32, opset=18),
        ("spoiled", "not here", "refused", "not here", "works"),
    ),
}


@pytest.fixture
def told(toy: Path, monkeypatch: Patch) -> list[str]:
    """Make up what becomes of `MODELS`, which lie in the current folder; return their files."""
    for file in ("qdq_shapes.py", "measured.yaml"):
        shutil.copy(ROOT / "cases" / file, toy / "cases")
    for name, (make, _) in MODELS.items():
        onnx.save(make(), toy / f"{name}.onnx")

    def made_up(
        cells: list[Cell],
        *_: object,
        sink: Sink | None = None,
        tell: Callable[[Judged], None] = lambda _: None,
    ) -> list[Judged]:
        found = []
        for cell in cells:
            outcome = record(cell)
            found.append(judge_cell(cell, sink.append(outcome) if sink else outcome))
            tell(found[-1])
        return found

    monkeypatch.setattr("harness.models.checking.run_models", made_up)
    return [f"{name}.onnx" for name in MODELS]


def record(cell: Cell) -> Outcome:
    """Return the record of a cell; what was built ran in FP32, whatever it was to run in."""
    _, ends = MODELS[cell.variant.name]
    fields = {"state": "done", "end": End("finished"), **RECORDS[ends[TARGETS.index(cell.target.name)]]}
    nodes = asked(onnx.load_model_from_string(cell.variant.model_bytes()))
    engine = fields["state"] == "done" and not {"failed_phase", "missing_api"} & fields.keys()
    layers = tuple(Layer(each.name, each.op, "fp32", onnx_nodes=(each.name,)) for each in nodes)
    blank = Outcome.blank(cell, "done", "")
    return replace(blank, **{"nodes": nodes, "layers": layers if engine else (), **fields})


def on_the_terminal(text: str) -> dict[tuple[str, str], str]:
    """Return the class or the static answer that is printed of each model and target."""
    found = {
        (model, target): cls
        for model, target, cls in re.findall(
            r"^(\w+)\.onnx: (\S+) +\d[\d.]+ +([a-z_]+)(?= |$)", text, re.MULTILINE
        )
    }
    for model, state, targets in re.findall(r"^  (\w+)\.onnx: (\w+) +(.*)$", text, re.MULTILINE):
        for target in targets.partition(", which")[0].split(", "):
            assert (model, target) not in found, "one answer"
            found[model, target] = state
    return found


def drawn(cell: dict[str, Any]) -> str:
    """Return how the page draws a cell of results.json: its own rule, in words."""
    if cell["class"] != "not_run":
        return str(cell["class"])
    return str(cell["static"]["state"]) if cell.get("basis") else "not_run"


def test_every_form_of_the_answer_says_the_same(told: list[str], capsys: Capture) -> None:
    """Class, cause and node of what ran, what the tables say of the rest, and what of it fails."""
    words = [word for name in TARGETS for word in ("--target", name)]
    code = main(["check", *told, *words, *MATRIX, "--json", "out.json", "--html", "page", "--no-blockers"])
    printed = on_the_terminal(capsys.readouterr().out)
    text = Path("out.json").read_text()
    schema = json.loads(Path("page/results.schema.json").read_bytes())
    assert not list(jsonschema.Draft202012Validator(schema).iter_errors(json.loads(text)))
    drawn_cells = data_of(Path("page/index.html").read_text())["cells"]
    # The page leaves out hashes of other files, and has lines by hand of its own.
    for on_page, whole in zip(drawn_cells, json.loads(text)["cells"], strict=True):
        mine = {key: value for key, value in on_page.items() if key != "by_hand"}
        assert {key: whole.get(key) for key in mine} == mine
    rows = csv.DictReader(io.StringIO(Path("page/results.csv").read_text()))
    table = {(row["variant"], row["target"]): row["class"] for row in rows}
    cells = {(each["variant"], each["target"]): each for each in json.loads(text)["cells"]}
    failing = False
    for name, file in zip(MODELS, told, strict=True):
        answer = harness.check(file, TARGETS, matrix=MATRIX[1], blockers=False)
        for found in answer.answers.values():
            place = name, found.target
            assert_same(found, cells[place], printed.get(place, ""))
            assert table[place] == found.judged.classification.cls
            failing |= bool(found.troubles & {Trouble.BUILD, Trouble.INT8_LOSS})
    assert {*printed.values()} >= ENDS
    assert (failing, code) == (True, 1)


def assert_same(answer: Answer, cell: dict[str, Any], printed: str) -> None:
    """Hold what is printed of a cell, and its entry in results.json, to its answer in Python."""
    own, static = answer.judged, answer.static
    cls = str(own.classification.cls)
    assert cell["class"] == cls
    assert cell.get("signature") == own.signature
    assert cell["static"]["state"] == static.state
    if answer.ran:
        assert printed == drawn(cell) == cls
    elif static.state == "unknown":
        assert printed in ("", "unknown")
    else:
        assert printed == static.state
        if cls == "not_run" and printed != "clear":
            assert drawn(cell) == printed
    if answer.blocked:
        assert (cell["basis"], cell["stands"]) == ("listed", "parse_failed")
