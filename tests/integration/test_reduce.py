"""`reduce` and `bisect` on real engines, in virtual environments."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from harness.case import load_cases
from harness.cli import main
from tests import needs
from tests.integration.runs import ROOT
from tests.models.embedded import amid

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a quantised depthwise convolution amid 55 other nodes."""
    (case,) = (each for each in load_cases(ROOT / "cases") if each.name == "depthwise_qdq")
    (variant,) = (each for each in case if each.name == "qdq")
    path = tmp_path_factory.mktemp("own") / "net.onnx"
    onnx.save(amid(variant.build(), 60), path)
    return path


def trt_compat(verb: str, *words: object) -> int:
    return main([verb, *map(str, words), "--matrix", str(ROOT / "matrix.yaml"), "--via", "venv"])


@pytest.mark.contract
def test_a_network_is_reduced_to_what_fails_and_twice_to_the_same(
    network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The convolution and what dequantises for it are left; the same failure, the same bytes."""
    needs.network()
    out = tmp_path / "small.onnx"
    assert trt_compat("reduce", network, "--target", "rtx16", "-o", out) == 0
    said = capsys.readouterr().out
    assert "(no-int8-convolution at Conv)" in said
    first = out.read_bytes()
    assert [node.op_type for node in onnx.load(out).graph.node] == [
        "DequantizeLinear",
        "DequantizeLinear",
        "Conv",
    ]
    assert trt_compat("check", out, "--target", "rtx16") == 1
    assert "no-int8-convolution Conv" in capsys.readouterr().out
    assert trt_compat("reduce", network, "--target", "rtx16", "-o", out) == 0
    assert out.read_bytes() == first


@pytest.mark.contract
def test_what_is_off_by_more_than_the_user_allows_is_kept(
    network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line to try it allows as much."""
    needs.network()
    small = tmp_path / "small.onnx"
    assert trt_compat("reduce", network, "--target", "ort131", "--max-rel", 0, "-o", small) == 0
    said = capsys.readouterr().out
    assert "off) on ort131" in said
    assert "ort131 --max-rel 0.0" in said
    assert len(onnx.load(small).graph.node) == 1


@pytest.mark.contract
def test_a_model_is_bisected_over_versions(network: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The convolution has INT8 from 1.7 on; 1.7 is newer, so that it is the first good one."""
    needs.network()
    assert trt_compat("bisect", network, "--good", "rtx17", "--bad", "rtx15", "--symptom", "signature") == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-2] == "first good: rtx17 (1.7.1.116), last bad: rtx16 (1.6.1.120)"
    assert json.loads(said[-1]) == {"last_bad": "rtx16", "first_good": "rtx17", "skipped": []}
    assert trt_compat("bisect", network, "--good", "rtx15", "--bad", "rtx16") == 1
    assert "give the same" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("reduce",), "the following arguments are required: --target"),
        (("reduce", "--target", "rtx71"), "no target 'rtx71'; did you mean 'rtx17'?"),
        (("reduce", "--target", "rtx17", "--seconds", "0"), "'0' is no whole number from 1"),
        (("bisect", "--good", "rtx17", "--bad", "ort131"), "are of another engine"),
        (("bisect", "--good", "rtx14", "--bad", "rtx17", "--symptom", "int8:/conv"), "has no node '/conv'"),
    ],
)
def test_mistakes_are_one_sentence_each(
    network: Path, words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert trt_compat(words[0], network, *words[1:]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert len(error.strip().splitlines()) == 1
