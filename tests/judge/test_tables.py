# ruff: noqa: E501  (messages stand on one line)
"""The tables of tools' messages and of the engine's parts, and that no entry speaks where it does not apply."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from itertools import count
from pathlib import Path

import pytest

from harness.judge import findings
from harness.judge.signatures import load_signatures, load_texts
from harness.judge.tables import (
    MessageForm,
    explain,
    general,
    groups,
    load_forms,
    meanings,
    speaker,
    tables,
    take_apart,
)

pytestmark = pytest.mark.unit

#: How each tool prints one of its messages.
PRINTED = {
    "trtexec": "[01/01/2026-10:00:00] [{level}] {text}",
    "polygraphy": "[{level}] {text}",
    "parser": '[01/01/2026-10:00:00] [{level}] [TRT] ModelImporter.cpp:836: ERROR: onnxOpImporters.cpp:1234 In function importConv:\n[8] Assertion failed: (x) && "{text}"',
    "ort": "2026-01-01 10:00:00.0 [{level}:onnxruntime:Default, tensorrt_execution_provider.cc:3155 CreateNodeComputeInfo] {text}",
    "triton": "E0101 10:00:00.000000 1 model_lifecycle.cc:630] failed to load 'm' version 1: Internal: {text}",
    "torch-tensorrt": '  File "/usr/lib/python3/site-packages/torch_tensorrt/dynamo/_compiler.py", line 3, in compile\nRuntimeError: {text}',
    "torch-onnx": "torch.onnx.errors.UnsupportedOperatorError: {text}",
}
#: Modules of tools in a traceback.
MODULES = {"tensorrt-llm": "tensorrt_llm", "transformers": "transformers", "torch-onnx": "torch/onnx"}
VALUES = ("model.onnx", "3", "/a/Conv_1", "float16", "7", "[1, 3, 224, 224]")
#: Answers that are true and say too little to be a cause with its remedy.
GENERAL = ("engine-stopped", "parser-stopped", "follows-a-failure", "node-refused")


def printed(form: MessageForm) -> str:
    """Return a message as its tool prints it, values filled in."""
    numbers = count()
    text = re.sub(r"\{\}", lambda _: VALUES[next(numbers) % len(VALUES)], form.form)
    return PRINTED[form.tool].format(level=form.level, text=text)


@cache
def ids(text: str) -> tuple[str, ...]:
    return tuple(each.id for each in explain(text).findings)


@pytest.mark.parametrize("tool", ["trtexec", "polygraphy", "parser", "ort"])
def test_a_tools_messages_are_answered(tool: str) -> None:
    """Nine of ten with phase and who acts, six of ten with a cause and a remedy."""
    ends = Counter(
        "unknown"
        if not found
        else "general"
        if found[0] in GENERAL or found[0].endswith("-says")
        else "specific"
        for found in (ids(printed(form)) for form in load_forms() if form.tool == tool)
    )
    assert ends["unknown"] <= ends.total() / 10
    assert ends["specific"] >= ends.total() * 6 / 10


def test_each_form_has_a_meaning_and_each_group_a_form() -> None:
    forms = load_forms()
    assert {form.tool for form in forms} <= set(groups()["tools"])
    assert {form.group for form in forms} <= set(meanings())
    assert len(meanings()) == len(groups()["groups"])
    # What a group of a later version will claim is not in the table of those that were read.
    assert len(set(meanings()) - {form.group for form in forms}) < 8


#: Signatures that may speak of a tool's own message, beside those that are about the parser, for which most were written.
OF_TOOLS = {
    "trtexec": {"capture-not-permitted", "dla-not-here", "engine-not-loaded", "called-deprecated"},
    "polygraphy": {"engine-not-loaded", "called-deprecated"},
    "ort": {
        *("called-deprecated", "dla-not-here", "engine-not-loaded", "runtime-decryption-library"),
        "runtime-profile-missing",
    },
    "triton": {"engine-not-loaded"},
    "torch-tensorrt": {
        *("called-deprecated", "engine-not-loaded", "foreign-engine-device", "fp16-not-fast"),
        *("library-not-found", "plan-platform"),
        *("torch-engine-not-set-up", "torch-no-converter"),
    },
    "torch-onnx": set(),
}
ECHOES = {"follows-a-failure", "usage-error", "builder-assertion", "node-refused"}


@pytest.mark.parametrize("tool", OF_TOOLS)
def test_no_signature_speaks_of_a_tools_message_unless_it_is_about_it(tool: str) -> None:
    for form in load_forms():
        if form.tool == tool:
            found = {each.id for each in findings.explain(printed(form)).findings}
            assert found - ECHOES <= OF_TOOLS[tool], form.form


#: Other entries that may answer a text too: the more special one comes first, or the phase of the log decides.
ALSO = {
    ("shape-error", "reshape-volume"),
    ("calibrator-cuda-error", "buffers-do-not-fit"),
    ("calibrator-cuda-error", "cuda-error"),
}


def test_no_entry_answers_the_text_of_another() -> None:
    """Forms of one more general entry may."""
    form_of = {each.id: each.form_of or each.id for each in load_signatures()}
    for text in load_texts():
        if text.place in ("log", "missing_api", "refused"):
            continue
        for each in findings.explain(f"[E] {text.text}").causes:
            same = form_of[each.id] == form_of[text.id]
            assert same or (text.id, each.id) in ALSO, (text.id, each.id, text.text)


ORDINARY = (Path(__file__).parent / "ordinary.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("form", ["[W] [TRT] {}", "{}", "[01/01/2026-10:00:00] [I] [TRT] {}"])
def test_ordinary_lines_are_no_failures(form: str) -> None:
    """A thousand lines of logs of engines that were built and gave the right numbers."""
    for line in ORDINARY:
        causes = [each.id for each in explain(form.format(line[4:])).causes]
        # Without its severity nothing tells that the builder went on.
        assert not causes or ("Skipping tactic" in line and form == "{}"), (line, causes)
    assert len(ORDINARY) == 1000


def test_an_ordinary_log_has_no_failure_in_it() -> None:
    assert explain(ORDINARY).causes == ()


# ---- who speaks, and the parts of a line


@pytest.mark.parametrize(
    ("line", "who"),
    [
        (
            "[01/01/2026-10:00:00] [E] [TRT] IRuntime::deserializeCudaEngine: Error Code 1: Serialization (x)",
            "engine",
        ),
        ("[01/01/2026-10:00:00] [E] Saving engine to file failed.", "trtexec"),
        ("[!] Could not parse ONNX correctly", "polygraphy"),
        (
            "2026-01-01 10:00:00.0 [E:onnxruntime:Default, x.cc:1 F] TensorRT EP failed to create context.",
            "ort",
        ),
        (
            "2026-01-01 10:00:00.0 [E:onnxruntime:Default, tensorrt_execution_provider.h:84 log] 3: [network.cpp::addInput::1] Error",
            "engine",
        ),
        ("[TensorRT-LLM][ERROR] Assertion failed: x", "tensorrt-llm"),
        ("x.cpp:12:3: error: 'kBF16' is not a member of 'nvinfer1::BuilderFlag'", "compiler"),
        (
            "E0101 10:00:00.000000 1 model_lifecycle.cc:630] failed to load 'm' version 1: Internal: x",
            "triton",
        ),
    ],
)
def test_who_speaks_is_told_by_head_and_text(line: str, who: str) -> None:
    from harness.judge.logs import prefixed

    text = prefixed(line)[1]
    assert speaker(text, line[: len(line) - len(text)]) == who


def test_a_line_is_taken_apart() -> None:
    apart = take_apart(
        "3: [executionContext.cpp::nvinfer1::rt::ExecutionContext::setBindingDimensions::1513] Error Code 3: API Usage Error (Parameter check "
        "failed, condition: engineDims.nbDims == dims.nbDims )"
    )
    assert (apart.code, apart.file, apart.function) == (3, "executionContext.cpp", "setBindingDimensions")
    assert apart.condition == "engineDims.nbDims == dims.nbDims"
    new = take_apart("INetworkDefinition::addConvolutionNd: Error Code 3: API Usage Error (x)")
    assert (new.interface, new.method, new.speaker) == ("INetworkDefinition", "addConvolutionNd", "engine")
    assert take_apart("Could not find any implementation for node /m/EfficientIdxNMS_TRT.").plugin


def test_parts_give_phase_meaning_and_remedy() -> None:
    found = general(
        take_apart("IExecutionContext::setInputShape: Error Code 3: API Usage Error (never seen before)")
    )
    assert found is not None
    assert "while the engine ran" in found.title
    assert "optimization profile" in found.cause
    plugin = general(
        take_apart(
            "2: [pluginV2DynamicExtRunner.cpp::execute::115] Error Code 2: Internal Error (Assertion status == kSTATUS_SUCCESS failed. )"
        )
    )
    assert plugin is not None
    assert "plugin" in plugin.title
    assert plugin.advice.startswith("Look at the plugin")
    assert general(take_apart("Something that nobody knows")) is None


def test_each_row_of_the_engines_table_is_whole() -> None:
    data = tables()
    rows = [*data["methods"].values(), *data["conditions"]]
    assert all(row["means"].endswith(".") and row["do"].endswith(".") for row in rows)
    phases = {row["phase"] for row in (*data["methods"].values(), *data["sources"].values())}
    assert phases <= set(data["phases"])


def test_a_plugins_failing_run_is_not_called_a_fault_of_the_builder() -> None:
    (found,) = explain(
        "[E] [TRT] 2: [pluginV2DynamicExtRunner.cpp::execute::115] Error Code 2: Internal Error (Assertion status == 0 failed. )"
    ).causes
    assert (found.id, "plugin" in found.title) == ("builder-assertion", True)


def test_a_message_within_a_condition_is_known_by_its_own_words() -> None:
    (found,) = explain(printed(MessageForm("parser", "E", "", "", "", "Failed to register layer."))).causes
    assert found.id == "parser-network"


# ---- what stands before and after


def test_a_consequence_is_no_second_cause() -> None:
    illegal = "[E] 1: [reformat.cu::execute::1] Error Code 1: Cuda Runtime (an illegal memory access was encountered)"
    after = "[E] 1: [cudnnWrapper.cpp::run::9] Error Code 1: Cudnn (CUDNN_STATUS_EXECUTION_FAILED)"
    found = explain(f"{illegal}\n{after}")
    assert len(found.causes) == 1
    assert [each.id for each in explain(after).causes] == ["cublas-not-started"]


def test_a_warning_does_not_come_before_an_error() -> None:
    found = explain(
        "[W] [TRT] Using an engine plan file across different models of devices is not recommended and is likely to affect performance or even cause errors.\n"
        "[E] [TRT] 3: [executionContext.cpp::setBindingDimensions::1513] Error Code 3: API Usage Error (Parameter check failed, condition: engineDims.nbDims == dims.nbDims )"
    )
    assert [each.kind for each in found.findings] == ["failure", "warning"]
    assert "number of dimensions" in found.causes[0].cause


def test_a_flag_that_is_younger_than_the_version_is_not_called_removed() -> None:
    (found,) = explain("a.cpp:1:2: error: 'kBF16' is not a member of 'nvinfer1::BuilderFlag'").causes
    assert found.id == "precision-flag-of-other-version"


def test_a_file_that_is_not_there_is_not_said_to_be_there() -> None:
    line = "[ONNXRuntimeError] : 1 : FAIL : Failed to load library libonnxruntime_providers_{}.so with error: {}: cannot open shared object file: No such file or directory"
    assert (
        explain(line.format("cuda", "libonnxruntime_providers_cuda.so")).causes[0].id
        == "runtime-provider-absent"
    )
    assert explain(line.format("cuda", "libcudnn.so.8")).causes[0].id == "runtime-provider-dependency"


def test_tensorrts_warning_of_layer_norms_is_not_about_a_flag() -> None:
    found = explain(
        "[W] [TRT] Detected layernorm nodes in FP16.\n[W] [TRT] Running layernorm after self-attention in FP16 may cause overflow. Exporting the model to the latest "
        "available ONNX opset (later than opset 17) to use the INormalizationLayer, or forcing layernorm layers to run in FP32 precision can help with preserving accuracy."
    )
    assert [each.id for each in found.findings] == ["layernorm-in-fp16"]


def test_the_number_of_cudas_error_decides() -> None:
    line = "[E] [TRT] CUDA initialization failure with error: {}. Please check your CUDA installation"
    assert explain(line.format(35)).causes[0].id == "driver-too-old"
    assert "error 3" in explain(line.format(3)).causes[0].title


def test_a_line_that_follows_tells_where_to_look_if_it_stands_alone() -> None:
    alone = "[E:onnxruntime:, x.cc:1 F] TensorRT EP failed to create engine from network for fused node: TRTKernel_graph_1"
    assert explain(alone).causes[0].id == "ort-build"
    cause = "[E] Could not find any implementation for node n."
    assert [each.id for each in explain(f"{cause}\n{alone}").causes] == ["no-implementation"]


def test_a_program_that_died_is_told_by_how_far_it_came() -> None:
    start = "[01/01/2026-10:00:00] [I] Start parsing network model.\n"
    assert "parser read" in explain(f"{start}Segmentation fault (core dumped)").causes[0].title
    built = f"{start}[01/01/2026-10:00:00] [I] Finished parsing network model. Parse time: 1\n"
    assert "was built" in explain(f"{built}Segmentation fault").causes[0].title
    assert explain("Segmentation fault").causes == ()


def test_who_raised_is_told_by_the_traceback() -> None:
    trace = '  File "/x/site-packages/torch_tensorrt/dynamo/_compiler.py", line 637, in compile\n    raise AssertionError(\n'
    found = explain(
        trace
        + "AssertionError: use_explicit_typing was set to True, however found that enabled_precisions was also specified (saw: {torch.float16}, expected: dtype.f32, dtype.f4). enabled_precisions should not be used when use_explicit_typing=True"
    )
    assert [each.id for each in found.causes] == ["torchtrt-settings"]
    assert found.unknown == ()


LAST = '  File "/usr/lib/python3.12/site-packages/ultralytics/nn/autobackend.py", line 316, in __init__\n'
OWN = '  File "/usr/lib/python3.12/subprocess.py", line 413, in check_call\n'


@pytest.mark.parametrize(
    ("log", "title"),
    [
        (f"{LAST}ValueError: no", "ultralytics itself stopped with ValueError"),
        (
            f"{LAST}{OWN}subprocess.CalledProcessError: no",
            "ultralytics itself stopped with CalledProcessError",
        ),
        ('  File "run.py", line 1, in main\nKeyError: 1', "The program itself stopped with KeyError"),
        (
            "FileNotFoundError: [Errno 2] No such file: 'a'",
            "The program itself stopped with FileNotFoundError",
        ),
    ],
)
def test_an_exception_is_of_the_library_whose_call_raised_it(log: str, title: str) -> None:
    assert [each.title for each in explain(log).causes] == [title]
    assert explain(log).unknown == ()


def test_an_exception_without_its_calls_may_be_tensorrts() -> None:
    assert explain("ValueError: no").findings == ()
    behind = explain(f"[E] [TRT] CUDA initialization failure with error: 35\n{LAST}ValueError: no")
    assert [each.kind for each in behind.findings if each.id == "caller-stopped"] == ["harmless"]


def test_a_name_that_the_version_told_still_has_is_not_called_gone() -> None:
    line = "AttributeError: module 'tensorrt' has no attribute 'CalibrationAlgoType'"
    ids = [explain(line, version).causes[0].id for version in ("11.1", "", "10.8")]
    assert ids == ["implicit-int8-removed", "implicit-int8-removed", "other-module"]
    assert "__file__" in explain(line).causes[0].cause


@pytest.mark.parametrize("tool", ["tensorrt-llm", "transformers", "torch-onnx"])
def test_a_row_that_was_written_by_hand_is_known_as_it_is_printed(tool: str) -> None:
    for form in load_forms():
        if form.tool == tool:
            text = re.sub(r"\{\}", "value", form.form)
            log = f'  File "/usr/lib/python3/dist-packages/{MODULES[tool]}/a.py", line 3, in f\nRuntimeError: {text}'
            assert form.group in [each.id for each in explain(log).findings], form.form
