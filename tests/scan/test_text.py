# ruff: noqa: E501  (code and answer stand on one line)
"""Uses in command lines, images, lists of packages and notebooks, and lines that are passed over."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path

import pytest
from hypothesis import given

from harness.errors import HandledError
from harness.matrix.interface import numbers
from harness.scan.files import READERS, one_file, reader_of, scanned
from harness.scan.judged import judged, runs_on
from harness.scan.uses import Remark
from tests.near import SAME, near
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


CODE = {
    ".py": b"""import tensorrt as trt
from tensorrt import BuilderFlag as F
class A(trt.IInt8Calibrator):
    def f(self, e: "trt.ICudaEngine"):
        with trt.Builder(x) as b, b.create_network(0) as n:
            self.c = b.create_builder_config()
        if trt.__version__ >= "10" and hasattr(b, "build_engine"):
            return e.num_bindings
        for each in n:
            each.precision = trt.int8
        run(["trtexec", f"--fp16={1}"])
        return b.build_engine(n, self.c)
""",
    ".cpp": b"""#include <NvInfer.h>
#if NV_TENSORRT_MAJOR * 10 + NV_TENSORRT_MINOR >= 85
class P : public nvinfer1::IPluginV2DynamicExt { bool canBroadcastInputAcrossBatch(int) const override; };
#else
#define F nvinfer1::BuilderFlag::kFP16
#endif
void f(nvinfer1::IRuntime* r) { auto e = std::unique_ptr<nvinfer1::ICudaEngine>(r->deserializeCudaEngine(a, 1)); e->destroy(); }
""",
    ".sh": b"pip install tensorrt>=8 # x\ntrtexec --onnx=a \\\n --fp16 && docker run nvcr.io/nvidia/tensorrt:24.08-py3\n",
    ".ipynb": b'{"cells": [{"cell_type": "code", "source": ["import tensorrt as trt\\n", "!trtexec --fp16\\n", "trt.BuilderFlag.FP16"]}]}',
}  # fmt: skip


@pytest.mark.parametrize("suffix", CODE)
def test_code_near_that_which_is_known_is_read_or_refused(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"code{suffix}"

    @SAME
    @given(near(CODE[suffix]))
    def read(data: bytes) -> None:
        path.write_bytes(data)
        found = one_file(str(path), READERS[suffix])
        for each in judged(found, "8.6", "11.4"):
            assert each.line >= 1
            assert "\n" not in each.text
        runs_on(found, ["8.6.1", "11.4.0.106"])

    read()
    assert numbers("10.13") > numbers("10.13.3")
