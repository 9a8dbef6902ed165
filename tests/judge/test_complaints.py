# ruff: noqa: E501  (engine texts are quoted whole)
"""Operator, node and error of a failure: the texts that are errors, the one that is reported, and its place."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from harness.judge.classify import classify
from harness.judge.complaints import (
    INPUT,
    MODEL,
    Place,
    errors,
    fatal,
    find_place,
    native,
    refusals,
    warnings,
)
from harness.judge.diagnosis import diagnose
from harness.record.outcome import End, Message, Node, Outcome, ParserError
from tests.judge.said import BUILD_FAILED
from tests.judge.said import outcome as made_of

pytestmark = pytest.mark.unit

NOISE = "Engine could not be created from network"
AGENT = "build_serialized_network returned no engine"


def record(*messages: str, **changes: Any) -> Outcome:
    """Return a record of messages, each "SEVERITY text"."""
    said = tuple(Message(*message.split(" ", 1)) for message in messages)
    return Outcome("c.v-t", "c", "v", "t", "done", messages=said, **changes)


def test_errors_are_those_of_logger_parser_and_process_in_this_order() -> None:
    """Without lines that only repeat that something failed; any other text is a warning."""
    found = record(
        "WARNING a warning",
        f"ERROR first\n\n  \n{NOISE}\n last ",
        f"ERROR {NOISE}",
        "INFO told",
        "INTERNAL_ERROR inner",
        parser_errors=(ParserError("of the parser"), ParserError("")),
        error=AGENT,
        end=End("signalled", "killed by SIGSEGV"),
    )
    assert errors(found) == ("first\n last", "inner", "of the parser", AGENT, "killed by SIGSEGV")
    assert warnings(found) == ("a warning", "told")
    assert errors(record(end=End("finished", "all is well"))) == errors(record()) == ()


def test_refusals_leave_out_what_the_parser_did_not_say() -> None:
    refused = ParserError("no", "8", "/a", "Conv"), ParserError(f"{NOISE}\nno"), ParserError("", "8")
    assert refusals(record(parser_errors=refused)) == ("Conv: 8: no", "no", "8")


def test_native_lines_are_those_with_text() -> None:
    assert native(record(native_output=f"one\n \n{NOISE}\n two\n")) == ("one", " two")


@pytest.mark.parametrize(
    ("messages", "changes", "said"),
    [
        ((), {}, ""),
        # The last of the logger that is not the agent's own sentence, which is the cause of last resort.
        (("ERROR first", "INTERNAL_ERROR last", f"ERROR {NOISE}", "WARNING later"), {"error": AGENT}, "last"),
        ((f"ERROR {NOISE}",), {"error": AGENT}, AGENT),
        # It is of no node, not even of the only one.
        ((), {"error": AGENT, "nodes": (Node("/c", "Conv"),)}, AGENT),
        ((), {"error": "KeyError: 'x'"}, "KeyError: 'x'"),
        (("ERROR logged",), {"error": "KeyError: 'x'"}, "logged"),
        # The parser's first that says more than its own value, before any of the logger's.
        (("ERROR logged",), {"parser_errors": (ParserError("one", "8"), ParserError("two"))}, "8: one"),
        ((), {"parser_errors": (ParserError("false"), ParserError("two", "9"))}, "9: two"),
        (
            (),
            {"parser_errors": (ParserError("false", "7"), ParserError("", "9"))},
            "7: the parser says no more",
        ),
        # On one line of 400 characters.
        (("ERROR two\n lines",), {}, "two lines"),
        ((f"ERROR {'x' * 400}",), {}, "x" * 400),
        ((f"ERROR {'x' * 401}",), {}, "x" * 397 + "..."),
    ],
)
def test_the_error_that_ended_a_job(messages: tuple[str, ...], changes: dict[str, Any], said: str) -> None:
    assert fatal(record(*messages, **changes)) == said


FAILED = Outcome("c.v-t", "c", "v", "t", "done", end=End("finished"))
#: The refusal by 1.7 of a BitShift without a name, with a Relu in front.
BIT_SHIFT = dataclasses.replace(
    FAILED,
    failed_phase="parse",
    error="the ONNX parser refused the model",
    nodes=(Node("/relu", "Relu"), Node("node_of_z", "BitShift")),
    parser_errors=(ParserError("false", code="UNSUPPORTED_NODE", operator="BitShift"),),
    messages=(
        Message("ERROR", 'ModelImporter.cpp:140: While parsing node number 1 [BitShift -> "z"]:'),
        Message("ERROR", "ModelImporter.cpp:142: --- Begin node ---\nNode name: "),
        Message("ERROR", "ModelImporter.cpp:143: --- End node ---"),
        Message("ERROR", "ModelImporter.cpp:151: ERROR: onnxOpCheckers.cpp:1085 In function checkBitShift:\n[8] false"),
    ),
)  # fmt: skip
CONVERT = 'Assertion failed: convertDtype(onnxDtype.elem_type(), &trtDtype) && "Failed to convert ONNX date type to TensorRT data type."'
#: The refusal by 1.7 of a network input that it has no type for.
UINT32_INPUT = dataclasses.replace(
    FAILED,
    failed_phase="parse",
    nodes=(Node("/pre/Cast", "Cast"), Node("/Add", "Add")),
    parser_errors=(ParserError(CONVERT, code="UNSUPPORTED_NODE"),),
    messages=(
        Message("ERROR", f"ModelImporter.cpp:151: ERROR: x:992 In function importInput:\n[8] {CONVERT}"),
    ),
    native_output="Unsupported ONNX data type: UINT32 (12)\n",
)


def test_a_parser_that_says_false_is_told_by_operator_node_and_code() -> None:
    """The record holds all three; "parse failed: false" was all that a reader saw of it."""
    reason = classify(BIT_SHIFT, got={}).reason
    assert reason.split(": ")[1:3] == ["BitShift node 'node_of_z'", "UNSUPPORTED_NODE"]
    found = diagnose(BIT_SHIFT, BUILD_FAILED)
    assert found is not None
    assert (found.id, found.operator, found.node) == ("bit-operator", "BitShift", "node_of_z")
    assert found.place == "BitShift node 'node_of_z'"


def test_a_refusal_of_the_file_is_charged_to_no_node() -> None:
    """Its one node, or its first, has no part in how the file is stamped."""
    for said in (
        "Unsupported model IR version: 11, max supported IR version: 9",
        "Opset 28 is under development and support for this is limited",
    ):
        found = find_place(dataclasses.replace(BIT_SHIFT, nodes=BIT_SHIFT.nodes[:1]), said)
        assert (found, str(found)) == (Place(MODEL), "model")


def test_an_operator_in_the_place_of_the_one_node_is_told_with_its_name() -> None:
    """ONNX Runtime writes Attention out as other operators; with several nodes no node can be named."""
    record = dataclasses.replace(FAILED, nodes=(Node("/attn", "Attention"),))
    said = "Could not find an implementation for Expand(13) node with name ''"
    assert find_place(record, said, operator="Expand") == Place("Expand", "/attn")
    two = dataclasses.replace(record, nodes=(*record.nodes, Node("/relu", "Relu")))
    assert find_place(two, said, operator="Expand") == Place("Expand")


def test_an_input_is_named_where_no_node_was_reached() -> None:
    """In a graph with one node it is clear which one reads the input; in another the input itself is the place."""
    assert "network input 'x'" in classify(UINT32_INPUT, got={}).reason
    found = diagnose(UINT32_INPUT, BUILD_FAILED)
    assert found is not None
    assert (found.id, found.operator, found.node) == ("wide-unsigned-integer", INPUT, "x")
    alone = diagnose(dataclasses.replace(UINT32_INPUT, nodes=UINT32_INPUT.nodes[:1]), BUILD_FAILED)
    assert alone is not None
    assert (alone.operator, alone.node) == ("Cast", "/pre/Cast")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        # A layer made of a node, or of more than one.
        ("/NMS_0 has no runners that implement it", ("NonMaxSuppression", "/NMS")),
        ("Node {ForeignNode[/a/Conv.../a/Relu]} cannot be quantized", ("Conv", "/a/Conv")),
        ("Node {ForeignNode[ONNXTRT_Broadcast_1.../a/Relu]} cannot be quantized", ("Relu", "/a/Relu")),
        ("ITopKLayer /TopK: /TopK: K exceeds the maximum", ("TopK", "/TopK")),
        # The longer of two names, and no part of a longer path.
        ("could not build /a/Conv_1 at all", ("Conv", "/a/Conv_1")),
        ("could not build /a/Conv/x", ("", "")),
        # A word that happens to be a name.
        ("the mask is wrong", ("", "")),
        # How the parser of TensorRT 10 begins.
        ("In node 5 with name: /r and operator: Resize (checkResize): UNSUPPORTED_NODE: x", ("Resize", "/r")),
        ("nothing that is known", ("", "")),
    ],
)
def test_a_node_is_found_in_what_an_engine_says(text: str, place: tuple[str, str]) -> None:
    named = {"/a/Conv": "Conv", "/a/Conv_1": "Conv", "/a/Relu": "Relu", "/NMS": "NonMaxSuppression"}
    named |= {"/TopK": "TopK", "mask": "Where"}
    record = dataclasses.replace(FAILED, nodes=tuple(Node(name, op) for name, op in named.items()))
    assert find_place(record, text) == place


def test_an_operator_alone_names_its_nodes() -> None:
    """A text with an operator alone gives all its nodes, the first three by name."""
    nodes = tuple(Node(f"/c{number}", "Conv") for number in range(5))
    record = dataclasses.replace(FAILED, nodes=(Node("/r", "Relu"), *nodes))
    assert find_place(record, "x", operator="Conv") == Place("Conv", "/c0, /c1, /c2 and 2 more")
    some = dataclasses.replace(record, nodes=record.nodes[:4])
    assert find_place(some, "x", operator="Conv") == Place("Conv", "/c0, /c1, /c2")
    assert find_place(some, "x", operator="Gemm") == Place("Gemm")
    alone = dataclasses.replace(record, nodes=nodes[:1])
    assert find_place(alone, "x", operator="Gemm") == Place("Gemm", "/c0")
    assert find_place(alone, "x") == Place("Conv", "/c0")
    assert find_place(some, "x") == Place()
    assert find_place(record, "x", operator="Conv", node="/c3 + PWN(/r)") == Place("Conv", "/c3")
    assert find_place(record, "x", node="/c3 + PWN(/r)") == Place("Conv", "/c3")
    assert find_place(record, "x", operator="Fused", node="/c3") == Place("Fused", "/c3")
    # A mere word is a name if it is the whole text.
    mask = dataclasses.replace(record, nodes=(Node("mask", "Where"), *nodes))
    assert find_place(mask, "x", node="mask") == Place("Where", "mask")
    assert find_place(record, "x", node="wholly unknown") == Place("", "wholly unknown")
    assert str(Place("", "wholly unknown")) == "node 'wholly unknown'"


def test_an_operator_of_a_subgraph_comes_with_the_node_around_it() -> None:
    """1.7 tells SequenceConstruct in the error and the If that holds it in the log."""
    record = dataclasses.replace(
        BIT_SHIFT,
        nodes=(Node("node_of_res", "If"), Node("node_of_o", "Identity")),
        parser_errors=(ParserError("false", code="UNSUPPORTED_NODE", operator="SequenceConstruct"),),
        messages=(
            Message("ERROR", 'ModelImporter.cpp:140: While parsing node number 0 [If -> "res"]:'),
            Message("ERROR", "ERROR: onnxOpCheckers.cpp:1208 In function checkSequenceConstruct:\n[8] false"),
        ),
    )
    found = diagnose(record, BUILD_FAILED)
    assert found is not None
    assert (found.id, found.operator, found.node) == (
        "sequence-or-optional",
        "SequenceConstruct",
        "node_of_res",
    )


def test_a_node_inside_the_only_one_is_told_by_the_log() -> None:
    """The graph has one node, a loop, and the log names the one in its body that was refused."""
    record = dataclasses.replace(
        FAILED,
        nodes=(Node("/loop", "Loop"),),
        parser_errors=(ParserError("no"),),
        messages=(
            parsing(0, "Mish", "m"),
            Message("ERROR", "ERROR: x.cpp:1 In function importMish:\n[8] no"),
        ),
    )
    assert find_place(record, "no") == Place("Mish", "node_of_m")


def test_the_function_that_refused_names_the_operator_where_nothing_else_does() -> None:
    record = dataclasses.replace(
        FAILED,
        nodes=(Node("/s", "ScatterElements"), Node("/r", "Relu")),
        parser_errors=(ParserError("Unsupported reduction type", code="UNSUPPORTED_NODE_ATTR"),),
        messages=(Message("ERROR", "ModelImporter.cpp:149: ERROR: onnxOpImporters.cpp:6520 In function importScatterElements:\n[9] Unsupported reduction type"),),
    )  # fmt: skip
    assert find_place(record, "Unsupported reduction type") == Place("ScatterElements", "/s")


def parsing(number: int, operator: str, output: str) -> Message:
    return Message("ERROR", f'x.cpp:1: While parsing node number {number} [{operator} -> "{output}"]:')


@pytest.mark.parametrize(
    ("errors", "text", "place"),
    [
        # The complaint that the text is about, by its first line and without the space around it.
        (("\n first\nmore", "second"), "  first\nof the lines", ("Relu", "node_of_a")),
        (("first", "second"), "second", ("Conv", "node_of_b")),
        (("first", "\n second\nmore"), "  second\nof the lines", ("Conv", "node_of_b")),
        # A library's own words led to the first error.
        (("first", "second"), "past the logger", ("Relu", "node_of_a")),
        # A text that the log does not repeat has no place in it.
        (("third",), "third", ("", "")),
        # Without a word of complaint it is the node that was read last.
        (("",), "past the logger", ("Conv", "node_of_b")),
        (("without an output",), "without an output", ("Mish", "")),
        ((), "first", ("", "")),
    ],
)
def test_a_complaint_is_of_the_node_that_was_read_when_it_came(
    errors: tuple[str, ...], text: str, place: tuple[str, str]
) -> None:
    """The parser's own lines stand before it; the function that complains may be of another node's helper."""
    record = dataclasses.replace(
        FAILED,
        nodes=(Node("/r", "Relu"), Node("/c", "Conv")),
        parser_errors=tuple(map(ParserError, errors)),
        messages=(
            Message("ERROR", "first of all, before any node was read"),
            Message("ERROR", "x.cpp:1: While parsing node number 0 [Mish]:"),
            Message("ERROR", "ERROR: x.cpp:1 In function importMish:\n[8] without an output"),
            parsing(0, "Relu", "a"),
            Message("ERROR", "ERROR: x.cpp:1 In function importGemm:\n[8] first"),
            parsing(1, "Conv", "b"),
            Message("ERROR", "ERROR: x.cpp:1 In function importConv:\n[8] second"),
        ),
    )
    assert find_place(record, text) == place


def test_of_two_errors_that_of_the_operator_is_told() -> None:
    """The text is in neither."""
    errors = ParserError("one", node="/r", operator="Relu"), ParserError("two", node="/c", operator="Conv")
    nodes = Node("/r", "Relu"), Node("/b", "Conv"), Node("/c", "Conv")
    record = dataclasses.replace(FAILED, nodes=nodes, parser_errors=errors)
    assert find_place(record, "x", operator="Conv") == Place("Conv", "/c")
    assert find_place(record, "x") == Place("Relu", "/r")
    # The cause of the first error is not that of the second, at any place of the first.
    unplaced = dataclasses.replace(record, parser_errors=(ParserError("one"), errors[1]))
    assert find_place(unplaced, "x") == Place()
    # The number that a text has names its node, if the operator is the one in question.
    numbered = "In node 1 with name: /c and operator: Conv (x)"
    without = dataclasses.replace(record, parser_errors=())
    assert find_place(without, numbered) == find_place(without, numbered, operator="Conv") == ("Conv", "/c")
    assert find_place(without, numbered, operator="Relu") == ("Relu", "/r")
    assert find_place(without, "/c is wrong, /r as well", operator="Relu") == ("Relu", "/r")


def test_a_refused_builder_flag_is_no_nodes_fault() -> None:
    text = "API Usage Error (Parameter check failed, condition: !config.getFlag(BuilderFlag::kFP16).)"
    record = dataclasses.replace(
        FAILED, failed_phase="build", nodes=(Node("/c", "Conv"),), messages=(Message("ERROR", text),)
    )
    assert classify(record, got={}).reason == f"build failed: {text}"
    found = diagnose(record, BUILD_FAILED)
    assert found is not None
    assert (found.id, found.place) == ("weak-typing-removed", "")


@pytest.mark.parametrize(
    ("name", "nodes", "place"),
    [
        ("$$myelin$$(Unnamed Loop* 0)^(Unnamed Layer* 27) [Matrix Multiply]", "Relu LSTM", ("LSTM", "/LSTM")),
        ("$$myelin$$(Unnamed Loop* 0)^(Unnamed Layer* 27) [Shuffle]", "LSTM GRU", ("LSTM", "/LSTM")),
        ("$$myelin$$(Unnamed Loop* 1)^(Unnamed Layer* 27) [Shuffle]", "LSTM GRU Loop", ("GRU", "/GRU")),
        ("$$myelin$$(Unnamed Loop* 0)^node_Einsum_2", "Loop LSTM", ("Loop", "/Loop")),
        # The first loop, or a branch, may hold loops of its own: the number may be any other's.
        ("$$myelin$$(Unnamed Loop* 2)^(Unnamed Layer* 55) [Shuffle]", "Loop LSTM GRU", None),
        ("$$myelin$$(Unnamed Loop* 1)^(Unnamed Layer* 55) [Shuffle]", "If LSTM GRU", None),
        (
            "$$myelin$$(Unnamed Loop* 1)^(Unnamed Loop* 2)^(Unnamed Layer* 35) [Shuffle]",
            "Loop Scan LSTM",
            None,
        ),
        ("$$myelin$$(Unnamed Loop* 1)^node_of_b", "Loop Scan", ("", "node_of_b")),
        ("$$myelin$$(Unnamed IfConditional* 0)^$$myelin$$then^then/MatMul", "If Relu", ("", "then/MatMul")),
    ],
)
def test_a_layer_of_a_loop_or_a_branch_has_the_name_of_its_node(
    name: str, nodes: str, place: tuple[str, str] | None
) -> None:
    """As TensorRT for RTX 1.7 printed them; a layer that may be of any of several loops keeps the engine's name."""
    record = made_of(nodes=tuple(Node(f"/{op}", op) for op in nodes.split()))
    assert find_place(record, "cannot compile", node=name) == (place or ("", name))
