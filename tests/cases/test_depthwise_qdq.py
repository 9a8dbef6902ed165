"""The depthwise_qdq graphs carry the names of the report, and each sweep varies one thing."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto

from harness.case import Precision, effective_name, load_cases

pytestmark = pytest.mark.unit

CASES = {case.name: case for case in load_cases(Path(__file__).resolve().parents[2] / "cases")}
VARIANTS = {variant.name: variant for variant in CASES["depthwise_qdq"]}
CONV = "node_of_output"
CHANNELS = {1: "qdq-c1", 3: "qdq-c3", 4: "qdq-c4", 6: "qdq-c6", 8: "qdq-c8", 16: "qdq-c16", 30: "qdq-c30"}
CHANNELS |= {32: "qdq", 144: "qdq-c144"}
PER_GROUP = (1, 2, 3, 4, 6, 8, 12, 16)


def conv_of(name: str) -> tuple[list[int], int]:
    """Return the convolution's weight shape and its group count."""
    graph = VARIANTS[name].build().graph
    conv = next(node for node in graph.node if node.op_type == "Conv")
    group = next(entry.i for entry in conv.attribute if entry.name == "group")
    shapes = {entry.name: list(entry.dims) for entry in graph.initializer}
    return shapes["weights"], group


def test_the_reproducer_has_unnamed_nodes() -> None:
    """The error says `weights + node_of_weights_quantized + node_of_output`: names that TensorRT made."""
    model = VARIANTS["qdq"].build()
    assert not any(node.name for node in model.graph.node)
    assert [effective_name(node) for node in model.graph.node] == [
        "node_of_input_quantized",
        "node_of_input_dequantized",
        "node_of_weights_quantized",
        "node_of_weights_dequantized",
        "node_of_output",
    ]
    assert next(entry for entry in model.graph.initializer if entry.name == "weights").data_type == (
        TensorProto.FLOAT
    )


def test_the_reproducer_ends_at_the_convolution() -> None:
    """Nothing stands between the depthwise convolution and the network output."""
    graph = VARIANTS["qdq"].build().graph
    assert graph.node[-1].op_type == "Conv"
    assert list(graph.node[-1].input) == ["input_dequantized", "weights_dequantized"]
    assert graph.output[0].name == "output"


@pytest.mark.parametrize(("channels", "name"), CHANNELS.items())
def test_sweep_by_channels_is_depthwise(channels: int, name: str) -> None:
    """Each has one channel a group and INT8 as its wanted precision, also where INT8 cannot be had."""
    assert conv_of(name) == ([channels, 1, 3, 3], channels)
    assert VARIANTS[name].precision == ((CONV, Precision.INT8),)


@pytest.mark.parametrize("per_group", PER_GROUP)
def test_sweep_by_group_keeps_the_channels(per_group: int) -> None:
    """96 channels throughout, so that only the channels of a group change."""
    assert conv_of(f"qdq-group{per_group}") == ([96, per_group, 3, 3], 96 // per_group)
    assert VARIANTS[f"qdq-group{per_group}"].precision == ((CONV, Precision.INT8),)


def test_sweeps_hold_nothing_else() -> None:
    """Every swept variant is one of the points above."""
    swept = {variant.name for variant in VARIANTS.values() if variant.tags}
    assert swept == {*CHANNELS.values(), *(f"qdq-group{size}" for size in PER_GROUP)} - {"qdq"}


def test_dense_has_one_group() -> None:
    """The dense control sees all channels; the first convolution of a diffusion model takes four."""
    assert conv_of("qdq-dense") == ([32, 32, 3, 3], 1)
    graph = VARIANTS["qdq-dense-c4"].build().graph
    shapes = {entry.name: list(entry.dims) for entry in graph.initializer}
    assert shapes["unet.condition_vae_latent_conv.weight"] == [32, 4, 3, 3]


def test_one_scale_or_one_a_channel() -> None:
    """Per channel by default; the per-tensor variant has a scalar scale and no axis."""
    for name, dims, axes in (("qdq", [32], [0]), ("qdq-per-tensor", [], [])):
        graph = VARIANTS[name].build().graph
        shapes = {entry.name: list(entry.dims) for entry in graph.initializer}
        quantise = next(node for node in graph.node if node.output[0] == "weights_quantized")
        assert shapes[quantise.input[1]] == dims
        assert [onnx.helper.get_attribute_value(entry) for entry in quantise.attribute] == axes


def test_fp32_weights_leave_the_activation_quantised() -> None:
    """One Q/DQ pair is left, on the input, and the convolution is wanted in FP32."""
    variant = VARIANTS["act-qdq"]
    operators = [node.op_type for node in variant.build().graph.node]
    assert operators == ["QuantizeLinear", "DequantizeLinear", "Conv"]
    assert variant.precision == ((CONV, Precision.FP32),)


@pytest.mark.parametrize(
    ("name", "operators"),
    [
        ("qdq-after", ["Conv", "QuantizeLinear", "DequantizeLinear"]),
        ("qdq-relu-after", ["Conv", "Relu", "QuantizeLinear", "DequantizeLinear"]),
    ],
)
def test_workarounds_end_quantised(name: str, operators: list[str]) -> None:
    """A Q/DQ pair follows the convolution, or its ReLU."""
    found = [node.op_type for node in VARIANTS[name].build().graph.node]
    assert found[-len(operators) :] == operators
