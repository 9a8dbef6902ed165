"""Every node gets the precision of the layer that really computes it, or UNKNOWN if no layer tells."""

from __future__ import annotations

import dataclasses

import pytest

from harness.layers.datatype import multiplied_in, precision_of
from harness.layers.parse import map_names, parse_layers
from harness.layers.precision import attention_kernel, holds_attention, layer_precision, node_precision
from harness.record.outcome import Layer, Node, TensorUse
from harness.words import Precision
from tests.layers.samples import nodes, text, verbose

pytestmark = pytest.mark.unit

SILU = nodes(
    "QuantizeLinear /conv/in/QuantizeLinear",
    "DequantizeLinear /conv/in/DequantizeLinear",
    "QuantizeLinear /conv/w/QuantizeLinear",
    "DequantizeLinear /conv/w/DequantizeLinear",
    "Conv /conv",
    "Sigmoid /act/Sigmoid",
    "Mul /act/Mul",
)


def found(sample: str, *pairs: str) -> dict[str, str]:
    precision = node_precision(nodes(*pairs), verbose(sample).layers)
    return {name: str(value) for name, value in precision.items()}


def test_a_convolution_is_judged_where_it_multiplies_and_its_activation_where_it_runs() -> None:
    layers = verbose("rtx-1.7.1.116-int8-silu-sm89").layers
    assert node_precision(SILU, layers) == {
        "/conv": Precision.INT8,
        "/act/Sigmoid": Precision.FP32,
        "/act/Mul": Precision.FP32,
    }


def test_the_same_graph_for_turing_multiplies_in_fp32_though_its_weights_are_stored_as_int8() -> None:
    layers = verbose("rtx-1.7.1.116-int8-silu-sm75").layers
    assert node_precision(SILU, layers)["/conv"] is Precision.FP32


@pytest.mark.parametrize(
    ("sample", "ran"),
    [
        # The first kernel names the convolution too, and only quantises its input, or prepares its weights.
        ("1.7.1.116-int8-depthwise-sm89", {"Conv /conv": "int8"}),
        ("1.7.1.116-int8-depthwise-relu-sm75", {"Conv /conv": "fp32", "Relu /act/Relu": "fp32"}),
        # Inside a generated kernel, a convolution is found by the kernel's name.
        ("1.6.1.120-two-convs-sm89", {"Conv /model.0/conv/Conv": "fp32", "Conv /model.1/conv/Conv": "fp32"}),
        # By both its matrices, not by alpha and beta, nor by FP8 scales that are shaped like weights.
        ("1.7.1.116-int8-matmul-sm89", {"MatMul /mm/MatMul": "int8", "Softmax /Softmax": "fp32"}),
        ("1.7.1.116-nvfp4-matmul", {"MatMul /MatMul": "fp4"}),
        # A kernel that ends in a Cast works in the type before it.
        ("1.4.0.76-fp16-mish-sm89", {"Conv /conv": "fp16", "Softplus /act/Softplus": "fp16", "Mul /act/Mul": "fp16"}),
        # A float type that exists only inside a kernel is unknown.
        ("1.7.1.116-int8-fp16-inside-sm89",
         {"Conv /model.0/conv/Conv": "int8", "Sigmoid /model.0/act/Sigmoid": "unknown"}),
        # A normalisation has the type of its kernel's edges.
        ("1.5.0.114-instance-norm-sm89", {"InstanceNormalization /in": "fp32"}),
        ("1.7.1.116-int8-silu-sm89", {"Conv /other": "", "Reshape /gone": ""}),
    ],
)  # fmt: skip
def test_nodes_ran_in_the_type_of_the_kernel_that_computes_them(sample: str, ran: dict[str, str]) -> None:
    """A node that no layer names is absent."""
    told = {pair.split(" ")[1]: precision for pair, precision in ran.items() if precision}
    assert found(f"rtx-{sample}", *ran, "Cast /out") == told


@pytest.mark.parametrize(
    ("sample", "word"),
    [
        ("rtx-1.7.1.116-int4-weights", "int4_weights"),
        ("rtx-1.7.1.116-int4-weights-widened", "int4_weights"),
        ("rtx-1.7.1.116-int8-weights", "int8_weights"),
    ],
)
def test_weights_that_are_stored_narrow_have_a_word(sample: str, word: str) -> None:
    """Fused with the multiplication, behind their scales, or widened by a kernel of their own."""
    node = Node("/MatMul", "MatMul", word)
    assert node_precision([node], verbose(sample).layers) == {"/MatMul": Precision(word)}


def test_a_kernel_that_widens_weights_answers_only_where_the_graph_stores_them_so() -> None:
    """INT8 convolutions for Turing have such a kernel too, and lost their INT8."""
    layers = verbose("rtx-1.7.1.116-int4-weights-widened").layers
    for asked in ("", "int8_weights", "int4"):
        node = Node("/MatMul", "MatMul", asked)
        assert node_precision([node], layers) == {"/MatMul": Precision.FP16}


def test_weights_that_the_engine_does_not_list_leave_the_word_open() -> None:
    """TensorRT-RTX 1.4 lists no constants: FP16 data do not tell the weights' type."""
    bare = layer("gemm", data="fp16", names=("/MatMul",))
    listed = dataclasses.replace(bare, weights=(TensorUse("w", "fp16", (128, 256)),))
    node = Node("/MatMul", "MatMul", "int4_weights")
    assert node_precision([node], [bare]) == {"/MatMul": Precision.UNKNOWN}
    assert node_precision([node], [listed]) == {"/MatMul": Precision.FP16}


@pytest.mark.parametrize(
    ("operations", "precision"),
    [
        ("CastMulCastCastMulCastFc", Precision.UNKNOWN),  # a product behind a Concat of unlike scales, 1.7
        ("CastMulCorrSilu", Precision.UNKNOWN),
        ("CastMulMulRounCastFc", Precision.INT8),
        ("MulRounCastCorr", Precision.INT8),
        ("CorrCastMul", Precision.INT8),
        ("Fc", Precision.INT8),
    ],
)
def test_a_kernel_that_dequantises_what_it_multiplies_does_so_in_a_float(
    operations: str, precision: Precision
) -> None:
    data, weights = TensorUse("x", "int8", (1, 32, 128)), TensorUse("w", "int8", (1, 128, 64))
    scale = TensorUse("s", "fp32", (1, 1, 128))
    name = f"__myl_{operations}_myl0_10"
    made = Layer(
        name, "runtime_fusion", "", (data,), (scale, weights), (TensorUse("y", "fp32", (1, 32, 64)),)
    )
    assert layer_precision(made) is precision


def test_a_narrow_tensor_that_is_no_constant_is_data() -> None:
    """A tensor that ONNX Runtime quantises inside is no stored weight either."""
    narrow = TensorUse("w", "int8", (64, 32))
    plain = Layer("m", "MatMul", "", (TensorUse("x", "fp32", (8, 64)), narrow), (), ())
    assert layer_precision(plain) is Precision.FP32
    stored = dataclasses.replace(plain, inputs=plain.inputs[:1], weights=(narrow,))
    assert layer_precision(stored) is Precision.INT8_WEIGHTS
    dynamic = dataclasses.replace(stored, type="com.microsoft.DynamicQuantizeMatMul")
    assert layer_precision(dynamic) is Precision.INT8


def layer(kind: str, *, data: str, names: tuple[str, ...], **rest: object) -> Layer:
    shaped = {
        "inputs": (TensorUse("x", data),),
        "outputs": (TensorUse("y", data),),
        "onnx_nodes": names,
        **rest,
    }
    return dataclasses.replace(Layer("l", kind, data), **shaped)  # type: ignore[arg-type]


def cask(*names: str) -> Layer:
    return layer("CaskConvolution", data="int8", names=names)


def kgen(data: str, *names: str) -> Layer:
    return layer("kgen", data=data, names=names)


@pytest.mark.parametrize(
    ("layers", "pairs", "expected"),
    [
        # A convolution that no layer multiplies, and layers that disagree.
        ([kgen("fp32", "c")], ("Conv c",), {"c": "unknown"}),
        ([kgen("fp32", "r"), kgen("fp16", "r")], ("Relu r",), {"r": "unknown"}),
        # Folded into the convolution; in a kernel of its own, though the convolution lists it too.
        ([cask("c", "bn")], ("Conv c", "BatchNormalization bn"), {"c": "int8", "bn": "int8"}),
        (
            [cask("c", "r"), dataclasses.replace(kgen("fp16", "c", "r"), outputs=())],
            ("Conv c", "Relu r"),
            {"c": "int8", "r": "fp16"},
        ),
    ],
)
def test_layers_by_hand(layers: list[Layer], pairs: tuple[str, ...], expected: dict[str, str]) -> None:
    assert node_precision(nodes(*pairs), layers) == expected


def test_a_bias_is_not_taken_for_weights_that_another_kernel_prepared() -> None:
    convolution = Layer(
        name="c",
        type="correlation",
        precision="",
        inputs=(TensorUse("x", "int8", (1, 32, 8, 8)), TensorUse("w", "int8", (16, 32, 3, 3))),
        weights=(TensorUse("alpha", "fp32", (1,)), TensorUse("bias", "fp32", (1, 16, 1, 1))),
        outputs=(TensorUse("y", "fp32", (1, 16, 8, 8)),),
    )
    assert layer_precision(convolution) is Precision.INT8
    assert layer_precision(dataclasses.replace(convolution, inputs=())) is Precision.UNKNOWN


def test_without_printed_constants_the_data_decides_and_a_residual_is_no_weight() -> None:
    said = text("rtx-1.4.0.76-fp16-mish-sm89").replace(
        "Inputs: [ { Name: /conv_output_0.1_2_myl0, Dimensions: [1,32,32,32], Format/Datatype: Half }]",
        "Inputs: [ { Name: d, Dimensions: [1,32,32,32], Format/Datatype: Int8 }, "
        "{ Name: residual, Dimensions: [1,32,32,32], Format/Datatype: Half }]",
    )
    (convolution,) = (item for item in parse_layers("verbose_log", said).layers if item.type == "correlation")
    assert len(convolution.inputs) == 2
    assert convolution.precision == "int8"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Float", "fp32"),
        ("Row major linear FP32", "fp32"),
        ("Half", "fp16"),
        ("Channel major FP16 format where channel % 8 == 0", "fp16"),
        ("BFloat16", "bf16"),
        ("BF16", "bf16"),
        ("Thirty-two wide channel vectorized row major Int8 format.", "int8"),
        ("UInt8", "uint8"),
        ("FP8", "fp8"),
        ("Float8E4M3FN", "fp8"),
        ("FP4", "fp4"),
        ("FP4E2M1", "fp4"),
        ("FP8E4M3", "fp8"),
        ("Int4", "int4"),
        ("Int32", "int32"),
        ("Int64", "int64"),
        ("Bool", "bool"),
        ("N/A due to dynamic shapes", "unknown"),
        ("", "unknown"),
    ],
)
def test_a_type_is_known_by_any_of_its_spellings(said: str, expected: str) -> None:
    assert precision_of(said) == expected


@pytest.mark.parametrize(
    ("data", "weights", "expected"),
    [
        ("int8", "int8", "int8"),
        ("uint8", "int8", "int8"),
        ("uint8", "uint8", "uint8"),
        ("fp16", "int8", "int8_weights"),
        ("fp32", "uint8", "int8_weights"),
        ("tf32", "int4", "int4_weights"),
        ("bf16", "fp8", "fp8_weights"),
        ("fp16", "fp4", "fp4_weights"),
        ("fp8", "int4", "unknown"),
        ("int8", "fp32", "fp32"),
        ("fp16", "fp32", "fp32"),
        ("bf16", "fp16", "unknown"),
        ("unknown", "int8", "int8"),
        ("fp32", "unknown", "fp32"),
        ("int32", "fp32", "unknown"),
    ],
)
def test_operands_say_what_is_multiplied_in(data: str, weights: str, expected: str) -> None:
    assert multiplied_in(Precision(data), Precision(weights)) == expected


@pytest.mark.parametrize(
    ("tactics", "kernel"),
    [
        (("__myl_ReshMove_0x126e", "_gemm_mha_v2_0x60d11ad198a59e816529b807c8535679"), "_gemm_mha_v2"),
        (("fmha_v2_flash_attention_fp16_64_sm86_kernel",), "fmha_v2_flash_attention_fp16_64_sm86_kernel"),
        (("__myelin_CASK_STUB", "__myl_MulMaxrSubExpSumDiv_0x5608"), ""),
        # A word that only ends like it.
        (("__myl_alphamha1_0x12",), ""),
        (("", ""), None),
        ((), None),
    ],
)
def test_the_fused_kernel_is_known_by_its_name(tactics: tuple[str, ...], kernel: str | None) -> None:
    layers = [Layer(f"layer{at}", "kgen", "fp16", tactic=tactic) for at, tactic in enumerate(tactics)]
    assert attention_kernel(layers) == kernel


@pytest.mark.parametrize(
    ("operators", "held"),
    [
        (("MatMul", "Mul", "Softmax", "MatMul"), True),
        (("Reshape", "Attention"), True),
        (("MatMul", "Softmax"), False),
        (("MatMul", "Relu", "MatMul"), False),
    ],
)
def test_a_classifier_s_softmax_is_no_attention(operators: tuple[str, ...], held: bool) -> None:
    assert holds_attention(operators) is held


MODEL = nodes(
    "Conv a", "Sigmoid b", "Mul c", "Conv a_1", "Relu a + b", "Add /x/Add", "Conv d (e)", "Conv conv"
)


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        ("a", ("a",)),
        ("a + PWN(PWN(b), c)", ("a", "b", "c")),
        ("w + w_quant + conv + PWN(b, c)", ("b", "c", "conv")),
        ("a_1", ("a_1",)),
        ("a_2", ()),
        ("aa", ()),
        ("a + b", ("a + b",)),
        ("a + b + c", ("c", "a + b")),
        ("a || a_1", ("a", "a_1")),
        ("PWN(d (e))", ("d (e)",)),
        ("/x/Add", ("/x/Add",)),
        ("/y/x/Add", ()),
        ("a_myl0_3", ("a",)),
        ("Reformatting CopyNode for Input Tensor 0 to a + b", ()),
        ("Reformatted Input Tensor 0 to a", ()),
        ("{ForeignNode[a...c]}", ("a", "b", "c")),
        ("{ForeignNode[weight.1...c]}", ("c",)),
        ("{ForeignNode[b...(Unnamed Layer* 3) [Shuffle]]}", ("b",)),
        (
            "{ForeignNode[b...a_1 + conv + (Unnamed Layer* 3) [Shuffle]]}",
            tuple(node.name for node in MODEL[1:]),
        ),
        ("{ForeignNode[u...v]}", ()),
        ("{ForeignNode[a]}", ("a",)),
        ("{ForeignNode[b...c]} + conv", ("b", "c", "conv")),
        ("", ()),
    ],
)
def test_a_layer_name_gives_its_nodes_in_the_models_order(layer: str, expected: tuple[str, ...]) -> None:
    assert map_names(layer, MODEL) == expected


def test_no_nodes_give_no_names() -> None:
    assert map_names("a + b", ()) == ()


def test_a_node_without_a_name_never_matches() -> None:
    assert map_names(" + ", nodes("Conv ")) == ()
