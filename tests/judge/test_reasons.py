"""Why a node did not run in the precision that it was to run in: each reason, from tactics as engines print them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.case import Calibrator, Recipe
from harness.judge.reasons import BuiltLayer, Why, built_layers, changes, reasons, way_us
from harness.layers.tactics import read_tactics
from harness.record.outcome import Combination, Conversion, Layer, Message, Node, Outcome, Tactics
from harness.words import Precision, Typing
from tests.layers.test_tactics import CALIBRATED, CASTS_8, CASTS_10, CONV, NO_KERNEL, PARTITIONED, UNQUANTISED

pytestmark = pytest.mark.unit

FLOAT, INT8, VECTOR = "Float(64,16,4,1)", "Int8(64,16,4,1)", "Int8(16,16:4,4,1)"
AS_IT_IS = Combination(f"{FLOAT} -> {FLOAT}", 5.0, "float_kernel", 9)
WANTED = {"/conv": Precision.INT8}


def reason(
    *combinations: Combination,
    ran: Precision = Precision.FP32,
    wished: Any = WANTED,
    recipe: Recipe | None = None,
    **more: Any,
) -> Any:
    """Return the reason of a convolution, the only one; None for none."""
    layer = Layer("/conv", "CaskConvolution", str(ran), tactic="float_kernel", onnx_nodes=("/conv",))
    tactics = Tactics("/conv", (AS_IT_IS, *combinations), **more)
    outcome = Outcome(
        "c", "c", "v", "t", "done", nodes=(Node("/conv", "Conv"),), layers=(layer,), tactics=(tactics,)
    )
    return next(iter(reasons(outcome, recipe or Recipe(), {"/conv": ran}, wished)), None)


def price(source: str, target: str, us: float) -> Conversion:
    return Conversion(source, target, us)


IN_AND_OUT = (price(FLOAT, VECTOR, 3.0), price(VECTOR, FLOAT, 3.0))


def test_no_kernel_names_the_formats_that_were_tried() -> None:
    found = reason(Combination(f"{VECTOR} -> {FLOAT}", refused=2))
    assert found.why is Why.NO_KERNEL
    assert found.formats == (f"{VECTOR} -> {FLOAT}",)
    assert VECTOR in found.sentence


@pytest.mark.parametrize(
    ("kernel", "conversions", "why", "toss_up"),
    [
        (6.0, IN_AND_OUT, Why.SLOWER, False),
        (4.0, IN_AND_OUT, Why.CONVERSION, False),
        # The printed sums differ by less than one tactic's time between two builds.
        (4.5, (price(FLOAT, VECTOR, 0.5), price(VECTOR, FLOAT, 0.3)), Why.CONVERSION, True),
        # One price is not printed: no sum, no verdict, but of a kernel that is slower by itself.
        (4.0, IN_AND_OUT[:1], Why.LAYOUT_OR_CONVERSION, False),
        (5.2, (), Why.LAYOUT_OR_CONVERSION, False),
        (6.0, (), Why.SLOWER, False),
    ],
)
def test_two_ways_are_compared_with_their_conversions(
    kernel: float, conversions: Any, why: Why, toss_up: bool
) -> None:
    found = reason(Combination(f"{VECTOR} -> {VECTOR}", kernel, "int8_kernel", 3), prices=conversions)
    assert (found.why, found.toss_up) == (why, toss_up)


def test_a_slower_kernel_of_the_same_layout_is_slower_whatever_conversions_cost() -> None:
    assert reason(Combination(f"{INT8} -> {INT8}", 5.4, "int8_kernel", 3)).why is Why.SLOWER
    assert reason(Combination(f"{INT8} -> {INT8}", 5.4, "int8_kernel", 3)).toss_up
    assert not reason(Combination(f"{INT8} -> {INT8}", 6.4, "int8_kernel", 3)).toss_up


def test_what_comes_in_decides_over_what_the_chosen_kernel_reads() -> None:
    """The producer writes INT8 already: the way of INT8 needs no conversion there, and the chosen one pays it."""
    added = (Conversion(VECTOR, FLOAT, side="in", tensor="x"),)
    found = reason(Combination(f"{VECTOR} -> {FLOAT}", 9.0, "int8_kernel", 3), prices=IN_AND_OUT, added=added)
    assert found.why is Why.SLOWER
    assert "9.00 us against 8.00 us" in found.numbers


def beside(source: str, target: str, us: float, side: str) -> Conversion:
    return Conversion(source, target, us, "/Cast" if side == "in" else "/Cast_1", side)


def test_a_cast_beside_it_is_taken_by_its_own_price_and_costs_nothing_into_its_own_format() -> None:
    """Not by that of a conversion behind it, which nobody makes."""
    wanted = Combination(f"{VECTOR} -> {VECTOR}", 4.0, "int8_kernel", 3)
    casts = (
        *(beside(FLOAT, FLOAT, 1.5, side) for side in ("in", "out")),
        beside(FLOAT, VECTOR, 2.0, "in"),
        beside(VECTOR, FLOAT, 2.5, "out"),
    )
    found = reason(wanted, prices=(*IN_AND_OUT, *casts))
    assert found.numbers.endswith("8.50 us against 5.00 us")
    # Two Casts read the output: each is paid.
    more = tuple(replace(each, tensor="/Cast_2") for each in casts if each.side == "out")
    assert reason(wanted, prices=(*casts, *more)).numbers.endswith("11.00 us against 5.00 us")
    # It is priced, but not into this format.
    assert reason(wanted, prices=(*IN_AND_OUT, *casts[:3])).why is Why.LAYOUT_OR_CONVERSION


def test_a_way_through_another_kernel_than_the_fastest_names_it() -> None:
    fastest = Combination(f"{VECTOR} -> {VECTOR}", 4.0, "int8_kernel", 3)
    through = Combination(f"{VECTOR} -> {FLOAT}", 6.0, "other_kernel", 3)
    found = reason(fastest, through, prices=IN_AND_OUT)
    assert found.why is Why.CONVERSION
    assert "other_kernel, 6.00 us" in found.numbers
    assert "int8_kernel" not in found.numbers


@pytest.mark.parametrize(
    ("source", "target", "price"),
    [
        # Channels last, in elements and in vectors of four.
        ("Float(2048,1,256,32)", "Float(512,1:4,64,8)", 0.0),
        ("Float(12288,1,192,3)", "Float(4096,1:4,64,1)", None),
        ("Float(2048,1,256,32)", "Half(512,1:4,64,8)", None),
        ("Float((* 512 (# 1 (SHAPE x))),1:4,64,8)", "Float(2048,1,256,32)", None),
    ],
)
def test_two_layouts_of_one_memory_are_converted_by_nothing(
    source: str, target: str, price: float | None
) -> None:
    way, chosen = (Combination(f"{each} -> Int8(1)", 1.0) for each in (target, source))
    assert way_us(Tactics("l", ()), way, chosen) == (None if price is None else 1.0 + price)


def test_the_other_reasons() -> None:
    assert reason().why is Why.NOT_OFFERED
    assert reason(recipe=Recipe(typing=Typing.STRONG)).why is Why.TYPED
    assert reason(Combination(f"{VECTOR} -> {FLOAT}", short_of_memory=True)).why is Why.OUT_OF_MEMORY
    # Neither a time nor a runner that refused: it is unknown, and a missing kernel is the last thing to conclude.
    assert reason(Combination(f"{VECTOR} -> {FLOAT}")).why is Why.NOT_SAID


def test_a_region_of_the_compiler_is_timed_as_a_whole() -> None:
    """Its formats tell nothing of a type that they do not have, nor where there are two."""
    layer = Layer("/conv_myl0_1", "gemm", "fp32", onnx_nodes=("/conv",))
    whole = Outcome("c", "c", "v", "t", "done", nodes=(Node("/conv", "Conv"),), layers=(layer,))
    timed = (
        Combination("Float(4,1) -> Float(4,1)", 5.0, "0x0"),
        Combination("Half(4,1) -> Half(4,1)", 9.0, "0x0"),
    )
    both = [Tactics(f"{{ForeignNode[/{name}...]}}", timed) for name in "ab"]

    def told(*regions: Tactics, wanted: Precision = Precision.FP16) -> Why:
        (found,) = reasons(
            replace(whole, tactics=regions), Recipe(), {"/conv": Precision.FP32}, {"/conv": wanted}
        )
        return found.why

    assert told() is told(*both) is told(both[0], wanted=Precision.INT8) is Why.INSIDE_A_REGION
    assert told(both[0]) is Why.SLOWER


def test_what_flags_and_calibrator_allow_counts_as_wanted() -> None:
    half = Combination("Half(64,16,4,1) -> Half(64,16,4,1)", refused=1)
    assert reason(half, wished={}, recipe=Recipe(flags=("FP16",))).wanted == "fp16"
    calibrated = Recipe(flags=("INT8", "FP16"), calibrator=Calibrator("entropy"))
    assert reason(half, ran=Precision.FP16, wished={}, recipe=calibrated).wanted == "int8"
    assert reason(half, wished={}) is None
    assert reason(half, ran=Precision.INT8, wished={}, recipe=calibrated) is None


def test_weights_that_are_stored_narrow_count_as_asked() -> None:
    weights = {"/conv": Precision.INT8_WEIGHTS}
    assert reason(wished=weights).why is Why.NOT_OFFERED
    assert reason(ran=Precision.INT8_WEIGHTS, wished=weights) is None


def test_a_layer_without_implementation_has_a_reason_too() -> None:
    said = Message("ERROR", "10: Could not find any implementation for node w + /conv.")
    tried = Tactics("w + /conv", (Combination(f"{VECTOR} -> {FLOAT}", refused=2),))
    outcome = Outcome("c", "c", "v", "t", "done", failed_phase="build", messages=(said,), tactics=(tried,))
    (found,) = reasons(outcome, Recipe(), {}, {})
    assert (found.node, found.why, found.ran) == ("w + /conv", Why.NO_KERNEL, "")
    assert reasons(Outcome("c", "c", "v", "t", "done", messages=(said,)), Recipe(), {}, {}) == ()


def test_a_layer_that_could_have_been_int8_says_why_it_is_not() -> None:
    (conv,) = (each for each in built_layers(read_tactics(CALIBRATED)) if each.name == CONV)
    assert (conv.precision, conv.time_us) == ("fp32", 4.7799)
    assert conv.reason is not None
    assert (conv.reason.why, conv.reason.wanted) == (Why.CONVERSION, "int8")
    # 6.36 us and 4.20 us for the input, against 4.78 us.
    assert conv.reason.numbers.endswith("10.56 us against 4.78 us")
    # The kernel of that way, which is not the fastest.
    assert "sm90_xmma_fprop_implicit_gemm_i8f32_i8i32_f32" in conv.reason.numbers


@pytest.mark.parametrize(
    ("log", "sums"),
    [
        # 1.99 + 8.47 + 1.94 against 2.00 + 7.38 + 2.08, and 1.99 + 5.91 + 1.99 against 1.99 + 5.83 + 2.00: the Casts
        # are priced into either type. An 8.6.1 that built the same graph again took FP16.
        (CASTS_8, "12.40 us against 11.46 us"),
        (CASTS_10, "9.90 us against 9.82 us"),
    ],
)
def test_casts_around_a_layer_are_paid_either_way(log: list[str], sums: str) -> None:
    (conv,) = (each for each in built_layers(read_tactics(log)) if each.name == "/conv/Conv")
    assert conv.reason is not None
    assert (conv.reason.why, conv.reason.wanted, conv.reason.toss_up) == (Why.SLOWER, "fp16", True)
    assert conv.reason.numbers.endswith(f"with conversions {sums}")


def test_a_layer_that_is_quantised_no_more_was_not_offered_int8() -> None:
    (conv,) = (each for each in built_layers(read_tactics(UNQUANTISED)) if each.multiplies)
    assert conv.reason is not None
    assert (conv.reason.why, conv.reason.wanted) == (Why.NOT_OFFERED, "int8")


def test_the_layer_that_ended_the_build_has_no_kernel() -> None:
    (lacking,) = built_layers(read_tactics(NO_KERNEL))
    assert lacking.reason is not None
    assert (lacking.reason.why, len(lacking.reason.formats)) == (Why.NO_KERNEL, 3)
    # A log that is cut ends with a layer as well.
    (cut,) = built_layers(read_tactics(line for line in NO_KERNEL if "[ERROR]" not in line))
    assert cut.reason is None


def test_a_kernel_that_is_called_like_a_number_but_is_none_keeps_its_name() -> None:
    log = (line.replace("Tactic: 0x", "Tactic: 0xg") for line in CALIBRATED)
    assert any(each.tactic.startswith("0xg") for each in built_layers(read_tactics(log)))


def test_changes_begin_with_what_lost_precision_and_leave_out_what_stayed() -> None:
    old = [
        BuiltLayer("w + q + conv1", "int8", 2.0, "k8"),
        BuiltLayer("conv2", "fp16", 1.0, "a"),
        BuiltLayer("conv3", "fp32", 1.0, "same"),
        BuiltLayer("PWN(PWN(sig), mul)", "fp32", 1.0, "0x1", multiplies=False),
        BuiltLayer("gone", "fp32", 1.0, "x"),
    ]
    new = [
        BuiltLayer("conv2", "fp16", 3.0, "b"),
        BuiltLayer("w + q + dq + conv1", "fp32", 4.0, "k32"),
        BuiltLayer("conv3", "fp32", 9.0, "same"),
        BuiltLayer("PWN(PWN(sig), PWN(mul))", "fp32", 1.0, "0x2", multiplies=False),
    ]
    found = changes(old, new)
    assert [(each.name, each.coarser, each.slower_us) for each in found] == [
        ("conv1", True, 2.0),
        ("conv2", False, 2.0),
        ("gone", False, 0.0),
    ]


def test_a_region_that_took_the_place_of_two_layers_lost_precision_for_want_of_memory() -> None:
    new = built_layers(read_tactics(PARTITIONED))
    old = [BuiltLayer("conv + relu", "fp16", 3.25, "sm80_f16")]
    (region,) = new
    assert (region.precision, region.tactic) == ("fp32", "Myelin 0x0")
    assert region.reason is not None
    assert (region.reason.why, region.reason.wanted) == (Why.OUT_OF_MEMORY, "fp16")
    (change,) = changes(old, new)
    assert change.coarser
    # Without a reason its inside may be FP16 all the same.
    assert not replace(change, new=replace(region, reason=None)).coarser


def test_a_region_that_was_only_slower_may_be_finer_inside() -> None:
    """Its edges are FP32, and that says nothing of what is between them."""
    known = [line for line in PARTITIONED if "insufficient memory" not in line]
    (region,) = built_layers(read_tactics(known))
    assert (region.precision, region.reason) == ("fp32", None)
