"""The page's scripts that recognise errors, in a browser by themselves, and what Python says of the same texts."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.judge.diagnosis import diagnose
from harness.record.outcome import Message, Outcome
from harness.report.loading import load_results
from harness.report.page import html
from harness.report.page.recognise import recognisable
from tests.judge.said import BUILD_FAILED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page


PUBLISHED = Path(__file__).parents[2] / "reports" / "published"


@contextmanager
def scripts(browser: Browser) -> Iterator[Page]:
    """Open a page that has the scripts and what they know, and nothing else."""
    static = Path(html.__file__).with_name("static")
    bodies = "".join((static / f"{name}.js").read_text(encoding="utf-8") for name in ("diagnose", "readlog"))
    page = browser.new_page()
    page.add_script_tag(
        content=f"""
      const table = ({{fields, rows}}) =>
        rows.map((line) => Object.fromEntries(fields.map((name, at) => [name, line[at]])));
      const told = {json.dumps(recognisable())};
      {bodies}
      const known = compiled({{...told, signatures: table(told.signatures)}});
    """
    )
    yield page
    page.close()


def said(outcome: Outcome) -> dict[str, Any]:
    """Return what an outcome said, as `readLog` returns it of a log."""
    ended = outcome.end is not None and outcome.end.kind != "finished"
    return {
        "messages": [[each.severity, each.text] for each in outcome.messages],
        "parserErrors": [
            {"text": each.text, "code": each.code, "operator": each.operator, "node": each.node}
            for each in outcome.parser_errors
        ],
        "native": outcome.native_output,
        "errors": [outcome.error, outcome.end.detail if outcome.end and ended else ""],
        "missing": [outcome.missing_api] if outcome.missing_api else [],
        "failedPhase": outcome.failed_phase or "",
        "verbose": [],
        "loose": [],
    }


def answer(outcome: Outcome) -> dict[str, Any] | None:
    """Return Python's answer; the nodes of the model are not at hand where a log is pasted."""
    found = diagnose(replace(outcome, nodes=()), BUILD_FAILED)
    if found is None:
        return None
    return {
        "id": found.id,
        "message": found.message,
        "groups": dict(found.groups),
        "operator": found.operator,
        "node": found.node,
    }


@cache
def measured() -> tuple[Outcome, ...]:
    """Return of the published cells those that said something severe, each text once."""
    found: dict[Any, Outcome] = {}
    for cell in load_results(PUBLISHED).cells:
        outcome = Outcome(
            *(cell.id, cell.case, cell.variant, cell.target, "done"),
            failed_phase=cell.failed_phase,
            missing_api=cell.missing_api,
            end=cell.end,
            error=cell.error,
            messages=cell.messages,
            parser_errors=cell.parser_errors,
            native_output=cell.native_output,
        )
        severe = tuple(each for each in outcome.messages if each.severity in ("ERROR", "WARNING"))
        if severe or outcome.parser_errors or outcome.missing_api or outcome.error:
            key = severe, outcome.parser_errors, outcome.missing_api, outcome.error, outcome.native_output
            found.setdefault(key, outcome)
    return tuple(found.values())


def as_log(outcome: Outcome, form: str) -> str:
    """Return what an outcome's engine said as a log of the given form has it: each line of a message after its head."""
    return "\n".join(
        form.format(word=each.severity, letter=_letter(each), text=each.text) for each in outcome.messages
    )


def _letter(message: Message) -> str:
    return {"INTERNAL_ERROR": "F"}.get(message.severity, message.severity[0])
