"""The verdict of a check: the targets that decide, what is left out, and what is not known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.known.listed import Objection, State, Static
from harness.matrix import load_matrix
from harness.models.answers import Answer, Trouble, deciding, verdict
from harness.words import Class
from tests.models import data
from tests.models.fake import judged, refused

pytestmark = pytest.mark.unit

MATRIX = load_matrix(Path(__file__).parents[2] / "matrix.yaml")
MODEL = data.model()
BUILD = frozenset({Trouble.BUILD})
NOT_RUN: dict[str, Any] = {"state": "not_run", "reason": "no GPU", "layers": ()}


def answer(target: str, static: State = State.CLEAR, *, left_out: bool = False, **outcome: Any) -> Answer:
    found = judged(MODEL, **outcome)
    cell = replace(found.cell, target=replace(found.cell.target, name=target))
    return Answer(replace(found, cell=cell), Static((Objection(static),)), left_out=left_out)


def told(*answers: Answer, **more: Any) -> tuple[bool, bool]:
    found = verdict(answers, (), **{"decides": ("new",), "fail_on": BUILD} | more)
    return found.broken, found.unknown


FAILS: dict[str, Any] = refused(("/conv", "Conv", "odd"))


def test_the_newest_of_each_engine_decides_unless_some_are_named() -> None:
    found = [MATRIX.target(name) for name in deciding(MATRIX)]
    assert len({each.engine for each in found}) == len(found) == len({each.engine for each in MATRIX})
    assert "rtx17" in deciding(MATRIX)
    assert "rtx17-sm75" not in deciding(MATRIX)
    assert deciding(MATRIX, ("trt86", "rtx14")) == ("trt86", "rtx14")


def test_a_failure_counts_where_it_decides_and_is_named() -> None:
    assert told(answer("new"), answer("old", **FAILS)) == (False, False)
    assert told(answer("new", **FAILS), answer("old")) == (True, False)
    found = verdict([answer("new", **FAILS)], (), decides=("new",), fail_on=BUILD)
    assert "new: " in found.sentence
    assert "fails to parse" in found.sentence


def test_what_a_limit_left_out_is_not_known_unless_that_is_allowed() -> None:
    left = answer("old", left_out=True)
    assert told(answer("new"), left) == (False, True)
    assert told(answer("new"), left, allow_left_out=True) == (False, False)
    assert "1 of 2 builds" in verdict([answer("new"), left], (), decides=("new",)).sentence


def test_a_target_that_cannot_run_needs_a_static_answer_and_a_required_one_a_run() -> None:
    ran, both = answer("new"), ("new", "other")
    unrun = [answer("other", state, **NOT_RUN) for state in (State.CLEAR, State.UNKNOWN)]
    assert told(ran, unrun[0], decides=both) == (False, False)
    assert told(ran, unrun[1], decides=both) == (False, True)
    assert told(ran, unrun[0], decides=both, required={"other"}) == (False, True)
    assert told(unrun[0], decides=("other",)) == (False, True)
    blocked = answer("other", State.BLOCKED, **NOT_RUN)
    assert blocked.troubles == BUILD
    assert told(ran, blocked, decides=both) == (True, False)


def test_what_an_importer_ignores_is_wrong_numbers() -> None:
    ignored = answer("other", State.IGNORED, **NOT_RUN)
    assert ignored.troubles == {Trouble.NUMBERS}
    assert told(answer("new"), ignored, decides=("new", "other"), fail_on={Trouble.NUMBERS}) == (True, False)


def test_an_engine_that_took_too_long_by_itself_fails() -> None:
    """Without a limit of the user's nothing is left out."""
    slow = judged(MODEL, end=None, state="infra_error", reason="lost")
    assert slow.classification.cls is Class.INFRA_ERROR
    assert told(answer("new", state="infra_error", reason="lost", layers=())) == (False, True)
