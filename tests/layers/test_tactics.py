"""The tactics in verbose build logs: real ones of 8.6.1, 10.6.0 and 10.16.1, most of their tactic lines left out."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from harness.layers.tactics import read_tactics, tactics_of
from harness.record.outcome import Conversion, Layer, Node

pytestmark = pytest.mark.unit

DATA = Path(__file__).with_name("data")
CALIBRATED, NO_KERNEL, UNQUANTISED, PARTITIONED, CASTS_8, CASTS_10 = (
    (DATA / f"tactics-{name}.txt").read_text(encoding="utf-8").split("\n")
    for name in (
        *("8.6-calibrated", "8.6-no-kernel", "10.6-unquantised", "10.16-partitioned"),
        *("8.6-between-casts", "10.6-between-casts"),
    )
)
CONV = "/model.0/conv/Conv"
LAYER = Layer(CONV, "CaskConvolution", "fp32", onnx_nodes=(CONV,))
PREFIXES = ["", "[11/26/2026-10:00:00] [V] [TRT] ", "[TensorRT] VERBOSE: "]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_each_combination_has_its_fastest_tactic_whoever_prints_the_log(prefix: str) -> None:
    build = read_tactics(f"{prefix}{line.removeprefix('[VERBOSE] ')}" for line in CALIBRATED)
    found = {each.formats: (each.time_us, each.refused) for each in build.layers[CONV]}
    # The round for the calibration, without times, is not among them.
    assert len(found) == len(build.layers[CONV]) == 7
    assert found["Float(12288,4096,64,1) -> Float(49152,1024,32,1)"] == (4.7799, 2)
    assert found["Int8(4096,4096:4,64,1) -> Float(49152,1024,32,1)"] == (None, 2)
    assert found["Int8(4096,4096:32,64,1) -> Float(2048,1024:32,32,1)"] == (4.4551, 1)
    assert build.prices["Float(12288,4096,64,1)", "Int8(4096,4096:32,64,1)"] == 4.1997


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(
    ("log", "came", "half", "price"),
    [
        (CASTS_8, "Float(16384,512,64,8,1)", "Half(2048,1:8,256,32,4)", (1.9942, 1.9387, 3.0067)),
        # The engine's layer has another name than the Cast: its tensors tell which it is.
        (CASTS_10, "Float(2048,64,8,1)", "Half(256,1:8,32,4)", (1.9949, 1.9905, 2.9812)),
    ],
)
def test_a_cast_beside_a_layer_has_prices_of_its_own(
    log: list[str], came: str, half: str, price: tuple[float, float, float], prefix: str
) -> None:
    found = read_tactics(f"{prefix}{line.removeprefix('[VERBOSE] ')}" for line in log).of("/conv/Conv")
    assert found is not None
    into, back, plain = (
        [
            each.time_us
            for each in found.prices
            if (each.source, each.target, each.tensor, each.side, each.at) == wanted
        ]
        for wanted in (
            (came, half, "/Cast", "in", 0),
            (half, came, "/Cast_1", "out", 0),
            (came, half, "", "", 0),
        )
    )
    assert (into, back, plain) == ([price[0]], [price[1]], [price[2]])


def test_a_conversion_in_two_steps_begins_at_the_kernel_that_makes_the_tensor() -> None:
    """As 10.6 does behind a region: into channels last, and from there into vectors of four."""
    linear, last, vectors = "Float(64,16,4,1)", "Float(64,1,16,4)", "Float(16,1:4,4,1)"
    block = ["= Computing costs for conv", f"* Autotuning format combination: {vectors} -> {linear} ***"]
    added = [
        f"Adding reformat layer: Reformatted Output Tensor 0 to act (x) from {linear} to {last}",
        f"Adding reformat layer: Reformatted Input Tensor 0 to conv (x) from {last} to {vectors}",
    ]
    for lines, source in ((added, linear), (added[1:], last)):
        found = read_tactics([*block, *lines]).of("conv")
        assert found is not None
        assert [(each.source, each.target, each.side) for each in found.added] == [(source, vectors, "in")]


def test_the_engine_that_was_made_is_listed_with_the_names_of_its_tactics() -> None:
    calibrated, unquantised = read_tactics(CALIBRATED), read_tactics(UNQUANTISED)
    assert calibrated.engine[CONV].precision == "fp32"
    assert calibrated.engine[CONV].tactic.startswith(
        "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs"
    )
    (weights,) = (layer for name, layer in unquantised.engine.items() if name.startswith("weights + "))
    assert (weights.type, weights.precision) == ("CaskConvolution", "fp32")
    assert weights.tactic.startswith("sm50_xmma_fprop_conv2d_c1_k1_f32f32")
    pointwise = "PWN(PWN(/model.0/act/Sigmoid), /model.0/act/Mul)"
    assert calibrated.added[pointwise][0] == Conversion(
        "Float(49152,1024,32,1)", "Float(1,1024,32,1)", tensor=f"{CONV}_output_0", side="in"
    )


def test_layers_whose_weights_lost_their_q_and_dq_are_known() -> None:
    name = "weights + node_of_weights_quantized + node_of_weights_dequantized + node_of_output"
    assert read_tactics(UNQUANTISED).unquantised == {name}
    assert read_tactics(NO_KERNEL).unquantised == set()


def test_a_time_of_zero_was_not_measured() -> None:
    build = read_tactics(
        [
            "=============== Computing costs for conv (one)",
            "*************** Autotuning format combination: Float(4,2,1) -> Float(4,2,1) ***************",
            "--------------- Timing Runner: conv (one) (CaskConvolution)",
            "Tactic: 17 Time: 0",
            "Tactic: 18 Time: 0.5",
            "Fastest Tactic: 17 Time: 0",
            "*************** Autotuning format combination: Half(4,2,1) -> Half(4,2,1) ***************",
            "--------------- Timing Runner: conv (one) (CaskConvolution)",
            "Tactic: 17 Time: 0",
        ]
    )
    assert [(each.time_us, each.tactic) for each in build.layers["conv (one)"]] == [(500.0, "18"), (None, "")]


def test_a_kernel_that_is_named_on_a_line_of_its_own_has_its_time_on_the_next() -> None:
    """As 8.5 prints it; strides of a dynamic shape are terms with stars and brackets."""
    formats = "Float((* 256 (# 1 (SHAPE x))),1) -> Half(E0:8,1) where E0=(* 2 (# 1 (SHAPE x)))"
    build = read_tactics(
        [
            "=============== Computing costs for c",
            f"*************** Autotuning format combination: {formats} ***************",
            "--------------- Timing Runner: c (CudnnConvolution)",
            "Tactic: 0x0000000000000001 Time: 0.0181566",
            "--------------- Timing Runner: c (CaskConvolution)",
            "c Set Tactic Name: maxwell_scudnn_128x32_relu_medium_nn_v1 Tactic: 0x0ebe499388e08286",
            "Tactic: 0x0ebe499388e08286 Time: 0.0102553",
            "--------------- Timing Runner: c (CublasConvolution)",
            "Tactic: 0x0000000000000001 Time: 0.5",
        ]
    )
    (combination,) = build.layers["c"]
    assert combination.sides == ("Float((* 256 (# 1 (SHAPE x))),1)", "Half(E0:8,1)")
    assert (combination.tactic, combination.time_us) == ("maxwell_scudnn_128x32_relu_medium_nn_v1", 10.2553)


def test_of_several_partitions_of_a_graph_the_times_known_from_another_are_read() -> None:
    """As late 10.x prices them: a region whose FP16 has no memory, beside the layers that it would replace."""
    region = "{ForeignNode[conv...relu]}"
    build = read_tactics(PARTITIONED)
    assert [each.time_us for each in build.layers["conv + relu"]] == [5.346, 5.2157]
    assert build.layers["conv + relu"][1].tactic == "sm80_f16"
    assert build.prices["Half(10,1)", "Float(10,1)"] == 2.5223
    assert [(each.time_us, each.short_of_memory) for each in build.layers[region]] == [
        (5.3459, False),
        (None, True),
    ]
    assert build.gpu == "NVIDIA H100 PCIe"


def test_a_record_holds_the_layers_that_multiply_with_the_prices_of_their_formats() -> None:
    (found,) = tactics_of(CALIBRATED, (LAYER,), (Node(CONV, "Conv"), Node("/model.0/act/Mul", "Mul")))
    assert found.layer == CONV
    sides = {side for each in found.combinations for side in each.sides}
    assert found.prices
    assert all({each.source, each.target} <= sides for each in found.prices)
    assert tactics_of(CALIBRATED, (LAYER,), (Node(CONV, "Relu"),)) == ()


def test_a_record_of_a_build_that_failed_holds_the_layers_of_which_nothing_was_timed() -> None:
    (found,) = tactics_of(NO_KERNEL, (), ())
    assert found.layer == "weights + node_of_weights_quantized + node_of_output"
    assert [each.inputs[0].partition("(")[0] for each in found.combinations] == ["Int8"] * 3


def test_a_log_that_never_ends_costs_no_memory() -> None:
    lines = (
        f"*************** Autotuning format combination: Float({n}) -> Float({n},1) ***************"
        for n in range(100_000)
    )
    build = read_tactics(["=============== Computing costs for conv", *lines])
    assert len(build.layers["conv"]) == 200

    costs = lines_of("conv", *(f"Tactic: {number} Time: 0.5" for number in range(20_001)))
    (combination,) = read_tactics(costs).layers["conv"]
    assert combination.timed == 20_000


def lines_of(layer: str, *times: str) -> list[str]:
    """Return the block of one combination of a layer."""
    formats = "*************** Autotuning format combination: Float(8,1) -> Float(8,1) ***************"
    return [f"=============== Computing costs for {layer}", formats, *times]


def test_of_two_builds_in_one_log_the_last_is_read() -> None:
    """With the GPU that the log named first, and without the conversions of the first engine."""
    added = "Adding reformat layer: Reformatted Input Tensor 0 to conv (x) from Float(8,1) to Half(8,1)"
    build = [*lines_of("conv", "Tactic: 1 Time: 0.5"), added]
    head = "Selected Device: NVIDIA H200"
    found = read_tactics([head, *build, "Starting Calibration.", *build, *build])
    assert (found.gpu, len(found.added["conv"])) == ("NVIDIA H200", 1)


def test_of_two_runners_whose_tactics_have_one_number_the_faster_counts() -> None:
    for times in (("0.25", "0.5"), ("0.5", "0.25")):
        lines = lines_of("conv", *(f"Tactic: 0x0 Time: {each}" for each in times))
        (combination,) = read_tactics(lines).layers["conv"]
        assert (combination.time_us, combination.timed) == (250.0, 1)


@pytest.mark.parametrize(
    "part",
    [
        *("Layer(a): b, Tactic: 1, ", "Name: a, ", "-", "=", "*"),
        *("Adding reformat layer: Reformatted Input Tensor 0 to a (b) from ", "Fusing a with "),
    ],
)
def test_a_line_that_is_nearly_right_all_along_takes_time_in_proportion(part: str) -> None:
    """A search to the end from each of many places would take minutes."""
    line = "=============== Computing costs for Tactic " + part * (60_000 // len(part))
    before = time.process_time()
    read_tactics([line] * 5)
    assert time.process_time() - before < 10
