"""`check` beyond the model as it is, on real engines: all blockers, nodes left in float, workarounds."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from harness.cli import main
from tests import needs
from tests.integration.runs import ROOT
from tests.models.embedded import blocked, classifier, network, products

pytestmark = pytest.mark.integration


def check(model: onnx.ModelProto, path: Path, *words: object) -> int:
    needs.network()
    onnx.save(model, path)
    return main(
        ["check", str(path), "--matrix", str(ROOT / "matrix.yaml"), "--via", "venv", *map(str, words)]
    )


@pytest.mark.contract
def test_all_blockers_are_told_in_one_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "blocked.onnx"
    assert check(blocked(), path, "--target", "rtx17") == 1
    said = capsys.readouterr().out
    assert f"{path} on rtx17: blockers\n" in said
    assert "DequantizeLinear: /second/bias/DequantizeLinear: int32-bias:" in said
    assert "TopK: /TopK: after" in said
    assert "ConvTranspose: /up/ConvTranspose: after" in said
    assert "the rest builds" in said
    assert check(blocked(), path, "--target", "rtx17", "--no-blockers") == 1
    assert "the rest builds" not in capsys.readouterr().out


@pytest.mark.contract
def test_the_fewest_nodes_are_left_in_float(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, left = tmp_path / "up.onnx", tmp_path / "left.onnx"
    model = network("deconvolution", depth=4)
    report = tmp_path / "report"
    words = ("--target", "rtx17", "--leave-float", "auto", "--output", left)
    assert check(model, path, *words, "--json", tmp_path / "out.json", "--html", report) == 1
    (entry,) = json.loads((tmp_path / "out.json").read_text())["further"]
    assert entry["leave_float"]["nodes"] == ["/up/ConvTranspose"]
    assert 'id="further"' in (report / "index.html").read_text()
    said = capsys.readouterr().out
    assert "quantised nodes: /up/ConvTranspose:" in said
    assert f"written: {left} (/up/ConvTranspose)" in said
    assert check(onnx.load(left), left, "--target", "rtx17", "--leave-float", "/back0b/Conv") == 0
    assert "builds, INT8 3/3" in capsys.readouterr().out


@pytest.mark.contract
def test_what_no_layer_tells_of_is_worth_a_workaround(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The product dequantises first, in a kernel that does not say so: nothing is lost, and nothing is known."""
    assert check(products(), tmp_path / "m.onnx", "--target", "rtx17", "--try-workarounds") == 0
    said = capsys.readouterr().out
    assert "these ran: /joined/MatMul" in said
    assert "builds, INT8 3/3" in said


@pytest.mark.contract
def test_a_workaround_is_found_measured_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, better = tmp_path / "concat.onnx", tmp_path / "better.onnx"
    words = ("--target", "rtx17", "--try-workarounds", "--output", better)
    assert check(network("concat", depth=4), path, *words) == 1
    said = capsys.readouterr().out
    title = "concat-after: Q/DQ behind a Concat of unlike scales in place of its inputs"
    assert f"{title}: builds, INT8 7/7 (1 more in what it is asked to) (the best)" in said
    assert "; outputs off by 0.0" in said
    assert f"written: {better} (concat-after)" in said
    assert check(onnx.load(better), better, "--target", "rtx17", "--try-workarounds") == 0
    assert "no workaround is needed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--leave-float", "/conv0"), "--leave-float '/conv0': is no quantised node of "),
        (("--output", "x.onnx"), "--output is for what one of --leave-float and --try-workarounds found"),
        (
            ("--output", "x.onnx", "--try-workarounds"),
            "--output is of one target; name it with --to or --target",
        ),
    ],
)
def test_mistakes_are_one_sentence_before_anything_runs(
    tmp_path: Path, words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(classifier(), tmp_path / "x.onnx", *words) == 2
    assert sentence in capsys.readouterr().err
