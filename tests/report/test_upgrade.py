"""`upgrade`: what a step from one target to another does to every variant, and how sure that is."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.case import Expectation
from harness.outcome import Latency
from harness.report.results import assemble
from harness.report.upgrade import Kind, default_pair, upgrade
from harness.words import Certainty, Class, Engine
from tests.report import factory

if TYPE_CHECKING:
    from harness.outcome import Outcome
    from harness.report import Results
    from harness.report.upgrade import Row, Upgrade

pytestmark = pytest.mark.unit

LOST = (factory.conv_layer("fp32"),)


def step(*outcomes: Outcome, pair: tuple[str, str] = ("rtx16", "rtx17")) -> Upgrade:
    made = {outcome.cell: outcome for outcome in outcomes}
    return upgrade(assemble(factory.matrix(), (factory.case(),), made), *pair)


def rows(found: Upgrade) -> list[tuple[str, str]]:
    return [(str(row.kind), row.variant) for row in found.rows]


def only(found: Upgrade, variant: str = "qdq-between") -> Row:
    (row,) = (row for row in found.rows if row.variant == variant)
    return row


#: A variant about which nothing is documented.
FREE = "qdq-between"


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ({}, None, "broken"),
        ({}, {"layers": LOST}, "precision_lost"),
        ({"layers": LOST}, {}, "precision_gained"),
        ({"layers": LOST}, None, "broken"),
        (None, {}, "fixed"),
        (None, {"layers": LOST}, "precision_lost"),
    ],
)
def test_a_change_of_class_is_named_by_what_it_means(
    before: dict[str, Any] | None, after: dict[str, Any] | None, kind: str
) -> None:
    """A build that was refused and now loses its precision in silence has not been fixed."""

    def made(fields: dict[str, Any] | None, on: str) -> Outcome:
        if fields is None:
            return factory.build_failure(FREE, on)
        return factory.outcome(FREE, on, **fields)

    assert only(step(made(before, "rtx16"), made(after, "rtx17"))).kind == kind


def test_same_on_both_makes_no_row() -> None:
    """What does not change is counted, not listed."""
    found = step(factory.outcome(FREE, "rtx16"), factory.outcome(FREE, "rtx17"))
    assert (FREE not in [row.variant for row in found.rows], found.same, found.unknown) == (True, 2, 2)


def test_a_failure_of_another_class_is_another_failure() -> None:
    """Neither better nor worse, but not the same either."""
    crash = factory.outcome(FREE, "rtx17", layers=(), failed_phase="build", missing_api="BuilderFlag.INT8")
    row = only(step(factory.build_failure(FREE, "rtx16"), crash))
    assert row.kind is Kind.OTHERWISE
    assert row.text == "fails to build → needs an API that is not there"


def test_a_cell_that_nobody_ran_is_newly_unknown_and_nothing_else() -> None:
    """Not run is neither broken nor fine."""
    found = step(factory.outcome(FREE, "rtx16"))
    assert (only(found).kind, only(found).text) == (Kind.NEWLY_UNKNOWN, "builds (INT8 1/1) → not run")
    assert only(found).sure == "measured"


def test_what_does_not_apply_after_is_no_loss() -> None:
    """A calibrated recipe means nothing to ONNX Runtime."""
    missing = factory.outcome("int8-entropy", "rtx17", missing_api="BuilderFlag.INT8", layers=())
    found = step(missing, pair=("rtx17", "ort131"))
    assert "int8-entropy" not in [row.variant for row in found.rows]


def test_broken_names_cause_and_a_workaround_that_works_after() -> None:
    """What to change meanwhile is proven on the target that one goes to."""
    broken = factory.outcome("qdq", "rtx16"), factory.build_failure("qdq", "rtx17")
    row = only(step(*broken, factory.outcome(FREE, "rtx17")), "qdq")
    assert row.cause.startswith("No implementation for ")
    assert row.instead == "conv_silu[qdq-between] builds (INT8 1/1)"
    works_only_before = step(*broken, factory.outcome(FREE, "rtx16"))
    assert only(works_only_before, "qdq").instead == "none of 1 known here works on rtx17"


def test_a_variant_without_a_workaround_says_so() -> None:
    """A workaround of another problem of the case is none."""
    found = step(factory.outcome("fp32", "rtx16"), factory.build_failure("fp32", "rtx17"))
    assert only(found, "fp32").instead == "no workaround of it is known here"


def test_fixed_names_the_cause_that_is_gone() -> None:
    """The cause is that of the failure, which was before."""
    row = only(step(factory.build_failure("qdq", "rtx16"), factory.outcome("qdq", "rtx17")), "qdq")
    assert row.cause.startswith("No implementation for ")
    assert row.instead == ""


def test_lost_precision_names_node_and_both_precisions() -> None:
    """The reader must not have to search for which layer it is."""
    row = only(step(factory.outcome(FREE, "rtx16"), factory.outcome(FREE, "rtx17", layers=LOST)))
    assert row.text == (
        f"builds (INT8 1/1) → loses precision (INT8 0/1): {factory.CONV} in fp32 instead of int8"
    )


def test_documented_sides_are_said_to_be_documented() -> None:
    """A claim never passes for a measurement."""
    found = step(pair=("trt86", "trt102"))
    row = only(found, "qdq")
    assert (row.kind, row.text) == (Kind.FIXED, "documented: fails to build → documented: works")
    assert row.sure == "trt86 reported by users, trt102 inferred"
    assert found.basis.startswith("Not run here: trt86 and trt102.")


def test_int8_nodes_are_counted_by_operator_and_only_where_told() -> None:
    """A build that failed has no precision, which is neither kept nor lost."""
    found = step(factory.build_failure("qdq", "rtx16"), factory.outcome("qdq", "rtx17"))
    assert found.coverage == (
        "Of 2 nodes that should run in INT8, in INT8 are: not told on rtx16, 1 on rtx17 (Conv 1)."
    )


def test_nothing_known_on_both_is_said() -> None:
    """An empty comparison is no green light."""
    alone = replace(factory.case().variants[1], counterpart=None)
    nothing = assemble(factory.matrix(), (replace(factory.case(), variants=(alone,)),), {})
    assert upgrade(nothing, "rtx16", "rtx17").headline == (
        "Nothing is known on both rtx16 and rtx17: this page cannot tell."
    )


def timed(on: str, milliseconds: float, *, clock: Any = "monotonic", **environment: str) -> Outcome:
    samples = tuple(milliseconds * (1 + 0.001 * (index % 5)) for index in range(50))
    made = factory.ran("fp32", on, latency=Latency(samples, 5, clock))
    return replace(made, stamps=replace(made.stamps, environment={"cpu": "x", **environment}))


def test_slower_and_faster_on_one_stack() -> None:
    """Medians and quartiles apart, on the same machine by the same clock."""
    found = step(timed("rtx16", 1.0), timed("rtx17", 1.5))
    assert rows(found) == [("slower", "fp32")]
    assert only(found, "fp32").text == "median 1 ms → 1.5 ms, 50 % slower"
    assert found.timing == "Latency is compared for 1 variants, timed on the same stack."
    assert rows(step(timed("rtx16", 1.5), timed("rtx17", 1.0))) == [("faster", "fp32")]


def test_a_small_or_uncertain_difference_is_none() -> None:
    """Four per cent is noise, and so is a median that lies inside the other's quartiles."""
    assert rows(step(timed("rtx16", 1.0), timed("rtx17", 1.04))) == []
    wide = factory.ran("fp32", "rtx17", latency=Latency((0.5, 1.0, 1.2, 2.0, 3.0), 5, "monotonic"))
    wide = replace(wide, stamps=replace(wide.stamps, environment={"cpu": "x"}))
    assert rows(step(timed("rtx16", 1.0), wide)) == []


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"gpu": "Another"}, "(gpu differ)"),
        ({"cpu": "y"}, "(cpu differ)"),
        ({"clock": "cuda_events"}, "(clock differ)"),
    ],
)
def test_different_stacks_are_not_compared(other: dict[str, str], said: str) -> None:
    """Another GPU is faster for its own reasons; the page says that it does not compare, and why."""
    found = step(timed("rtx16", 1.0), timed("rtx17", 9.0, **other))
    assert rows(found) == []
    assert found.timed == 0
    assert said in found.timing


def test_default_pair_is_the_two_newest_measured_of_one_series() -> None:
    """What most readers come for; the documented ones only where nothing was measured."""
    assert default_pair(factory.results()) == ("rtx16", "rtx17")
    assert default_pair(assemble(factory.matrix(), (factory.case(),), {})) == ("rtx16", "rtx17")
    added = factory.target("rtx110", "1.10.0.1")
    matrix = replace(factory.matrix(), targets=(added, *factory.matrix().targets))
    newest = replace(factory.outcome("qdq", "rtx17"), target="rtx110", cell="conv_silu[qdq]-rtx110")
    made = {newest.cell: newest, **factory.outcomes()}
    assert default_pair(assemble(matrix, (factory.case(),), made)) == ("rtx17", "rtx110")


def test_counts_rows_and_remainder_add_up_for_every_pair() -> None:
    """No variant is lost between the counts."""
    results: Results = factory.results()
    for before in results.targets:
        for after in results.targets:
            found = upgrade(results, before.id, after.id)
            listed = {row.variant for row in found.rows}
            assert len(listed) + found.same + found.unknown == 4
            data = json.loads(json.dumps(found.to_json()))
            assert sum(data["counts"].values()) == len(data["rows"])


def test_a_target_that_is_not_there_is_a_key_error() -> None:
    """Callers turn it into their own sentence."""
    with pytest.raises(KeyError, match="rtx99"):
        upgrade(factory.results(), "rtx16", "rtx99")


def test_a_documented_workaround_is_marked_so() -> None:
    """Where nothing was measured to work, a claim is better than nothing, and says that it is one."""
    case = factory.case()
    claim = Expectation(
        Class.OK, ">=1.7", factory.ISSUE, Certainty.REPORTED, engine=Engine.TENSORRT_RTX, targets=("rtx17",)
    )
    variants = (case.variants[0], replace(case.variants[1], expectations=(claim,)))
    made = [factory.outcome("qdq", "rtx16"), factory.build_failure("qdq", "rtx17")]
    results = assemble(factory.matrix(), (replace(case, variants=variants),), {one.cell: one for one in made})
    assert (
        only(upgrade(results, "rtx16", "rtx17"), "qdq").instead == "conv_silu[qdq-between] documented: works"
    )
