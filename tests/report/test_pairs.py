"""`pairs`: one target of two reports, side by side; what one of them does not have is told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.record.outcome import Latency
from harness.report.compare.kinds import Kind
from harness.report.compare.pairs import Column, known, pairs
from harness.report.compare.upgrade import upgrade
from harness.report.model import CaseView, Results
from harness.report.results import assemble
from harness.words import Precision
from tests.report import factory

if TYPE_CHECKING:
    from harness.record.outcome import Outcome
    from harness.report.compare.upgrade import Upgrade

pytestmark = pytest.mark.unit

FREE = "qdq-between"


def report(*outcomes: Outcome) -> Results:
    made = {outcome.cell: outcome for outcome in outcomes}
    return assemble(factory.matrix(), (factory.case(),), made)


def without(results: Results, variant: str) -> Results:
    """Return a report whose cases have no such variant."""
    (case,) = results.cases
    kept = tuple(each for each in case.variants if each.name != variant)
    cells = tuple(cell for cell in results.cells if cell.variant != variant)
    return replace(results, cases=(replace(case, variants=kept),), cells=cells)


def changed(results: Results, variant: str, **fields: Any) -> Results:
    """Return a report whose variant has other fields."""

    def case(found: CaseView) -> CaseView:
        made = tuple(replace(each, **fields) if each.name == variant else each for each in found.variants)
        return replace(found, variants=made)

    return replace(results, cases=tuple(map(case, results.cases)))


def nights(old: Results, new: Results, target: str = "rtx17") -> Upgrade:
    return upgrade(Column(old, target, f"{target} in old"), Column(new, target, f"{target} in new"))


def test_two_reports_are_judged_as_two_targets_are() -> None:
    """The same rows, but for what the sides are called."""
    old, new = report(factory.outcome("qdq", "rtx17")), report(factory.build_failure("qdq", "rtx17"))
    found = nights(old, new)
    (row,) = (row for row in found.rows if row.kind is Kind.BROKEN)
    assert row.text == "builds (INT8 1/1) → fails to build"
    assert row.cause.startswith("No implementation for ")
    assert row.instead == (
        "a workaround is known that nobody has tried on rtx17 in new: conv_silu.qdq-between"
    )
    assert found.headline == "Going to rtx17 in new breaks 1 of 1 variants known on both."
    assert found.basis == "Built, not run, on rtx17 in old: numbers and latency were not measured."
    assert found.coverage.endswith(
        "1 on rtx17 in old (Conv 1), "
        "none on rtx17 in new (every variant measured there that wants INT8 fails)."
    )


def test_the_same_report_twice_is_no_change() -> None:
    results = factory.results()
    for target in results.targets:
        found = nights(results, results, target.id)
        assert (found.rows, found.added, found.dropped, found.breaks) == ((), 0, 0, False)


def test_a_variant_that_the_new_report_has_not_is_newly_unknown() -> None:
    """A case that was taken out is missed, not passed over."""
    old = report(factory.outcome(FREE, "rtx17"))
    found = nights(old, without(old, FREE))
    (row,) = found.rows
    assert (row.kind, row.variant) == (Kind.NEWLY_UNKNOWN, FREE)
    assert row.text == "builds (INT8 1/1) → not in that report"


def test_a_variant_that_the_old_report_has_not_is_counted() -> None:
    """And it is no news that it fails: nobody knows whether it ever worked."""
    new = report(factory.build_failure(FREE, "rtx17"))
    found = nights(without(new, FREE), new)
    assert (found.rows, found.added) == ((), 1)
    assert ", 1 known on rtx17 in new alone (1 of them to fail or lose precision), " in found.rest


def test_the_order_is_that_of_the_new_report_and_then_what_is_gone() -> None:
    results = factory.results()
    (old,), (new,) = (known(each, {"rtx17": ""}) for each in (results, without(results, "qdq")))
    names = [pair.variant.name for pair in pairs(old, new)]
    assert names == ["qdq-between", "int8-entropy", "fp32", "qdq"]


def test_a_target_that_only_one_report_has_is_a_key_error() -> None:
    results = factory.results()
    fewer = replace(results, targets=results.targets[:1])
    with pytest.raises(KeyError, match="rtx17"):
        nights(results, fewer)


def test_of_the_baseline_no_precision_is_demanded() -> None:
    """ONNX Runtime runs in FP32 what it was to run in INT8, and a step to it or within it is none the worse."""
    results = report(
        factory.outcome(FREE, "rtx17", layers=(factory.conv_layer("int8"),)),
        factory.ran(FREE, "ort131", layers=(factory.conv_layer("fp32"),)),
    )

    def step(before: str, after: str) -> list[Kind]:
        found = upgrade(Column(results, before), Column(results, after))
        return [row.kind for row in found.rows if row.variant == FREE]

    assert step("rtx17", "ort131") == []
    quantised = report(factory.ran(FREE, "ort131", layers=(factory.conv_layer("int8"),)))
    for old, new in ((quantised, results), (results, quantised)):
        found = nights(old, new, "ort131")
        assert (found.rows, found.breaks) == ((), False)
    # Going away from it, a precision is gained: that side is demanded to keep it.
    assert step("ort131", "rtx17") == [Kind.PRECISION_GAINED]


def test_what_is_wanted_now_is_asked_of_both_sides() -> None:
    """The older report may want it of other nodes too, and name those first."""
    layers = (factory.conv_layer("int8", fused=False), factory.activation_layer())
    new = report(factory.outcome(FREE, "rtx17", layers=layers))
    more = (("/model.0/act/Mul", Precision.INT8), (factory.CONV, Precision.INT8))
    assert nights(changed(new, FREE, wanted=more), new).rows == ()
    assert nights(changed(new, FREE, wanted=()), new).rows == ()


def test_another_model_or_recipe_is_said_and_its_time_not_compared() -> None:
    """The name is the same; what was built is not."""
    quick, slow = (
        report(factory.ran("fp32", "rtx17", latency=Latency((level,) * 50, 5, "monotonic")))
        for level in (1.0, 2.0)
    )
    assert [row.kind for row in nights(quick, slow).rows] == [Kind.SLOWER]
    found = nights(quick, changed(slow, "fp32", recipe_sha256="another"))
    assert (found.rows, found.timed) == ((), 0)
    assert found.timing.endswith("left out: 1 of another model or recipe.")
    broken = changed(report(factory.build_failure("fp32", "rtx17")), "fp32", model_sha256="another")
    (row,) = nights(quick, broken).rows
    assert (row.kind, row.sure) == (Kind.BROKEN, "measured; model or recipe changed")
