"""What nobody ran: one claim about both sides, guesses, workarounds that nobody tried, and who is told to say so."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.case import Expectation, Link
from harness.report.compare.instead import Meanwhile
from harness.report.compare.kinds import Kind
from harness.report.compare.pairs import Column
from harness.report.compare.sides import Side
from harness.report.compare.steps import Steps
from harness.report.compare.upgrade import judged, upgrade
from harness.report.counts import counts, nobody_ran, without_guesses
from harness.report.exports.csv_table import table
from harness.report.exports.markdown import summary
from harness.report.model import Results
from harness.report.page.cells import facts
from harness.report.page.conclusions import concluded
from harness.report.results import assemble
from harness.report.writer import results_json
from harness.words import Class, Grade, Precision, Role
from tests.report import factory
from tests.report.handmade import cell, pair, results, side, step, target, variant
from tests.report.test_steps import held, named

if TYPE_CHECKING:
    from harness.report.compare.pairs import Pair
    from harness.report.compare.upgrade import Upgrade

pytestmark = pytest.mark.unit

ISSUE = Link("https://github.com/NVIDIA/TensorRT/issues/3640", "TensorRT issue 3640")
WORKS = Expectation.reported(Class.OK, "", ISSUE)
BUILDS = Expectation.reported(Class.OK, "", ISSUE, level="builds")
FAILS = Expectation.reported(Class.BUILD_FAILED, "", ISSUE, "nvidia", signature="no-implementation")
DASH = "\N{EN DASH}"
GUESS = Expectation.guessed(Class.OK, "", "as 8.6 does")
GLOOM = Expectation.guessed(Class.CRASHED, "", "as 8.5 does")
UNRUN = {"old": target("old", stamps=None), "new": target("new", stamps=None)}


def said(claim: Expectation, *, guesses: bool = True) -> Side:
    """Return what a claim says of a cell that nobody ran."""
    found = replace(variant(), expectations=(claim,))
    views = results((target("new", stamps=None),), (found,), cell(Class.NOT_RUN, claims=(0,)))
    steps = Steps(views)
    return (steps.guessing if guesses else steps.known)[0].sides["c", "v"]


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


@pytest.mark.parametrize("old", [side(Class.OK), said(GUESS)], ids=["measured", "another guess"])
def test_a_guess_is_told_and_never_known(old: Side) -> None:
    """However sure the other side is."""
    found = judge(pair(old, said(GLOOM)), **UNRUN)
    (row,) = found.rows
    assert (row.kind, row.guessed, row.measured) == (Kind.BROKEN, True, False)
    assert found.known == 0
    assert "variants known on both" not in found.headline
    assert found.headline.endswith(" By guesses on 1 more it breaks 1.")
    assert not found.breaks


def test_without_guesses_what_is_only_guessed_is_not_known() -> None:
    assert said(GUESS, guesses=False).cls is None
    assert said(WORKS, guesses=False).cls is Class.OK
    made = assemble(factory.matrix(), (factory.case(),), {})
    sides = Column(made, "trt86"), Column(made, "trt102")
    plain, full = upgrade(*sides), upgrade(*sides, guesses=True)
    assert [(row.kind, row.variant) for row in plain.rows] == [(Kind.NEWLY_UNKNOWN, "qdq")]
    assert [(row.kind, row.variant, row.guessed) for row in full.rows] == [(Kind.FIXED, "qdq", True)]
    unknown = "Nobody has run trt86 or trt102; 1 reported claim speaks of them, so what this step does is not known."
    gone = " 3 more troubles are reported of trt102 that no variant here shows."
    assert plain.headline == unknown + gone
    assert full.headline.startswith(unknown)
    assert full.headline.endswith(gone)


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
    ("known", "plain", "full"),
    [
        (
            said(GUESS),
            "a workaround is known that nobody has tried on new: c[a]",
            "c[a] (untried; guessed: works)",
        ),
        (
            side(None, why="not run"),
            "a workaround is known that nobody has tried on new: c[a]",
            "c[a] (untried)",
        ),
        (
            said(Expectation.guessed(Class.OK, "", "builds for a user; version by the date", link=ISSUE)),
            "a workaround is known, and what is reported of it does not name new: c[a] (TensorRT issue 3640)",
            "c[a] works, guessed from TensorRT issue 3640",
        ),
        (said(GLOOM), "none of 1 known here is known to work on new", None),
        (side(None, why="does not apply"), "none of 1 known here is known to work on new", None),
        (said(WORKS), "c[a] works, reported by users in TensorRT issue 3640", None),
        (side(Class.BUILT, gpu=("8.9", "NVIDIA L4")), "c[a] builds, measured on NVIDIA L4", None),
    ],
)
def test_a_workaround_says_who_tried_it(known: Side, plain: str, full: str | None) -> None:
    rows = [BROKEN, remedy("a", known)]
    assert Meanwhile(rows, "new").of(0) == plain
    assert Meanwhile(rows, "new", guesses=True).of(0) == (full or plain)


def test_what_gives_the_precision_up_is_no_help_where_that_was_lost() -> None:
    wanting = (variant(conv=Precision.INT8), side(Class.PRECISION_LOST))
    gives_up, keeps = (
        remedy(name, side(), conv=want) for name, want in (("a", Precision.FP32), ("b", Precision.INT8))
    )
    assert Meanwhile([wanting, gives_up, keeps], "new").of(0) == "c[b] builds, measured"
    assert Meanwhile([wanting, gives_up], "new").of(0) == "no workaround of it is known here"
    # Where it fails to build, an engine without INT8 there is an engine.
    fails = (wanting[0], side(Class.BUILD_FAILED))
    assert Meanwhile([fails, gives_up], "new").of(0) == "c[a] builds, measured"


def test_a_call_that_is_gone_leads_to_the_twin_that_does_not_need_it() -> None:
    twin = remedy("qdq", said(BUILDS), Role.TWIN)
    gone = (variant(), side(Class.API_REMOVED))
    assert Meanwhile([gone, twin], "new").of(0) == "c[qdq] builds, reported by users in TensorRT issue 3640"
    assert Meanwhile([BROKEN, twin], "new").of(0) == "no workaround of it is known here"


def test_a_variant_of_another_case_says_why_it_is_named() -> None:
    proven = (variant(), side(Class.CRASHED, proofs=("d.p",)))
    other = remedy("p", side(Class.OK), case="d")
    told = "d[p] works, measured; named because it puts the advice to the test"
    assert Meanwhile([proven, other], "new").of(0) == told


def test_the_page_has_each_step_with_guesses_and_without() -> None:
    found = held(assemble(factory.matrix(), (factory.case(),), {}))
    step_of = found["trt86", "trt102"]
    assert [row["kind"] for row in step_of["rows"]] == ["newly_unknown"]
    assert [row["kind"] for row in step_of["guesses"]["rows"]] == ["fixed"]
    # What guesses do not change is written once.
    assert found["rtx16", "rtx17"]["guesses"] == {}
    assert "basis" not in found["trt102", "trt102"]["guesses"] or step_of["guesses"]["basis"]


def test_a_guessed_cell_has_two_looks_and_the_plain_one_shows_nothing_of_it() -> None:
    made = assemble(factory.matrix(), (factory.case(),), {})
    found = facts(made, Steps(made))
    looks = named(found["looks"])
    row = [each["name"] for each in named(found["rows"])].index("qdq")
    column = [each["id"] for each in found["targets"]].index("trt102")
    plain = looks[found["grid"][row][column]]
    guess = looks[plain["guess"]]
    assert (plain["bucket"], plain["letters"], plain["under"], plain["said"]) == (
        "not_run",
        "·",
        "",
        "not run",
    )
    assert plain["words"] == "Not run for this report; nobody reports of this very graph on it"
    assert (guess["bucket"], guess["letters"], guess["under"]) == ("guessed", "OK?", "guess")
    assert guess["classes"] == "circle k-ok b-guessed"
    spans = {each["series"]: each for each in named(found["rows"])[row]["spans"]}
    assert spans["TensorRT"]["text"] == "fails to build on 8.6 (reported); 10.2 not tested"
    assert spans["TensorRT"]["guesses"] == (
        "fails to build on 8.6 (reported); fixed in 10.2 (guessed): works"
    )


def test_the_panel_tells_a_guess_where_it_is_asked_for() -> None:
    made = assemble(factory.matrix(), (factory.case(),), {})
    (case,) = made.cases
    found = made.cell("conv_silu", "qdq", "trt102")
    plain, full = (concluded(found, case.variants[0], "", guesses=on) for on in (False, True))
    assert (plain["state"], plain["claims"]) == ("Not run", [])
    assert (full["state"], full["claims"]) == ("Guessed: works", [1])
    reported = made.cell("conv_silu", "qdq", "trt86")
    assert concluded(reported, case.variants[0], "", guesses=False)["state"] == (
        "Reported by users: fails to build"
    )


def test_every_cell_that_nobody_ran_is_counted_by_grade() -> None:
    made = assemble(factory.matrix(), (factory.case(),), {})
    tally = counts(made)
    assert (tally["reported"], tally["guessed"], tally["accepted"]) == (3, 1, 4)
    plain = without_guesses(tally)
    assert (plain["guessed"], plain["not_run"]) == (0, tally["not_run"] + 1)
    assert sum(plain.values()) == sum(tally.values()) == len(made.cells)


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
    assert found["conv_silu[qdq]-trt86"] == [
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
    assert [each["grade"] for each in found["conv_silu[qdq]-trt102"]] == ["guessed"]
    assert found["conv_silu[fp32]-trt86"] is None
    # An older harness wrote none of it, and a reader has the claims among the variants.
    for one in data["cells"]:
        one.pop("claimed", None)
    for entry in data["cases"]:
        for each in entry["variants"]:
            for span in each["spans"]:
                del span["guesses"]
    old = Results.from_json(data)
    assert [one.grade for one in old.cells] == [one.grade for one in made.cells]


def test_the_table_has_the_claim_that_is_judged_first() -> None:
    made = assemble(factory.matrix(), (factory.case(),), {})
    (line,) = (line for line in table(made).split("\r\n") if line.startswith("conv_silu[qdq]-trt86,"))
    assert f",build_failed,reported,,,{factory.ISSUE.url}," in line
