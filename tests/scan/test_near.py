# ruff: noqa: E501  (code stands on one line)
"""Code near what the readers know is read or refused in one line, whatever it holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from harness.matrix.interface import numbers
from harness.scan.files import READERS, one_file
from harness.scan.judged import judged, runs_on
from tests.near import SAME, near

pytestmark = pytest.mark.unit

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
