# ruff: noqa: E501  (code and answer stand on one line)
"""Uses in command lines, images, lists of packages and notebooks, and lines that are passed over."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path

import pytest

from harness.errors import HandledError
from harness.scan.files import reader_of, scanned
from harness.scan.uses import Remark
from tests.scan.said import findings, said

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("name", "code", "expected"),
    [
        ("build.sh", "trtexec --onnx=a --fp16", ["1 --fp16"]),
        ("build.sh", "/usr/src/tensorrt/bin/trtexec --onnx=a \\\n  --saveEngine=b \\\n  --workspace=1 && echo --int8", ["3 --workspace"]),
        ("build.sh", "# trtexec --fp16", []),
        ("build.sh", "other --fp16", []),
        ("Makefile", "all:\n\t$(TRT)/trtexec --best", ["2 --best"]),
        ("ci.yml", "run: trtexec --onnx=a --explicitBatch", ["1 --explicitBatch"]),
        ("tasks.json", '{"command": "trtexec --int8 --calib=x"}', ["1 --int8", "1 --calib"]),
        ("Dockerfile", "FROM nvcr.io/nvidia/tensorrt:24.08-py3", ["1 nvcr.io/nvidia/tensorrt:24.08 holds TensorRT 10, and 11.1 is asked about"]),
        ("Dockerfile.gpu", "FROM nvcr.io/nvidia/tensorrt:26.07-py3", []),
        ("requirements.txt", "numpy\ntensorrt\n", ["2 tensorrt takes the newest TensorRT, whatever its major"]),
        ("requirements-gpu.txt", "tensorrt>=8.6.1", ["1 tensorrt>=8.6.1 takes the newest TensorRT, whatever its major"]),
        ("requirements.txt", "tensorrt>=10,<11\ntensorrt-cu12==10.13.3.9\ntorch-tensorrt\ntensorrt-llm\n", []),
        ("pyproject.toml", 'dependencies = ["tensorrt", "torch"]', ["1 tensorrt takes the newest TensorRT, whatever its major"]),
        ("setup.sh", "pip install --no-cache tensorrt-cu12", ["1 tensorrt-cu12 takes the newest TensorRT, whatever its major"]),
        ("setup.sh", "cd tensorrt && make", []),
    ],
)  # fmt: skip
def test_lines_of_tools_are_read(name: str, code: str, expected: list[str], tmp_path: Path) -> None:
    assert said(tmp_path, name, code) == expected


def notebook(*cells: str) -> str:
    return json.dumps(
        {"cells": [{"cell_type": "code", "source": each.splitlines(keepends=True)} for each in cells]}
    )


def test_notebooks_are_read_by_cell_with_the_lines_of_the_shell(tmp_path: Path) -> None:
    code = notebook(
        "import tensorrt as trt\n%matplotlib inline\n!trtexec --onnx=a \\\n  --fp16\nx = !ls\ntrt.BuilderFlag.FP16",
        "%%bash\ntrtexec --int8",
    )
    found = findings(tmp_path, "code.ipynb", code)
    assert [(each.path.rpartition("#")[2], each.line, each.name) for each in found] == [
        ("cell1", 4, "--fp16"),
        ("cell1", 6, "BuilderFlag.FP16"),
        ("cell2", 2, "--int8"),
    ]
    (broken,) = findings(tmp_path, "code.ipynb", "{tensorrt")
    assert broken.kind == "unread"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("a.py", "import tensorrt as trt\ntrt.BuilderFlag.FP16  # trt-compat: ignore\n"),
        ("a.cpp", "#include <NvInfer.h>\nauto f = nvinfer1::BuilderFlag::kFP16; // trt-compat: ignore\n"),
        ("a.sh", "trtexec --fp16  # trt-compat: ignore"),
    ],
)
def test_a_line_that_says_so_is_passed_over(name: str, code: str, tmp_path: Path) -> None:
    assert said(tmp_path, name, code) == []
    assert said(tmp_path, name, code.replace("ignore", "look")) != []


def test_a_cell_heeds_its_own_lines(tmp_path: Path) -> None:
    code = notebook(
        "import tensorrt as trt\ntrt.BuilderFlag.FP16  # trt-compat: ignore\ntrt.BuilderFlag.INT8"
    )
    assert said(tmp_path, "code.ipynb", code) == ["3 BuilderFlag.INT8"]


def test_what_is_no_file_is_passed_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "gone.py").symlink_to("absent")
    found, _ = scanned([tmp_path])
    assert [each.text for each in found if isinstance(each, Remark)] == [
        "cannot be read: No such file or directory"
    ]


def test_folders_are_walked_without_environments_and_links(tmp_path: Path) -> None:
    code = "import tensorrt as trt\ntrt.BuilderFlag.FP16\n"
    for folder in ("src", ".venv/lib", "own-env/lib", "node_modules/x", ".github/workflows"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.py").write_text(code, encoding="utf-8")
    (tmp_path / "own-env" / "pyvenv.cfg").touch()
    (tmp_path / "src" / "again").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "src" / "data.bin").write_bytes(b"tensorrt")
    found, count = scanned([tmp_path])
    assert {Path(each.path).relative_to(tmp_path).parts[0] for each in found} == {".github", "src"}
    assert count == 2


def test_an_absent_path_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(HandledError, match=r"no such file or folder"):
        scanned([tmp_path / "absent"])


def test_files_that_are_no_code_have_no_reader() -> None:
    assert [
        name for name in ("a.png", "README.md", "notes.txt", "a.rst.txt", "weights.onnx") if reader_of(name)
    ] == []


def test_a_file_that_names_no_library_is_not_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def parse(text: str) -> ast.Module:
        parsed.append(text)
        return ast.Module([], [])

    monkeypatch.setattr("harness.scan.python.ast.parse", parse)
    (tmp_path / "a.py").write_text("import torch_tensorrt\n", encoding="utf-8")
    (tmp_path / "b.py").write_text("import torch\n", encoding="utf-8")
    (tmp_path / "c.py").write_text("import tensorrt\n", encoding="utf-8")
    scanned([tmp_path])
    assert parsed == ["import tensorrt\n"]
