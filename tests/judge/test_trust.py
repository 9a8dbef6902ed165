"""Who is believed: the project, two who are independent, and nobody alone; a conflict is shown and not decided."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.case import Expectation
from harness.judge.cell import judge_cell
from harness.judge.trust import DISPUTED, MEASURED, OBSERVED_ONCE, Witness, believed, trust, trusts
from harness.record.outcome import Layer, Stamps
from harness.words import Class, Grade, Verdict
from tests.judge.test_cell import cell, record

if TYPE_CHECKING:
    from harness.plan import Cell
    from harness.record.outcome import Outcome

pytestmark = pytest.mark.unit


def seen(who: str, gpu: str, cls: Class = Class.OK, when: str = "2026-01-01") -> Witness:
    """Return what somebody found; "" is the project."""
    return Witness(when, cls, f"{who}-{gpu}" if who else "", who, gpu if who else "", "L4")


@pytest.mark.parametrize(
    ("witnesses", "word"),
    [
        ([seen("a", "1")], OBSERVED_ONCE),
        ([seen("a", "1"), seen("a", "2")], OBSERVED_ONCE),
        ([seen("a", "1"), seen("A", "2")], OBSERVED_ONCE),
        ([seen("a", "1"), seen("b", "1")], OBSERVED_ONCE),
        ([seen("a", "1"), seen("b", "2")], MEASURED),
        ([seen("a", "1"), seen("b", "1"), seen("a", "2")], MEASURED),
        ([seen("", "")], MEASURED),
        ([seen("", ""), seen("a", "1")], MEASURED),
        ([seen("a", "1"), seen("b", "2", Class.BUILT)], MEASURED),
        ([seen("a", "1"), seen("b", "2", Class.BUILD_FAILED)], DISPUTED),
        ([seen("a", "1", Class.CRASHED), seen("b", "2", Class.BUILD_FAILED)], DISPUTED),
        ([seen("a", "1", Class.CRASHED), seen("b", "2", Class.CRASHED)], MEASURED),
        ([seen("", ""), seen("a", "1", Class.PRECISION_LOST)], DISPUTED),
        ([seen("a", "1"), seen("a", "2", Class.CRASHED)], DISPUTED),
    ],
)
def test_two_who_are_independent_are_believed(witnesses: list[Witness], word: str) -> None:
    found = trust(witnesses)
    assert found.word == word
    assert trust(reversed(witnesses)) == found


def test_who_measures_again_is_not_in_conflict_with_themselves() -> None:
    """The later of one account on one GPU speaks."""
    both = [seen("a", "1", Class.CRASHED, "2026-01-01"), seen("a", "1", Class.OK, "2026-02-01")]
    for found in (trust(both), trust(reversed(both))):
        assert (found.word, [witness.cls for witness in found.by]) == (OBSERVED_ONCE, [Class.OK])


def test_a_conflict_shows_all_sides() -> None:
    found = trust([seen("", ""), seen("a", "1", Class.BUILD_FAILED, "2026-02-01")])
    assert (
        found.sentence == "disputed: build_failed by a (L4, 2026-02-01); ok by this project (L4, 2026-01-01)"
    )


def test_a_witness_says_who_on_what_and_on_which_day() -> None:
    """Whoever names no account is the project; a result without a GPU says so."""
    assert str(Witness("2026-02-01T10:00:00", Class.OK)) == "ok by this project (no GPU, 2026-02-01)"
    assert Witness("2026-02-01", Class.OK) == Witness("2026-02-01", Class.OK, "", "", "", "")


GPU = {"compute_capability": "8.9", "gpu": "L4"}


def recorded(here: Cell, who: str, **fields: Any) -> Outcome:
    """Return a cell's record, sent in by somebody; "" is the project."""
    stamps = Stamps(when="2026-01-01", environment=GPU | {"gpu_hash": who}, submission=who, account=who)
    return replace(record(here), stamps=stamps, **fields)


FAILED: dict[str, Any] = {"failed_phase": "build", "layers": (), "ran": False}


@pytest.mark.parametrize(
    ("claimed", "fields", "who", "verdict"),
    [
        (Class.OK, FAILED, ("",), Verdict.REGRESSED),
        (Class.OK, FAILED, ("a",), Verdict.NEW),
        (Class.OK, FAILED, ("a", "b"), Verdict.REGRESSED),
        (Class.PRECISION_LOST, {}, ("a",), Verdict.KNOWN_FAILURE),
    ],
)
def test_what_one_stranger_observed_breaks_no_claim(
    claimed: Class, fields: dict[str, Any], who: tuple[str, ...], verdict: Verdict
) -> None:
    here = cell("trt86", claimed)
    outcomes = [recorded(here, each, **fields) for each in who]
    known = trusts([here], outcomes, lambda _: False)
    found = believed(judge_cell(here, outcomes[0]), known)
    assert found.judgement.verdict is verdict
    assert found.trust == ("" if who == ("",) else MEASURED if len(who) > 1 else OBSERVED_ONCE)
    assert found.judgement.sentence.startswith(f"{found.trust}: " if found.trust else "fails to build")


def test_where_they_disagree_it_is_disputed_by_architecture() -> None:
    """On another one, and of what is stale, says nothing of the machine or of no cell, nobody is asked."""
    here = cell("trt86", Class.OK)
    fails, lost = recorded(here, "a", **FAILED), recorded(here, "b")
    other = replace(lost.stamps, environment=GPU | {"compute_capability": "7.5"})
    stale = recorded(here, "c", error="stale")
    away = [
        replace(lost, stamps=other),
        stale,
        recorded(here, "d", state="infra_error", reason="x"),
        replace(lost, cell="gone"),
    ]
    known = trusts([here], [fails, *away], lambda outcome: outcome is stale)
    assert {place: found.word for place, found in known.items()} == {
        (here.id, "8.9"): OBSERVED_ONCE,
        (here.id, "7.5"): OBSERVED_ONCE,
    }
    known = trusts([here], [fails, lost], lambda _: False)
    judged = [believed(judge_cell(here, each), known) for each in (fails, lost)]
    assert [each.judgement.verdict for each in judged] == [Verdict.DISPUTED] * 2
    assert not any(each.failed for each in judged)
    blank = judge_cell(here, recorded(here, "a", state="infra_error", reason="x"))
    assert believed(blank, known) == blank


def test_what_the_project_alone_measured_needs_no_trust() -> None:
    here = cell("trt86")
    assert trusts([here], [recorded(here, "")], lambda _: False) == {}


def test_a_witness_is_what_the_record_says() -> None:
    here = cell("trt86")
    (found,) = trusts([here], [recorded(here, "a")], lambda _: False).values()
    assert found.by == (Witness("2026-01-01", Class.PRECISION_LOST, "a", "a", "a", "L4"),)
    bare = recorded(here, "a")
    bare = replace(bare, stamps=replace(bare.stamps, environment={}))
    ((place, found),) = trusts([here], [bare], lambda _: False).items()
    assert (place, found.by[0].gpu_hash, found.by[0].gpu) == ((here.id, ""), "", "")


def test_only_what_somebody_sent_in_is_weighed() -> None:
    """Together with what the project has there; on another architecture the project's own stands as it is."""
    here = cell("trt86")
    own, sent = recorded(here, ""), recorded(here, "a")
    assert trusts([here], [own, sent], lambda _: False)[here.id, "8.9"].word == MEASURED
    other = replace(own, stamps=replace(own.stamps, environment=GPU | {"compute_capability": "7.5"}))
    assert set(trusts([here], [other, sent], lambda _: False)) == {(here.id, "8.9")}
    assert trusts([here], [recorded(here, "a", end=None)], lambda _: False) == {}


def test_what_one_stranger_saw_work_is_not_mended() -> None:
    """Of what was measured to fail; two who are independent are needed for that too."""
    plain = cell("trt86")
    version = f"=={plain.target.version}"
    claim = Expectation(Class.BUILD_FAILED, version, None, Grade.MEASURED, "measured", targets=("trt86",))
    here = replace(plain, variant=replace(plain.variant, expectations=(claim,)))
    works = {"layers": (Layer("l", "c", "int8", onnx_nodes=("/conv",)),)}
    for who, verdict in ((("a",), Verdict.NEW), (("a", "b"), Verdict.FIXED)):
        outcomes = [recorded(here, each, **works) for each in who]
        known = trusts([here], outcomes, lambda _: False)
        assert believed(judge_cell(here, outcomes[0]), known).judgement.verdict is verdict
