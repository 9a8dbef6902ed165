"""The page's script that explains a log, in a browser by itself, and Python's answer of the same text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.judge.findings import explain
from harness.record.outcome import Message, Outcome
from harness.report.model import load_results
from harness.report.page import STATIC, explaining

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


PUBLISHED = Path(__file__).parents[2] / "reports" / "published"


@contextmanager
def scripts(browser: Browser) -> Iterator[Page]:
    """Open a page that has the script and its data, and nothing else."""
    body = (STATIC / "explain.js").read_text(encoding="utf-8")
    page = browser.new_page()
    page.add_script_tag(
        content=f"""
      {body}
      const known = compiled({json.dumps(explaining())});
      const answer = (text) => {{
        const steps = explaining(known, text);
        for (let step = steps.next(); ; step = steps.next()) if (step.done) return step.value;
      }};
    """
    )
    yield page
    page.close()


def answer(text: str) -> dict[str, Any]:
    """Return Python's answer as JavaScript has it."""
    found: dict[str, Any] = json.loads(json.dumps(asdict(explain(text))))
    return found


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
