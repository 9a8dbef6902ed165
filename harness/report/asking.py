"""A question in plain words -> its answer, by static/ask.js: the terminal runs the very script of the page's box."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import quickjs

from harness.report.lexicon import lexicon
from harness.report.page import asset, early_and_late

#: The script that the page has too, and what it is called by here.
_SCRIPTS = ("data.js", "ask.js")
_CALL = """;globalThis.asked = (question) => {
  const { lines, step, columns, rows } = answerTo(question);
  return JSON.stringify({ lines, step, columns, rows: rows.map(({ id }) => id) });
};"""


@dataclass(frozen=True)
class Line:
    """A sentence of an answer, and the place on the page that it leads to."""

    text: str
    href: str = ""


@dataclass(frozen=True)
class QuestionAnswer:
    """An answer: its lines, the step and the columns that it speaks of, and the rows that fit best."""

    lines: tuple[Line, ...]
    step: tuple[str, str] | None
    columns: tuple[str, ...]
    rows: tuple[str, ...]


def answering(
    data: Mapping[str, Any], headline: Callable[[str, str], str]
) -> Callable[[str], QuestionAnswer]:
    """Return what answers questions by the data of a results.json.

    `headline` gives the sentence on the step between two columns, by their ids.
    """
    context = quickjs.Context()
    context.add_callable("headlineBetween", headline)
    for name, given in (("data", early_and_late(data)[0]), ("words", {"lexicon": lexicon(data)})):
        context.set(name, context.parse_json(json.dumps(given)))
    context.eval("".join(map(asset, _SCRIPTS)) + _CALL)

    def answer(question: str) -> QuestionAnswer:
        # A terminal may hand on bytes that are no text.
        text = question.encode("utf-8", "replace").decode()
        found = json.loads(context.get("asked")(text))
        lines = tuple(Line(**line) for line in found.pop("lines"))
        step, columns, rows = (each and tuple(each) for each in found.values())
        return QuestionAnswer(lines, step, columns or (), rows or ())

    return answer
