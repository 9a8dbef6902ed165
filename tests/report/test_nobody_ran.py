"""What nobody ran: one claim about both sides, workarounds that nobody tried, and who is told to say so."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.case import Expectation, Link
from harness.report.compare.instead import Meanwhile
from harness.report.compare.kinds import Kind
from harness.report.compare.sides import Side
from harness.report.compare.steps import Steps
from harness.report.compare.upgrade import judged
from harness.report.counts import counts, nobody_ran
from harness.report.exports.csv_table import table
from harness.report.exports.markdown import summary
from harness.report.model import Results
from harness.report.results import assemble
from harness.report.writer import results_json
from harness.words import Class, Grade, Precision, Role
from tests.report import factory
from tests.report.handmade import cell, pair, results, side, step, target, variant

if TYPE_CHECKING:
    from harness.report.compare.pairs import Pair
    from harness.report.compare.upgrade import Upgrade

pytestmark = pytest.mark.unit

ISSUE = Link("https://github.com/NVIDIA/TensorRT/issues/3640", "TensorRT issue 3640")
WORKS = Expectation.reported(Class.OK, "", ISSUE)
BUILDS = Expectation.reported(Class.OK, "", ISSUE, level="builds")
FAILS = Expectation.reported(Class.BUILD_FAILED, "", ISSUE, "nvidia", signature="no-implementation")
DASH = "\N{EN DASH}"
UNRUN = {"old": target("old", stamps=None), "new": target("new", stamps=None)}


def said(claim: Expectation) -> Side:
    """Return what a claim says of a cell that nobody ran."""
    found = replace(variant(), expectations=(claim,))
    views = results((target("new", stamps=None),), (found,), cell(Class.NOT_RUN, claims=(0,)))
    return Steps(views).known[0].sides["c", "v"]


def judge(*pairs: Pair, **columns: Any) -> Upgrade:
    return judged(step(*pairs, **columns), Meanwhile([(each.variant, each.new) for each in pairs], "new"))


def test_one_claim_about_both_sides_is_no_comparison() -> None:
    """It is one sentence about every version, and says of none what it does that another does not."""
    found = judge(pair(said(WORKS), said(WORKS)), **UNRUN)
    assert (found.rows, found.same, found.open, found.known) == ((), 0, 1, 0)
    assert found.headline == (
        "Nobody has run old or new; 1 reported claim speaks of them, so what this step does is not known."
    )
    assert "1 with nothing said of both that tells the two apart" in found.rest
    assert {tile.number for tile in found.tiles() if tile.kind is not Kind.NEWLY_UNKNOWN} == {"\N{EN DASH}"}


def test_a_measurement_is_no_such_claim() -> None:
    """The same class measured on both sides is known on both, also where it was accepted and not run again."""
    accepted = Expectation(Class.BUILT, "", None, Grade.MEASURED, "measured before")
    found = judge(pair(said(accepted), said(accepted)))
    assert (found.same, found.open, found.known) == (1, 0, 1)
    assert found.headline.startswith("Nothing that builds on old breaks")


def test_two_reports_are_told_and_are_no_all_clear() -> None:
    other = replace(WORKS, versions=">=10")
    still = judge(pair(said(WORKS), said(other)), **UNRUN)
    assert (still.known, still.same) == (1, 1)
    assert still.headline == (
        "Nobody has run old or new; 2 reported claims speak of them. They name none that breaks or loses precision, "
        "of 1 variants known on both."
    )
    worse = judge(pair(said(WORKS), said(FAILS)), **UNRUN)
    assert worse.headline == (
        "Nobody has run old or new; 2 reported claims speak of them. By these, going to new breaks 1 of 1 variants "
        "known on both."
    )
    assert (
        worse.basis
        == "Not run for this report: old and new. Known on both, by the less sure side: 1 reported."
    )


def test_one_measured_side_leaves_the_other_to_the_reports() -> None:
    found = judge(pair(side(Class.OK), said(FAILS)), new=UNRUN["new"])
    assert found.headline == (
        "Nobody has run new; 1 reported claim speaks of it. "
        "By these, going to new breaks 1 of 1 variants known on both."
    )
    assert found.breaks is False


def test_who_says_that_it_builds_says_nothing_of_precision() -> None:
    """Neither that it is kept, nor that it is gained where it was measured to be lost."""
    told = said(BUILDS)
    assert (told.cls, told.told(), told.on_precision) == (Class.BUILT, "reported: builds", False)
    for both in ((side(Class.PRECISION_LOST), told), (told, side(Class.PRECISION_LOST))):
        found = judge(pair(*both))
        assert (found.rows, found.open) == ((), 1)


def test_a_claim_has_the_cause_and_advice_of_its_signature() -> None:
    """And where it was read beside that, never as its cause."""
    told = said(replace(FAILS, note="seen on Windows, whole model"))
    assert told.why.startswith("No implementation")
    assert told.seen == "reported by NVIDIA in TensorRT issue 3640: seen on Windows, whole model"
    (row,) = judge(pair(side(Class.OK), told)).rows
    assert "Windows" not in row.cause
    assert row.seen == told.seen
    removed = said(replace(FAILS, outcome=Class.API_REMOVED, signature="implicit-int8-removed"))
    assert removed.proofs == ("mish.qdq", "instance_norm.qdq")
    assert said(replace(FAILS, signature=None, note="a note")).why == ""


def remedy(name: str, known: Side, role: Role = Role.WORKAROUND, case: str = "c", **wanted: Any) -> Any:
    return replace(variant(name, **wanted), case=case, role=role, counterpart="v"), known


BROKEN = (variant(), side(Class.CRASHED))


@pytest.mark.parametrize(
    ("known", "told"),
    [
        (
            said(GUESS),
            "a workaround is known that nobody has tried on new: c.a",
            "c.a (untried; guessed: works)",
        ),
        (
            side(None, why="not run"),
            "a workaround is known that nobody has tried on new: c.a",
            "c.a (untried)",
        ),
        (
            said(Expectation.guessed(Class.OK, "", "builds for a user; version by the date", link=ISSUE)),
            "a workaround is known, and what is reported of it does not name new: c.a (TensorRT issue 3640)",
            "c.a works, guessed from TensorRT issue 3640",
        ),
        (said(GLOOM), "none of 1 known here is known to work on new", None),
        (side(None, why="does not apply"), "none of 1 known here is known to work on new", None),
        (said(WORKS), "c.a works, reported by users in TensorRT issue 3640", None),
        (side(Class.BUILT, gpu=("8.9", "NVIDIA L4")), "c.a builds, measured on NVIDIA L4", None),
    ],
)
def test_a_workaround_says_who_tried_it(known: Side, told: str) -> None:
    assert Meanwhile([BROKEN, remedy("a", known)], "new").of(0) == told


def test_what_gives_the_precision_up_is_no_help_where_that_was_lost() -> None:
    wanting = (variant(conv=Precision.INT8), side(Class.PRECISION_LOST))
    gives_up, keeps = (
        remedy(name, side(), conv=want) for name, want in (("a", Precision.FP32), ("b", Precision.INT8))
    )
    assert Meanwhile([wanting, gives_up, keeps], "new").of(0) == "c.b builds, measured"
    assert Meanwhile([wanting, gives_up], "new").of(0) == "no workaround of it is known here"
    # Where it fails to build, an engine without INT8 there is an engine.
    fails = (wanting[0], side(Class.BUILD_FAILED))
    assert Meanwhile([fails, gives_up], "new").of(0) == "c.a builds, measured"


def test_a_call_that_is_gone_leads_to_the_twin_that_does_not_need_it() -> None:
    twin = remedy("qdq", said(BUILDS), Role.TWIN)
    gone = (variant(), side(Class.API_REMOVED))
    assert Meanwhile([gone, twin], "new").of(0) == "c.qdq builds, reported by users in TensorRT issue 3640"
    assert Meanwhile([BROKEN, twin], "new").of(0) == "no workaround of it is known here"


def test_a_variant_of_another_case_says_why_it_is_named() -> None:
    proven = (variant(), side(Class.CRASHED, proofs=("d.p",)))
    other = remedy("p", side(Class.OK), case="d")
    told = "d.p works, measured; named because it puts the advice to the test"
    assert Meanwhile([proven, other], "new").of(0) == told


def test_every_cell_that_nobody_ran_is_counted_by_grade() -> None:
    made = assemble(factory.matrix(), (factory.case(),), {})
    tally = counts(made)
    assert (tally["reported"], tally["accepted"]) == (3, 4)
    assert sum(tally.values()) == len(made.cells)


def test_the_lead_says_what_nobody_has_run() -> None:
    families = ("TensorRT 8", "TensorRT 9", "TensorRT 11", "Jetson", "TensorRT for RTX")
    targets = tuple(target(f"t{at}", family=family) for at, family in enumerate(families))
    cells = [cell(Class.NOT_RUN, target=each.id) for each in targets[:-1]]
    told = replace(cells[0], claims=(0,), grade=Grade.REPORTED)
    made = results(targets, (variant(),), told, *cells[1:], cell(target="t4"))
    assert (
        nobody_ran(made)
        == "TensorRT 8 to 11 and Jetson: nobody has run these yet; 1 reported claim speaks of them."
    )
    assert nobody_ran(replace(made, targets=targets[-1:])) == ""
    assert nobody_ran(made) in summary(made).splitlines()


def test_results_say_with_each_cell_what_is_claimed_of_it() -> None:
    made = assemble(factory.matrix(), (factory.case(),), {})
    data = json.loads(results_json(made))
    found = {one["id"]: one.get("claimed") for one in data["cells"]}
    assert found["conv_silu.qdq-trt86"] == [
        {
            "class": "build_failed",
            "level": None,
            "grade": "reported",
            "kind": "users",
            "scope": "graph",
            "of": "",
            "source": factory.ISSUE.url,
            "title": factory.ISSUE.title,
            "signature": None,
            "compute_capability": None,
        }
    ]
    assert [each["grade"] for each in found["conv_silu.qdq-trt102"]] == ["guessed"]
    assert found["conv_silu.fp32-trt86"] is None
    # An older harness wrote none of it, and a reader has the claims among the variants.
    for one in data["cells"]:
        one.pop("claimed", None)
    old = Results.from_json(data)
    assert [one.grade for one in old.cells] == [one.grade for one in made.cells]


def test_the_table_has_the_claim_that_is_judged_first() -> None:
    made = assemble(factory.matrix(), (factory.case(),), {})
    (line,) = (line for line in table(made).split("\r\n") if line.startswith("conv_silu.qdq-trt86,"))
    assert f",build_failed,reported,,,{factory.ISSUE.url}," in line
