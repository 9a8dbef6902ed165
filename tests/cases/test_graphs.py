"""The graphs of the cases carry the names and shapes of the reports, and differ in what their titles say."""

from __future__ import annotations

import functools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from cases.instance_norm import NORM1
from cases.q_plugin_dq import DOMAIN, NODE, OP, SCALE
from harness.case import Typing, Variant, effective_name, load_cases
from harness.run.numbers.inputs import make_inputs
from harness.run.numbers.operators import DequantizeLinear
from harness.run.numbers.reference import reference

pytestmark = pytest.mark.unit

Array = npt.NDArray[Any]
VARIANTS = {
    f"{case.name}.{variant.name}": variant
    for case in load_cases(Path(__file__).resolve().parents[2] / "cases")
    for variant in case
}
Q, DQ = "QuantizeLinear", "DequantizeLinear"
OPS = ("conv/Conv", "act/Sigmoid", "act/Mul")


def of(case: str, name: str = "") -> list[str]:
    """Return the variants of a case whose names begin so, by their whole names."""
    return [each for each in VARIANTS if each.startswith(f"{case}.{name}")]


@functools.cache
def graph(name: str) -> onnx.GraphProto:
    """Return a variant's graph, which no test changes."""
    return VARIANTS[name].build().graph


def operators(name: str) -> list[str]:
    return [node.op_type for node in graph(name).node]


def names(name: str) -> list[str]:
    return [effective_name(node) for node in graph(name).node]


def stored(name: str) -> dict[str, tuple[list[int], int]]:
    """Return the shape and type of each initialiser."""
    return {entry.name: (list(entry.dims), entry.data_type) for entry in graph(name).initializer}


def node_of(name: str, node: str) -> onnx.NodeProto:
    found: onnx.NodeProto = next(each for each in graph(name).node if node in (each.name, each.op_type))
    return found


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {entry.name: onnx.helper.get_attribute_value(entry) for entry in node.attribute}


def producers(name: str) -> dict[str, str]:
    """Return the operator that makes each tensor."""
    return {tensor: node.op_type for node in graph(name).node for tensor in node.output}


SAND = "/SandGlass1/SandGlass1."


@pytest.mark.parametrize(
    ("name", "nodes"),
    [
        (
            "mish.qdq",
            [
                *(f"{SAND}0/_{side}_quantizer/{op}" for side in ("input", "weight") for op in (Q, DQ)),
                *(f"{SAND}{end}" for end in ("0/Conv", "1/BatchNormalization", "2/Softplus", "2/Tanh", "2/Mul")),
                f"{SAND}3/Conv",
            ],
        ),
        ("mish.swish-tail", ["node_of_dqconv.dwconv", "node_of_swish.sigmoid", "node_of_swish.mul"]),
        ("conv_silu.int8-entropy", [f"/model.0/{op}" for op in OPS]),
        ("conv_silu.int8-two", [f"/model.{at}/{op}" for at in (0, 1) for op in OPS]),
        (
            "conv_silu.int8-tail",
            [
                *(f"/model.23/proto/cv1/{op}" for op in OPS),
                "/model.23/proto/upsample/ConvTranspose",
                *(f"/model.23/proto/{part}/{op}" for part in ("cv2", "cv3") for op in OPS),
            ],
        ),
        (
            "depthwise_qdq.qdq",
            [
                *(f"node_of_{side}_{end}" for side in ("input", "weights") for end in ("quantized", "dequantized")),
                "node_of_output",
            ],
        ),
        ("q_plugin_dq.q-plugin-dq-int8-vectorised", ["QuantizeLinear_3", "LayerNorm_4", "DequantizeLinear_5"]),
    ],
)  # fmt: skip
def test_nodes_are_called_as_in_the_report(name: str, nodes: list[str]) -> None:
    """In this order; the engine's error names them."""
    found = names(name)
    assert [each for each in found if each in nodes] == nodes
    assert found[-1] == nodes[-1] or name == "mish.swish-tail"


@pytest.mark.parametrize(
    ("name", "reference", "added", "gone"),
    [
        *((f"mish.{each}", "mish.qdq", [], []) for each in ("qdq-strong", "qdq-dense")),
        ("mish.qdq-after-norm", "mish.qdq", [Q, DQ], []),
        ("mish.qdq-relu", "mish.qdq", ["Relu"], ["Softplus", "Tanh", "Mul"]),
        ("mish.mish-op", "mish.qdq", ["Mish"], ["Softplus", "Tanh", "Mul"]),
        ("mish.swish-tail-identity", "mish.swish-tail", ["Identity"], []),
        ("conv_silu.int8-relu", "conv_silu.int8-entropy", ["Relu"], ["Sigmoid", "Mul"]),
        ("conv_silu.qdq-relu", "conv_silu.qdq", ["Relu"], ["Sigmoid", "Mul"]),
        ("conv_silu.qdq-identity", "conv_silu.qdq", ["Identity"], []),
        *((f"conv_silu.{kind}-tail-concat", f"conv_silu.{kind}-tail", ["Concat"] * 3, []) for kind in ("int8", "qdq")),
        # A twin with its precision in the graph has the nodes of the implicit one, and quantisers.
        ("conv_silu.qdq", "conv_silu.int8-entropy", [Q, DQ] * 3, []),
        ("conv_silu.qdq-two", "conv_silu.int8-two", [Q, DQ] * 5, []),
        ("conv_silu.qdq-tail", "conv_silu.int8-tail", [Q, DQ] * 7, []),
        ("depthwise_qdq.qdq-after", "depthwise_qdq.qdq", [Q, DQ], []),
        ("depthwise_qdq.qdq-relu-after", "depthwise_qdq.qdq", ["Relu", Q, DQ], []),
        ("depthwise_qdq.act-qdq", "depthwise_qdq.qdq", [], [Q, DQ]),
        ("qdq_placement.concat-one-scale", "qdq_placement.concat-two-scales", [], []),
        ("qdq_placement.concat-after", "qdq_placement.concat-two-scales", [], [Q, DQ]),
        ("qdq_placement.concat-none", "qdq_placement.concat-two-scales", [], [Q, DQ] * 2),
    ],
)  # fmt: skip
def test_a_control_differs_in_the_operators_that_its_title_names(
    name: str, reference: str, added: list[str], gone: list[str]
) -> None:
    before, after = Counter(operators(reference)), Counter(operators(name))
    assert (after - before, before - after) == (Counter(added), Counter(gone))


ALIKE = [
    ("mish.qdq-calibrator", "mish.qdq"),
    ("conv_silu.int8-minmax", "conv_silu.int8-entropy"),
    *((f"conv_silu.{each}", "conv_silu.int8-tail") for each in ("int8-tail-minmax", "tail-fp32")),
    *((f"instance_norm.fp32-{each}", "instance_norm.fp32") for each in ("native", "plugin")),
    *((each, "instance_norm.int8-native") for each in of("instance_norm", "calibrator-")),
    *(
        (each, f"q_plugin_dq.{VARIANTS[each].counterpart}")
        for each in of("q_plugin_dq")
        if VARIANTS[each].recipe.typing is Typing.STRONG
    ),
]


@pytest.mark.parametrize(("name", "other"), ALIKE)
def test_one_graph_is_built_with_two_recipes(name: str, other: str) -> None:
    """They differ by a user's script alone: calibrator, parser flag or typing."""
    one, two = VARIANTS[name], VARIANTS[other]
    assert one.model_bytes() == two.model_bytes()
    assert one.recipe != two.recipe


def test_fp16_variants_differ_in_the_type_of_scale_and_bias_alone() -> None:
    held = []
    for tail, kind in (("fp32-scale", TensorProto.FLOAT), ("fp16-scale", TensorProto.FLOAT16)):
        found = graph(f"instance_norm.fp16-{tail}")
        assert found.input[0].type.tensor_type.elem_type == TensorProto.FLOAT16
        wanted = node_of(f"instance_norm.fp16-{tail}", NORM1).input[1:]
        tensors = {each.name: each for each in found.initializer}
        assert {tensors[each].data_type for each in wanted} == {kind}
        held.append([numpy_helper.to_array(tensors[each]).astype(np.float32) for each in wanted])
    np.testing.assert_array_equal(held[0], held[1])


@pytest.mark.parametrize("name", ["qdq-into-norm", "qdq-as-reported", "qdq-5d-plugin"])
def test_activation_scales_fit_the_data(name: str) -> None:
    """Fewer than 1 % of the activations saturate, and at least 20 different steps are used."""
    model = VARIANTS[f"instance_norm.{name}"].build()
    nodes = [node for node in model.graph.node if node.op_type == Q and "_input_quantizer" in node.name]
    found = reference(model, make_inputs(model), also=[node.output[0] for node in nodes]).outputs
    assert found is not None
    assert len(nodes) >= 2
    for node in nodes:
        steps = found[node.output[0]].astype(np.int32)
        assert np.mean(np.abs(steps) >= 127) < 0.01
        assert len(np.unique(steps)) >= 20


def numbers(variant: Variant, inputs: dict[str, Array] | None = None) -> Array:
    """Return all outputs of a variant in one row."""
    model = variant.build()
    found = reference(model, inputs or make_inputs(model)).outputs
    assert found is not None
    return np.concatenate([each.ravel() for each in found.values()])


@pytest.mark.parametrize(
    ("plain", "other", "off"),
    [
        ("instance_norm.fp32", "instance_norm.qdq", 0.1),
        ("instance_norm.fp32", "instance_norm.qdq-into-norm", 0.1),
        ("instance_norm.int8-5d-plugin", "instance_norm.qdq-5d-plugin", 0.1),
        ("q_plugin_dq.layernorm-native", "q_plugin_dq.layernorm-decomposed", 0.1),
        ("qdq_shapes.up-dilated", "qdq_shapes.up-dilated-zeros", 1e-5),
    ],
)
def test_what_stands_for_another_gives_nearly_its_numbers(plain: str, other: str, off: float) -> None:
    """So that a wrong engine is not lost in the error of quantisation."""
    inputs = dict(make_inputs(VARIANTS[plain].build()))
    first, second = (numbers(VARIANTS[name], inputs) for name in (plain, other))
    assert np.linalg.norm(first - second) < off * np.linalg.norm(first)


WITH_PLUGIN = [name for name in of("q_plugin_dq") if VARIANTS[name].recipe.plugin]


class CompatIdentity(OpRun):
    """The plugin's contract for the reference evaluator: a copy of the first input."""

    op_domain = DOMAIN

    def _run(self, x: Array, *_ignored: Array, **_attributes: Any) -> tuple[Array]:
        return (x,)


def neighbours(name: str, middle: str) -> tuple[str, str]:
    node = node_of(name, middle)
    after = next(each.op_type for each in graph(name).node if node.output[0] in each.input)
    return producers(name)[node.input[0]], after


@pytest.mark.parametrize("name", WITH_PLUGIN)
def test_a_plugin_stands_where_the_title_says_and_keeps_its_contract(name: str) -> None:
    """`q-dq-plugin-q-dq` hands it FP32, all others INT8; with an identity for it the input comes back."""
    variant, node = VARIANTS[name], node_of(name, OP)
    plugin = variant.recipe.plugin
    assert plugin is not None
    assert (node.name, node.domain, node.op_type) == (NODE, DOMAIN, plugin.op)
    assert {key: value.decode() for key, value in attributes(node).items()} == {
        "plugin_version": "2" if name.endswith("-v3") else "1",
        "plugin_namespace": "",
        "formats": plugin.formats,
    }
    assert neighbours(name, NODE) == ((DQ, Q) if ".q-dq-" in name else (Q, DQ))
    inputs = make_inputs(variant.build())
    evaluator = ReferenceEvaluator(variant.build(), new_ops=[CompatIdentity, DequantizeLinear])
    [output] = map(np.asarray, evaluator.run(None, inputs))
    np.testing.assert_allclose(output, inputs["x"], atol=SCALE / 2 + 1e-6)
    assert len(np.unique(output)) >= 20


@pytest.mark.parametrize("name", of("qdq_scale"))
def test_scales_differ_in_their_shape_alone(name: str) -> None:
    """From those of the scalar variant: the same nodes, but for the axis, and the same values."""
    kind = name.split("-", 2)[2]
    for side, vector in (("input", "data-vector"), ("weight", "weights-vector")):
        for tensor in ("scale", "zero_point"):
            shape = stored(name)[f"/{side}_quantizer_{tensor}"][0]
            assert shape == ([1] if kind in ("vector", vector) else [])
    found = []
    for other in (name, "-".join([*name.split("-")[:2], "scalar"])):
        each = VARIANTS[other].build().graph
        for node in each.node:
            if node.op_type in (Q, DQ):
                del node.attribute[:]
        nodes = [node.SerializeToString(deterministic=True) for node in each.node]
        found.append((nodes, {item.name: item.raw_data for item in each.initializer}))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["int8", "int8-half", "fp8"])
def test_attention_has_q_and_dq_where_a_fused_kernel_wants_them(name: str) -> None:
    """On both sides of both products and behind the second."""
    found = graph(f"quantised_attention.{name}")
    makers = {node.output[0]: node for node in found.node}

    def source(tensor: str) -> str:
        node = makers[tensor]
        return source(node.input[0]) if node.op_type == "Transpose" else node.op_type

    products = [node for node in found.node if node.op_type == "MatMul"]
    assert [[source(tensor) for tensor in node.input] for node in products] == [[DQ] * 2] * 2
    assert makers["output"].op_type == "Identity"
    assert source(makers["output"].input[0]) == DQ
