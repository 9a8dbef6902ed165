"""Classes against claims."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from harness.case import Expectation, Level, Link
from harness.judge.classify import Classification
from harness.judge.verdict import LEVELS, judge, surest
from harness.words import GOOD, PREDICATE, UNJUDGED, Basis, Class, Verdict

pytestmark = pytest.mark.unit

LINK = Link("https://github.com/NVIDIA/TensorRT/issues/3870", "TensorRT issue 3870")
MEASURED = Expectation(Class.OK, "", LINK, Basis.MEASURED)
REPORTED = Expectation.reported(Class.OK, "", LINK)
SUMMARY = Expectation.reported(Class.OK, "", LINK, "summary")
SURE = [MEASURED, REPORTED, SUMMARY]
FAILURES = [cls for cls in Class if cls not in GOOD | UNJUDGED]
CLAIMS = [cls for cls in Class if cls not in UNJUDGED]


def claim(cls: Class, like: Expectation = REPORTED, signature: str | None = None) -> Expectation:
    return replace(like, outcome=cls, signature=signature)


def seen(cls: Class, **more: tuple[str, ...] | bool) -> Classification:
    return Classification(cls, f"because {cls}", **more)  # type: ignore[arg-type]


#: Rows: the class seen; a crash was in the build. Columns, in this order: a report. E expected, K known failure, F not
#: reproduced (fixed, if it was measured), R regressed, N new, - not run, W fails when run.
ORDER = [
    Class.OK, Class.BUILT, Class.PRECISION_LOST, Class.INACCURATE, Class.PARSE_FAILED, Class.BUILD_FAILED,
    Class.NEEDS_GPU_TO_BUILD, Class.LOAD_FAILED, Class.RUN_FAILED, Class.CRASHED, Class.TIMED_OUT,
    Class.OUT_OF_MEMORY, Class.API_REMOVED,
]  # fmt: skip
LETTERS = {
    "E": Verdict.EXPECTED, "K": Verdict.KNOWN_FAILURE, "F": Verdict.NOT_REPRODUCED, "R": Verdict.REGRESSED,
    "N": Verdict.NEW, "-": Verdict.NOT_RUN, "W": Verdict.FAILS_WHEN_RUN,
}  # fmt: skip
TABLE = {
    Class.OK: "EEFFFFFFFFFFF",
    # An engine that was only built has not shown whether it loads, runs and is right; nor when it would have crashed.
    Class.BUILT: "EEFWFFFWW---F",
    # The claim is silent on the levels beyond its failure.
    Class.PRECISION_LOST: "RRKNNNNNNNNNN",
    Class.INACCURATE: "RNNKNNNNNNNNN",
    Class.PARSE_FAILED: "RRRRKNNRRNNNN",
    Class.BUILD_FAILED: "RRRRNKNRRNNNN",
    # Whoever says anything else of it had a GPU.
    Class.NEEDS_GPU_TO_BUILD: "------K------",
    Class.LOAD_FAILED: "RNRRNNNKNNNNN",
    Class.RUN_FAILED: "RNRRNNNNKNNNN",
    Class.CRASHED: "RRRRNNNRRKNNN",
    Class.TIMED_OUT: "RRRRNNNRRNKNN",
    Class.OUT_OF_MEMORY: "RRRRNNNRRNNKN",
    # Gone as announced: that is no failure to know of.
    Class.API_REMOVED: "RRRRNNNRRNNNE",
}
#: The differences of a measurement: the numbers were right, a crash was in the build, and no GPU was there.
MEASURED_SO = {
    **{
        (Class.NEEDS_GPU_TO_BUILD, each): LETTERS[letter]
        for each, letter in zip(ORDER, "RRRRNNKRRNNNN", strict=True)
    },
    (Class.INACCURATE, Class.PRECISION_LOST): Verdict.REGRESSED,
    (Class.BUILT, Class.CRASHED): Verdict.FIXED,
    (Class.BUILT, Class.TIMED_OUT): Verdict.FIXED,
    (Class.BUILT, Class.OUT_OF_MEMORY): Verdict.FIXED,
}
PAIRS = list(itertools.product(TABLE, ORDER))
DYING = [Class.CRASHED, Class.TIMED_OUT, Class.OUT_OF_MEMORY]


def test_the_table_is_the_full_product() -> None:
    assert set(ORDER) == set(CLAIMS) == set(TABLE)
    assert all(len(row) == len(ORDER) for row in TABLE.values())


@pytest.mark.parametrize("like", SURE)
@pytest.mark.parametrize(("cls", "claimed"), PAIRS)
def test_sure_claims(cls: Class, claimed: Class, like: Expectation) -> None:
    """A report and a summary count alike, a measurement says more; the sentence tells class and source."""
    found = judge(seen(cls), [claim(claimed, like)])
    wanted = LETTERS[TABLE[cls][ORDER.index(claimed)]]
    if like is MEASURED:
        wanted = MEASURED_SO.get((cls, claimed), wanted)
        wanted = Verdict.FIXED if wanted is Verdict.NOT_REPRODUCED else wanted
    assert found.verdict is wanted
    assert found.expectation is not None
    assert LINK.title in found.sentence
    if cls not in GOOD:
        assert PREDICATE[cls] in found.sentence
        assert "_" not in found.sentence.replace(f"because {cls}", "")


#: The classes that break a claim of "ok" at each level.
BROKEN_BY = {
    "builds": [Class.PARSE_FAILED, Class.BUILD_FAILED, Class.API_REMOVED, *DYING],
    "runs": [Class.LOAD_FAILED, Class.RUN_FAILED],
    "right numbers": [Class.INACCURATE],
    "precision": [Class.PRECISION_LOST],
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("cls", sorted(set(FAILURES) - {Class.NEEDS_GPU_TO_BUILD}))
def test_only_what_a_claim_says_is_held_against_it(cls: Class, level: Level) -> None:
    """A thread that says "it builds" is not broken by a lost precision."""
    broken = [each for below in LEVELS[: LEVELS.index(level) + 1] for each in BROKEN_BY[below]]
    found = judge(seen(cls), [replace(REPORTED, level=level)])
    assert found.verdict is (Verdict.REGRESSED if cls in broken else Verdict.NEW)


@pytest.mark.parametrize("cls", DYING)
def test_what_dies_breaks_the_level_at_which_it_dies(cls: Class) -> None:
    """A built engine fulfils "it builds"."""
    builds, runs = replace(REPORTED, level="builds"), replace(REPORTED, level="runs")
    assert judge(seen(cls, built=True), [builds]).verdict is Verdict.NEW
    assert judge(seen(cls, built=False), [builds]).verdict is Verdict.REGRESSED
    assert judge(seen(cls, built=True), [runs]).verdict is Verdict.REGRESSED
    when_run = replace(claim(cls), level="runs")
    assert judge(seen(cls, built=True), [when_run]).verdict is Verdict.KNOWN_FAILURE
    assert judge(seen(cls, built=False), [when_run]).verdict is Verdict.REGRESSED
    for sure in (when_run, replace(claim(cls, MEASURED), level="runs")):
        assert judge(seen(Class.BUILT), [sure]).verdict is Verdict.FAILS_WHEN_RUN
    assert "when it is run" in judge(seen(Class.OK), [when_run]).sentence


@pytest.mark.parametrize("like", [REPORTED, SUMMARY])
@pytest.mark.parametrize("claimed", FAILURES)
def test_fixed_needs_a_measurement_that_it_failed(claimed: Class, like: Expectation) -> None:
    """A report that does not show here is not reproduced, and not fixed."""
    never = judge(seen(Class.OK), [claim(claimed, like)])
    assert never.verdict is Verdict.NOT_REPRODUCED
    before = judge(
        seen(Class.OK), [claim(claimed, like)], failed_before="measured on trt86 to end as crashed"
    )
    assert before.verdict is Verdict.FIXED


@pytest.mark.parametrize("claimed", [Class.OK, Class.BUILT])
@pytest.mark.parametrize("like", SURE)
def test_a_precision_that_the_graph_alone_asks_for_breaks_no_word_of_a_source(
    claimed: Class, like: Expectation
) -> None:
    """A source's "works" covers the parts that it looked at; a measurement was held to the same graph."""
    lost = replace(seen(Class.PRECISION_LOST), derived=True)
    found = judge(lost, [claim(claimed, like)])
    measured = like is MEASURED
    assert found.verdict is (Verdict.REGRESSED if measured else Verdict.NEW)
    assert judge(replace(lost, derived=False), [claim(claimed, like)]).verdict is Verdict.REGRESSED
    worse = replace(seen(Class.BUILD_FAILED), derived=True)
    assert judge(worse, [claim(claimed, like)]).verdict is Verdict.REGRESSED


@pytest.mark.parametrize("cls", list(Class))
def test_no_claim(cls: Class) -> None:
    """A good cell without claims is expected, a failing one is new."""
    found = judge(seen(cls), [])
    assert found.expectation is None
    if cls is Class.INFRA_ERROR:
        assert found.verdict is Verdict.INFRA
    elif cls in UNJUDGED:
        assert found.verdict is Verdict.NOT_RUN
    elif cls in GOOD:
        assert found.verdict is Verdict.EXPECTED
        assert "nothing is claimed" in found.sentence
    else:
        assert found.verdict is Verdict.NEW
        assert "because" in found.sentence


@pytest.mark.parametrize("claimed", CLAIMS)
@pytest.mark.parametrize("cls", sorted(UNJUDGED))
def test_what_was_not_judged_meets_no_claim(cls: Class, claimed: Class) -> None:
    """Neither a missing GPU nor a lost agent fixes or breaks anything."""
    found = judge(seen(cls), [claim(claimed)])
    assert found.verdict is (Verdict.INFRA if cls is Class.INFRA_ERROR else Verdict.NOT_RUN)
    assert found.sentence == f"because {cls}"


def test_the_surest_claim_is_judged() -> None:
    claims = [SUMMARY, REPORTED, MEASURED]
    for least in range(1, 4):
        assert surest(claims[:least]) is claims[least - 1]
        assert surest(claims[:least][::-1]) is claims[least - 1]
    first, second = claim(Class.OK), claim(Class.BUILD_FAILED)
    assert surest([first, second]) is first
    assert surest([]) is None
    both = [claim(Class.OK, SUMMARY), claim(Class.BUILD_FAILED, REPORTED)]
    assert judge(seen(Class.BUILD_FAILED), both).verdict is Verdict.KNOWN_FAILURE


def test_a_claim_of_the_graph_is_judged_before_one_of_a_whole_model() -> None:
    whole = replace(REPORTED, scope="model")
    assert surest([whole, SUMMARY]) is SUMMARY
    assert surest([whole, MEASURED]) is MEASURED


def test_whoever_reports_it_but_a_summary_counts_alike() -> None:
    for kind in ("users", "nvidia", "source"):
        other = replace(REPORTED, kind=kind)
        assert surest([SUMMARY, other, REPORTED]) is other
        assert surest([REPORTED, other]) is REPORTED


def test_the_same_class_for_another_reason_is_new() -> None:
    """A failure that hides behind a known one is seen if both signatures are known."""
    known = claim(Class.BUILD_FAILED, signature="no-implementation")
    assert judge(seen(Class.BUILD_FAILED), [known], "no-implementation").verdict is Verdict.KNOWN_FAILURE
    assert judge(seen(Class.BUILD_FAILED), [known], None).verdict is Verdict.KNOWN_FAILURE
    form = claim(Class.BUILD_FAILED, signature="no-implementation-silu")
    assert judge(seen(Class.BUILD_FAILED), [known], form.signature).verdict is Verdict.KNOWN_FAILURE
    assert judge(seen(Class.BUILD_FAILED), [form], known.signature).verdict is Verdict.KNOWN_FAILURE
    assert judge(seen(Class.BUILD_FAILED), [form], "no-implementation-qdq").verdict is Verdict.NEW
    other = judge(seen(Class.BUILD_FAILED), [known], "cuda-error")
    assert other.verdict is Verdict.NEW
    assert "cuda-error" in other.sentence
    assert "no-implementation" in other.sentence
    unsigned = claim(Class.BUILD_FAILED)
    assert judge(seen(Class.BUILD_FAILED), [unsigned], "cuda-error").verdict is Verdict.KNOWN_FAILURE


def test_an_unverified_precision_fixes_nothing() -> None:
    """A lost precision that is now unknown is open; a working cell names the unverified nodes."""
    good = seen(Class.OK, unverified=("/conv",))
    open_question = judge(good, [claim(Class.PRECISION_LOST)])
    assert open_question.verdict is Verdict.NEW
    assert "/conv" in open_question.sentence
    works = judge(good, [claim(Class.OK)])
    assert works.verdict is Verdict.EXPECTED
    assert "/conv" in works.sentence
    assert "/conv" in judge(good, []).sentence


@pytest.mark.parametrize("level", LEVELS)
def test_a_build_that_needs_a_gpu_breaks_only_what_was_seen_without_one(level: Level) -> None:
    """Whoever says that it works had a GPU, and so had who measured it on one."""
    asks = seen(Class.NEEDS_GPU_TO_BUILD)
    elsewhere = replace(claim(Class.OK, MEASURED), level=level, compute_capability="8.9")
    for others in (elsewhere, replace(REPORTED, level=level)):
        assert judge(asks, [others]).verdict is Verdict.NOT_RUN
    assert judge(asks, [claim(Class.BUILT, MEASURED)]).verdict is Verdict.REGRESSED
    assert judge(seen(Class.BUILT), [claim(asks.cls, MEASURED)]).verdict is Verdict.FIXED


def test_what_was_measured_to_build_still_fails_when_run() -> None:
    """The measurement does not speak about a run; a surer word that it runs does."""
    built, zeros, runs = (
        claim(Class.BUILT, MEASURED),
        claim(Class.INACCURATE),
        replace(REPORTED, level="runs"),
    )
    for claims in ((built, zeros), (zeros, built), (zeros, built, runs)):
        found = judge(seen(Class.BUILT), claims)
        assert (found.verdict, found.expectation) == (Verdict.FAILS_WHEN_RUN, zeros)
        # Nor is it shown to work without a run, and on a GPU that counts against it.
        assert judge(seen(Class.NOT_RUN), claims).expectation is zeros
        assert judge(seen(Class.INACCURATE), claims).verdict is Verdict.KNOWN_FAILURE
        assert judge(seen(Class.OK), claims).verdict is Verdict.NOT_REPRODUCED
        assert judge(seen(Class.BUILD_FAILED), claims).verdict is Verdict.REGRESSED
    for others in ((built, runs, zeros), (built, claim(Class.OK, MEASURED), zeros)):
        assert judge(seen(Class.BUILT), others).verdict is Verdict.EXPECTED
    refused = claim(Class.BUILD_FAILED, MEASURED)
    assert judge(seen(Class.BUILT), (refused, zeros)).verdict is Verdict.FIXED


def test_a_cell_claimed_as_not_applicable_that_fails_is_new() -> None:
    assert judge(seen(Class.BUILD_FAILED), [claim(Class.NOT_APPLICABLE)]).verdict is Verdict.NEW
    assert judge(seen(Class.OK), [claim(Class.NOT_APPLICABLE)]).verdict is Verdict.EXPECTED


def test_a_claim_that_it_is_built_at_the_level_builds_says_no_more() -> None:
    built = replace(REPORTED, outcome=Class.BUILT)
    assert judge(seen(Class.PRECISION_LOST), [built]).verdict is Verdict.REGRESSED
    builds = replace(built, level="builds")
    assert judge(seen(Class.PRECISION_LOST), [builds]).verdict is Verdict.NEW
    assert judge(seen(Class.BUILD_FAILED), [builds]).verdict is Verdict.REGRESSED


def test_only_what_may_die_at_two_levels_says_when() -> None:
    """A failed run says so itself."""
    for cls, said in ((Class.CRASHED, True), (Class.RUN_FAILED, False)):
        dies = replace(claim(cls), level="runs" if said else None)
        assert ("when it is run" in judge(seen(Class.OK), [dies]).sentence) is said
