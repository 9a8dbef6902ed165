"""The change of one variant by a step, from the knowns of both sides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.case import Expectation, Link
from harness.compare.kinds import Kind, Pace, Pair, phenomenon, sentence
from harness.known.model import Known, Timing, Yet
from harness.words import Class
from tests.compare.handmade import FP16, INT8, known, pair, variant

pytestmark = pytest.mark.unit

OK, BUILT, LOST = Class.OK, Class.BUILT, Class.PRECISION_LOST
FAILED, CRASHED, WRONG = Class.BUILD_FAILED, Class.CRASHED, Class.INACCURATE
INAPPLICABLE = replace(known(None), cls=Class.NOT_APPLICABLE)


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (known(None), known(None), None),
        (known(None), known(FAILED), None),
        (known(OK), known(None), Kind.NEWLY_UNKNOWN),
        (known(FAILED), known(None), Kind.NEWLY_UNKNOWN),
        (known(OK), INAPPLICABLE, None),
        (known(OK), known(FAILED), Kind.BROKEN),
        (known(LOST), known(WRONG), Kind.BROKEN),
        (known(FAILED), known(OK), Kind.FIXED),
        (known(WRONG), known(BUILT), Kind.FIXED),
        (known(FAILED), known(LOST), Kind.BUILDS_WITHOUT),
        (known(OK), known(BUILT), None),
        (known(FAILED), known(CRASHED), Kind.OTHERWISE),
        (known(FAILED, signature="a"), known(CRASHED, signature="a"), Kind.OTHERWISE),
        (known(FAILED, signature="a"), known(FAILED, signature="b"), Kind.OTHERWISE),
        (known(FAILED, signature="a"), known(FAILED, signature="a"), None),
        (known(FAILED, signature="a"), known(FAILED), None),
        (known(FAILED), known(FAILED, signature="b"), None),
        (known(FAILED), known(FAILED), None),
    ],
)
def test_what_became_of_the_result(old: Known, new: Known, kind: Kind | None) -> None:
    """A failure is another one by its class, or by signatures that are both known."""
    assert pair(old, new).kinds() == ([kind] if kind else [])


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (known(OK), known(LOST), Kind.PRECISION_LOST),
        (known(LOST), known(OK), Kind.PRECISION_GAINED),
        (known(LOST), known(LOST), None),
        (known(OK), known(LOST, demanded=False), None),
        (known(OK, demanded=False), known(LOST), Kind.PRECISION_LOST),
        (known(nodes=("int8", "fp16")), known(nodes=("int8", "fp32")), Kind.PRECISION_LOST),
        (known(nodes=("fp32", "fp16")), known(nodes=("int8", "fp16")), Kind.PRECISION_GAINED),
        (known(nodes=("int8", "fp32")), known(nodes=("fp32", "fp16")), None),
        # An unknown precision on one side is neither kept nor lost.
        (known(nodes=("int8", "fp16")), known(nodes=("int8", "")), None),
        (known(nodes=("", "fp16")), known(nodes=("int8", "fp16")), None),
        (known(nodes=("int8", "")), known(nodes=("fp32", "")), Kind.PRECISION_LOST),
        # Nodes outweigh the classes: a node whose precision nobody knows was not kept, and is not lost.
        (known(OK, nodes=("fp32", "fp32")), known(LOST, nodes=("fp16", "fp32")), None),
        (known(OK, nodes=("", "")), known(LOST, nodes=("int8", "fp32")), None),
        (known(LOST, nodes=("int8", "fp32")), known(OK, nodes=("", "")), None),
        (known(OK, nodes=("", "")), known(LOST), None),
        (known(LOST), known(OK, nodes=("", "")), None),
        (known(OK, nodes=("fp32", "fp32")), known(LOST, nodes=("fp32", "")), None),
        (known(OK, nodes=("fp32", "fp32")), known(LOST), Kind.PRECISION_LOST),
        (known(OK), known(LOST, nodes=("fp32", "fp32")), Kind.PRECISION_LOST),
    ],
)
def test_what_became_of_the_precision(old: Known, new: Known, kind: Kind | None) -> None:
    assert pair(old, new, of=variant(a=INT8, b=FP16)).kinds() == ([kind] if kind else [])


BF16 = Yet("BF16", "9.0")
LATER = known(Class.PARSE_FAILED, not_yet=BF16)


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        # Nothing was mended, and nothing that fails now worked before.
        (LATER, known(OK), Kind.NOT_YET),
        (LATER, known(LOST), Kind.NOT_YET),
        (LATER, known(FAILED), Kind.NOT_YET),
        (LATER, known(None), Kind.NEWLY_UNKNOWN),
        (LATER, known(Class.PARSE_FAILED, signature="b", not_yet=Yet("Attention", "10.14")), None),
        # One who goes back loses it.
        (known(OK), LATER, Kind.BROKEN),
    ],
)
def test_what_came_later_is_a_kind_of_its_own(old: Known, new: Known, kind: Kind | None) -> None:
    assert pair(old, new).kinds() == ([kind] if kind else [])


def test_what_came_later_is_said_so() -> None:
    found = pair(replace(LATER, text="fails to parse"), replace(known(OK), text="works"))
    assert sentence(found, Kind.NOT_YET) == "not there yet → works"


@pytest.mark.parametrize(
    ("old", "new", "others", "kinds"),
    [
        (OK, LOST, True, [Kind.VARIES]),
        (LOST, OK, True, [Kind.VARIES]),
        (FAILED, LOST, True, [Kind.VARIES]),
        (FAILED, OK, True, [Kind.VARIES]),
        (FAILED, OK, False, [Kind.FIXED]),
        # A failure is told, whatever another GPU does: no choice of the builder explains it.
        (OK, FAILED, True, [Kind.BROKEN]),
        (OK, OK, True, []),
    ],
)
def test_where_another_gpu_disagrees_it_varies(
    old: Class, new: Class, others: bool, kinds: list[Kind]
) -> None:
    said = ("the old version loses precision on NVIDIA H200",) if others else ()
    found = replace(pair(known(old), known(new)), others=said)
    assert found.kinds() == kinds
    assert kinds != [Kind.VARIES] or found.detail(Kind.VARIES) == "".join(said)


@pytest.mark.parametrize(
    ("toss_ups", "kind"),
    [(((), ("a",)), Kind.VARIES), (((), ()), Kind.PRECISION_LOST), ((("b",), ()), Kind.PRECISION_LOST)],
)
def test_a_toss_up_varies(toss_ups: tuple[tuple[str, ...], tuple[str, ...]], kind: Kind) -> None:
    """Of the nodes that changed, each was one."""
    old, new = known(OK, nodes=("int8", "fp16")), known(LOST, nodes=("fp32", "fp16"))
    sides = (replace(each, toss_ups=those) for each, those in zip((old, new), toss_ups, strict=True))
    assert pair(*sides, of=variant(a=INT8, b=FP16)).kinds() == [kind]


def test_variants_that_change_for_one_cause_are_one_phenomenon() -> None:
    def cause(old: Known, new: Known, kind: Kind) -> str:
        return phenomenon(pair(old, new), kind)

    failed = known(FAILED, signature="hole")
    assert cause(failed, known(OK), Kind.FIXED) == cause(failed, known(LOST), Kind.BUILDS_WITHOUT) == "hole"
    assert cause(known(OK), known(CRASHED, signature="new"), Kind.BROKEN) == "new"
    assert cause(LATER, known(OK), Kind.NOT_YET) == cause(LATER, known(FAILED), Kind.NOT_YET) == "BF16"
    # Without a known cause: the same case, with the same words.
    assert cause(known(WRONG), known(OK), Kind.FIXED) != cause(known(FAILED), known(OK), Kind.FIXED)
    elsewhere = replace(known(WRONG), case="d")
    assert cause(elsewhere, replace(known(OK), case="d"), Kind.FIXED) != cause(
        known(WRONG), known(OK), Kind.FIXED
    )


SOURCE = Link("https://example.org/1")
BUILDS = Expectation.reported(OK, "", SOURCE, level="builds")
WORKS, FAILS = (Expectation.reported(cls, "", SOURCE) for cls in (OK, FAILED))
ASKS = known(Class.NEEDS_GPU_TO_BUILD)
Claims = tuple[Expectation | None, Expectation | None]


@pytest.mark.parametrize(
    ("old", "new", "claims", "kinds"),
    [
        # A claim that it builds is silent on the precision.
        (known(BUILT), known(LOST), (BUILDS, None), []),
        (known(LOST), known(BUILT), (None, BUILDS), []),
        (known(OK), known(LOST), (WORKS, None), [Kind.PRECISION_LOST]),
        (known(BUILT), known(FAILED), (BUILDS, None), [Kind.BROKEN]),
        # One claim of both versions is no change between them.
        (known(OK), known(OK), (WORKS, WORKS), []),
        (known(FAILED), known(FAILED), (FAILS, FAILS), []),
        # A build that needs a GPU is no answer beside a machine that had one.
        (ASKS, known(BUILT, gpu=("8.9", "NVIDIA L4")), (None, None), []),
        (ASKS, known(BUILT), (None, WORKS), []),
        (ASKS, known(BUILT), (None, None), [Kind.FIXED]),
    ],
)
def test_two_sides_that_do_not_contradict_each_other_are_not_told_apart(
    old: Known, new: Known, claims: Claims, kinds: list[Kind]
) -> None:
    found = Pair((), old, new, claims)
    assert found.kinds() == kinds
    assert (found.open, found.known) == (not kinds, bool(kinds))


NARROW, WIDE = {"x": "int8"}, {"x": "fp32"}


@pytest.mark.parametrize(
    ("old", "new", "nodes"),
    [
        (known(other=NARROW), known(other=WIDE), ["x int8 fp32"]),
        (known(LOST, other=WIDE), known(OK, other=NARROW), ["x fp32 int8"]),
        (
            known(other={"p": "fp8", "q": "int8", "r": "fp32", "s": "int8"}),
            known(other={"r": "int4", "q": "fp8", "p": "fp16", "t": "int8"}),
            ["p fp8 fp16", "r fp32 int4"],
        ),
        (known(other=NARROW), known(), []),
        (known(), known(other=NARROW), []),
        (known(WRONG, other=NARROW), known(other=WIDE), []),
        (known(other=NARROW), known(WRONG, other=WIDE), []),
        (known(other=NARROW), known(other=WIDE, demanded=False), []),
        (known(other=NARROW, demanded=False), known(other=WIDE), ["x int8 fp32"]),
    ],
)
def test_nodes_that_left_or_took_a_narrow_type(old: Known, new: Known, nodes: list[str]) -> None:
    """Only engines that work count, and the new one must keep a precision."""
    assert [f"{node} {before} {after}" for node, before, after in pair(old, new).crossed] == nodes


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (known(other=NARROW), known(other=WIDE), [Kind.WIDER]),
        (known(other=WIDE), known(other=NARROW), [Kind.NARROWER]),
        (known(other={**NARROW, "y": "fp32"}), known(other={**WIDE, "y": "int8"}), [Kind.WIDER]),
        (known(OK, other=NARROW), known(LOST, other=WIDE), [Kind.PRECISION_LOST]),
    ],
)
def test_what_nobody_asked_for_is_a_kind_of_its_own(old: Known, new: Known, found: list[Kind]) -> None:
    """Only without a worse kind, and wider if any node is."""
    assert pair(old, new).kinds() == found


def timing(low: float, high: float = 0.0, clock: str = "monotonic", cpu: str = "x") -> Timing:
    return Timing(low, low, 30, clock, low, high or low, stack=f"{clock} {cpu}")


NOISY = Timing(1.0, 1.0, 30, "monotonic", noise="too few", stack="monotonic x")


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (known(OK, latency=timing(1.0)), known(OK, latency=timing(1.26)), [Kind.SLOWER]),
        (known(OK, latency=timing(1.0)), known(OK, latency=timing(0.79)), [Kind.FASTER]),
        # As much as runs of one machine differ is no change: 25 % on a CPU, 45 % on a GPU.
        (known(OK, latency=timing(1.0)), known(OK, latency=timing(1.25)), []),
        (known(OK, latency=timing(1.25)), known(OK, latency=timing(1.0)), []),
        (
            known(OK, latency=timing(1.0, clock="cuda_events")),
            known(OK, latency=timing(1.46, clock="cuda_events")),
            [Kind.SLOWER],
        ),
        (
            known(OK, latency=timing(1.0, clock="cuda_events")),
            known(OK, latency=timing(1.44, clock="cuda_events")),
            [],
        ),
        (known(OK, latency=timing(1.0, 1.1)), known(OK, latency=timing(1.3, 1.5)), []),
        (known(OK, latency=timing(1.3, 1.5)), known(OK, latency=timing(1.0, 1.1)), []),
        (
            known(OK, latency=timing(1.0)),
            known(LOST, latency=timing(2.0)),
            [Kind.PRECISION_LOST, Kind.SLOWER],
        ),
        (
            known(LOST, latency=timing(2.0)),
            known(OK, latency=timing(1.0)),
            [Kind.PRECISION_GAINED, Kind.FASTER],
        ),
        (known(WRONG, latency=timing(2.0)), known(OK, latency=timing(1.0)), [Kind.FIXED]),
        (known(OK, latency=timing(2.0)), known(WRONG, latency=timing(1.0)), [Kind.BROKEN]),
        (known(OK), known(OK, latency=timing(1.0)), []),
        (known(OK, latency=timing(1.0)), known(OK), []),
    ],
)
def test_what_became_of_the_latency(old: Known, new: Known, found: list[Kind]) -> None:
    """Of engines that work on both sides: the time of one that errs is no speed."""
    assert pair(old, new).kinds() == found


@pytest.mark.parametrize(
    ("old", "new", "altered", "compared"),
    [
        (timing(1.0, 2.0), timing(3.0, 4.0), False, True),
        (timing(1.0), timing(1.0), True, False),
        (timing(1.0), timing(1.0, cpu="y"), False, False),
        (timing(1.0), timing(1.0, clock="cuda_events"), False, False),
        (NOISY, timing(1.0), False, False),
        (timing(1.0), NOISY, False, False),
    ],
)
def test_two_timings_are_compared_on_one_stack_without_noise(
    old: Timing, new: Timing, altered: bool, compared: bool
) -> None:
    found = pair(known(OK, latency=old), known(OK, latency=new), altered=altered)
    assert found.pace == (Pace(old, new, 3.0 / 2.0, 4.0 / 1.0) if compared else None)
