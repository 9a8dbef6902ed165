"""`check` on real engines: a line a target, what is lost, exit codes, the page; blockers, floats, workarounds."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from harness.case import load_cases
from harness.cli import main
from tests import needs
from tests.integration.runs import ROOT
from tests.models import data
from tests.models.embedded import blocked, classifier, network, products

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def quantised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a quantised convolution, as a user has it: under a name with a space."""
    (case,) = (each for each in load_cases(ROOT / "cases") if each.name == "depthwise_qdq")
    (variant,) = (each for each in case if each.name == "qdq")
    path = tmp_path_factory.mktemp("own models") / "My Net.onnx"
    path.write_bytes(variant.model_bytes())
    return path


def check(*words: object) -> int:
    return main(["check", "--matrix", str(ROOT / "matrix.yaml"), "--via", "venv", *map(str, words)])


@pytest.mark.contract
def test_an_own_model_from_one_version_to_the_next(
    quantised: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """To a generation that computes it in FP32: lost, named, and red; the other way nothing gets worse."""
    needs.network()
    page, found = tmp_path / "page", tmp_path / "out.json"
    assert check(quantised, "--from", "rtx17", "--to", "rtx17-sm75", "--html", page, "--json", found) == 1
    said = capsys.readouterr().out
    assert "run in INT8" in said
    assert "INT8 1/1" in said
    assert "rtx17 to rtx17-sm75:" in said
    assert "node_of_output: int8 ->" in said
    assert (page / "index.html").is_file()
    cells = {each["target"]: each["class"] for each in json.loads(found.read_text())["cells"]}
    assert cells == {"rtx17": "built", "rtx17-sm75": "precision_lost"}
    assert check(quantised, "--from", "rtx17-sm75", "--to", "rtx17") == 0
    assert check(quantised, "--from", "rtx17", "--to", "rtx17-sm75", "--fail-on", "build") == 0


def test_a_refusal_is_told_with_its_cause_its_node_and_what_to_do(
    quantised: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the other target cannot run here a sentence says so, and the code is that of infrastructure."""
    needs.network()
    assert check(quantised, "--target", "rtx16", "--target", "ort131", "--target", "l4t103") == 1
    said = capsys.readouterr().out
    assert "l4t103, which is" in said
    assert "Conv node 'node_of_output'" in said
    assert "Upgrade to 1.7" in said
    assert check(quantised, "--from", "ort131", "--to", "l4t86") == 3
    assert "known, for l4t86" in capsys.readouterr().out


@pytest.mark.contract
def test_where_it_cannot_run_the_reports_of_its_patterns_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An engine that builds here and is reported not to run; a Jetson that is not at hand."""
    needs.network()
    models = {case.name: {each.name: each for each in case} for case in load_cases(ROOT / "cases")}
    for case, name in (("turing", "gemm-fp32"), ("conv_silu", "tail-fp32")):
        (tmp_path / f"{name}.onnx").write_bytes(models[case][name].model_bytes())
    words = (tmp_path / "gemm-fp32.onnx", tmp_path / "tail-fp32.onnx", "--cases", ROOT / "cases")
    assert check(*words, "--target", "rtx16-sm75", "--target", "l4t86") == 0
    said = capsys.readouterr().out
    assert "turing.gemm-fp32" in said
    assert re.search(r"reported +rtx16-sm75\n.*fails to load \(reported by NVIDIA\b.*\) https://", said)
    # The reports of this pattern are of calibrators.
    assert re.search(r"tail-fp32.onnx: clear +l4t86", said)
    (given,) = onnx.load(words[1]).graph.input
    shape = [each.dim_value for each in given.type.tensor_type.shape.dim]
    arrays: dict[str, Any] = {given.name: np.ones([2, *shape], np.float32)}
    np.savez(tmp_path / "batches.npz", **arrays)
    calibrated = (words[1], "--cases", ROOT / "cases", "--calibration", tmp_path / "batches.npz")
    check(*calibrated, "--target", "l4t86")
    said = capsys.readouterr().out
    assert "'/model.23/proto/cv1/conv/Conv' and 2" in said
    assert re.search(r"reported +l4t86\n.*fails to build \(reported by users\b.*\) https://", said)
    assert check(*words, "--from", "rtx17-sm75", "--to", "rtx17", "--no-blockers") == 0
    assert "gemm-fp32.onnx: from rtx17-sm75" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--from", "rtx17"), "--from names one side; name the other with --to"),
        (("--from", "rtx17", "--to", "rtx17"), "--from and --to are both rtx17; name two targets"),
        (("--target", "rtx71"), "no target 'rtx71'; did you mean 'rtx17'?"),
        (("--fail-on", "bild"), "'bild' is nothing to fail on; did you mean 'build'?"),
        (("--want", "nothing"), "invalid choice: 'nothing'"),
        (("--inputs", "none.npz"), "--inputs none.npz: cannot be read"),
    ],
)
def test_mistakes_are_one_sentence_each(
    quantised: Path, words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(quantised, *words) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert len(error.strip().splitlines()) == 1


@pytest.mark.contract
def test_a_model_without_a_reference_is_held_to_onnx_runtime_without_optimisations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    needs.network()
    model = data.model("FastGelu")
    model.graph.node[0].domain = "com.microsoft"
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    found = tmp_path / "out.json"
    assert check(tmp_path / "m.onnx", "--target", "ort131", "--json", found) == 0
    said = capsys.readouterr().out
    assert "ONNX Runtime without" in said
    assert "numbers not compared" not in said
    (cell,) = json.loads(found.read_text())["cells"]
    assert [each["max_abs"] for each in cell["accuracy"]] == [0]


@pytest.mark.contract
def test_how_far_outputs_may_be_off_is_the_user_s_to_say(
    quantised: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By default it goes by precision; given, by the figure, be it stricter (0) or laxer (0.06)."""
    needs.network()
    assert check(quantised, "--target", "ort131", "--fail-on", "numbers") == 0
    assert check(quantised, "--target", "ort131", "--fail-on", "numbers", "--max-rel", 0) == 1
    assert "(int8 may be off by 0)" in capsys.readouterr().out
    plain, x = tmp_path / "relu.onnx", np.array([1, 2], np.float32)
    plain.write_bytes(data.model().SerializeToString())
    np.savez(tmp_path / "in.npz", x=x)
    np.savez(tmp_path / "out.npz", y=1.05 * x)
    given = (plain, "--inputs", tmp_path / "in.npz", "--expected", tmp_path / "out.npz", "--target", "ort131")
    assert check(*given, "--fail-on", "numbers") == 1
    assert check(*given, "--fail-on", "numbers", "--max-rel", "0.06") == 0
    assert check(*given, "--fail-on", "numbers", "--max-rel", "0.06", "--cosine", "1") == 0
    for words, said in (
        (("--max-rel", "-1"), "-1.0 is no max-rel"),
        (("--cosine", "nan"), "nan is no cosine"),
    ):
        assert check(*given, *words) == 2
        assert said in capsys.readouterr().err


def checked(model: onnx.ModelProto, path: Path, *words: object) -> int:
    needs.network()
    onnx.save(model, path)
    return main(
        ["check", str(path), "--matrix", str(ROOT / "matrix.yaml"), "--via", "venv", *map(str, words)]
    )


@pytest.mark.contract
def test_all_blockers_are_told_in_one_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "blocked.onnx"
    assert checked(blocked(), path, "--target", "rtx17") == 1
    said = capsys.readouterr().out
    assert f"{path} on rtx17: blockers\n" in said
    assert "DequantizeLinear: /second/bias/DequantizeLinear: int32-bias:" in said
    assert "TopK: /TopK: after" in said
    assert "ConvTranspose: /up/ConvTranspose: after" in said
    assert "the rest builds" in said
    assert checked(blocked(), path, "--target", "rtx17", "--no-blockers") == 1
    assert "the rest builds" not in capsys.readouterr().out


@pytest.mark.contract
def test_named_nodes_are_left_in_float(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, left = tmp_path / "up.onnx", tmp_path / "left.onnx"
    model = network("deconvolution", depth=4)
    report = tmp_path / "report"
    words = ("--target", "rtx17", "--leave-float", "/up/ConvTranspose", "--output", left)
    assert checked(model, path, *words, "--json", tmp_path / "out.json", "--html", report) == 1
    (entry,) = json.loads((tmp_path / "out.json").read_text())["further"]
    assert entry["leave_float"]["helps"]
    assert 'id="further"' in (report / "index.html").read_text()
    said = capsys.readouterr().out
    assert "quantised nodes: /up/ConvTranspose:" in said
    assert f"written: {left}" in said
    assert checked(onnx.load(left), left, "--target", "rtx17", "--leave-float", "/back0b/Conv") == 0
    assert "builds, INT8 3/3" in capsys.readouterr().out


@pytest.mark.contract
def test_what_no_layer_tells_of_is_worth_a_workaround(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The product dequantises first, in a kernel that does not say so: nothing is lost, and nothing is known."""
    assert checked(products(), tmp_path / "m.onnx", "--target", "rtx17", "--try-workarounds") == 0
    said = capsys.readouterr().out
    assert "these ran: /joined/MatMul" in said
    assert "builds, INT8 3/3" in said


@pytest.mark.contract
def test_a_workaround_is_found_measured_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, better = tmp_path / "concat.onnx", tmp_path / "better.onnx"
    words = ("--target", "rtx17", "--try-workarounds", "--output", better)
    assert checked(network("concat", depth=4), path, *words) == 1
    said = capsys.readouterr().out
    title = "concat-after: Q/DQ behind a Concat of unlike scales in place of its inputs"
    assert f"{title}: builds, INT8 7/7 (1 more in what it is asked to) (the best)" in said
    assert "; outputs off by 0.0" in said
    assert f"written: {better}" in said
    assert checked(onnx.load(better), better, "--target", "rtx17", "--try-workarounds") == 0
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
    assert checked(classifier(), tmp_path / "x.onnx", *words) == 2
    assert sentence in capsys.readouterr().err
