"""The inspector's JSON and the lines of an 8.x log become the same layers as everything else.

The samples are written by hand after published ones: no GPU, no inspector.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.layers.parse import LayerReport, parse_layers
from harness.record.outcome import TensorUse
from tests.layers.samples import nodes

pytestmark = pytest.mark.unit

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
