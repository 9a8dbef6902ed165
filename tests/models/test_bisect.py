"""`bisect`: the search over a row of targets, and what each symptom makes of a judged model."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from harness.errors import HandledError
from harness.judge.cell import Judged
from harness.models.bisect import Edge, Reply, Symptom, bisect, check_node, parse_symptom, row_of
from harness.record.outcome import Accuracy
from tests.models.test_check import judged
from tests.report.factory import target

pytestmark = pytest.mark.unit

ROW = tuple("abcdefghijkl")


def found(row: Sequence[str], first_bad: str, skipped: str = "") -> tuple[Edge, list[str]]:
    asked: list[str] = []

    def ask(name: str) -> Reply:
        asked.append(name)
        if name in skipped:
            return Reply.SKIP
        return Reply.BAD if row.index(name) >= row.index(first_bad) else Reply.GOOD

    return bisect(row, ask), asked


@pytest.mark.parametrize("first_bad", ROW[1:])
def test_every_edge_is_found_in_few_tries(first_bad: str) -> None:
    edge, asked = found(ROW, first_bad)
    assert (edge.good, edge.bad) == (ROW[ROW.index(first_bad) - 1], first_bad)
    assert len(asked) <= 4
    assert edge.skipped == edge.between == ()


@pytest.mark.parametrize("first_bad", ROW[1:])
@pytest.mark.parametrize("skipped", ["f", "ef", "bcdefghijk"])
def test_what_says_nothing_is_passed_over_for_its_neighbours(first_bad: str, skipped: str) -> None:
    """The edge is as near as the answers allow, and what lies in it without an answer is named."""
    edge, asked = found(ROW, first_bad, skipped)
    good, bad = ROW.index(edge.good), ROW.index(edge.bad)
    assert good < ROW.index(first_bad) <= bad
    assert edge.between == ROW[good + 1 : bad]
    assert set(edge.between) <= set(edge.skipped) <= set(skipped)
    assert len(asked) == len(set(asked))


def test_two_neighbours_are_an_edge_without_a_try() -> None:
    assert found(("a", "b"), "b") == (Edge("a", "b"), [])


def test_a_row_goes_by_version_from_the_good_end_to_the_bad_one() -> None:
    new, mid, old = target("new", "1.10"), target("mid", "1.9"), target("old", "1.2")
    other = target("other", "1.5", compute_capability="7.5")
    everything = (new, other, old, mid)
    assert [each.name for each in row_of(everything, old, new)] == ["old", "mid", "new"]
    assert [each.name for each in row_of(everything, new, old)] == ["new", "mid", "old"]
    assert [each.name for each in row_of(everything, mid, new)] == ["mid", "new"]
    with pytest.raises(HandledError, match="old and other are of another compute capability, so that no row"):
        row_of(everything, old, other)
    with pytest.raises(HandledError, match="--good and --bad are both old; name two targets"):
        row_of(everything, old, old)


def answers(symptom: str, good: Judged, bad: Judged, *between: Judged) -> list[Reply]:
    parsed = parse_symptom(symptom)
    return [parsed.told(each, good, bad).reply for each in (good, bad, *between)]


GOOD, BAD, SKIP = Reply.GOOD, Reply.BAD, Reply.SKIP
BUILT, REFUSED = judged("int8", "int8"), judged(failed_phase="build", layers=())
OTHERWISE = judged(failed_phase="parse", layers=())


def test_by_class_another_failure_is_neither() -> None:
    assert answers("class", BUILT, REFUSED, OTHERWISE) == [GOOD, BAD, SKIP]
    assert answers("signature", BUILT, REFUSED, OTHERWISE) == [GOOD, BAD, SKIP]
    assert answers("class", BUILT, judged("int8", "int8", ran=True)) == [GOOD, GOOD]


def test_by_a_node_s_precision_what_made_no_engine_is_neither() -> None:
    assert answers("int8:/a", BUILT, judged("fp32", "int8"), REFUSED, judged("", "int8")) == [
        GOOD,
        BAD,
        SKIP,
        SKIP,
    ]
    assert answers("int8:/b", BUILT, judged("fp32", "int8")) == [GOOD, GOOD]


def test_by_numbers_what_did_not_run_is_neither() -> None:
    right, off = (
        judged("int8", "int8", ran=True, accuracy=(Accuracy("y", d, d, 1 - d),)) for d in (0.0, 0.9)
    )
    assert answers("numbers", right, off, BUILT) == [GOOD, BAD, SKIP]


@pytest.mark.parametrize("text", ["", "slower:5%", "int8", "int8:", "int9:/a"])
def test_what_is_no_symptom_is_refused(text: str) -> None:
    with pytest.raises(HandledError, match="is no symptom; give class, signature, numbers or int8:NODE"):
        parse_symptom(text)


def test_a_node_that_the_model_lacks_is_refused() -> None:
    with pytest.raises(HandledError, match=r"m\.onnx: has no node '/aa'; did you mean '/a'\?"):
        check_node(parse_symptom("int8:/aa"), ["/a", "/b"], "m.onnx")
    check_node(Symptom("class"), [], "m.onnx")
