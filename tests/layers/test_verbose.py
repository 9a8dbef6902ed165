"""The "Layers:" message of real builds is read whole, whatever the names in it."""

from __future__ import annotations

import pytest

from harness.layers.parse import parse_layers
from harness.record.outcome import TensorUse
from tests.layers.samples import VERBOSE, named, text, verbose

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
