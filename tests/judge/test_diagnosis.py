# ruff: noqa: E501  (engine texts are quoted whole)
"""Signatures against the texts that engines really print, and against near misses."""

from __future__ import annotations

import dataclasses
import re
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from harness.case import Variant, load_cases
from harness.judge.classify import Classification, Lost
from harness.judge.diagnosis import Diagnosis, diagnose, model_lines, notes
from harness.judge.findings import explain
from harness.judge.signatures import load_signatures
from harness.layers.asked import asked as asked_of
from harness.record.outcome import End, Node, ParserError
from harness.words import GOOD, UNJUDGED, Class, Precision
from tests.judge.said import BUILD_FAILED, found_id, outcome
from tests.judge.texts import INNOCENT, LOGS, NEAR_MISSES, NOTES, SILENT, TALKING, TEXTS
from tests.models import data

pytestmark = pytest.mark.unit
CASES = Path(__file__).parents[2] / "cases"
CHANNELS = next(case for case in load_cases(CASES) if case.name == "depthwise_qdq").variants


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
    record = outcome(("warnings", text), ("warnings", f"{text} again"), ("warnings", "another"))
    (note,) = notes(record)
    assert (note.id, note.count, note.example) == (name, 2, text)
    assert diagnose(record, BUILD_FAILED) is None
    lost = diagnose(dataclasses.replace(record, failed_phase=None), Classification(Class.PRECISION_LOST, ""))
    assert lost is not None
    assert lost.id == name


@pytest.mark.parametrize(("name", "place", "text"), INNOCENT)
def test_what_is_innocent_is_known_and_neither_counted_nor_blamed(name: str, place: str, text: str) -> None:
    """Not even a cell that lost precision without another text."""
    record = outcome((place, text), failed_phase=None)
    assert notes(record) == ()
    for cls in (Class.BUILD_FAILED, Class.PRECISION_LOST):
        assert diagnose(record, Classification(cls, "")) is None
    (signature,) = (each for each in load_signatures() if each.id == name)
    assert any(pattern.regex.search(text) for pattern in signature.patterns)


@pytest.mark.parametrize(("name", "text"), LOGS)
def test_lines_that_belong_together_are_known_together(name: str, text: str) -> None:
    """And no line of them is told of once more, nor known as this alone."""
    assert [found.id for found in explain(text).causes] == [name]
    assert all(name not in {found.id for found in explain(line).causes} for line in text.split("\n"))


def test_what_is_a_cause_is_no_note() -> None:
    """However a cell ended, its errors are counted nowhere."""
    assert notes(outcome(*((place, text) for _, place, text in TEXTS))) == ()


@pytest.mark.parametrize(("name", "place", "text"), NEAR_MISSES)
def test_near_misses_are_not_taken_for_it(name: str, place: str, text: str) -> None:
    assert found_id((place, text)) != name


LOST, WRONG = Class.PRECISION_LOST, Class.INACCURATE
#: (variant, node that lost its precision, class, cause).
TOLD_BY_MODEL = [
    ("depthwise_qdq.qdq-group12", "node_of_output", LOST, "grouped-channels-in-float"),
    ("qdq_placement.concat-one-scale", "/last/Conv", LOST, "concat-of-dequantised"),
    ("qdq_placement.concat-one-scale", "/first/Conv", LOST, ""),
    ("low_precision_gemm.int8-two-activations", "/MatMul", LOST, "product-of-two-activations"),
    ("quantised_attention.int8", "/pv/MatMul", LOST, "product-of-two-activations"),
    ("low_precision_gemm.int8", "/MatMul", LOST, ""),
    ("quantised_attention.int8-half", "", WRONG, "quantised-attention-between-fp16"),
    ("quantised_attention.fp8", "", WRONG, ""),
    ("low_precision_gemm.int8-half", "", WRONG, ""),
    ("turing.depthwise-bf16", "/conv/Conv", WRONG, "depthwise-in-bf16"),
    ("turing.depthwise-bf16", "", WRONG, ""),
]


def test_every_signature_is_tested_by_a_real_text() -> None:
    tested = {name for name, *_ in (*TEXTS, *INNOCENT, *SILENT)} | {name for name, _ in (*NOTES, *LOGS)}
    tested |= {"runtime-ir-stamped", "scatter-reduction-none", "node-refused"}
    tested |= {
        "no-implementation-channels",
        "depthwise-channels-in-float",
        *(name for *_, name in TOLD_BY_MODEL if name),
    }
    assert {signature.id for signature in load_signatures()} == tested


@pytest.mark.parametrize("most", [9, 10, 11, 12, 13])
def test_an_ir_version_is_lowered_alone_where_the_opset_lets_it(most: int) -> None:
    """The newest opset that came with each IR version that a runtime reads, and every older one."""
    newest = {9: 20, 10: 21, 11: 23, 12: 24, 13: 24}[most]
    text = ("errors", f"Unsupported model IR version: {most + 1}, max supported IR version: {most}")
    assert found_id(text) == f"runtime-ir-{ {9: 10, 10: 11, 11: 11, 12: 13, 13: 14}[most] }"
    for opset in range(1, 29):
        model = data.model(opset=opset).SerializeToString()
        found = diagnose(outcome(text), BUILD_FAILED, model=partial(bytes, model))
        assert found is not None
        assert (found.id == "runtime-ir-stamped") == (opset <= newest)
        if opset <= newest:
            assert f"opset {opset}" in found.cause
            assert f"ir_version = {most}" in found.advice


#: Sentences that send a model to an opset, but for those that say of which models they speak.
RAISED = re.compile(r"(?:[Ee]xport (?:at|with) opset (\d+) or later|raise the opset to (\d+))")
#: Refusals by the opset, which an operator's kernel or the parser names itself.
OLDEST = {
    "runtime-quantise-type": "NOT_IMPLEMENTED : Could not find an implementation for DequantizeLinear({}) node with name 'x'",
    "opset-too-old": "Pre-opset 7 broadcasting is unsupported",
}


def test_no_model_is_told_to_get_an_opset_that_it_has() -> None:
    """A kernel's number is the opset in which its operator changed last; a parser names opset 7 of older ones alone."""
    assert {each.id for each in load_signatures() if RAISED.search(each.advice)} == set(OLDEST)
    for since in (10, 13, 19, 21, 23, 24, 25):
        text = OLDEST["runtime-quantise-type"].format(since)
        (found,) = {found_id(("errors", text))}
        assert found == ("runtime-quantise-type" if since < 19 else "runtime-no-kernel")


@pytest.mark.parametrize(
    ("reduction", "name"), [("none", "scatter-reduction-none"), ("add", "scatter-reduction")]
)
def test_a_cause_asks_the_node_that_is_refused_and_no_other(reduction: str, name: str) -> None:
    nodes = [
        helper.make_node("ScatterND", list("xiu"), [each], name=each, reduction=how)
        for each, how in (("/a", reduction), ("/b", "add" if reduction == "none" else "none"))
    ]
    graph = helper.make_graph(nodes, "g", [], [])
    model = helper.make_model(graph).SerializeToString()
    refused = ParserError('Assertion failed: !attrs.count("reduction")', node="/a", operator="ScatterND")
    record = outcome(parser_errors=(refused,), nodes=(Node("/a", "ScatterND"), Node("/b", "ScatterND")))
    found = diagnose(record, BUILD_FAILED, model=lambda: model)
    assert found is not None
    assert (found.id, found.node) == (name, "/a")
    without = diagnose(record, BUILD_FAILED)
    assert without is not None
    assert without.id == "scatter-reduction"


def test_a_model_that_cannot_be_read_is_asked_nothing() -> None:
    text = ("errors", "Unsupported model IR version: 10, max supported IR version: 9")
    found = diagnose(outcome(text), BUILD_FAILED, model=lambda: b"no model")
    assert found is not None
    assert found.id == "runtime-ir-10"


@pytest.mark.parametrize("node", ["", "/n"])
def test_a_refused_node_is_said_of_the_model_and_a_refused_call_of_the_call(node: str) -> None:
    text = "INode::set: Error Code 3: API Usage Error (Parameter check failed, condition: x > 0. In f at a.cpp:1)"
    errors = (ParserError(f"Invalid Node - /n\n{text}", "INVALID_NODE", "/n", "Foo"),) if node else ()
    found = diagnose(
        outcome(("errors", text), parser_errors=errors, nodes=(Node("/n", "Foo"),)), BUILD_FAILED
    )
    assert found is not None
    assert found.id == ("node-refused" if node else "usage-error")
    assert "condition: x > 0" in found.cause


def told_of(
    operator: str, asked: tuple[str, str], cls: str, network: str, *, lost: str = "/the node"
) -> Diagnosis | None:
    """Return the diagnosis of a node, in a cell that ended so and whose engine was silent."""
    losses = (Lost(lost, Precision.INT8, Precision.FP32),) if cls in ("precision_lost", "inaccurate") else ()
    nodes = (Node("/other", "Relu"), Node("/the node", operator, *asked))
    said = outcome(("info", "Timing cache disabled."), nodes=nodes, failed_phase=None)
    return diagnose(said, Classification(Class(cls), "", losses), network=network)


@pytest.mark.parametrize(("name", "operator", "asked", "cls", "network"), SILENT)
def test_what_an_engine_does_in_silence_is_told_from_the_model(
    name: str, operator: str, asked: tuple[str, str], cls: str, network: str
) -> None:
    """With the node; and of a cell that lost precision only if this node lost it."""
    found = told_of(operator, asked, cls, network)
    assert found is not None
    assert (found.id, found.operator, found.node) == (name, operator, "/the node")
    if cls == "precision_lost":
        assert told_of(operator, asked, cls, network, lost="/other") is None


@pytest.mark.parametrize(("operator", "asked", "cls", "network"), TALKING)
def test_no_model_is_blamed_for_another_failure(
    operator: str, asked: tuple[str, str], cls: str, network: str
) -> None:
    assert told_of(operator, asked, cls, network) is None


@pytest.mark.parametrize(
    "variant", [each for each in CHANNELS if each.name.startswith("qdq-")], ids=lambda each: each.name
)
def test_a_depthwise_convolution_of_few_channels_is_told_by_its_graph(variant: Variant) -> None:
    """8.6.1 builds none of 2, 3, 6 and 30, 10.6.0 runs them in FP32, as both do groups of less or more than 32."""
    nodes = {node.name: node for node in asked_of(onnx.load_model_from_string(variant.model_bytes()))}
    (conv,) = [name for name, node in nodes.items() if node.op == "Conv"]
    fused = ("errors", f"Could not find any implementation for node weights + quantized + {conv}.")
    every = tuple(nodes.values())
    failed = diagnose(outcome(fused, nodes=every), BUILD_FAILED, model=variant.model_bytes)
    lost = diagnose(
        outcome(nodes=every, failed_phase=None),
        Classification(Class.PRECISION_LOST, "", (Lost(conv, Precision.INT8, Precision.FP32),)),
        model=variant.model_bytes,
        network="tensorrt, weakly typed",
    )
    few = variant.name in ("qdq-c2", "qdq-c3", "qdq-c6", "qdq-c30")
    assert failed is not None
    assert failed.id == ("no-implementation-channels" if few else "no-implementation-qdq")
    grouped = variant.name.startswith("qdq-group") and variant.name not in ("qdq-group1", "qdq-group32")
    told = "depthwise-channels-in-float" if few else "grouped-channels-in-float" if grouped else ""
    assert (lost.id if lost else "") == told


@pytest.mark.parametrize(("variant", "node", "cls", "name"), TOLD_BY_MODEL)
def test_what_a_model_alone_tells_is_told_of_it(variant: str, node: str, cls: Class, name: str) -> None:
    """And of an FP8 twin, or where weights are quantised in place of the second activation, nothing is."""
    case, _, own = variant.partition(".")
    (built,) = (
        each for every in load_cases(CASES) if every.name == case for each in every if each.name == own
    )
    nodes = asked_of(onnx.load_model_from_string(built.model_bytes()))
    found = diagnose(
        outcome(nodes=nodes, failed_phase=None),
        Classification(cls, "", (Lost(node, Precision.INT8, Precision.FP32),) if node else ()),
        model=built.model_bytes,
        network="tensorrt, weakly typed",
    )
    assert (found.id if found else "") == name


@pytest.mark.parametrize(("opset", "name"), [(17, "contrib-operator"), (23, "no-importer")])
def test_an_operator_that_onnx_has_not_yet_is_onnx_runtimes(opset: int, name: str) -> None:
    """A RotaryEmbedding of opset 17 is com.microsoft's: an older opset is no way round it."""
    graph = helper.make_graph(
        [helper.make_node("RotaryEmbedding", list("xcs"), ["y"], name="/r")], "g", [], []
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]).SerializeToString()
    said = ("refused", "RotaryEmbedding: UNSUPPORTED_NODE: No importer registered for op: RotaryEmbedding")
    record = outcome(said, ("errors", said[1]), nodes=(Node("/r", "RotaryEmbedding"),))
    found = diagnose(record, BUILD_FAILED, model=lambda: model)
    assert found is not None
    assert found.id == name


def test_what_the_engine_says_of_a_crash_goes_before_the_model() -> None:
    nodes = (Node("/Concat", "Concat", "", "inputs of unlike scales"),)
    record = outcome(("native", TEXTS[1][2]), end=End("signalled", "killed by SIGSEGV"), nodes=nodes)
    found = diagnose(record, Classification(Class.CRASHED, ""))
    assert found is not None
    assert found.id == "no-int8-convolution"


@pytest.mark.parametrize("cls", sorted(GOOD | UNJUDGED))
def test_what_works_or_was_not_judged_has_no_diagnosis(cls: Class) -> None:
    assert found_id(("errors", TEXTS[0][2]), cls=Classification(cls, "")) is None


def test_the_specific_cause_wins_over_what_follows_it() -> None:
    """Whatever the order in the log: 'no implementation' does not give the reason."""
    generic = ("errors", "Could not find any implementation for node a.")
    specific = ("errors", "Assertion scales.size() == 1 failed")
    assert found_id(generic, specific) == found_id(specific, generic) == "plugin-scale-missing"
    cuda = ("errors", "Error Code 1: Cuda Runtime (some error)")
    assert found_id(cuda, generic) == found_id(generic, cuda) == "no-implementation"


@pytest.mark.parametrize("end", ["", ".", " ", " ...", " …", ".)", "\n"])
@pytest.mark.parametrize("letter", ["C", "c"])
def test_no_implementation_is_known_without_a_node(letter: str, end: str) -> None:
    """Of a line that a reader types or shortens, no dot is taken for a node."""
    text = f"{letter}ould not find any implementation for node"
    found = diagnose(outcome(("errors", text + end)), BUILD_FAILED)
    assert found is not None
    assert (found.id, found.node) == ("no-implementation", "")
    named = diagnose(outcome(("errors", f"{text} /a/Conv.")), BUILD_FAILED)
    assert named is not None
    assert named.node == "/a/Conv"


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
    assert found_id(text, failed_phase="run") == "buffers-do-not-fit"


def test_groups_are_filled_in_and_the_last_skipped_tactic_is_the_reason() -> None:
    record = outcome(
        ("warnings", "Skipping tactic 0x0000000000000000 due to exception first"),
        ("warnings", "Skipping tactic 0x0000000000000001 due to exception second"),
        ("errors", "Skipping tactic 0x00000000000003e8 due to exception last"),
        ("errors", "10: [o.cpp::c::1] Error Code 10: Internal Error (Could not find any implementation for node a + PWN(b, c).)"),
    )  # fmt: skip
    found = diagnose(record, BUILD_FAILED)
    assert found is not None
    assert found.title.endswith("a + PWN(b, c)")
    assert found.groups == {"node": "a + PWN(b, c)"}
    assert (found.operator, found.node) == ("", "a + PWN(b, c)")
    assert found.skipped_tactic.endswith("exception last")
    assert found.message.startswith("10: [o.cpp")
    assert "{" not in found.title + found.cause + found.advice


def test_a_group_that_this_text_lacks_reads_as_a_question_mark() -> None:
    found = diagnose(outcome(("errors", "no supported formats")), BUILD_FAILED)
    assert found is not None
    assert found.title.endswith("?")


@pytest.mark.parametrize("cls", [Class.PRECISION_LOST, Class.INACCURATE])
def test_what_finished_all_the_same_has_no_error_for_its_cause(cls: Class) -> None:
    """An engine logs errors of tactics that it then does without."""
    assert found_id(("errors", TEXTS[0][2]), cls=Classification(cls, ""), failed_phase=None) is None


def test_an_operator_that_a_text_names_is_the_place() -> None:
    """And one that the recipe asks for in vain is no node's."""
    said = outcome(
        ("errors", "No importer registered for op: Mish"), nodes=(Node("/m", "Mish"), Node("/r", "Relu"))
    )
    found = diagnose(said, BUILD_FAILED)
    assert found is not None
    assert (found.operator, found.node, found.skipped_tactic) == ("Mish", "/m", "")
    asked = diagnose(outcome(("missing_api", "BuilderFlag.INT8"), nodes=(Node("/c", "Conv"),)), BUILD_FAILED)
    assert asked is not None
    assert asked.place == ""


def test_advice_variants_exist() -> None:
    """The proof of an advice is a variant of the cases."""
    known = {f"{c.name}.{v.name}" for c in load_cases(CASES) for v in c}
    named = {name for signature in load_signatures() for name in signature.advice_variants}
    assert named
    assert named <= known


def test_signatures_that_cases_expect_exist() -> None:
    expected = {
        expectation.signature
        for case in load_cases(CASES)
        for variant in case
        for expectation in variant.expectations
    }
    assert expected - {None} <= {signature.id for signature in load_signatures()}


def test_no_pattern_holds_a_place_in_an_engines_source() -> None:
    """Those numbers move with every release."""
    for signature in load_signatures():
        for pattern in signature.patterns:
            assert ".cpp:" not in pattern.regex.pattern.replace("[\\w./]+:\\d+", "")


def test_a_line_about_a_model_holds_the_values_of_small_constants_alone() -> None:
    inputs = [helper.make_tensor_value_info("x", 1, [9])]
    held = [numpy_helper.from_array(np.arange(size, dtype=np.float32), f"c{size}") for size in (2, 9)]
    nodes = [helper.make_node("Sum", ["x", "c2", "c9"], ["y"], name="/sum")]
    graph = helper.make_graph(nodes, "g", inputs, [], held)
    lines = dict(model_lines(helper.make_model(graph).SerializeToString()))
    assert lines["/sum"] == "Sum /sum: ; x:9, c2=0.0,1.0, c9:9 constant"
