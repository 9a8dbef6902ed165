"""One build log and two: the layers that lost their precision, the reasons, and the changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.judge.reasons import BuiltLayer, Why, built_layers, changes
from harness.layers.tactics import read_tactics
from tests.layers.test_tactics import CALIBRATED, CASTS_8, CASTS_10, CONV, NO_KERNEL, PARTITIONED, UNQUANTISED

pytestmark = pytest.mark.unit


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


def test_a_tactic_that_an_older_log_counts_below_zero_is_told_as_later_ones_are() -> None:
    layer = "Layer(CaskConvolution): c, Tactic: -3360065831133338131, x[Float(3,8,8)] -> y[Float(4,8,8)]"
    (conv,) = built_layers(read_tactics([layer]))
    assert conv.tactic == "CaskConvolution 0xd15ea5edd15ea5ed"
