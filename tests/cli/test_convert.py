"""`convert` on the command line: the model, the table, exit codes; engines are asked in tests/integration."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from harness.case import Graph
from harness.case.explicit import Explicit
from harness.cli import main
from harness.convert.proof import Rebuilt
from harness.record.outcome import Accuracy, Layer
from tests.models import fake

pytestmark = pytest.mark.unit

LOG = """[V] [TRT] Engine Layer Information:
Layer(CaskConvolution): conv, Tactic: 0x2, x (Int8[1,8]) -> c (Int8[1,8])
Layer(PointWiseV2): PWN(act), Tactic: 0x3, c (Half[1,8]) -> a (Half[1,8])
"""
CACHE = "TRT-8601-EntropyCalibration2\nx: 3c010a14\n"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    g = Graph("small", opset=19)
    x = g.conv(g.input("x", [1, 8, 4, 4]), g.weight("w", (8, 8, 1, 1)), name="conv", kernel=1)
    g.output(g.node("Sigmoid", [x], name="act"), [1, 8, 4, 4])
    onnx.save(g.model(), tmp_path / "small.onnx")
    (tmp_path / "build.log").write_text(LOG)
    (tmp_path / "calib.cache").write_text(CACHE)
    return tmp_path / "small.onnx"


def called(model: Path, *words: str) -> int:
    return main(["convert", str(model), "-o", str(model.with_name("out.onnx")), "--on", "none", *words])


def test_a_model_is_typed_as_its_log_says(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, cache = str(model.with_name("build.log")), str(model.with_name("calib.cache"))
    assert called(model, "--as", log, "--calibration-cache", cache, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [(each["node"], each["ran"], each["typed"]) for each in told["nodes"]] == [
        ("conv", "int8", "int8"),
        ("act", "fp16", "fp16"),
    ]
    made = onnx.load(model.with_name("out.onnx"))
    onnx.checker.check_model(made, full_check=True)
    assert [node.op_type for node in made.graph.node][-1] == "Cast"


def test_a_node_that_ran_narrow_and_cannot_be_typed_so_is_told(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # There is no scale without the calibration cache.
    assert called(model, "--as", str(model.with_name("build.log"))) == 1
    (line,) = (each for each in capsys.readouterr().out.splitlines() if each.startswith("conv "))
    assert line.split()[1:6] == ["Conv", "ran", "int8", "now", "fp16"]


def test_without_a_log_rules_and_a_pattern_decide(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called(model, "--fp16", "--keep-fp32", "act", "--json") == 0
    nodes = {each["node"]: each["typed"] for each in json.loads(capsys.readouterr().out)["nodes"]}
    assert nodes == {"conv": "fp16", "act": "fp32"}


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--as", "no-such-cell"), "no-such-cell"),
        (("--as", "{folder}/small.onnx"), "small.onnx"),
        (("--as", "{folder}/build.log", "--calibration-cache", "{folder}/build.log"), "build.log"),
        (("--fp16", "--on", "trt86"), "trt86"),
        (("--fp16", "--on", "rtx99"), "rtx99"),
        (("--fp16", "-o", "{folder}"), "{folder}"),
        (("--fp16", "--keep-fp32", "nothing"), "nothing"),
        ((), "--as"),
    ],
)
def test_bad_input_is_one_sentence(
    model: Path, words: tuple[str, ...], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(model.parent)
    given = [each.format(folder=folder) for each in words]
    assert main(["convert", str(model), "-o", str(model.with_name("out.onnx")), *given]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("error: ")
    assert named.format(folder=folder) in error


def _layer(name: str, precision: str) -> Layer:
    return Layer(name=name, type="conv", precision=precision, onnx_nodes=(name,))


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, 0),
        ({"layers": (_layer("conv", "fp32"),)}, 1),
        ({"layers": (_layer("conv", "unknown"),)}, 0),
        (fake.unbuilt("no kernel"), 1),
        ({"ran": True, "accuracy": (Accuracy("y", 1.0, 1.0, 0.5, elements=9),)}, 1),
        ({"state": "not_run", "reason": "no GPU", "layers": (), "engine_bytes": None, "end": None}, 3),
    ],
)
def test_the_exit_code_is_that_of_what_an_engine_does(
    model: Path, monkeypatch: pytest.MonkeyPatch, fields: dict[str, object], code: int
) -> None:
    def rebuilt(_: object, made: Explicit, *__: object) -> list[Rebuilt]:
        return [Rebuilt(fake.judged(made.model, **fields), made.typed)]

    monkeypatch.setattr("harness.cli.convert.rebuilt", rebuilt)
    assert (
        main(["convert", str(model), "-o", str(model.with_name("out.onnx")), "--fp16", "--on", "rtx17"])
        == code
    )


def test_numbers_are_told_only_of_a_model_that_was_held_to_the_old_one(model: Path) -> None:
    accuracy = (Accuracy("y", 1.0, 1.0, 0.5, elements=9),)
    judged = fake.judged(onnx.load(model), ran=True, accuracy=accuracy)
    held, unheld = Rebuilt(judged, {}), Rebuilt(judged, {}, "the evaluator lacks Conv")
    assert (held.broken, "0.50000" in str(held)) == (True, True)
    assert (unheld.broken, str(unheld).endswith("the evaluator lacks Conv")) == (False, True)


def test_the_old_model_is_never_overwritten(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = model.read_bytes()
    assert main(["convert", str(model), "--fp16", "-o", str(model), "--on", "none"]) == 2
    assert "is the model itself" in capsys.readouterr().err
    assert model.read_bytes() == before


def test_a_cache_without_an_account_is_refused(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called(model, "--fp16", "--calibration-cache", str(model.with_name("calib.cache"))) == 2
    assert "--calibration-cache goes with --as" in capsys.readouterr().err
