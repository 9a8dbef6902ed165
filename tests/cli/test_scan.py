"""`scan` on the command line: exit codes and forms of the answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli import main

pytestmark = pytest.mark.unit

CODE = """import tensorrt as trt
config.set_flag(trt.BuilderFlag.FP16)
if hasattr(trt, "ResizeMode"):
    trt.ResizeMode
"""


@pytest.fixture
def code(tmp_path: Path) -> str:
    path = tmp_path / "code.py"
    path.write_text(CODE, encoding="utf-8")
    return str(path)


def test_the_exit_code_tells_whether_something_breaks(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scan", code, "--to", "11.4"]) == 1
    told = capsys.readouterr().out
    assert f"{code}:2: BuilderFlag.FP16 is" in told
    assert "ResizeMode" not in told
    assert "1 more guarded" in told
    # What 11 wants instead of the precision, with NVIDIA's page.
    assert "Q/DQ" in told
    assert "https://docs.nvidia.com/" in told.splitlines()[-1]
    assert main(["scan", code, "--to", "10.16"]) == 0
    assert "Q/DQ" not in capsys.readouterr().out


def test_without_a_version_the_targets_that_can_run_it_are_told(
    code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scan", code]) == 0
    row = {
        line.partition(": ")[0]: line.partition(": ")[2].split()
        for line in capsys.readouterr().out.splitlines()
    }
    assert {"trt86", "trt100", "trt1016", "l4t86"} <= {*row["runs on"]}
    assert {"trt110", "trt114", "l4t114"} <= {*row["not on"]}
    assert not any(name.startswith(("rtx", "ort")) for name in (*row["runs on"], *row["not on"]))


def test_json_has_every_finding(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scan", code, "--to", "11.4", "--json", "--guarded"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [(each["name"], each["line"], each["guarded"]) for each in told["findings"]] == [
        ("BuilderFlag.FP16", 2, False),
        ("ResizeMode", 4, True),
    ]
    assert told["files"] == 1


def test_sarif_has_a_result_a_use(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scan", code, "--to", "11.4", "--sarif"]) == 1
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    (result,) = run["results"]
    assert result["level"] == "error"
    assert result["ruleId"] in {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    place = result["locations"][0]["physicalLocation"]
    assert place["region"] == {"startLine": 2, "startColumn": 33}
    assert place["artifactLocation"]["uri"] == code


def test_markdown_is_a_table(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scan", code, "--to", "11.4", "--markdown"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].count("|") == lines[2].count("|") == 5
    assert "`BuilderFlag.FP16`" in lines[2]


@pytest.mark.parametrize(
    "words", [["--to", "new"], ["--to", "12.0"], ["--from", "11.0", "--to", "8.6"], ["--to", "11", "x"]]
)
def test_a_wrong_version_is_one_sentence(
    words: list[str], code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scan", code, *words]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_what_the_sources_do_not_reach_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.cpp"
    path.write_text("#include <NvInfer.h>\nauto f = nvinfer1::BuilderFlag::kTF32;\n", encoding="utf-8")
    assert main(["scan", str(path), "--to", "11.4"]) == 0
    assert "known up to 11.1.0" in capsys.readouterr().out
    assert main(["scan", str(path), "--to", "11.1"]) == 0
    assert "known up to" not in capsys.readouterr().out


def test_what_the_bindings_do_not_tell_of_9_is_said(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scan", code, "--to", "9.2"]) == 0
    assert "not known of 9.2" in capsys.readouterr().out
