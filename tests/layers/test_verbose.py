"""The "Layers:" message of real builds is read whole, whatever the names in it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.layers.parse import LayerReport, parse_layers
from harness.record.outcome import TensorUse
from tests.layers.samples import VERBOSE, named, nodes, text, verbose

pytestmark = pytest.mark.unit

#: Names of ONNX nodes that users may give, and that look like the text around them.
HOSTILE = {
    "0": "a, b [c]{d}: e",
    "1": "Name: x, LayerType: kgen",
    "3": "q }, { Name: z",
    "10": "line\nbreak, LayerType: gemm",
}


@pytest.mark.parametrize("name", VERBOSE)
def test_every_layer_of_every_recorded_version_is_read(name: str) -> None:
    report = verbose(name)
    assert report.unparsed == 0
    # The engine numbers its layers from 0, so the names themselves say how many there are.
    assert [int(layer.name.rsplit("_", 1)[1]) for layer in report.layers] == list(range(len(report.layers)))
    assert all(
        tensor.precision != "unknown"
        for layer in report.layers
        for tensor in layer.inputs + layer.weights + layer.outputs
    )


def test_tensors_of_1_7_carry_type_shape_and_format_and_the_layer_its_nodes() -> None:
    layer = named(verbose("rtx-1.7.1.116-int8-silu-sm89"), "/conv_myl0_1")
    assert layer.type == "correlation"
    assert layer.inputs == (
        TensorUse(
            "__mye162/conv_output_0_before_bias.1_2_myl0",
            "int8",
            (1, 32, 32, 32),
            "(NHWC) Channel major format",
        ),
    )
    assert [(tensor.precision, tensor.dimensions) for tensor in layer.weights] == [
        ("int8", (32, 32, 3, 3)),
        ("fp32", (1, 32, 1, 1)),
        ("fp32", (1, 32, 1, 1)),
    ]
    assert layer.tactic == "__myelin_CASK_STUB"
    assert layer.onnx_nodes[0] == "/conv"
    assert len(layer.onnx_nodes) == 4


def test_1_4_prints_type_and_format_as_one_and_no_constants() -> None:
    layer = named(verbose("rtx-1.4.0.76-fp16-mish-sm89"), "/conv_myl0_1")
    assert [tensor.precision for tensor in layer.inputs] == ["fp16"]
    assert layer.weights == ()
    assert layer.precision == "fp16"


@pytest.mark.parametrize("number", HOSTILE)
def test_a_name_that_looks_like_the_text_around_it_is_still_one_name(number: str) -> None:
    report = verbose(f"rtx-1.7.1.116-hostile-{number}-sm89")
    name = HOSTILE[number]
    convolution = named(report, f"{name}_myl0_1")
    assert convolution.type == "correlation"
    assert convolution.precision == "int8"
    assert convolution.onnx_nodes[0] == name
    assert report.layers[0].inputs[0].name == f"in{name}"
    assert report.layers[-1].outputs[0].name == f"out {name}"


def test_a_dynamic_dimension_is_negative_and_a_layer_may_have_no_tensors() -> None:
    report = verbose("rtx-1.7.1.116-dynamic-sm89")
    assert report.layers[0].type == "shape_call"
    assert report.layers[0].inputs == report.layers[0].outputs == ()
    assert report.layers[1].inputs[0].dimensions == (-1, 32, 16, 16)


def test_a_broken_layer_is_counted_and_costs_none_of_the_others() -> None:
    whole = text("rtx-1.7.1.116-int8-silu-sm89")
    report = parse_layers("verbose_log", whole.replace("Datatype: Int8", "Something: else", 1))
    assert report.unparsed == 1
    assert [layer.name for layer in report.layers] == ["/conv_myl0_1", "__myl_MulAddMoveSilu_myl0_2"]


def test_a_text_that_ends_in_the_middle_of_a_layer_gives_the_layers_before() -> None:
    whole = text("rtx-1.7.1.116-int8-silu-sm89")
    report = parse_layers("verbose_log", whole[: whole.index("Outputs: ", whole.index("/conv_myl0_1"))])
    assert [layer.name for layer in report.layers] == ["__myl_MulMinMaxRounCast_myl0_0"]
    assert report.unparsed == 1


@pytest.mark.parametrize(("said", "unparsed"), [("", 0), (" \n", 0), ("Layers:\n", 0), ("no such thing", 1)])
def test_a_text_without_layers_is_empty_and_anything_else_counts_as_not_understood(
    said: str, unparsed: int
) -> None:
    report = parse_layers("verbose_log", said)
    assert (report.layers, report.unparsed) == ((), unparsed)


def test_separators_that_a_log_lost_do_not_glue_the_nodes_together() -> None:
    report = parse_layers("verbose_log", text("rtx-1.7.1.116-int8-silu-sm89").replace("\x1f", ""))
    assert named(report, "__myl_MulAddMoveSilu_myl0_2").onnx_nodes == ("/conv", "/act/Sigmoid", "/act/Mul")


def test_the_one_line_form_of_tensorrt_8_and_10_reads_the_same() -> None:
    report = parse_layers("verbose_log", text("written-8.x-one-line"))
    assert report.unparsed == 0
    reformat, convolution = report.layers
    assert (reformat.type, reformat.onnx_nodes) == ("Reformat", ())
    assert [tensor.name for tensor in reformat.inputs + convolution.inputs] == ["images", "q"]
    assert convolution.precision == "int8"
    assert convolution.weights == (TensorUse("Weights", "int8"),)
    assert convolution.tactic == "sm80_xmma_fprop_i8i8"
    assert convolution.outputs[0].format == "Thirty-two wide channel vectorized row major Int8 format"


VECTORISED = "Thirty-two wide channel vectorized row major Int8 format."


def tensor(name: str, said: str, *dimensions: int) -> dict[str, Any]:
    return {"Name": name, "Location": "Device", "Dimensions": list(dimensions), "Format/Datatype": said}


def convolution(**changes: object) -> dict[str, Any]:
    """Return the layer of issue 2418's kind."""
    return {
        "Name": "w + w_quant + conv + PWN(PWN(sigmoid), mul)",
        "LayerType": "CaskConvolution",
        "Inputs": [tensor("x", VECTORISED, 1, 32, 8, 8)],
        "Outputs": [tensor("y", VECTORISED, 1, 32, 8, 8)],
        "ParameterType": "Convolution",
        "Weights": {"Type": "Int8", "Count": 9216},
        "Bias": {"Type": "Float", "Count": 32},
        "TacticName": "sm80_xmma_fprop_implicit_gemm_i8i8_i8i32_f32",
        **changes,
    }


def inspect(*layers: object, **rest: object) -> LayerReport:
    return parse_layers(
        "inspector",
        json.dumps({"Layers": layers, "Bindings": ["x", "y"], **rest}),
        nodes=nodes("Conv conv", "Sigmoid sigmoid", "Mul mul"),
    )


def test_a_convolution_of_8_x_is_judged_by_its_data_and_declared_weights() -> None:
    (layer,) = inspect(convolution()).layers
    assert layer.precision == "int8"
    assert layer.weights == (TensorUse("Weights", "int8"), TensorUse("Bias", "fp32"))
    assert layer.inputs[0].format == VECTORISED
    assert layer.onnx_nodes == ("conv", "sigmoid", "mul")


FLOATS = {"Type": "Float", "Count": 9216}
HIDDEN = [tensor("x", "N/A due to dynamic shapes")]


@pytest.mark.parametrize(
    ("changes", "precision"),
    [
        ({"Inputs": [tensor("x", "Row major linear FP16 format", 1, 32, 8, 8)]}, "int8_weights"),
        ({"Weights": FLOATS}, "fp32"),
        # A dynamic shape that hides the type leaves it to the weights.
        ({"Inputs": HIDDEN}, "int8"),
        ({"Inputs": HIDDEN, "Weights": None}, "unknown"),
        (
            {
                "Inputs": [tensor("x", "Row major linear FP32", 1, 32, 8, 8)],
                "Weights": FLOATS,
                "TacticName": "fprop_tf32f32_tf32f32_f32",
            },
            "tf32",
        ),
    ],
)
def test_data_weights_and_tactic_say_what_a_convolution_multiplies(
    changes: dict[str, Any], precision: str
) -> None:
    (layer,) = inspect(convolution(**changes)).layers
    assert layer.precision == precision


def test_metadata_names_the_nodes_where_there_is_some() -> None:
    (layer,) = inspect(
        convolution(Metadata="[ONNX Layer: /a]\x1e[ONNX Layer: /b [x]]\x1f[ONNX Layer: /a]")
    ).layers
    assert layer.onnx_nodes == ("/a", "/b [x]")


def test_the_schema_of_11_keeps_type_and_format_apart() -> None:
    entry = convolution(
        Inputs=[
            {"Name": "x", "Dimensions": [1, 4], "Datatype": "BFloat16", "Format": "(Linear) Row major linear"}
        ],
        Weights=None,
        Constants=[{"Name": "c", "Dimensions": [4, 4], "Datatype": "BFloat16", "Format": "(Linear)"}],
    )
    (layer,) = inspect(entry, **{"I/O Tensors": []}).layers
    assert layer.inputs == (TensorUse("x", "bf16", (1, 4), "(Linear) Row major linear"),)
    assert layer.precision == "bf16"


def test_a_compiled_region_of_8_x_tells_nothing_of_its_inside() -> None:
    edge = [tensor("x", "Half", 1, 8)]
    (layer,) = inspect(
        {"Name": "{ForeignNode[sigmoid...mul]}", "LayerType": "Myelin", "Inputs": edge, "Outputs": edge}
    ).layers
    assert layer.precision == "unknown"
    assert layer.onnx_nodes == ("sigmoid", "mul")


def test_an_engine_that_tells_names_alone_gives_layers_of_unknown_precision() -> None:
    (layer,) = inspect("conv + PWN(sigmoid)").layers
    assert (layer.precision, layer.type, layer.onnx_nodes) == ("unknown", "", ("conv", "sigmoid"))


@pytest.mark.parametrize(
    ("said", "layers", "unparsed"),
    [
        ("", 0, 0),
        ("{", 0, 1),
        ("[]", 0, 1),
        ('{"Layers": [{"LayerType": "x"}, 3, {"Name": "a", "Inputs": [{}]}, {"Name": "b"}]}', 1, 3),
        ('{"Layers": [{"Name": "a\tb"}]}', 1, 0),
    ],
)
def test_what_is_not_understood_is_counted(said: str, layers: int, unparsed: int) -> None:
    report = parse_layers("inspector", said)
    assert (len(report.layers), report.unparsed) == (layers, unparsed)
