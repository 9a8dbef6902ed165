"""The cases of Q/DQ and narrow types: graphs held against each other differ in what is said, and in no more."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from harness.case import Variant, load_cases
from harness.run.numbers import make_inputs, reference

pytestmark = pytest.mark.unit

VARIANTS = {
    (case.name, variant.name): variant
    for case in load_cases(Path(__file__).resolve().parents[2] / "cases")
    for variant in case
}


def without_shapes(variant: Variant) -> tuple[list[bytes], dict[str, bytes]]:
    """Return the nodes without their attribute `axis`, and the values of the constants, whatever their shape."""
    graph = variant.build().graph
    nodes = []
    for node in graph.node:
        if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
            del node.attribute[:]
        nodes.append(node.SerializeToString(deterministic=True))
    return nodes, {item.name: item.raw_data for item in graph.initializer}


@pytest.mark.parametrize("name", [name for case, name in VARIANTS if case == "qdq_scale"])
def test_scales_differ_in_their_shape_alone(name: str) -> None:
    of_pair = VARIANTS["qdq_scale", "-".join([*name.split("-")[:2], "scalar"])]
    variant = VARIANTS["qdq_scale", name]
    graph = variant.build().graph
    shapes = {item.name: list(item.dims) for item in graph.initializer if "quantizer" in item.name}
    kind = name.split("-", 2)[2]
    data, weights = kind in ("vector", "data-vector"), kind in ("vector", "weights-vector")
    for tensor in ("scale", "zero_point"):
        assert shapes[f"/input_quantizer_{tensor}"] == ([1] if data else [])
        assert shapes[f"/weight_quantizer_{tensor}"] == ([1] if weights else [])
    assert without_shapes(variant) == without_shapes(of_pair)


def test_zeros_in_the_kernel_are_the_same_deconvolution() -> None:
    """The workaround gives the numbers of what it stands for."""
    models = [VARIANTS["qdq_shapes", name].build() for name in ("up-dilated", "up-dilated-zeros")]
    results = [reference(model, make_inputs(model)).outputs for model in models]
    dilated, zeros = (result["output"] for result in results if result)
    assert np.allclose(dilated, zeros, atol=1e-5)
    assert np.abs(dilated).max() > 0.1


def order(name: str) -> list[str]:
    """Return what stands round the Concat of a variant: its nodes from the first convolution on."""
    ops = [node.op_type for node in VARIANTS["qdq_placement", name].build().graph.node]
    return ops[ops.index("Conv") :]


def test_q_and_dq_stand_where_the_variant_says() -> None:
    pair, conv = ["QuantizeLinear", "DequantizeLinear"], ["QuantizeLinear", "DequantizeLinear", "Conv"]
    assert order("concat-two-scales") == ["Conv", *conv, *pair * 2, "Concat", *conv, "Identity"]
    assert order("concat-one-scale") == order("concat-two-scales")
    assert order("concat-after") == ["Conv", *conv, "Concat", *pair, *conv, "Identity"]
    assert order("concat-none") == ["Conv", *conv, "Concat", *conv, "Identity"]


def test_scales_of_the_two_branches_are_what_the_variant_says() -> None:
    for name, expected in (("concat-two-scales", [0.02, 0.03]), ("concat-one-scale", [0.03, 0.03])):
        graph = VARIANTS["qdq_placement", name].build().graph
        found = {
            item.name: onnx.numpy_helper.to_array(item).item() for item in graph.initializer if not item.dims
        }
        scales = [found[f"/{branch}/_output_quantizer_scale"] for branch in ("first", "second")]
        assert scales == pytest.approx(expected)


@pytest.mark.parametrize("name", ["int8", "int8-half", "fp8"])
def test_attention_has_q_and_dq_where_a_fused_kernel_wants_them(name: str) -> None:
    """On both sides of both products and behind the second."""
    graph = VARIANTS["quantised_attention", name].build().graph
    makers = {node.output[0]: node for node in graph.node}

    def source(tensor: str) -> str:
        node = makers[tensor]
        return source(node.input[0]) if node.op_type == "Transpose" else node.op_type

    products = [node for node in graph.node if node.op_type == "MatMul"]
    assert [[source(tensor) for tensor in node.input] for node in products] == [["DequantizeLinear"] * 2] * 2
    assert makers["output"].op_type == "Identity"
    assert source(makers["output"].input[0]) == "DequantizeLinear"
