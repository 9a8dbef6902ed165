"""Which recorded outcomes answer for which cells."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.plan import all_cells
from harness.record.outcome import OTHERS, Latency, Outcome
from harness.record.speaking import todays
from harness.run import key
from harness.run.key import answering, keys_of
from harness.run.provision import Environment, Host, NotMade
from tests.report import factory

pytestmark = pytest.mark.unit

CELLS = all_cells(factory.matrix(), (factory.case(),))
CELL = next(cell for cell in CELLS if cell.id == "conv_silu.qdq-ort131")
TODAY = todays(CELLS)
MINE = {CELL.id: TODAY[CELL.id]}
KEYS = {CELL.id: "today"}


def outcome(key: str = "today", when: str = "2026-01-01", state: Any = "done", **fields: Any) -> Outcome:
    """Return an outcome of the cell as it is today."""
    plain = Outcome.blank(CELL, state, "" if state == "done" else "why")
    hashes: dict[str, Any] = {
        "model_sha256": MINE[CELL.id].model_sha256,
        "recipe_sha256": CELL.variant.recipe.sha256(),
        "engine_version": CELL.target.version,
        "when": when,
        "run": "a",
    }
    hashes |= fields.pop("stamps", {})
    return replace(plain, key=key, stamps=replace(plain.stamps, **hashes), **fields)


def answer(*outcomes: Outcome, keys: dict[str, str] = KEYS) -> Outcome | None:
    return answering(MINE, outcomes, keys).get(CELL.id)


def test_the_latest_outcome_of_todays_key_answers() -> None:
    old, new = outcome(when="2026-01-01"), outcome(when="2026-01-02")
    assert answer(new, old) is new
    assert answer(outcome(""), keys={CELL.id: ""}) is None, "no key is no key that two have in common"
    trouble = outcome(state="infra_error", when="2026-01-02")
    assert answer(old, trouble) is old, "trouble hides no answer"


TIMED = Latency((1.0,), 1, "cuda_events")


@pytest.mark.parametrize(
    ("made", "answers"),
    [
        (outcome("another"), False),
        (outcome(""), False),
        (outcome(state="infra_error"), False),
        pytest.param(outcome(stamps={"account": "theirs"}), False, id="sent in"),
        pytest.param(
            outcome(latency=replace(TIMED, after={OTHERS: "python3 (pid 7)"})), False, id="beside others"
        ),
        pytest.param(outcome(latency=TIMED), True, id="alone"),
    ],
)
def test_what_is_of_another_key_or_in_doubt_does_not_answer(made: Outcome, answers: bool) -> None:
    assert (answer(made) is not None) is answers


def test_an_outcome_that_does_not_speak_any_more_does_not_answer() -> None:
    """It was made another way since, and the report shows that."""
    since = outcome("another way", when="2026-01-02", ran=True, phases={"run": 1.0})
    assert answer(outcome(ran=True, phases={"run": 1.0}), since) is None
    stale = outcome("another way", when="2026-01-02", stamps={"model_sha256": "b" * 64})
    assert answer(outcome(), stale) is not None, "what is of another model hides nothing"


@pytest.mark.parametrize("state", ["not_run", "not_applicable"])
def test_what_cannot_run_here_answers_beside_what_ran_elsewhere(state: str) -> None:
    elsewhere = outcome("another machine")
    assert answer(elsewhere, outcome(state=state)) is not None


def test_keys_are_those_of_what_would_be_used_and_nothing_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A target that cannot run has the key of its reason; of one that would have to be made first nobody knows."""

    def refuse(*_: object, allow_build: bool, **__: object) -> None:
        assert not allow_build
        raise NotMade("needs its image")

    monkeypatch.setattr(key, "look_at_host", lambda: Host("amd64"))
    monkeypatch.setattr(key, "prepare", refuse)
    cells = [cell for cell in CELLS if cell.variant is CELL.variant]
    found = keys_of(cells, TODAY)
    assert found["conv_silu.qdq-trt86"], "it needs a GPU"
    assert found["conv_silu.qdq-rtx17"] == ""
    monkeypatch.setattr(key, "look_at_host", lambda: Host("amd64", gpu_reason="another reason"))
    assert keys_of(cells, TODAY)["conv_silu.qdq-trt86"] != found["conv_silu.qdq-trt86"]


def test_an_untrusted_case_has_a_place_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is confined where another case of the same target is not."""
    cell = next(cell for cell in CELLS if cell.target.name == "ort131")
    confined = replace(cell, target=replace(cell.target, untrusted=True))
    monkeypatch.setattr(key, "look_at_host", lambda: Host("amd64"))
    monkeypatch.setattr(key, "prepare", lambda *_, **__: Environment("docker", "ort131", "python3", "i"))
    there = [keys_of([each], TODAY)[cell.id] for each in (cell, confined)]
    assert there[0] != there[1]
    monkeypatch.setattr(key, "cell_key", lambda _, __, place: place)
    trusted = replace(cell, id="trusted")
    cells = [trusted, replace(confined, id="confined")]
    both = keys_of(cells, todays(cells))
    assert both["trusted"] != both["confined"]
