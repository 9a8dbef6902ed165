# ruff: noqa: E501  (code and answer stand on one line)
"""Uses in C++: by qualified names, declared types, and the preprocessor's tests of the version."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.scan.uses import decoded
from tests.scan.said import findings, said

pytestmark = pytest.mark.unit

HEAD = "#include <NvInfer.h>\n"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("auto f = nvinfer1::BuilderFlag::kFP16;", ["2 BuilderFlag.kFP16"]),
        ("using namespace nvinfer1;\nauto f = BuilderFlag::kFP16;", ["3 BuilderFlag.kFP16"]),
        ("namespace trt = nvinfer1;\nauto f = trt::BuilderFlag::kFP16;", ["3 BuilderFlag.kFP16"]),
        ("class C : public nvinfer1::IInt8EntropyCalibrator2 {};", ["2 IInt8EntropyCalibrator2"]),
        ("void f(nvinfer1::ICudaEngine* e) { e->getNbBindings(); }", ["2 ICudaEngine.getNbBindings"]),
        ("void f() { std::unique_ptr<nvinfer1::IBuilder> b; b->setMaxBatchSize(1); }", ["2 IBuilder.setMaxBatchSize"]),
        ("void f() { auto b = nvinfer1::createInferBuilder(g); b->destroy(); }", ["2 IBuilder.destroy"]),
        ("void f(nvinfer1::IBuilder& b) { auto c = b.createBuilderConfig(); c->setMaxWorkspaceSize(1); }",
         ["2 IBuilderConfig.setMaxWorkspaceSize"]),
        ("void f(nvinfer1::ILayer* l) { l->setPrecision(nvinfer1::DataType::kHALF); }", ["2 ILayer.setPrecision"]),
        ("void f(nvinfer1::INetworkDefinition* n) { n->getLayer(0)->setPrecision(t); }", ["2 ILayer.setPrecision"]),
        ("void f() { mContext->enqueueV2(b, s, nullptr); }", ["2 IExecutionContext.enqueueV2"]),
        ("void f() { x->getBindingDimensions(0); }", ["2 ICudaEngine.getBindingDimensions"]),
        ("void f() { auto l = n->addElementWise(*a->getOutput(0), *b, op); l->setPrecision(t); }", ["2 ILayer.setPrecision"]),
        ("std::unique_ptr<nvinfer1::IInt8Calibrator> c;", ["2 IInt8Calibrator"]),
        ("using F = nvinfer1::BuilderFlag;\nauto f = F::kFP16;", ["3 BuilderFlag.kFP16"]),
        ("class API P : public nvinfer1::IPluginV2Ext {\n  bool canBroadcastInputAcrossBatch(int i) const TRT_NOEXCEPT override;\n};",
         ["3 IPluginV2Ext.canBroadcastInputAcrossBatch"]),
        ("#define FLAG nvinfer1::BuilderFlag::kFP16", ["2 BuilderFlag.kFP16"]),
        ("class P : public nvinfer1::IPluginV2DynamicExt {\n  bool canBroadcastInputAcrossBatch(int i) const noexcept override;\n};",
         ["3 IPluginV2Ext.canBroadcastInputAcrossBatch"]),
        ('auto c = registry->getCreator("BatchedNMS_TRT", "1");', ["2 BatchedNMS_TRT"]),
    ],
)  # fmt: skip
def test_a_use_is_found(code: str, expected: list[str], tmp_path: Path) -> None:
    assert said(tmp_path, "code.cpp", HEAD + code) == expected


@pytest.mark.parametrize(
    "code",
    [
        "void f() { own->destroy(); own->enqueue(1); }",
        "class Own { void setPrecision(int); };\nvoid f() { own->setPrecision(1); }",
        "nvinfer1::Dims d; int n = d.nbDims; int m = d.d[0];",
        "// nvinfer1::BuilderFlag::kFP16",
        'char const* text = "BuilderFlag::kFP16";',
        "struct BuilderFlag { static int kFP16; };\nint x = BuilderFlag::kFP16;",
        "void f(nvinfer1::ISliceLayer* l) { l->setInput(1, *t); }",
    ],
)
def test_what_is_no_use_is_none(code: str, tmp_path: Path) -> None:
    assert said(tmp_path, "code.cu", HEAD + code) == []


@pytest.mark.parametrize(
    ("test", "guarded"),
    [
        ("#if NV_TENSORRT_MAJOR < 10", True),
        ("#if NV_TENSORRT_MAJOR >= 10\n#else", True),
        ("#if (NV_TENSORRT_MAJOR * 10 + NV_TENSORRT_MINOR) < 85", True),
        ("#if NV_TENSORRT_MAJOR * 100 + NV_TENSORRT_MINOR >= 1000\n#else", True),
        ("#if NV_TENSORRT_VERSION < 8501", True),
        ("#ifdef TRT_VERSION_8", True),
        ("#if NV_TENSORRT_MAJOR >= 8", False),
        ("#if CUDART_VERSION >= 11000", False),
        ("#ifndef OWN_H", False),
    ],
)
def test_the_preprocessor_guards_what_it_keeps_the_version_from(
    test: str, guarded: bool, tmp_path: Path
) -> None:
    code = f"{HEAD}void f(nvinfer1::ICudaEngine* e) {{\n{test}\n  e->getNbBindings();\n#endif\n}}\n"
    (found,) = findings(tmp_path, "code.cpp", code)
    assert found.guarded is guarded


def test_other_code_is_not_read(tmp_path: Path) -> None:
    assert said(tmp_path, "code.cpp", "auto tensorrt = BuilderFlag::kFP16;") == []


@pytest.mark.parametrize(
    ("number", "version"),
    [
        (8, (8,)),
        (85, (8, 5)),
        (805, (8, 5)),
        (8601, (8, 6)),
        (1006, (10, 6)),
        (1010, (10, 10)),
        (100600, (10, 6)),
    ],
)
def test_a_number_is_read_in_all_ways_that_programs_write_versions(
    number: int, version: tuple[int, ...]
) -> None:
    assert decoded(number) == version
