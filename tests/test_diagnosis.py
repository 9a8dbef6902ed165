# ruff: noqa: E501  (engine texts are quoted whole)
"""Signatures against the texts that engines really print, and against near misses."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from harness.case import load_cases
from harness.classify import Classification
from harness.diagnosis import SIGNATURES, diagnose, load_signatures, notes
from harness.errors import HandledError
from harness.outcome import End, Message, Outcome, ParserError
from harness.words import GOOD, UNJUDGED, Class

pytestmark = pytest.mark.unit

BUILD_FAILED = Classification(Class.BUILD_FAILED, "")
#: (id, place, text). Marked "measured": printed by TensorRT-RTX 1.4, 1.6 and 1.7; the others are quoted in the issues
#: that the signature links to, or stand as strings in the libraries.
TEXTS = [
    # measured
    ("no-int8-convolution", "errors", "IBuilder::buildSerializedNetwork: Error Code 1: Myelin ([myelin_graph.h:1250: attachExceptionMsgToGraph] MyelinCheckException: cudnn_impl.cpp:1040: CHECK(dtype == myelinTypeFloat || dtype == myelinTypeHalf || dtype == myelinTypeBF16 || dtype == myelinTypeFP8E4M3) failed.  In compileGraph at /_src/optimizer/myelin/codeGenerator.cpp:1783)"),
    ("no-int8-convolution", "native", "Internal Error: MyelinCheckException: cudnn_impl.cpp:89: CHECK(dtype == myelinTypeFloat || dtype == myelinTypeHalf || dtype == myelinTypeBF16 || dtype == myelinTypeFP8E4M3) failed. "),
    ("not-on-this-generation", "errors", "IBuilder::buildSerializedNetwork: Error Code 1: Myelin ([pass.cpp:347: check_turing_op_compatibility] Cannot compile operation '/block1/conv/Conv' for Turing (SM75): FP32 3D convolution is not supported. In compileGraph at /_src/optimizer/myelin/codeGenerator.cpp:2012)"),
    ("implicit-int8-removed", "errors", "IBuilder::buildSerializedNetwork: Error Code 3: API Usage Error (Parameter check failed, condition: !config.getFlag(BuilderFlag::kINT8).  In createNetworkBuildConfig at /_src/optimizer/api/builder.cpp:890)"),
    ("weak-typing-removed", "errors", "IBuilder::buildSerializedNetwork: Error Code 3: API Usage Error (Parameter check failed, condition: !config.getFlag(BuilderFlag::kFP16).  In createNetworkBuildConfig at /_src/optimizer/api/builder.cpp:893)"),
    ("plugin-not-found", "parser", 'creator && "Plugin not found, are the plugin name, version, and namespace correct?"'),
    ("plugin-not-found", "parser", "Op type IdentityInt8 is not supported in TensorRT-RTX."),
    ("no-importer", "parser", "Op type Swish is not supported in TensorRT-RTX."),
    ("asymmetric-quantization", "parser", "Assertion failed: shiftIsAllZeros(zeroPoint): Non-zero zero point is not supported. Please set kENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLAto enable asymmetric quantization if it is on DLA."),
    ("negative-scale", "parser", "Assertion failed: (scaleAllPositive || allowNegativeScale): Scale coefficients must all be positive"),
    ("mixed-types-norm", "parser", "Assertion failed: (inputDataType == scaleDataType && scaleDataType == biasDataType): Inputs must be either all FLOAT or all FLOAT16. Input type = HALF, scale type = FLOAT, bias type = FLOAT."),
    ("mixed-types-strong", "errors", "ITensor::getDimensions: Error Code 4: API Usage Error (/output: IConvolutionLayer `input` and `kernel` must be of same type. `input` type is Half but `kernel` is of type Float. In validateTypes at /_src/optimizer/common/nodes/convolutionNode.cpp:87)"),
    ("missing-dq", "errors", "IBuilder::buildSerializedNetwork: Error Code 1: Internal Error (Node {ForeignNode[tmp_weight.../output]} cannot be quantized by input. You might want to add a DQ node before {ForeignNode[tmp_weight.../output]}.\n In quantizePaths at /_src/optimizer/common/rewrite/qdqGraphOptimizer.cpp:4436)"),
    ("dynamic-without-profile", "errors", "IBuilder::buildSerializedNetwork: Error Code 4: API Usage Error (Network has dynamic or shape inputs, but no optimization profile has been defined. In validate at /_src/optimizer/api/network.cpp:4023)"),
    ("shape-error", "parser", "Invalid Node - /output\nITensor::getDimensions: Error Code 4: Shape Error (reshape changes volume. Reshaping [1,8,4,4] to [1,9,16]. In operator() at /_src/optimizer/common/shape/shapeContext.cpp:4634)"),
    ("usage-error", "errors", "ITensor::setType: Error Code 3: API Usage Error (Parameter check failed, condition: dataType == outType. UNSUPPORTED_STATESet network output type Float must be same as inferred output type Half for a strongly typed network. In setType at /_src/optimizer/api/network.cpp:4444)"),
    ("cuda-error", "errors", "IRuntime::deserializeCudaEngine: Error Code 1: Cuda Runtime (In ScopedCudaStream at /_src/common/dispatch/cudaResources.cpp:25 (cudaError 35: CUDA driver version is insufficient for CUDA runtime version))"),
    # as reported
    ("no-implementation", "errors", "10: Could not find any implementation for node SandGlass4.8.weight + /SandGlass4/SandGlass4.8/_weight_quantizer/QuantizeLinear + /SandGlass4/SandGlass4.8/Conv + /Add"),
    ("no-implementation", "errors", "10: [optimizer.cpp::computeCosts::3897] Error Code 10: Internal Error (Could not find any implementation for node weights + node_of_weights_quantized + node_of_output.)"),
    ("no-implementation", "errors", "10: [optimizer.cpp::computeCosts::3869] Error Code 10: Internal Error (Could not find any implementation for node /model.0/conv/Conv + PWN(PWN(/model.0/act/Sigmoid), /model.0/act/Mul).)"),
    ("no-implementation", "errors", "Could not find any implementation for node n due to insufficient workspace. See verbose log for requested sizes."),
    ("no-plugin-format", "errors", "9: [pluginV2Builder.cpp::reportPluginError::23] Error Code 9: Internal Error (LayerNorm_4: could not find any supported formats consistent with input/output data types)"),
    ("candidates-removed", "errors", "2: [optimizer.cpp::filterQDQFormats::4670] Error Code 2: Internal Error (Assertion !n->candidateRequirements.empty() failed. All of the candidates were removed, which points to the node being incorrectly marked as an int8 node.)"),
    ("candidates-removed", "errors", "Assertion asCopyingLeafNode() ? candidateChoices.empty() : !candidateChoices.empty() failed."),
    ("no-supported-formats", "errors", "2: [optimizer.cpp::getFormatRequirements::2945] Error Code 2: Internal Error (Assertion !n->candidateRequirements.empty() failed. no supported formats)"),
    ("no-supported-formats", "errors", "Assertion !n->candidateRequirements.empty() failed. No supported formats for /a/b , please check the TensorRT operator doc"),
    ("quantized-constant", "errors", "Quantized constant is only allowed before DQ or PLUGIN_V2 node"),
    ("no-scaling-factors", "errors", "4: [standardEngineBuilder.cpp::initCalibrationParams::1460] Error Code 4: Internal Error (Calibration failure occurred with no scaling factors detected. This could be due to no int8 calibrator or insufficient custom scales for network layers.)"),
    ("no-scaling-factors", "errors", "input/output with DataType Int8 in network without Q/DQ layers must have dynamic range set when no calibrator is used."),
    ("calibrator-cuda-error", "errors", "1: [calibrator.cpp::calibrateEngine::1181] Error Code 1: Cuda Runtime (invalid argument)"),
    ("calibrator-cuda-error", "errors", "1: [cudaResources.cpp::~ScopedCudaEvent::41] Error Code 1: Cuda Runtime (an illegal memory access was encountered)"),
    ("calibrator-cuda-error", "errors", "Error Code 1: Cuda Runtime (invalid configuration argument) in absTensorMax"),
    ("mixed-qdq-types", "errors", "Could not infer output types for operation: 12: quantize: x, No matching rules found for input operand types"),
    ("mixed-qdq-types", "errors", "Mixed precision Q/DQ is not allowed"),
    ("no-low-precision-convolution", "errors", "No low-precision conv kernel available for this strongly-typed Conv/ConvTranspose. Consider keeping Conv/ConvTranspose and Q/DQ ops in FP32"),
    ("precision-not-obeyed", "errors", "Network created with kSTRONGLY_TYPED flag, so treating as error."),
    ("precision-not-obeyed", "errors", "kOBEY_PRECISION_CONSTRAINTS was set, so treating as error."),
    ("plugin-scale-missing", "errors", "2: [pluginV2Runner.cpp::getInputHostScale::88] Error Code 2: Internal Error (Assertion scales.size() == 1 failed. )"),
    ("check-links", "errors", "[checkSanity.cpp::checkLinks::218] Error Code 2: Internal Error (Assertion item.second != nullptr failed. region should have been removed from Graph::regions)"),
    ("instancenorm-plugin-missing", "errors", "getPluginCreator could not find plugin: InstanceNormalization_TRT version: 1"),
    ("instancenorm-cudnn-error", "native", "instanceNormalizationPlugin.cu (192) - Cudnn Error in configurePlugin: 4 (CUDNN_STATUS_INTERNAL_ERROR)"),
    ("plugin-not-found", "errors", "getPluginCreator could not find plugin: CustomThing version: 1"),
    ("no-importer", "errors", "No importer registered for op: Mish"),
    ("asymmetric-quantization", "parser", "TensorRT only supports symmetric quantization. The zero point for the QuantizeLinear/DequantizeLinear operator must be all zeros."),
    ("unsupported-gpu", "errors", "Target GPU SM 120 is not supported by this TensorRT release"),
    ("unsupported-gpu", "errors", "Unsupported SM: 0x601"),
    ("foreign-engine", "errors", "The engine plan file is not compatible with this version of TensorRT, expecting library version 10.2.0.19 got 10.1.0.27, please rebuild."),
    ("foreign-engine", "errors", "The engine plan file is generated on an incompatible device, expecting compute 8.9 got compute 8.6, please rebuild."),
    ("foreign-engine", "errors", "Using an engine plan file across different models of devices is not supported and is likely to affect performance or even cause errors."),
    ("jetson-image-mismatch", "native", "ImportError: /usr/lib/libnvinfer.so.8: undefined symbol: _ZN5nvdla19IConcatenationLayer7setAxisEi"),
    ("tactic-out-of-memory", "errors", "Out of memory error while finding fastest tactic for node"),
    ("tactic-out-of-memory", "errors", "Error Code 2: OutOfMemory (no further information)"),
    ("compiler-error", "errors", "MyelinCheckException: shape.cpp:12: CHECK(a == b) failed."),
    ("implicit-int8-removed", "missing_api", "BuilderFlag.INT8"),
    ("implicit-int8-removed", "missing_api", "IBuilderConfig.int8_calibrator"),
    ("implicit-int8-removed", "missing_api", "IInt8EntropyCalibrator2"),
    ("weak-typing-removed", "missing_api", "BuilderFlag.FP16"),
    ("weak-typing-removed", "missing_api", "ILayer.precision"),
    ("strong-typing-missing", "missing_api", "NetworkDefinitionCreationFlag.STRONGLY_TYPED"),
    ("plugin-interface-missing", "missing_api", "INetworkDefinition.add_plugin_v3"),
    ("parser-flag-missing", "missing_api", "OnnxParserFlag.NATIVE_INSTANCENORM"),
    ("parser-flag-missing", "missing_api", "tensorrt.OnnxParserFlag"),
]  # fmt: skip

NOTES = [
    ("missing-scale", "Missing scale and zero-point for tensor (Unnamed Layer* 269) [Shuffle]_output, expect fall back to non-int8 implementation for any layer consuming or producing given tensor"),
    ("calibrator-ignored", "Calibrator won't be used in explicit quantization mode. Please insert Quantize/Dequantize layers to indicate which tensors to quantize/dequantize."),
    ("calibrator-ignored", "Calibrator is not being used. Users must provide dynamic range for all tensors that are not Int32 or Bool."),
    ("int64-cast", "onnx2trt_utils.cpp:374: Your ONNX model has been generated with INT64 weights, while TensorRT does not natively support INT64. Attempting to cast down to INT32."),
    ("weights-clamped", "One or more weights outside the range of INT32 was clamped"),
    ("uint8-as-int8", "onnxOpImporters.cpp:1980: TensorRT supports QuantizeLinear/DequantizeLinear with UINT8 zero_point only on DLA (version >= 3.16). Defaulting to INT8 instead. To import as UINT8, set the kIMPORT_UINT8_QUANTIZATION flag."),
    ("format-combinations-limit", "IPluginV2IOExt/IPluginV2DynamicExt ignores some format combinations because combination limit of 100 was reached"),
]  # fmt: skip

#: Texts that are near a signature and none of its kind: (id that must not be found, place, text).
NEAR_MISSES = [
    ("no-implementation", "errors", "Using fastest implementation instead."),
    ("no-implementation", "warnings", "Could not find any implementation for node x."),
    ("no-int8-convolution", "errors", "MyelinCheckException: cudnn_impl.cpp:9: CHECK(dtype == myelinTypeInt32) failed."),
    ("implicit-int8-removed", "errors", "Parameter check failed, condition: config.getFlag(BuilderFlag::kINT8)"),
    ("implicit-int8-removed", "missing_api", "BuilderFlag.INT8_COMPAT"),
    ("implicit-int8-removed", "missing_api", "BuilderFlag.INT4"),
    ("weak-typing-removed", "missing_api", "BuilderFlag.INT8"),
    ("weak-typing-removed", "missing_api", "BuilderFlag.TF32"),
    ("weak-typing-removed", "missing_api", "ILayer.precision_is_set"),
    ("strong-typing-missing", "missing_api", "NetworkDefinitionCreationFlag.EXPLICIT_BATCH"),
    ("parser-flag-missing", "missing_api", "OnnxParserFlag.NATIVE_INSTANCENORM.value"),
    ("no-importer", "parser", "Op type IdentityInt8 is not supported in TensorRT-RTX."),
    ("no-importer", "warnings", "No importer registered for op: CompatIdentity. Attempting to import as plugin."),
    ("instancenorm-plugin-missing", "errors", "getPluginCreator could not find plugin: GroupNormalization_TRT version: 1"),
    ("plugin-not-found", "errors", "Plugin found, version and namespace are correct"),
    ("mixed-types-norm", "parser", "Inputs must be either all FLOAT or all INT32."),
    ("candidates-removed", "errors", "Assertion !n->candidateRequirements.empty() failed. no supported formats"),
    ("no-plugin-format", "errors", "could not find any supported formats"),
    ("quantized-constant", "errors", "Quantized constant is only allowed before DQ node"),
    ("calibrator-cuda-error", "errors", "Error Code 1: Cuda Runtime (an error that is none of these)"),
    ("calibrator-cuda-error", "errors", "Starting calibration."),
    ("mixed-qdq-types", "errors", "Could not infer output types for operation: 12"),
    ("foreign-engine", "errors", "The engine plan file is compatible"),
    ("jetson-image-mismatch", "native", "undefined symbol: cublasCreate"),
    ("unsupported-gpu", "errors", "Supported tactics: 8"),
    ("asymmetric-quantization", "parser", "Zero point must be a constant"),
    ("negative-scale", "parser", "Scale coefficients must be constant"),
    ("dynamic-without-profile", "errors", "Network has dynamic inputs"),
    ("missing-dq", "errors", "Node a cannot be quantized by output."),
    ("compiler-error", "errors", "Myelin graph with 3 nodes"),
]  # fmt: skip


def outcome(*found: tuple[str, str], **changes: Any) -> Outcome:
    """Return a failed build that said these (place, text) things, in order."""
    severity = {"errors": "ERROR", "warnings": "WARNING", "info": "INFO"}
    record = Outcome(
        "c[v]-t", "c", "v", "t", "done",
        end=End("finished"),
        failed_phase="build",
        messages=tuple(Message(severity[place], text) for place, text in found if place in severity),
        parser_errors=tuple(ParserError(text) for place, text in found if place == "parser"),
        native_output="\n".join(text for place, text in found if place == "native"),
        missing_api=next((text for place, text in found if place == "missing_api"), None),
    )  # fmt: skip
    return dataclasses.replace(record, **changes)


def found_id(*said: tuple[str, str], cls: Classification = BUILD_FAILED, **changes: Any) -> str | None:
    found = diagnose(outcome(*said, **changes), cls)
    return found.id if found else None


@pytest.mark.parametrize(("name", "place", "text"), TEXTS)
def test_real_texts_are_known(name: str, place: str, text: str) -> None:
    """Each is recognised, alone and among the noise that surrounds every failure."""
    assert found_id((place, text)) == name
    noise = "[checkMacros.cpp::catchCudaError::229] Error Code 1: Cuda Runtime (In catchCudaError at /_src/x.cpp:229)"
    around = ("errors", noise), ("errors", "Engine could not be created from network")
    said = found_id(
        ("errors", noise), (place, text), *around, error="build_serialized_network returned no engine"
    )
    assert said == name


@pytest.mark.parametrize(("name", "text"), NOTES)
def test_notes_are_counted_and_no_cause_of_a_failure(name: str, text: str) -> None:
    """They are told of a cell that works too; only of one that lost precision are they the diagnosis."""
    record = outcome(("warnings", text), ("warnings", text), ("warnings", "another"))
    (note,) = notes(record)
    assert (note.id, note.count, note.example) == (name, 2, text)
    assert diagnose(record, BUILD_FAILED) is None
    lost = diagnose(dataclasses.replace(record, failed_phase=None), Classification(Class.PRECISION_LOST, ""))
    assert lost is not None
    assert lost.id == name


@pytest.mark.parametrize(("name", "place", "text"), NEAR_MISSES)
def test_near_misses_are_not_taken_for_it(name: str, place: str, text: str) -> None:
    assert found_id((place, text)) != name


def test_every_signature_is_tested_by_a_real_text() -> None:
    tested = {name for name, *_ in TEXTS} | {name for name, _ in NOTES}
    assert {signature.id for signature in load_signatures()} == tested


@pytest.mark.parametrize("cls", sorted(GOOD | UNJUDGED))
def test_what_works_or_was_not_judged_has_no_diagnosis(cls: Class) -> None:
    assert found_id(("errors", TEXTS[0][2]), cls=Classification(cls, "")) is None


def test_the_specific_cause_wins_over_what_follows_it() -> None:
    """Whatever the order in the log: 'no implementation' says that nothing was found, not why."""
    generic = ("errors", "Could not find any implementation for node a.")
    specific = ("errors", "Assertion scales.size() == 1 failed")
    assert found_id(generic, specific) == found_id(specific, generic) == "plugin-scale-missing"
    cuda = ("errors", "Error Code 1: Cuda Runtime (some error)")
    assert found_id(cuda, generic) == found_id(generic, cuda) == "no-implementation"


def test_an_onnx_operator_without_importer_is_told_from_a_missing_plugin() -> None:
    """The parser says the same error for both; the line before it names the operator."""
    error = ("parser", 'creator && "Plugin not found, are the plugin name, version, and namespace correct?"')
    info = "No importer registered for op: {}. Attempting to import as plugin."
    assert found_id(("info", info.format("Mish")), error) == "no-importer"
    assert found_id(("info", info.format("CompatIdentity")), error) == "plugin-not-found"
    rtx = "Plugin not found with node attribute namespace: using pluginName: {}, pluginVersion: 1, pluginNamespace: "
    assert found_id(("info", rtx.format("Mish")), error) == "no-importer"
    assert found_id(("info", rtx.format("MyIdentity")), error) == "plugin-not-found"


def test_a_cuda_error_outside_the_build_is_no_calibrators() -> None:
    text = (
        "errors",
        "1: [x.cpp::y::1] Error Code 1: Cuda Runtime (an illegal memory access was encountered)",
    )
    assert found_id(text) == "calibrator-cuda-error"
    assert found_id(text, failed_phase="run") == "cuda-error"


def test_groups_are_filled_in_and_the_last_skipped_tactic_is_the_reason() -> None:
    record = outcome(
        ("warnings", "Skipping tactic 0x0000000000000000 due to Myelin error: first"),
        ("errors", "Skipping tactic 0x00000000000003e8 due to exception last"),
        ("errors", "10: [o.cpp::c::1] Error Code 10: Internal Error (Could not find any implementation for node a + PWN(b, c).)"),
    )  # fmt: skip
    found = diagnose(record, BUILD_FAILED)
    assert found is not None
    assert found.title == "No implementation for a + PWN(b, c)"
    assert found.groups == {"node": "a + PWN(b, c)"}
    assert found.skipped_tactic == "Skipping tactic 0x00000000000003e8 due to exception last"
    assert found.message.startswith("10: [o.cpp")
    assert "{" not in found.title + found.cause + found.advice


def test_a_group_that_this_text_lacks_reads_as_a_question_mark() -> None:
    found = diagnose(outcome(("errors", "no supported formats")), BUILD_FAILED)
    assert found is not None
    assert found.title == "No kernel for the types of ?"


def test_an_unknown_failure_has_no_diagnosis() -> None:
    assert found_id(("errors", "something nobody has seen")) is None


def test_crashes_are_diagnosed_from_what_the_library_wrote() -> None:
    record = outcome(("native", TEXTS[1][2]), end=End("signalled", "killed by SIGABRT"))
    found = diagnose(record, Classification(Class.CRASHED, ""))
    assert found is not None
    assert found.id == "no-int8-convolution"


def test_advice_variants_exist() -> None:
    """What the advice is proved by is a variant of the cases."""
    known = {f"{c.name}.{v.name}" for c in load_cases(Path(__file__).parents[1] / "cases") for v in c}
    named = {name for signature in load_signatures() for name in signature.advice_variants}
    assert named
    assert named <= known


def test_signatures_that_cases_expect_exist() -> None:
    expected = {
        expectation.signature
        for case in load_cases(Path(__file__).parents[1] / "cases")
        for variant in case
        for expectation in variant.expectations
    }
    assert expected - {None} <= {signature.id for signature in load_signatures()}


def test_no_pattern_holds_a_place_in_an_engines_source() -> None:
    """Those numbers move with every release."""
    for signature in load_signatures():
        for pattern in signature.patterns:
            assert ".cpp:" not in pattern.regex.pattern.replace("[\\w./]+:\\d+", "")


def test_generic_ones_come_last() -> None:
    flags = [signature.generic for signature in load_signatures()]
    assert flags == sorted(flags)
    assert any(flags)


GOOD_ENTRY = """
- id: a-b
  patterns:
    - errors: 'x(?P<n>y)'
  title: t
  cause: c {n}
  advice: a
"""


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("id: a-b", "id: A b"), "an id is"),
        (("title: t", "title: ''"), "title wants a text"),
        (("advice: a", ""), "advice wants a text"),
        (("advice: a", "advice: a\n  colour: red"), "no field 'colour'"),
        (("errors:", "errror:"), "a pattern is one of"),
        (("'x(?P<n>y)'", "'x('"), "no regular expression"),
        (("'x(?P<n>y)'", "7"), "no regular expression"),
        (("{n}", "{m}"), "uses {m}"),
        (("advice: a", "advice: a\n  generic: maybe"), "generic wants true or false"),
        (("advice: a", "advice: a\n  links: here"), "links wants a list"),
        (("advice: a", "advice: a\n  standard_op: true"), "standard_op needs"),
        (("    - errors: 'x(?P<n>y)'", "    []"), "patterns wants a list"),
    ],
)
def test_a_bad_entry_is_named(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    """One sentence with file, entry number and what is wrong."""
    path = tmp_path / "d.yaml"
    path.write_text(GOOD_ENTRY)
    assert load_signatures(path)[0].id == "a-b"
    load_signatures.cache_clear()
    path.write_text(GOOD_ENTRY.replace(*change))
    with pytest.raises(HandledError, match=r"d\.yaml: entry 1") as caught:
        load_signatures(path)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["a: [", "a: b", "- text"])
def test_a_file_that_is_no_list_of_entries(tmp_path: Path, text: str) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(text)
    with pytest.raises(HandledError, match=r"d\.yaml"):
        load_signatures(path)
    with pytest.raises(HandledError, match="cannot be read"):
        load_signatures(tmp_path / "none.yaml")


def test_two_entries_of_one_name(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(GOOD_ENTRY * 2)
    with pytest.raises(HandledError, match="two entries are called 'a-b'"):
        load_signatures(path)


def test_the_shipped_file_is_the_one_that_is_read() -> None:
    assert SIGNATURES.is_file()
