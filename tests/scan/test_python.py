# ruff: noqa: E501  (code and answer stand on one line)
"""Uses in Python: by modules, types, annotations and keyword arguments, and what guards them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.scan.said import findings, said

pytestmark = pytest.mark.unit

HEAD = "import tensorrt as trt\n"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import tensorrt\ntensorrt.BuilderFlag.FP16", ["2 BuilderFlag.FP16"]),
        ("import tensorrt as t\nt.BuilderFlag.FP16", ["2 BuilderFlag.FP16"]),
        ("from tensorrt import BuilderFlag as F\nF.INT8", ["2 BuilderFlag.INT8"]),
        ("from tensorrt import IInt8Calibrator", ["1 IInt8Calibrator"]),
        ("from .compat import trt\ntrt.BuilderFlag.FP16", ["2 BuilderFlag.FP16"]),
        ("trt = lazy_import('tensorrt>=8.5')\ntrt.BuilderFlag.FP16", ["2 BuilderFlag.FP16"]),
        (HEAD + "class C(trt.IInt8EntropyCalibrator2): pass", ["2 IInt8EntropyCalibrator2"]),
        (HEAD + "trt.CalibrationAlgoType.LEGACY_CALIBRATION", ["2 CalibrationAlgoType.LEGACY_CALIBRATION"]),
        (HEAD + "b = trt.Builder(x)\nb.max_batch_size = 1", ["3 Builder.max_batch_size"]),
        (HEAD + "c = trt.Builder(x).create_builder_config()\nc.max_workspace_size = 1", ["3 IBuilderConfig.max_workspace_size"]),
        (HEAD + "with trt.Builder(x) as b, b.create_network() as n:\n  n.add_padding(y)", ["3 INetworkDefinition.add_padding"]),
        (HEAD + "from typing import Optional\ndef f(e: Optional[trt.ICudaEngine]):\n  e.num_bindings", ["4 ICudaEngine.num_bindings"]),
        (HEAD + "def f(e: trt.ICudaEngine | None):\n  e.num_bindings", ["3 ICudaEngine.num_bindings"]),
        (HEAD + "def f(p) -> trt.ICudaEngine: ...\nx = f(1)\nx.num_bindings", ["4 ICudaEngine.num_bindings"]),
        (HEAD + "def f(r):\n  return trt.Runtime(r).deserialize_cuda_engine(b)\nf(1).num_bindings", ["4 ICudaEngine.num_bindings"]),
        (
            HEAD + "class A:\n  def __init__(self, p):\n    self.e = trt.Runtime(x).deserialize_cuda_engine(p)\n"
            "  def f(self):\n    self.e.get_binding_shape(0)",
            ["6 ICudaEngine.get_binding_shape"],
        ),
        (HEAD + "n = trt.Builder(x).create_network()\nfor layer in n:\n  layer.precision = trt.int8", ["4 ILayer.precision"]),
        (HEAD + "n = trt.Builder(x).create_network()\nn.get_layer(0).precision = trt.int8", ["3 ILayer.precision"]),
        (HEAD + "e = trt.Runtime(x).deserialize_cuda_engine(p)\nlen(e)", ["3 ICudaEngine.__len__"]),
        (HEAD + "getattr(trt.BuilderFlag, 'FP16')", ["2 BuilderFlag.FP16"]),
        (HEAD + "trt.Runtime(x).deserialize_cuda_engine(stream_reader=r)", ["2 Runtime.deserialize_cuda_engine(stream_reader=)"]),
        (HEAD + "trt.get_plugin_registry().acquire_plugin_registry('BatchedNMS_TRT')", ["2 BatchedNMS_TRT"]),
        ("from .all import *\ntrt.BuilderFlag.FP16", ["2 BuilderFlag.FP16"]),
        (HEAD + "b = trt.Builder(x)\nb.fp16_mode = True", ["3 Builder.fp16_mode"]),
        (HEAD + "out.dynamic_range = (0, 1)", ["2 ITensor.dynamic_range"]),
        ("run(['trtexec', '--onnx=a', '--fp16'])", ["1 --fp16"]),
        ("args = ['trtexec']\nargs.append(f'--workspace={n}')", ["2 --workspace"]),
        # By the variable's name, and by a name that is nobody else's.
        (HEAD + "def f(engine):\n  engine.num_bindings", ["3 ICudaEngine.num_bindings"]),
        (HEAD + "def f(x):\n  x.get_binding_shape(0)", ["3 ICudaEngine.get_binding_shape"]),
    ],
)  # fmt: skip
def test_a_use_is_found(code: str, expected: list[str], tmp_path: Path) -> None:
    assert said(tmp_path, "code.py", code) == expected


@pytest.mark.parametrize(
    "code",
    [
        "import torch_tensorrt as trt\ntrt.BuilderFlag.FP16",
        "from tensorflow.python.compiler.tensorrt import trt_convert as trt\ntrt.BuilderFlag.FP16",
        "import tensorrt_rtx as trt\ntrt.BuilderFlag.FP16",
        HEAD + "trt.BuilderFlag.TF32",
        HEAD
        + "class Own:\n  max_workspace_size = 1\n  def get_binding_shape(self): ...\nOwn().get_binding_shape()",
        HEAD + "args.max_workspace_size",
        HEAD + "args.max_batch_size = 1",
        HEAD + "import torch\ntorch.execute_async_v2()",
        HEAD + "getattr(trt.BuilderFlag, 'FP16', None)",
        HEAD + "x.precision",
        "# tensorrt\nengine.num_bindings",
        "run(['trtexec'])\nparser.add_argument('--fp16')",
        "run(['other', '--fp16'])",
        "run(['trtexec'])\nhint = 'add --fp16'",
    ],
)
def test_what_is_no_use_is_none(code: str, tmp_path: Path) -> None:
    assert said(tmp_path, "code.py", code) == []


USE = "trt.Builder(x).build_engine(n, c)"


@pytest.mark.parametrize(
    ("code", "guarded"),
    [
        (f"if hasattr(trt.Builder, 'build_engine'):\n  {USE}", True),
        (f"if trt.__version__ < '10':\n  {USE}", True),
        (f"if trt.__version__ >= '10':\n  pass\nelse:\n  {USE}", True),
        (f"if int(trt.__version__.split('.')[0]) < 10:\n  {USE}", True),
        (f"major = int(trt.__version__.split('.')[0])\nif major == 8:\n  {USE}", True),
        (f"if version.parse(trt.__version__) < version.parse('8.5'):\n  {USE}", True),
        (f"if tuple(map(int, trt.__version__.split('.'))) < (10, 0):\n  {USE}", True),
        (f"if trt.__version__.startswith('8.'):\n  {USE}", True),
        (f"from importlib.metadata import version\nif version('tensorrt') < '10':\n  {USE}", True),
        (f"is_10 = trt.__version__ >= '10.0'\nif not is_10:\n  {USE}", True),
        (f"y = {USE} if trt_version() < '10' else None", True),
        (f"try:\n  {USE}\nexcept AttributeError:\n  pass", True),
        (f"try:\n  import pycuda\nexcept ImportError:\n  {USE}", True),
        (f"def f():\n  if trt.__version__ >= '10':\n    return\n  {USE}", True),
        (f"@skipif(trt.__version__ < '10')\ndef f():\n  {USE}", False),
        (f"def old():\n  {USE}\nif trt.__version__ < '10':\n  old()", True),
        (f"def old():\n  {USE}\nif trt.__version__ < '10':\n  old()\nelse:\n  old()", False),
        # The test is no guard against 10: it lets it through.
        (f"if trt.__version__ >= '5.1':\n  {USE}", False),
        (f"if trt.__version__ >= '10':\n  {USE}", False),
        (f"import torch\nif torch.__version__ < '2.0':\n  {USE}", False),
        (f"version_major = cuda()\nif version_major < 11:\n  {USE}", False),
        (f"if hasattr(self, 'engine'):\n  {USE}", False),
        (f"try:\n  {USE}\nexcept Exception:\n  raise", False),
        (f"if ready:\n  {USE}", False),
    ],
)
def test_a_test_of_the_version_guards_what_it_keeps_the_version_from(
    code: str, guarded: bool, tmp_path: Path
) -> None:
    (found,) = [
        each for each in findings(tmp_path, "code.py", HEAD + code) if each.name == "Builder.build_engine"
    ]
    assert found.guarded is guarded
    assert found.breaks is not guarded


def test_a_major_is_compared_with_majors(tmp_path: Path) -> None:
    code = f"{HEAD}major = int(trt.__version__.split('.')[0])\nif major <= 10:\n  {USE}"
    (found,) = findings(tmp_path, "code.py", code, highest="10.13")
    assert found.breaks
    (found,) = findings(tmp_path, "code.py", code, highest="11.0")
    assert found.guarded


def test_what_the_lowest_version_lacks_is_told_too(tmp_path: Path) -> None:
    code = (
        HEAD
        + "e = trt.Runtime(x).deserialize_cuda_engine(p)\ne.create_execution_context(strategy=s)\ntrt.DataType.FP4"
    )
    (argument, member) = findings(tmp_path, "code.py", code, "8.6", "11.4")
    assert (argument.name, argument.kind, argument.changed) == (
        "ICudaEngine.create_execution_context(strategy=)",
        "new",
        "10.0.1",
    )
    assert (member.name, member.kind, member.changed) == ("DataType.FP4", "new", "10.8.0")
    assert not findings(tmp_path, "code.py", code, "10.8", "11.4")


def test_the_gap_between_the_bindings_of_8_and_10_is_told_as_one(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, "code.py", HEAD + "trt.Builder(x).build_engine(n, c)")
    assert "between 8.6.1 and 10.0.1" in found.text
    (found,) = findings(tmp_path, "code.py", HEAD + "trt.BuilderFlag.FP16")
    assert "with 11.0.0" in found.text
    assert found.link.startswith("https://docs.nvidia.com/")
    assert found.instead


@pytest.mark.parametrize(
    "code", ["import tensorrt\ndef f(:\n", "import tensorrt\nprint 1\n", "import tensorrt\n\0"]
)
def test_a_file_that_does_not_parse_is_one_line(code: str, tmp_path: Path) -> None:
    (found,) = findings(tmp_path, "code.py", code)
    assert found.kind == "unread"
    assert not found.breaks


def test_a_file_of_any_depth_is_read_or_refused(tmp_path: Path) -> None:
    deep = HEAD + "x = " + "-" * 5000 + "1\n" + "y" + ".a" * 5000 + "\ntrt.BuilderFlag.FP16\n"
    before = sys.getrecursionlimit()
    assert len(findings(tmp_path, "code.py", deep)) == 1
    assert sys.getrecursionlimit() == before


def test_nothing_of_the_code_is_run(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    code = f"import tensorrt as trt\nopen({str(mark)!r}, 'w')\ntrt.BuilderFlag.FP16\n"
    (tmp_path / "tensorrt.py").write_text(f"open({str(mark)!r}, 'w')", encoding="utf-8")
    assert said(tmp_path, "conftest.py", code) == ["3 BuilderFlag.FP16"]
    assert not mark.exists()
