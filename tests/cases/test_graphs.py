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

from cases.instance_norm import CONV1, CONV2, NORM1, NORM2
from cases.q_plugin_dq import DOMAIN, NODE, OP, POOL, SCALE
from harness.case import Class, Precision, Role, Typing, Variant, effective_name, load_cases
from harness.layers.asked import asked, wished
from harness.run.numbers import DequantizeLinear, make_inputs, reference

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


def sizes(value: onnx.ValueInfoProto) -> list[int]:
    return [dim.dim_value for dim in value.type.tensor_type.shape.dim]


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
    ("name", "weight", "shape"),
    [
        ("mish.qdq", "SandGlass1.0.weight", [32, 1, 3, 3]),
        ("mish.qdq-dense", "SandGlass1.0.weight", [32, 32, 3, 3]),
        ("mish.residual-fp32", "SandGlass4.8.weight", [192, 1, 3, 3]),
        ("conv_silu.int8-entropy", "model.0.conv.weight", [48, 3, 3, 3]),
        ("conv_silu.int8-two", "model.1.conv.weight", [128, 64, 3, 3]),
        ("conv_silu.int8-tail", "model.23.proto.upsample.weight", [64, 64, 2, 2]),
        ("conv_silu.int8-tail", "model.23.proto.cv3.conv.weight", [32, 64, 1, 1]),
        ("depthwise_qdq.qdq-dense", "weights", [32, 32, 3, 3]),
        ("depthwise_qdq.qdq-dense-c4", "unet.condition_vae_latent_conv.weight", [32, 4, 3, 3]),
    ],
)
def test_weights_have_the_shape_of_the_report(name: str, weight: str, shape: list[int]) -> None:
    assert stored(name)[weight] == (shape, TensorProto.FLOAT)


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


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("mish.qdq-after-norm", "BatchNormalization QuantizeLinear DequantizeLinear Softplus"),
        ("depthwise_qdq.qdq-relu-after", "Conv Relu QuantizeLinear DequantizeLinear"),
        ("qdq_placement.concat-after", "Conv Concat QuantizeLinear DequantizeLinear"),
        ("qdq_placement.concat-two-scales", "QuantizeLinear DequantizeLinear Concat"),
    ],
)
def test_q_and_dq_stand_where_the_variant_says(name: str, row: str) -> None:
    assert row in " ".join(operators(name))


@pytest.mark.parametrize("kind", ["int8", "qdq"])
def test_the_concat_stands_between_convolution_and_silu(kind: str) -> None:
    found = graph(f"conv_silu.{kind}-tail-concat")
    joints = [node for node in found.node if node.op_type == "Concat"]
    assert [list(node.input) for node in joints] == [
        [f"/model.23/proto/cv{number}/conv/Conv_output_0"] for number in (1, 2, 3)
    ]
    readers = [node.op_type for node in found.node if joints[2].output[0] in node.input]
    assert sorted(readers) == ["Mul", "Sigmoid"]


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
    """What differs is what a user's script set: calibrator, parser flag or typing."""
    one, two = VARIANTS[name], VARIANTS[other]
    assert one.model_bytes() == two.model_bytes()
    assert one.recipe != two.recipe


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("mish.qdq-calibrator", "entropy"),
        *((f"conv_silu.{each}", "entropy") for each in ("int8-entropy", "int8-tail")),
        *((f"conv_silu.{each}", "minmax") for each in ("int8-minmax", "int8-tail-minmax")),
    ],
)
def test_a_calibrated_variant_asks_for_implicit_int8_alone(name: str, kind: str) -> None:
    recipe = VARIANTS[name].recipe
    assert recipe.calibrator is not None
    assert (recipe.typing, recipe.flags, recipe.calibrator.kind) == (Typing.WEAK, ("INT8",), kind)


def test_convolutions_have_the_attributes_of_the_report() -> None:
    depthwise = {"group": 32, "kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [1, 1]}
    assert attributes(node_of("mish.qdq", "Conv")) == depthwise
    first = attributes(node_of("conv_silu.int8-entropy", "Conv"))
    assert (first["group"], first["strides"], first["pads"]) == (1, [2, 2], [1, 1, 1, 1])


@pytest.mark.parametrize(
    ("name", "tensor", "dims", "axes"),
    [
        ("mish.qdq", "SandGlass1.0.weight", [32], {"axis": 0}),
        ("depthwise_qdq.qdq", "weights", [32], {"axis": 0}),
        ("depthwise_qdq.qdq-per-tensor", "weights", [], {}),
    ],
)
def test_weights_have_one_scale_or_one_a_channel(
    name: str, tensor: str, dims: list[int], axes: dict[str, int]
) -> None:
    quantise = next(node for node in graph(name).node if tensor in node.input)
    assert stored(name)[quantise.input[1]] == (dims, TensorProto.FLOAT)
    assert stored(name)[quantise.input[2]] == (dims, TensorProto.INT8)
    assert attributes(quantise) == axes


def test_the_residual_report_adds_an_unquantised_tensor() -> None:
    """In the workaround that input comes after Q/DQ."""
    add, other = node_of("mish.residual-fp32", "/Add"), node_of("mish.residual-qdq", "/Add")
    assert list(add.input) == ["/SandGlass4/SandGlass4.8/Conv_output_0", "residual"]
    assert other.input[1] == "/_residual_quantizer/DequantizeLinear_output_0"


def test_half_graphs_compute_in_fp16_between_fp32_edges() -> None:
    assert {dtype for _, dtype in stored("mish.fp16-graph").values()} == {TensorProto.FLOAT16}
    edges = [*graph("mish.fp16-graph").input, *graph("mish.fp16-graph").output]
    assert {value.type.tensor_type.elem_type for value in edges} == {TensorProto.FLOAT}
    model = onnx.shape_inference.infer_shapes(VARIANTS["conv_silu.qdq-fp16"].build())
    types = {value.name: value.type.tensor_type.elem_type for value in model.graph.value_info}
    assert types["/model.0/act/Mul_output_0"] == TensorProto.FLOAT16
    assert types["/model.0/conv/Conv_output_0"] == TensorProto.FLOAT


def test_wanted_precision_is_that_of_the_graph() -> None:
    """Convolutions between Q/DQ want INT8, those of the FP16 graph FP16; weak typing promises none."""
    conv = "/model.0/conv/Conv"
    assert VARIANTS["conv_silu.qdq"].precision == ((conv, Precision.INT8),)
    assert VARIANTS["conv_silu.fp16-graph"].precision == ((conv, Precision.FP16),)
    assert VARIANTS["depthwise_qdq.act-qdq"].precision == (("node_of_output", Precision.FP32),)
    for variant in map(VARIANTS.get, of("conv_silu")):
        if variant and variant.recipe.typing is Typing.WEAK:
            assert wished(variant, asked(variant.build())) == ()


#: By the variant's tail: channels of weight and groups; one channel a group, then 96 channels throughout.
SWEEP = {f"qdq-c{count}": (count, 1, count) for count in (1, 3, 4, 6, 8, 16, 30, 144)}
SWEEP |= {f"qdq-group{size}": (96, size, 96 // size) for size in (1, 2, 3, 4, 6, 8, 12, 16)}


def test_the_sweeps_vary_one_thing() -> None:
    """INT8 is wanted also where it cannot be had."""
    swept = {each.partition(".")[2] for each in of("depthwise_qdq") if VARIANTS[each].tags}
    assert swept == set(SWEEP)
    for tail, (channels, per_group, groups) in SWEEP.items():
        name = f"depthwise_qdq.{tail}"
        assert stored(name)["weights"][0] == [channels, per_group, 3, 3]
        assert attributes(node_of(name, "Conv"))["group"] == groups
        assert VARIANTS[name].precision == (("node_of_output", Precision.INT8),)


@pytest.mark.parametrize("name", of("instance_norm"))
def test_the_parser_flag_is_as_the_name_says(name: str) -> None:
    """A variant named after an implementation asks for it; `fp32` and `qdq` keep the version's default."""
    native = name.endswith(("-native", "-as-reported")) or ".calibrator-" in name
    wanted = {"NATIVE_INSTANCENORM": native} if native or name.endswith("-plugin") else {}
    assert dict(VARIANTS[name].recipe.parser_flags) == wanted


@pytest.mark.parametrize("name", of("instance_norm", "qdq"))
def test_q_dq_reaches_the_normalisation_only_where_the_variant_is_about_that(name: str) -> None:
    """Data and weight of each convolution come from DequantizeLinear."""
    made = producers(name)
    for conv in (CONV1, CONV2):
        assert {made[tensor] for tensor in node_of(name, conv).input[:2]} == {DQ}
    wanted = DQ if "into-norm" in name or "5d" in name else "Conv"
    assert {made[node_of(name, norm).input[0]] for norm in (NORM1, NORM2)} == {wanted}


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("instance_norm.int8-5d-plugin", 5),
        ("instance_norm.qdq-5d-plugin", 5),
        ("q_plugin_dq.q-plugin-dq-int8-vectorised-4d", 4),
    ],
)
def test_channels_fill_whole_vectors_where_a_kernel_wants_them(name: str, rank: int) -> None:
    shape = sizes(graph(name).input[0])
    assert (len(shape), shape[1] % 32) == (rank, 0)


@pytest.mark.parametrize("name", ["int8-as-reported", "qdq-as-reported"])
def test_the_reported_form_has_four_inputs_and_an_int64_shape(name: str) -> None:
    """The inputs are those that the reporter's calibrator yields; INT64 draws the 8.6 warning."""
    found = graph(f"instance_norm.{name}")
    given = [value.name for value in found.input]
    assert given == ["im_patches", "train_feat", "target_labels", "train_ltrb"]
    assert set(given) <= {tensor for node in found.node for tensor in node.input}
    shape = node_of(f"instance_norm.{name}", "/Reshape").input[1]
    assert stored(f"instance_norm.{name}")[shape] == ([4], TensorProto.INT64)


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


def test_each_way_to_get_a_calibrator_wrong_is_a_negative_control_of_the_right_one() -> None:
    wrong = [VARIANTS[each] for each in of("instance_norm", "calibrator-")]
    faults = {variant.recipe.calibrator.fault for variant in wrong if variant.recipe.calibrator}
    assert faults == {"host_pointer", "float64", "non_contiguous"}
    for variant in wrong:
        assert (variant.role, variant.counterpart) == (Role.NEGATIVE_CONTROL, "int8-native")
        # The report names no culprit: none of the three stands in a column.
        failing = [claim for claim in variant.expectations if claim.outcome is not Class.API_REMOVED]
        assert not any(claim.stands for claim in failing)


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


def test_the_native_stand_ins_have_the_plugins_placement() -> None:
    assert neighbours("q_plugin_dq.q-native-dq", POOL) == (Q, DQ)
    assert neighbours("q_plugin_dq.q-dq-native-q-dq", POOL) == (DQ, Q)


def test_all_kinds_of_plugin_are_tried_straight_between_q_and_dq() -> None:
    plugins = [VARIANTS[name].recipe.plugin for name in of("q_plugin_dq", "q-plugin-dq")]
    assert {plugin.formats for plugin in plugins if plugin} == {
        "int8_linear", "int8_vectorised", "fp32", "int8_fp32",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["int8-constant-v2", "int8-constant-v3"])
def test_the_int8_constant_feeds_the_plugin_itself(name: str) -> None:
    weight = node_of(f"q_plugin_dq.{name}", OP).input[1]
    assert stored(f"q_plugin_dq.{name}")[weight][1] == TensorProto.INT8


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


def test_scales_of_the_two_branches_are_as_the_variant_says() -> None:
    for name, expected in (("concat-two-scales", [0.02, 0.03]), ("concat-one-scale", [0.03, 0.03])):
        held = {each.name: each for each in graph(f"qdq_placement.{name}").initializer}
        scales = [held[f"/{branch}/_output_quantizer_scale"] for branch in ("first", "second")]
        assert [numpy_helper.to_array(each).item() for each in scales] == pytest.approx(expected)


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
