"""All blockers of a model on engines that are made up: which are found, in which order, and where it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import onnx
import pytest

from harness import words
from harness.case import Graph, Profile
from harness.judge.cell import Judged
from harness.known.further import Blockers
from harness.models.blockers import MOST_TRIES, accused, blockers
from tests.models.fake import Engine, judged, refused, unbuilt
from tests.report.factory import target

pytestmark = pytest.mark.unit


def row(*operators: str) -> onnx.ModelProto:
    """Return operators in a row, each called after itself and its place: /Exp_1."""
    g = Graph("row")
    x = g.input("x", [2, 4])
    for index, operator in enumerate(operators):
        x = g.node(operator, [x], name=f"/{operator}_{index}")
    g.output(x, [2, 4])
    return g.model()


def search(model: onnx.ModelProto, engine: Engine, clock: Callable[[], float] = lambda: 0.0) -> Blockers:
    def attempt(part: onnx.ModelProto, _: tuple[Profile, ...]) -> Judged:
        return judged(part, **engine(part))

    return blockers(model, attempt(model, ()), attempt, clock=clock)


def nodes(model: onnx.ModelProto, operator: str) -> list[str]:
    return [node.name for node in model.graph.node if node.op_type == operator]


def test_each_refusal_is_found_behind_the_one_before() -> None:
    def engine(model: onnx.ModelProto) -> dict[str, object]:
        """Refuse every Exp at once when it parses, and then a Tanh when it builds."""
        if bad := nodes(model, "Exp"):
            return refused(*((name, "Exp", f"Exp is odd at {name}") for name in bad))
        tanh = nodes(model, "Tanh")
        return unbuilt(f"Could not find any implementation for node {tanh[0]}.") if tanh else {}

    found = search(row("Relu", "Exp", "Relu", "Tanh", "Exp", "Relu"), engine)
    told = [(each.nodes, each.operator, each.after_cut) for each in found.found]
    assert told == [(("/Exp_1",), "Exp", False), (("/Exp_4",), "Exp", False), (("/Tanh_3",), "Tanh", True)]
    assert found.end == "the rest builds"
    assert found.tries == 2
    assert found.found[2].signature is not None
    assert found.found[0].reason == "Exp is odd at /Exp_1"


def test_a_failure_without_a_node_ends_the_search_and_is_told() -> None:
    found = search(row("Relu"), lambda _: unbuilt("no luck"))
    assert found.found == ()
    assert "no luck" in found.end


def test_what_reads_a_tensor_of_unknown_shape_is_told_to_be_cut_as_well() -> None:
    g = Graph("foreign")
    x = g.input("x", [2, 4])
    odd = g.node("Odd", [x], name="/odd", domain="com.example")
    g.output(g.node("Relu", [odd], name="/behind"), [2, 4])
    g.output(g.node("Exp", [x], name="/beside"), [2, 4])
    found = search(g.model(), lambda part: refused(("/odd", "Odd", "no Odd")) if nodes(part, "Odd") else {})
    assert ([each.nodes for each in found.found], found.cut_as_well) == ([("/odd",)], ("/behind",))


def test_what_was_not_tried_is_held_to_nvidia_s_tables() -> None:
    g = Graph("foreign")
    x = g.input("x", [2, 4, 4])
    odd = g.node("Odd", [x], name="/odd", domain="com.example")
    g.output(g.node("Det", [odd], name="/behind"), [2])
    g.output(g.node("Exp", [x], name="/beside"), [2, 4, 4])

    def attempt(part: onnx.ModelProto, _: tuple[Profile, ...]) -> Judged:
        found = judged(part, **(refused(("/odd", "Odd", "no Odd")) if nodes(part, "Odd") else {}))
        trt86 = target("trt86", "8.6.1", engine=words.Engine.TENSORRT)
        return replace(found, cell=replace(found.cell, target=trt86))

    end = blockers(g.model(), attempt(g.model(), ()), attempt).end
    assert "Det '/behind'" in end
    assert "Exp" not in end


def test_a_fused_region_is_taken_as_the_nodes_that_it_is_of() -> None:
    def engine(model: onnx.ModelProto) -> dict[str, object]:
        region = "{ForeignNode[/Exp_1.../Tanh_2]}"
        return unbuilt(f"cannot compile {region}") if nodes(model, "Exp") else {}

    (blocker,) = search(row("Relu", "Exp", "Tanh", "Relu"), engine).found
    assert blocker.nodes == ("/Exp_1", "/Tanh_2")
    assert blocker.operator == ""


def test_where_an_operator_alone_is_named_its_quantised_nodes_are_meant() -> None:
    g = Graph("convolutions")
    x = g.input("x", [1, 4, 8, 8])
    for name in ("/plain", "/one", "/two"):
        weight = g.weight(f"{name}.w", (4, 4, 3, 3))
        if name != "/plain":
            x, weight = g.qdq(x, name=f"{name}/x"), g.weight_qdq(weight, name=f"{name}/w")
        x = g.conv(x, weight, name=name)
    g.output(x, [1, 4, 8, 8])
    said = "CHECK(dtype == myelinTypeFloat || dtype == myelinTypeHalf || dtype == myelinTypeBF16) failed"

    def engine(model: onnx.ModelProto) -> dict[str, object]:
        return unbuilt(said) if {"/one", "/two"}.intersection(nodes(model, "Conv")) else {}

    found = search(g.model(), engine)
    (blocker,) = found.found
    assert (blocker.nodes, blocker.operator, blocker.named) == (("/one", "/two"), "Conv", False)
    assert found.end == "the rest builds"


@pytest.mark.parametrize("quantised", ["/up", "/conv"])
def test_kin_are_meant_where_the_text_is_about_int8_and_the_operator_is_not_quantised(quantised: str) -> None:
    """RTX says of a quantised deconvolution the same as of a convolution; of a dilated one something else."""
    g = Graph("deconvolution")
    x = g.input("x", [1, 4, 8, 8])
    for name, width in (("/conv", 3), ("/up", 4)):
        weight = g.weight(f"{name}.w", (4, 4, width, width))
        if name == quantised:
            x, weight = g.qdq(x, name=f"{name}/x"), g.weight_qdq(weight, name=f"{name}/w")
        x = g.conv(x, weight, name=name) if name == "/conv" else g.conv_transpose(x, weight, name=name)
    g.output(x, [1, 4, 16, 16])
    said = "CHECK(dtype == myelinTypeFloat || dtype == myelinTypeHalf || dtype == myelinTypeBF16) failed"
    text = said if quantised == "/up" else "Strided & Dilated Deconv"
    (blocker,) = accused(judged(g.model(), **unbuilt(text)))
    assert (blocker.nodes, blocker.operator) == (("/up",), "ConvTranspose")


def test_a_search_is_bounded_in_tries_and_seconds() -> None:
    def engine(model: onnx.ModelProto) -> dict[str, object]:
        bad = nodes(model, "Exp")
        return refused((bad[0], "Exp", "odd")) if bad else {}

    model = row(*["Exp"] * (MOST_TRIES + 5), "Relu")
    assert search(model, engine).tries == MOST_TRIES
    times = iter(range(0, 1000, 40))
    found = search(model, engine, clock=lambda: next(times))
    assert (found.tries, "--seconds" in found.end) == (0, True)


def test_what_no_node_can_be_blamed_for_is_not_searched() -> None:
    for fields in ({}, {"state": "not_run", "reason": "no GPU"}):
        assert list(accused(judged(row("Relu"), **fields))) == []
