"""A megabyte of text like an engine's is read in seconds.

Each took the square or the cube of its length once: hours, with a pattern for a whole line or a search to the end.
"""

from __future__ import annotations

import json
from itertools import pairwise

import onnx
import pytest
from hypothesis import given

from harness.layers import ort, parse
from harness.layers.parse import LayerReport, Source, parse_layers
from harness.layers.precision import node_precision
from harness.record.outcome import Node, Outcome
from tests.layers.graphs import quantised
from tests.layers.samples import DATA
from tests.near import SAME, near

pytestmark = pytest.mark.unit

NODES = tuple(Node(name, "Conv") for name in ("a", "b", "c", "conv"))
LENGTH = 1_000_000
TENSOR = "{ Name: x, Dimensions: [1,8], Datatype: Half"


def filled(unit: str, before: str = "", after: str = "") -> str:
    return before + unit * (LENGTH // len(unit)) + after


@pytest.mark.parametrize(
    "unit",
    [
        f"Name: a, LayerType: conv, Inputs: [ {TENSOR}\n",
        f"{TENSOR}",
        ", Dimensions: [1,8], Datatype: Half",
        ", LayerType: conv, ",
        "Name: a\n",
        *" \n,a1",
    ],
)
def test_layers_of_a_verbose_log_that_are_nearly_some(unit: str) -> None:
    for before in ("", f"Name: a, LayerType: conv, Inputs: [{TENSOR[:12]}"):
        assert parse_layers("verbose_log", filled(unit, f"Layers:\n{before}", "\n. LayerType: ")).unparsed


@pytest.mark.parametrize(
    "unit", ["{ForeignNode[", "...", "a...", "w...)", "{ForeignNode[w...", " + ", "a || "]
)
@pytest.mark.parametrize("region", [False, True])
def test_a_layers_name_that_is_nearly_one_of_nodes(unit: str, *, region: bool) -> None:
    name = filled(unit, "{ForeignNode[", "]}") if region else filled(unit)
    assert len(inspect(name).layers) == 1


def test_sizes_that_no_tensor_has_are_not_multiplied() -> None:
    constant = {"Name": "w", "Datatype": "Int8", "Dimensions": [10**18] * (LENGTH // 20)}
    report = inspect("a", LayerType="convolution", Inputs=[constant], Constants=[constant])
    assert report.layers[0].precision == "int8"
    assert inspect("a", Inputs=[{**constant, "Dimensions": [10**4000]}]).unparsed == 1


@pytest.mark.parametrize(
    "said",
    [
        "[" * LENGTH,
        '{"Layers": ' * (LENGTH // 11),
        '{"Layers": [' + "1" * LENGTH,
        '{"Layers": [{"Name": "a", "Inputs": [{"Name": "x", "Dimensions": [1e999]}]}]}',
    ],
)
def test_json_that_has_no_end_is_not_understood(said: str) -> None:
    assert parse_layers("inspector", said).unparsed == 1


def inspect(name: str, **fields: object) -> LayerReport:
    source: Source = "inspector"
    return parse_layers(source, json.dumps({"Layers": [{"Name": name, **fields}]}), nodes=NODES)


def test_a_model_of_many_nodes_beside_names_of_many_joints() -> None:
    """Text and names together ask for their product: the rest is counted as not understood."""
    nodes = [Node("a" * (number + 1), "Conv") for number in range(2000)]
    said = json.dumps({"Layers": [", b" * 1000] * (LENGTH // 3000)})
    report = parse_layers("inspector", said, nodes=nodes)
    assert 0 < report.unparsed < len(report.layers) == LENGTH // 3000


def test_regions_that_hold_every_node() -> None:
    nodes = [Node(f"n{number}", "Conv") for number in range(20_000)]
    said = json.dumps({"Layers": ["{ForeignNode[n0...n19999]}"] * 3_000})
    report = parse_layers("inspector", said, nodes=nodes)
    assert report.unparsed > 0
    assert len(report.layers[0].onnx_nodes) == 20_000


def test_an_optimised_model_whose_every_node_asks_for_the_whole_original(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ort, "_MOST_STEPS", 10_000)
    tensors = [f"t{number}" for number in range(500)]
    chain = [onnx.helper.make_node("Relu", [x], [y]) for x, y in pairwise(tensors)]
    before = onnx.helper.make_model(onnx.helper.make_graph(chain, "g", [], []))
    last = [onnx.helper.make_node("X", ["x"], [tensors[-1]], name=f"n{number}") for number in range(500)]
    after = onnx.helper.make_model(onnx.helper.make_graph(last, "g", [], []))
    data = after.SerializeToString()
    report = parse_layers("ort_graph", data, model=before.SerializeToString())
    assert 0 < report.unparsed < len(report.layers)


def test_what_is_longer_than_any_account_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    said = json.dumps({"Layers": ["a"]})
    monkeypatch.setattr(parse, "LONGEST", len(said))
    assert parse_layers("inspector", said).layers
    assert parse_layers("inspector", f" {said}") == LayerReport((), 1, "inspector")


@pytest.mark.parametrize(
    ("node", "operator"),
    [
        (onnx.helper.make_node("Relu", [], []), b"Relu"),
        (onnx.helper.make_node("Relu", [], []), b"Re\xff\xfe"),
        (onnx.helper.make_node("MatMulNBits", ["x"], ["y"]), b"MatMulNBits"),
        (onnx.NodeProto(op_type="Transpose"), b"Transpose"),
    ],
)
def test_a_node_that_lacks_what_nodes_have_is_not_understood(node: onnx.NodeProto, operator: bytes) -> None:
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [], [])).SerializeToString()
    found = parse_layers("ort_graph", model.replace(node.op_type.encode(), operator), model=model)
    assert (found.layers, found.unparsed) == ((), 1)


#: By source: accounts of layers that an engine gave.
GIVEN: dict[Source, tuple[bytes, ...]] = {
    "verbose_log": ((DATA / "rtx-1.7.1.116-int8-matmul-sm89.txt").read_bytes()[:4000],),
    "inspector": (
        json.dumps(
            {"Layers": [{"Name": "a", "Inputs": [{"Name": "x", "Dimensions": [1, 8]}]}, "b"]}
        ).encode(),
    ),
    "ort_graph": tuple(path.read_bytes() for path in sorted(DATA.glob("ort-1.31*.onnx"))),
}


@pytest.mark.parametrize("source", GIVEN)
def test_of_any_account_layers_come_that_a_record_holds(source: Source) -> None:
    @SAME
    @given(near(*GIVEN[source]))
    def read(said: bytes) -> None:
        report = parse_layers(source, said, nodes=NODES, model=quantised())
        node_precision(NODES, report.layers)
        outcome = Outcome("c.v-t", "c", "v", "t", "done", layers=report.layers)
        assert outcome.as_read() == outcome

    read()
