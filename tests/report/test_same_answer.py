"""The page marks the lines and names the entries that Python's judge gives; test_linear.py holds its patterns' time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from harness.judge.signatures import load_texts
from tests.judge.texts import NEAR_MISSES
from tests.report.pastes import LOGGERS, NOTHING, PASTES

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page
import json
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.judge.findings import MOST_UNKNOWN, NODE_ALONE, explain
from harness.record.outcome import Message, Outcome
from harness.report.model import load_results
from harness.report.page import STATIC, explaining

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

TEXTS = [each.text for each in load_texts()]
PYTHON = "[11/22/2026-10:00:00] [TRT] [{letter}] {text}"


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    with scripts(browser) as made:
        yield made


def same(page: Page, texts: list[str]) -> int:
    """Hold each answer of the script against Python's; returns how many of them find something."""
    theirs = [without_places(each) for each in page.evaluate("(every) => every.map(answer)", texts)]
    ours = list(map(answer, texts))
    for text, found, expected in zip(texts, theirs, ours, strict=True):
        assert found == expected, text
    return sum(bool(one["findings"]) for one in ours)


@pytest.mark.parametrize("form", ["{}", "[E] {}", "[11/22/2026-10:00:00] [W] [TRT] {}", "[V] {}"])
def test_each_text_gets_the_same_answer(page: Page, form: str) -> None:
    """By severity, or without one."""
    assert same(page, [form.format(text) for text in TEXTS]) > (len(TEXTS) // 5)


def test_pastes_near_misses_and_all_texts_at_once_get_the_same_answer(page: Page) -> None:
    every = [text for _, _, text in PASTES] + NOTHING + [text for _, text in LOGGERS]
    assert same(page, every) >= len(PASTES)
    same(page, [text for _, _, text in NEAR_MISSES])
    assert same(page, ["\n".join(TEXTS), "\n".join(f"[E] {text}" for text in TEXTS)]) == 2


def test_each_measured_record_gets_the_same_answer(page: Page) -> None:
    assert same(page, [as_log(outcome, PYTHON) for outcome in measured()]) >= 20


def test_a_flood_gets_the_same_answer(page: Page) -> None:
    """Its middle is dropped alike, and repetitions are kept a few times."""
    words = ("alpha", "beta", "gamma", "delta")
    lines = [
        f"[W] {a}{b}{c}{d} {n}"
        for n in range(100)
        for a in words
        for b in words
        for c in words
        for d in words
    ]
    text = "\n".join([*lines, "[E] Could not find any implementation for node n."])
    assert same(page, [text]) == 1


PUBLISHED = Path(__file__).parents[2] / "reports" / "published"


@contextmanager
def scripts(browser: Browser) -> Iterator[Page]:
    """Open a page that has only the script and its data."""
    body = (STATIC / "explain.js").read_text(encoding="utf-8")
    page = browser.new_page()
    page.add_script_tag(
        content=f"""
      {body}
      const known = compiled({json.dumps(explaining())});
      const data = {{ signatures: Object.fromEntries(known.signatures.map(({{ id }}) => [id, {{}}])) }};
      const marked = ({{ id, kind, where, message, others }}) => ({{ id, kind, where, message, others }});
      const answer = (text) => {{
        const steps = explaining(known, text);
        for (let step = steps.next(); ; step = steps.next()) {{
          if (step.done) return {{ ...step.value, findings: step.value.findings.map(marked) }};
        }}
      }};
    """
    )
    yield page
    page.close()


def answer(text: str) -> dict[str, Any]:
    """Return Python's answer as far as the page gives it."""
    found: dict[str, Any] = json.loads(json.dumps(asdict(explain(text))))
    marked = ("id", "kind", "where", "message", "others")
    findings = [{name: each[name] for name in marked} for each in found["findings"]]
    return without_places({**found, "findings": findings})


def without_places(found: dict[str, Any]) -> dict[str, Any]:
    """Leave out the parser's words on a node alone, which the page does not look up."""
    unknown = [text for text in found["unknown"] if not NODE_ALONE.search(text)]
    return {**found, "unknown": unknown[: MOST_UNKNOWN // 2]}


@cache
def measured() -> tuple[Outcome, ...]:
    """Return of the published cells those that said something severe, each text once."""
    found: dict[Any, Outcome] = {}
    for cell in load_results(PUBLISHED).cells:
        outcome = Outcome(
            *(cell.id, cell.case, cell.variant, cell.target, "done"),
            failed_phase=cell.failed_phase,
            missing_api=cell.missing_api,
            messages=tuple(Message("ERROR", text) for text in cell.errors),
        )
        if outcome.messages or outcome.missing_api:
            found.setdefault((outcome.messages, outcome.missing_api), outcome)
    return tuple(found.values())


def as_log(outcome: Outcome, form: str) -> str:
    """Return the messages of an outcome as a log of the given form has them: each line of a message after its head."""
    return "\n".join(
        form.format(word=each.severity, letter=_letter(each), text=each.text) for each in outcome.messages
    )


def _letter(message: Message) -> str:
    return {"INTERNAL_ERROR": "F"}.get(message.severity, message.severity[0])
