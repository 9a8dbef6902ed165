"""A suite on real engines: a score of ONNX's node tests, and a folder of models, by both front doors."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper

from harness.cli import main
from harness.record.store import Store
from harness.report.model import load_results
from harness.words import UNJUDGED
from tests import needs
from tests.integration.runs import ROOT
from tests.models import data

pytestmark = pytest.mark.integration

#: A score of models: what works everywhere, and each way not to.
CHOSEN = " or ".join([
    *(f".{name}-" for name in ("abs", "relu", "gelu_default_1", "conv_with_strides_padding", "matmul_2d", "top_k")),
    *(".softmax_example-", ".lstm_defaults-", ".if_seq-", ".resize_upsample_sizes_cubic-", ".bernoulli-"),
    *("bitshift_left_uint8", "add_uint16", ".qlinearconv-", "unique_sorted_with_axis", "attention_4d_softcap"),
    *("sequence_insert", ".string_concat-", "optional_get_element_tensor"),
])  # fmt: skip


def places(reports: Path) -> list[str]:
    return ["--matrix", str(ROOT / "matrix.yaml"), "--cases", str(ROOT / "cases"), "--reports", str(reports)]


def ended(reports: Path, name: str, target: str) -> dict[str, str]:
    cells = load_results(reports / "suites" / name).cells
    return {cell.variant: cell.cls for cell in cells if cell.target == target and cell.cls not in UNJUDGED}


@pytest.mark.long
def test_node_tests_on_two_engines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Built by one and run by the other, strongly typed; and again."""
    needs.network()
    words = ["run", "--suite", "onnx-node", "--via", "venv", "-k", CHOSEN, *places(tmp_path)]
    assert main([*words, "--target", "rtx17", "--target", "ort131"]) == 0, capsys.readouterr().out
    rtx, ort = ended(tmp_path, "onnx-node", "rtx17"), ended(tmp_path, "onnx-node", "ort131")
    assert len(rtx) == len(ort) > 18
    plain = ("abs", "relu", "conv_with_strides_padding", "matmul_2d")
    assert {rtx[name] for name in plain} == {"built"}
    assert {ort[name] for name in plain} == {"ok"}
    assert (rtx["top_k"], ort["top_k"]) == ("build_failed", "ok"), (
        "its K is an input, and there is no profile"
    )
    assert (rtx["add_uint16"], ort["add_uint16"]) == ("parse_failed", "ok")
    assert (rtx["string_concat"], ort["string_concat"]) == ("parse_failed", "built")
    assert "infra_error" not in {*rtx.values(), *ort.values()}
    kept = {each.cell: each for each in Store(tmp_path / "suites" / "onnx-node").outcomes()}
    assert list(kept["abs.abs-ort131"].phases) == ["parse", "build", "run"], "nothing is timed"
    assert main([*words, "--target", "ort131"]) == 0
    capsys.readouterr()


@pytest.mark.contract
def test_a_folder_of_models_and_one_that_no_longer_works(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`diff` with the report of the run before tells what became of it."""
    needs.network()
    folder, reports = data.three(tmp_path / "mine"), tmp_path / "reports"
    words = ["run", "--suite", str(folder), "--via", "venv", "--target", "ort131", *places(reports)]
    assert main(words) == 0
    assert ended(reports, "mine", "ort131") == {"works": "ok", "wrong": "inaccurate", "odd": "parse_failed"}
    wanted = numpy_helper.from_array(np.array([1, 1], np.float32))
    (folder / "Works" / "test_data_set_0" / "output_0.pb").write_bytes(wanted.SerializeToString())
    shutil.copytree(reports / "suites" / "mine", tmp_path / "before")
    assert main(words) == 0
    assert main(["diff", str(tmp_path / "before"), str(reports / "suites" / "mine")]) == 1
    assert "works" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--suite", "onnx-nod"], 2, "error: no suite 'onnx-nod', and no folder; did you mean 'onnx-node'?"),
        (["--suite", "{folder}", "-k", "none"], 2, "-k 'none' matches no model of mine"),
        (["--suite", "{folder}", "--target", "rtx18"], 2, "rtx18"),
        (
            ["--suite", "{folder}", "--target", "ort131", "--require", "rtx17"],
            2,
            "--require rtx17: the selection holds no cell of that target",
        ),
    ],
)
def test_a_mistake_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, says: str
) -> None:
    folder = data.three(tmp_path / "mine")
    given = [word.format(folder=folder) for word in words]
    assert main(["run", *given, *places(tmp_path / "reports")]) == code
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1
    assert not (tmp_path / "reports" / "suites").exists()


def test_a_target_that_cannot_run_here_is_told_once_and_not_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = data.three(tmp_path / "mine")
    words = ["run", "--suite", str(folder), "--target", "l4t86", *places(tmp_path / "reports")]
    assert main(words) == 3
    said = capsys.readouterr().out
    assert said.startswith("l4t86: not_run: needs")
    assert said.endswith("was selected ran\n")
    assert not list((tmp_path / "reports").glob("suites/*/records/*"))
