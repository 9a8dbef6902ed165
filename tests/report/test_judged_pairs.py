"""What a step does to one variant, by what is known of it on both sides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.report.compare.kinds import Kind, NotComparable, Pace, pace, why_not_comparable
from harness.report.compare.pairs import known, pairs
from harness.report.compare.sides import Side, SideTiming
from harness.words import Class
from tests.report.handmade import (
    FP16,
    FP32,
    INT8,
    cell,
    column,
    layer,
    pair,
    results,
    side,
    target,
    variant,
)

pytestmark = pytest.mark.unit

OK, BUILT, LOST = Class.OK, Class.BUILT, Class.PRECISION_LOST
FAILED, CRASHED, WRONG = Class.BUILD_FAILED, Class.CRASHED, Class.INACCURATE


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (side(None, why="not run"), side(None, why="not run"), None),
        (side(None, why="not run"), side(FAILED), None),
        (side(OK), side(None, why="not run"), Kind.NEWLY_UNKNOWN),
        (side(FAILED), side(None, why="not run"), Kind.NEWLY_UNKNOWN),
        (side(OK), side(None, why="does not apply"), None),
        (side(OK), side(FAILED), Kind.BROKEN),
        (side(LOST), side(WRONG), Kind.BROKEN),
        (side(FAILED), side(OK), Kind.FIXED),
        (side(WRONG), side(BUILT), Kind.FIXED),
        (side(FAILED), side(LOST), Kind.BUILDS_WITHOUT),
        (side(OK), side(BUILT), None),
        (side(FAILED), side(CRASHED), Kind.OTHERWISE),
        (side(FAILED, signature="a"), side(CRASHED, signature="a"), Kind.OTHERWISE),
        (side(FAILED, signature="a"), side(FAILED, signature="b"), Kind.OTHERWISE),
        (side(FAILED, signature="a"), side(FAILED, signature="a"), None),
        (side(FAILED, signature="a"), side(FAILED), None),
        (side(FAILED), side(FAILED, signature="b"), None),
        (side(FAILED), side(FAILED), None),
    ],
)
def test_what_became_of_the_result(old: Side, new: Side, kind: Kind | None) -> None:
    """A failure is another one by its class, or by signatures that are both known."""
    assert pair(old, new).kinds == ([kind] if kind else [])


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (side(OK), side(LOST), Kind.PRECISION_LOST),
        (side(LOST), side(OK), Kind.PRECISION_GAINED),
        (side(LOST), side(LOST), None),
        (side(OK), side(LOST, demanded=False), None),
        (side(OK, demanded=False), side(LOST), Kind.PRECISION_LOST),
        (side(nodes=("int8", "fp16")), side(nodes=("int8", "fp32")), Kind.PRECISION_LOST),
        (side(nodes=("fp32", "fp16")), side(nodes=("int8", "fp16")), Kind.PRECISION_GAINED),
        (side(nodes=("int8", "fp32")), side(nodes=("fp32", "fp16")), None),
        # What is not told on one side is neither kept nor lost.
        (side(nodes=("int8", "fp16")), side(nodes=("int8", "")), None),
        (side(nodes=("", "fp16")), side(nodes=("int8", "fp16")), None),
        (side(nodes=("int8", "")), side(nodes=("fp32", "")), Kind.PRECISION_LOST),
        # Nodes that are all told outweigh the classes, and the classes those that are not.
        (side(OK, nodes=("fp32", "fp32")), side(LOST, nodes=("fp16", "fp32")), None),
        (side(OK, nodes=("", "")), side(LOST, nodes=("", "")), Kind.PRECISION_LOST),
        (side(OK, nodes=("fp32", "fp32")), side(LOST, nodes=("fp32", "")), Kind.PRECISION_LOST),
        (side(OK, nodes=("fp32", "fp32")), side(LOST), Kind.PRECISION_LOST),
        (side(OK), side(LOST, nodes=("fp32", "fp32")), Kind.PRECISION_LOST),
    ],
)
def test_what_became_of_the_precision(old: Side, new: Side, kind: Kind | None) -> None:
    assert pair(old, new, of=variant(a=INT8, b=FP16)).kinds == ([kind] if kind else [])


NARROW, WIDE = (("x", "int8"),), (("x", "fp32"),)


@pytest.mark.parametrize(
    ("old", "new", "nodes"),
    [
        (side(rest=NARROW), side(rest=WIDE), ["x int8 fp32"]),
        (side(LOST, rest=WIDE), side(OK, rest=NARROW), ["x fp32 int8"]),
        (
            side(rest=(("p", "fp8"), ("q", "int8"), ("r", "fp32"), ("s", "int8"))),
            side(rest=(("r", "int4"), ("q", "fp8"), ("p", "fp16"), ("t", "int8"))),
            ["r fp32 int4", "p fp8 fp16"],
        ),
        (side(rest=NARROW), side(), []),
        (side(), side(rest=NARROW), []),
        (side(WRONG, rest=NARROW), side(rest=WIDE), []),
        (side(rest=NARROW), side(WRONG, rest=WIDE), []),
        (side(rest=NARROW), side(rest=WIDE, demanded=False), []),
        (side(rest=NARROW, demanded=False), side(rest=WIDE), ["x int8 fp32"]),
    ],
)
def test_nodes_that_left_or_took_a_narrow_type(old: Side, new: Side, nodes: list[str]) -> None:
    """Of engines that work, where a precision is demanded of the new one."""
    assert [" ".join(each) for each in pair(old, new).crossed] == nodes


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (side(rest=NARROW), side(rest=WIDE), [Kind.WIDER]),
        (side(rest=WIDE), side(rest=NARROW), [Kind.NARROWER]),
        (
            side(rest=(*NARROW, ("y", "fp32"))),
            side(rest=(*WIDE, ("y", "int8"))),
            [Kind.WIDER],
        ),
        (side(OK, rest=NARROW), side(LOST, rest=WIDE), [Kind.PRECISION_LOST]),
    ],
)
def test_what_nobody_asked_for_is_a_kind_of_its_own(old: Side, new: Side, found: list[Kind]) -> None:
    """Only beside nothing worse, and wider where any node is."""
    assert pair(old, new).kinds == found


def timing(low: float, high: float = 0.0, clock: str = "monotonic", cpu: str = "x") -> SideTiming:
    return SideTiming(low, (clock, cpu), (low, high or low))


NOISY = SideTiming(1.0, ("monotonic", "x"))


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (side(OK, timing=timing(1.0)), side(OK, timing=timing(1.26)), [Kind.SLOWER]),
        (side(OK, timing=timing(1.0)), side(OK, timing=timing(0.79)), [Kind.FASTER]),
        # As much as runs of one machine differ is no change: 25 % on a CPU, 4 % on a GPU.
        (side(OK, timing=timing(1.0)), side(OK, timing=timing(1.25)), []),
        (side(OK, timing=timing(1.25)), side(OK, timing=timing(1.0)), []),
        (
            side(OK, timing=timing(1.0, clock="cuda_events")),
            side(OK, timing=timing(1.05, clock="cuda_events")),
            [Kind.SLOWER],
        ),
        (
            side(OK, timing=timing(1.0, clock="cuda_events")),
            side(OK, timing=timing(1.03, clock="cuda_events")),
            [],
        ),
        (side(OK, timing=timing(1.0, 1.1)), side(OK, timing=timing(1.3, 1.5)), []),
        (side(OK, timing=timing(1.3, 1.5)), side(OK, timing=timing(1.0, 1.1)), []),
        (side(OK, timing=timing(1.0)), side(LOST, timing=timing(2.0)), [Kind.PRECISION_LOST, Kind.SLOWER]),
        (side(LOST, timing=timing(2.0)), side(OK, timing=timing(1.0)), [Kind.PRECISION_GAINED, Kind.FASTER]),
        (side(WRONG, timing=timing(2.0)), side(OK, timing=timing(1.0)), [Kind.FIXED]),
        (side(OK, timing=timing(2.0)), side(WRONG, timing=timing(1.0)), [Kind.BROKEN]),
        (side(OK), side(OK, timing=timing(1.0)), []),
        (side(OK, timing=timing(1.0)), side(OK), []),
    ],
)
def test_what_became_of_the_latency(old: Side, new: Side, found: list[Kind]) -> None:
    """Of engines that work on both sides: the time of one that errs is no speed."""
    assert pair(old, new).kinds == found


@pytest.mark.parametrize(
    ("old", "new", "altered", "why"),
    [
        (timing(1.0, 2.0), timing(3.0, 4.0), False, None),
        (timing(1.0), timing(1.0), True, NotComparable.MODEL),
        (NOISY, timing(1.0, cpu="y"), True, NotComparable.MODEL),
        (timing(1.0), timing(1.0, cpu="y"), False, NotComparable.STACK),
        (timing(1.0), timing(1.0, clock="cuda_events"), False, NotComparable.STACK),
        (NOISY, timing(1.0, cpu="y"), False, NotComparable.STACK),
        (NOISY, timing(1.0), False, NotComparable.NOISE),
        (timing(1.0), NOISY, False, NotComparable.NOISE),
    ],
)
def test_two_timings_are_compared_unless_something_hinders(
    old: SideTiming, new: SideTiming, altered: bool, why: NotComparable | None
) -> None:
    found = pair(side(OK, timing=old), side(OK, timing=new), altered=altered)
    assert why_not_comparable(found, old, new) is why
    assert pace(found) == (None if why else Pace(old, new, 3.0 / 2.0, 4.0 / 1.0))


def test_a_variant_that_was_timed_on_one_side_alone_has_no_pace() -> None:
    assert pace(pair(side(OK, timing=timing(1.0)), side(OK))) is None
    assert pace(pair(side(OK), side(OK, timing=timing(1.0)))) is None


def test_both_sides_are_asked_what_the_new_report_wants() -> None:
    """A side is worked out once, unless another report wants something else of it."""
    found = cell(layers=(layer("int8", "a"), layer("fp16", "b")), precision={"a": INT8, "b": FP16})
    column_of = results((target(),), (variant(a=INT8), variant("bare")), found)
    (own,) = known(column_of, {"new": ""})
    assert own.called == "new"
    assert own.side(("c", "v"), variant(a=INT8)) is own.sides["c", "v"]
    asked = own.side(("c", "v"), variant(b=FP16, a=FP32))
    assert (asked.nodes, asked.rest) == (("fp16", "int8"), ())
    for missing in ("bare", "unheard-of"):
        assert own.side(("c", missing), variant(missing)) == Side(None, why="not in that report")
    assert column(target(), "another night").called == "another night"


def test_a_variant_is_altered_where_model_or_recipe_are_others_on_both_sides() -> None:
    plain = replace(variant(), model_sha256="m", recipe_sha256="r")
    seen = {}
    for name, other in {
        "same": replace(plain, title="Another title"),
        "model": replace(plain, model_sha256="n"),
        "recipe": replace(plain, recipe_sha256="s"),
        "gone": replace(plain, name="w"),
    }.items():
        (old,), (new,) = (known(results((target(),), (each,)), {"new": ""}) for each in (plain, other))
        seen[name] = [(each.variant.name, each.altered) for each in pairs(old, new)]
    assert seen == {
        "same": [("v", False)],
        "model": [("v", True)],
        "recipe": [("v", True)],
        "gone": [("w", False), ("v", False)],
    }
