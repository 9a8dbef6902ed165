"""The optimised models that two versions of ONNX Runtime wrote lead back to the original nodes."""

from __future__ import annotations

import onnx
import pytest

from harness.case import effective_name
from harness.layers.ort import Origins
from harness.layers.parse import LayerReport, parse_layers
from harness.layers.precision import node_precision
from harness.record.outcome import Node
from tests.layers.graphs import floating, half, quantised, unnamed
from tests.layers.samples import DATA

pytestmark = pytest.mark.unit

ORIGINALS = {"quantised": quantised(), "floating": floating(), "unnamed": unnamed(), "half": half()}
VERSIONS = ("1.17.3", "1.31.1")


def nodes(sample: str) -> tuple[Node, ...]:
    graph = onnx.load_from_string(ORIGINALS[sample]).graph
    return tuple(Node(effective_name(node), node.op_type) for node in graph.node)


def read(version: str, sample: str, **rest: dict[str, list[float]]) -> LayerReport:
    optimised = (DATA / f"ort-{version}-{sample}.onnx").read_bytes()
    return parse_layers("ort_graph", optimised, model=ORIGINALS[sample], times_ms=rest.get("times_ms"))


@pytest.mark.parametrize("version", VERSIONS)
def test_convolutions_between_quantised_tensors_run_in_8_bits(version: str) -> None:
    report = read(version, "quantised")
    assert report.unparsed == 0
    assert node_precision(nodes("quantised"), report.layers) == {
        "/conv": "int8",
        "/depthwise": "int8",
        "/pool": "uint8",
    }
    (depthwise,) = (layer for layer in report.layers if "/depthwise" in layer.onnx_nodes)
    assert depthwise.type == "com.microsoft.QLinearConv"
    assert [tensor.precision for tensor in depthwise.inputs] == ["uint8"]
    assert ("int8", (16, 1, 1, 1)) in [(tensor.precision, tensor.dimensions) for tensor in depthwise.weights]


@pytest.mark.parametrize("version", VERSIONS)
def test_nodes_in_blocked_layout_and_fused_activations_keep_their_origin(version: str) -> None:
    layers = read(version, "floating").layers
    origins = [layer.onnx_nodes for layer in layers if layer.onnx_nodes]
    assert origins == [
        ("/a/Conv",),
        ("/a/Sigmoid", "/a/Mul"),
        ("/b/Conv",),
        ("/b/Sigmoid", "/b/Mul"),
        ("node_of_c", "node_of_d"),
    ]
    assert set(node_precision(nodes("floating"), layers).values()) == {"fp32"}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_quantised_convolution_without_a_name_is_found_from_the_tensors_around_it(version: str) -> None:
    layers = read(version, "unnamed").layers
    assert node_precision(nodes("unnamed"), layers) == {"node_of_convolved": "int8"}
    (convolution,) = (layer for layer in layers if "node_of_convolved" in layer.onnx_nodes)
    assert convolution.type == "com.microsoft.QLinearConv"


@pytest.mark.parametrize("version", VERSIONS)
def test_half_precision_nodes_are_seen_to_run_in_fp32(version: str) -> None:
    layers = read(version, "half").layers
    precision = node_precision(nodes("half"), layers)
    assert precision == dict.fromkeys(("/conv", "node_of_softened", "/tanh", "/mul"), "fp32")
    assert [layer.onnx_nodes for layer in layers if layer.type == "Softplus"] == [("node_of_softened",)]
    (convolution,) = (layer for layer in layers if "/conv" in layer.onnx_nodes)
    assert {tensor.precision for tensor in convolution.inputs + convolution.weights} == {"fp32"}


def test_an_identity_removed_behind_a_named_node_goes_with_that_node() -> None:
    ends = [
        ("QuantizeLinear", "/q", "x", "a"),
        ("DequantizeLinear", "/dq", "a", "b"),
        ("Identity", "/id", "b", "y"),
    ]
    before = [
        onnx.helper.make_node(op, [came, "s"][: 1 + (op != "Identity")], [went], name=n)
        for op, n, came, went in ends
    ]
    after = [before[0], onnx.helper.make_node("DequantizeLinear", ["a", "s"], ["y"], name="/dq")]
    edges = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in ("x", "y")]
    graphs = [onnx.helper.make_graph(part, "g", edges[:1], edges[1:]) for part in (before, after)]
    assert Origins(*graphs).of(after[1]) == ("/dq", "/id")


@pytest.mark.parametrize(("bits", "kind"), [(4, "int4"), (8, "int8"), (2, "unknown")])
def test_weights_that_are_packed_in_bytes_are_what_the_node_says(bits: int, kind: str) -> None:
    """ONNX Runtime makes MatMulNBits of a MatMul behind the DequantizeLinear of a constant (seen on 1.31.1)."""
    edges = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [8, 64]) for name in ("x", "y")]
    packed = onnx.helper.make_tensor("w", onnx.TensorProto.UINT8, [64, 2, 16], bytes(2048), raw=True)
    node = onnx.helper.make_node(
        "MatMulNBits", ["x", "w", "s"], ["y"], name="/mm", domain="com.microsoft", bits=bits
    )
    plain = onnx.helper.make_node("MatMul", ["x", "w"], ["y"], name="/mm")
    after, before = (
        onnx.helper.make_model(onnx.helper.make_graph([each], "g", edges[:1], edges[1:], [packed]))
        for each in (node, plain)
    )
    (layer,) = parse_layers("ort_graph", after.SerializeToString(), model=before.SerializeToString()).layers
    assert layer.weights[0].precision == kind
    assert layer.precision == ("fp32" if kind == "unknown" else f"{kind}_weights")


@pytest.mark.parametrize("sample", ORIGINALS)
@pytest.mark.parametrize("version", VERSIONS)
def test_every_type_is_known_though_the_model_declares_only_its_edges(version: str, sample: str) -> None:
    layers = read(version, sample).layers
    assert all(tensor.precision != "unknown" for layer in layers for tensor in layer.inputs + layer.outputs)


def test_layers_get_the_median_of_their_times() -> None:
    layers = read("1.31.1", "quantised", times_ms={"/conv_token_7": [3.0, 1.0, 2.0]}).layers
    assert {layer.name: layer.time_ms for layer in layers}["/conv_token_7"] == 2.0


@pytest.mark.parametrize(("said", "unparsed"), [(b"", 0), (b"\xff\xff not a model", 1)])
def test_bytes_that_are_no_model_are_counted(said: bytes, unparsed: int) -> None:
    report = parse_layers("ort_graph", said, model=ORIGINALS["floating"])
    assert (report.layers, report.unparsed) == ((), unparsed)
