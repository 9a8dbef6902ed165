"""The messages of the open tools: tables/messages.tsv has their words, tables/groups.yaml what they mean.

tools/messages.py cuts the words out of the sources.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from harness.document import read_document

FOLDER = Path(__file__).with_name("tables")
TABLE = FOLDER / "messages.tsv"
#: What is filled in, in a form.
HOLE = "{}"
#: Words in a row by which a form is looked up; words of one that is looked for whoever speaks; characters looked at.
_RUN, _ENOUGH, _LOOKED_AT = 3, 4, 2000


@dataclass(frozen=True)
class MessageForm:
    """A message as a tool's source has it, {} for what is filled in; `group` is what it means."""

    tool: str
    level: str
    group: str
    versions: str
    source: str
    form: str

    @property
    def pieces(self) -> list[str]:
        """Return the fixed parts of the form."""
        return [" ".join(each.split()) for each in self.form.replace('"', "").split(HOLE) if each.strip()]


@dataclass(frozen=True)
class Meaning:
    """What a message means; `fault`: the tool's own, `follows`: it has its cause before it."""

    id: str
    title: str
    cause: str
    advice: str
    tool: str = ""
    phase: str = ""
    kind: str = ""
    harmless: str = ""
    follows: bool = False
    fault: bool = False


@dataclass(frozen=True)
class MatchedMessage:
    """A message that is known: its form, its meaning and the values that were filled in."""

    form: MessageForm
    meaning: Meaning
    values: tuple[str, ...]

    def filled(self, text: str) -> str:
        """Return a text with {1}, {2} put in."""
        return re.sub(r"\{(\d)\}", lambda one: dict(enumerate(self.values, 1)).get(int(one[1]), "it"), text)


@lru_cache
def groups() -> dict[str, Any]:
    """Return groups.yaml, which is shipped tested: `tools` by name and `groups`."""
    return dict(read_document(FOLDER / "groups.yaml", start="").data)


@lru_cache
def meanings() -> dict[str, Meaning]:
    """Return the meanings by their ids."""
    own = Meaning.__dataclass_fields__
    return {
        row["id"]: Meaning(**{name: row[name] for name in row if name in own}) for row in groups()["groups"]
    }


@lru_cache
def load_forms() -> tuple[MessageForm, ...]:
    """Return the rows of the table."""
    return tuple(
        MessageForm(*line.split("\t")) for line in TABLE.read_text(encoding="utf-8").splitlines()[1:]
    )


@lru_cache
def _index() -> dict[tuple[str, ...], list[MessageForm]]:
    """Return the forms by a run of words that each message of theirs has; a word beside a hole may go on."""
    index: dict[tuple[str, ...], list[MessageForm]] = {}
    for form in load_forms():
        runs = [part.split(" ")[at > 0 :] for at, part in enumerate(form.form.replace('"', "").split(HOLE))]
        ends = [*([None if run[-1:] == [""] else -1 for run in runs[:-1]]), None]
        whole = [[word for word in run[:end] if word] for run, end in zip(runs, ends, strict=True)]
        best = max(whole, key=lambda run: (min(len(run), _RUN), sum(map(len, run))))
        index.setdefault(tuple(best[:_RUN]), []).append(form)
    return index


def known_message(text: str, speaker: str = "") -> MatchedMessage | None:
    """Return the known message in a text, as it is or in quotes: that with the most words; `speaker` is a tool."""
    words = text[:_LOOKED_AT].replace('"', "").split()
    best: tuple[int, MessageForm, tuple[str, ...]] | None = None
    for form in _candidates(words):
        fixed = sum(map(len, form.pieces))
        short = not speaker and len(" ".join(form.pieces).split()) < _ENOUGH
        if short or (speaker and form.tool != speaker) or (best and fixed <= best[0]):
            continue
        values = _values(form, " ".join(words))
        best = best if values is None else (fixed, form, values)
    return MatchedMessage(best[1], meanings()[best[1].group], best[2]) if best else None


def _candidates(words: Sequence[str]) -> Iterator[MessageForm]:
    for size in range(_RUN, 0, -1):
        for at in range(len(words) - size + 1):
            yield from _index().get(tuple(words[at : at + size]), ())


def _values(form: MessageForm, text: str) -> tuple[str, ...] | None:
    """Return what stands between the pieces of a form, None unless all are there in their order."""
    values, at = [], 0
    open_start = form.form.startswith(HOLE)
    for piece in form.pieces:
        found = text.find(piece, at)
        first = not at and not open_start
        if found < 0 or (first and text[found - 1 : found].isalnum()):
            return None
        values += [] if first else [text[at:found]]
        at = found + len(piece)
    return tuple(each.strip(" '\"`.") for each in (*values, text[at:]))
