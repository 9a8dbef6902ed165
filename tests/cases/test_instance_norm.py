"""The InstanceNormalization case isolates what its titles say: flag, Q/DQ placement, types, calibrator."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from cases.instance_norm import CASE, CONV1, CONV2, NORM1, NORM2
from harness.case import Class, Role, Typing
from harness.run.numbers import make_inputs, reference

pytestmark = pytest.mark.unit

VARIANTS = {variant.name: variant for variant in CASE}
QDQ = [name for name in VARIANTS if name.startswith("qdq")]
CALIBRATED = [variant.name for variant in CASE if variant.recipe.typing is Typing.WEAK]


def producer(model: onnx.ModelProto, tensor: str) -> str:
    return next((node.op_type for node in model.graph.node if tensor in node.output), "")


def inputs_of(model: onnx.ModelProto, name: str) -> list[str]:
    return next(list(node.input) for node in model.graph.node if node.name == name)


def initializer(model: onnx.ModelProto, name: str) -> onnx.TensorProto:
    found: onnx.TensorProto = next(tensor for tensor in model.graph.initializer if tensor.name == name)
    return found


@pytest.mark.parametrize("name", VARIANTS)
def test_the_flag_is_what_the_name_says(name: str) -> None:
    """A variant named after an implementation asks for it; `fp32` and `qdq` keep the version's default."""
    flags = dict(VARIANTS[name].recipe.parser_flags)
    if name.endswith("-plugin"):
        assert flags == {"NATIVE_INSTANCENORM": False}
    elif name.endswith(("-native", "-as-reported")) or name.startswith("calibrator-"):
        assert flags == {"NATIVE_INSTANCENORM": True}
    else:
        assert flags == {}


def test_the_three_fp32_variants_are_one_graph() -> None:
    """Nothing but the parser flag differs between the FP32 variants."""
    graphs = {VARIANTS[name].model_bytes() for name in ("fp32", "fp32-native", "fp32-plugin")}
    assert len(graphs) == 1


@pytest.mark.parametrize("name", QDQ)
def test_both_inputs_of_each_quantised_convolution_come_from_dequantizelinear(name: str) -> None:
    """An explicit convolution has Q/DQ on its input and on its weight."""
    model = VARIANTS[name].build()
    for conv in (CONV1, CONV2):
        source, weight, _bias = inputs_of(model, conv)
        assert {producer(model, source), producer(model, weight)} == {"DequantizeLinear"}


@pytest.mark.parametrize("name", QDQ)
def test_q_dq_reaches_the_normalisation_only_where_the_variant_is_about_that(name: str) -> None:
    """Only the `into-norm` and 5-D variants feed the normalisation from a DequantizeLinear."""
    model = VARIANTS[name].build()
    wanted = "DequantizeLinear" if "into-norm" in name or "5d" in name else "Conv"
    assert {producer(model, inputs_of(model, norm)[0]) for norm in (NORM1, NORM2)} == {wanted}


@pytest.mark.parametrize("name", ["int8-5d-plugin", "qdq-5d-plugin"])
def test_the_5d_form_fits_the_plugins_int8_kernel(name: str) -> None:
    """The INT8 kernel wants five dimensions and a channel count that is a multiple of 32."""
    shape = [dim.dim_value for dim in VARIANTS[name].build().graph.input[0].type.tensor_type.shape.dim]
    assert len(shape) == 5
    assert shape[1] % 32 == 0


@pytest.mark.parametrize("name", ["int8-as-reported", "qdq-as-reported"])
def test_the_reported_form_has_four_inputs_and_an_int64_shape(name: str) -> None:
    """The inputs are those that the reporter's calibrator yields, each is used; INT64 draws the 8.6 warning."""
    model = VARIANTS[name].build()
    given = [value.name for value in model.graph.input]
    assert given == ["im_patches", "train_feat", "target_labels", "train_ltrb"]
    assert set(given) <= {tensor for node in model.graph.node for tensor in node.input}
    shape = initializer(model, inputs_of(model, "/Reshape")[1])
    assert (shape.data_type, list(shape.dims)) == (TensorProto.INT64, [4])


@pytest.mark.parametrize(
    ("name", "scale"),
    [
        ("fp16-fp32-scale", TensorProto.FLOAT),
        ("fp16-fp16-scale", TensorProto.FLOAT16),
        ("fp16-native", TensorProto.FLOAT16),
    ],
)
def test_fp16_input_with_the_scale_and_bias_of_the_title(name: str, scale: int) -> None:
    """The FP16 variants differ in the type of scale and bias alone."""
    model = VARIANTS[name].build()
    assert model.graph.input[0].type.tensor_type.elem_type == TensorProto.FLOAT16
    assert {initializer(model, tensor).data_type for tensor in inputs_of(model, NORM1)[1:]} == {scale}


def test_fp32_and_fp16_scales_hold_the_same_numbers() -> None:
    """A difference in the result is the type's, not the values'."""
    mixed, same = (VARIANTS[name].build() for name in ("fp16-fp32-scale", "fp16-fp16-scale"))
    for tensor in inputs_of(mixed, NORM1)[1:]:
        wide, narrow = (numpy_helper.to_array(initializer(model, tensor)) for model in (mixed, same))
        np.testing.assert_array_equal(wide, narrow.astype(np.float32))


def test_each_way_to_get_a_calibrator_wrong_is_a_negative_control_of_the_right_one() -> None:
    """The wrong calibrators change nothing but the calibrator, and are never read as reproducers."""
    wrong = [variant for variant in CASE if variant.recipe.calibrator and variant.recipe.calibrator.fault]
    right = VARIANTS["int8-native"]
    faults = {variant.recipe.calibrator.fault for variant in wrong if variant.recipe.calibrator}
    assert faults == {"host_pointer", "float64", "non_contiguous"}
    for variant in wrong:
        # The report names no culprit: none of the three stands in a column.
        failing = [claim for claim in variant.expectations if claim.outcome is not Class.API_REMOVED]
        assert not any(claim.stands for claim in failing)
        assert (variant.role, variant.counterpart) == (Role.NEGATIVE_CONTROL, "int8-native")
        assert variant.model_bytes() == right.model_bytes()


@pytest.mark.parametrize("name", ["qdq-into-norm", "qdq-as-reported", "qdq-5d-plugin"])
def test_activation_scales_fit_the_data(name: str) -> None:
    """Fewer than 1 % of the activations saturate, and at least 20 different steps are used."""
    model = VARIANTS[name].build()
    quantised = [
        node.output[0]
        for node in model.graph.node
        if node.op_type == "QuantizeLinear" and "_input_quantizer" in node.name
    ]
    values = reference(model, make_inputs(model), also=quantised)
    assert values.outputs is not None, values.reason
    assert len(quantised) >= 2
    for tensor in quantised:
        steps = values.outputs[tensor].astype(np.int32)
        assert np.mean(np.abs(steps) >= 127) < 0.01
        assert len(np.unique(steps)) >= 20


@pytest.mark.parametrize(
    "pair", [("fp32", "qdq"), ("fp32", "qdq-into-norm"), ("int8-5d-plugin", "qdq-5d-plugin")]
)
def test_quantised_numbers_stay_near_those_of_fp32(pair: tuple[str, str]) -> None:
    """Q/DQ costs a few per cent, so that a wrong engine is not lost in the quantisation error."""
    plain, quantised = (VARIANTS[name].build() for name in pair)
    inputs = make_inputs(plain)
    expected, actual = (reference(model, inputs).outputs for model in (plain, quantised))
    assert expected is not None
    assert actual is not None
    first, second = (np.concatenate([v.ravel() for v in found.values()]) for found in (expected, actual))
    assert np.linalg.norm(first - second) < 0.1 * np.linalg.norm(first)
