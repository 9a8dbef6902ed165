"""The messages of the open tools: tables/messages.tsv has their words, tables/groups.yaml what they mean.

tools/messages.py cuts the words out of the sources.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from harness.document import read_document

FOLDER = Path(__file__).with_name("tables")
TABLE = FOLDER / "messages.tsv"
#: What is filled in, in a form.
HOLE = "{}"
#: Words in a row of a form by which a message is looked up; characters of a message that are looked at.
_RUN, _LOOKED_AT = 3, 2000
#: Words that a form needs to be looked for whoever speaks; a shorter one needs its tool.
_ENOUGH = 4
_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class Form:
    """A message as a tool's source has it, {} for what is filled in; `group` is "" where none claims it."""

    tool: str
    level: str
    form: str
    group: str
    versions: str
    source: str

    @property
    def pieces(self) -> list[str]:
        """Return the fixed parts of the form."""
        return [" ".join(each.split()) for each in self.form.split(HOLE) if each.strip()]


@dataclass(frozen=True)
class Meaning:
    """What a group of messages means, or all of one source file that no group claims (`stage`)."""

    tool: str
    phase: str
    title: str
    cause: str
    advice: str
    id: str = ""
    claims: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    kind: str = ""
    harmless: str = ""
    follows: bool = False
    fault: bool = False


@dataclass(frozen=True)
class Match:
    """A message that is known: its form, its meaning and the values that were filled in."""

    form: Form
    meaning: Meaning
    values: tuple[str, ...]

    @property
    def kind(self) -> str:
        """Return failure, warning or harmless."""
        return self.meaning.kind or ("failure" if self.form.level == "E" else "warning")

    def filled(self, text: str) -> str:
        """Return a text with {1}, {2} put in."""
        return re.sub(r"\{(\d)\}", lambda one: self._value(int(one[1])), text)

    def _value(self, number: int) -> str:
        return self.values[number - 1] if number <= len(self.values) else "it"


@dataclass(frozen=True)
class Groups:
    """The meanings, tried in their order, and the tools' names."""

    groups: tuple[Meaning, ...]
    stages: tuple[Meaning, ...]
    tools: dict[str, str] = field(default_factory=dict)


@lru_cache
def load_groups() -> Groups:
    """Return the meanings; the file that is shipped was tested."""
    data = read_document(FOLDER / "groups.yaml", start="").data
    return Groups(_meanings(data["groups"]), _meanings(data["stages"]), data["tools"])


def _meanings(rows: list[dict[str, Any]]) -> tuple[Meaning, ...]:
    listed: list[dict[str, Any]] = [
        {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
        for row in rows
    ]
    return tuple(Meaning(**each) for each in listed)


@lru_cache
def load_forms() -> tuple[Form, ...]:
    """Return the rows of the table."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()[1:]
    rows = (line.split("\t") for line in lines)
    return tuple(
        Form(tool, level, form, group, versions, source)
        for tool, level, group, versions, source, form in rows
    )


def claimed(form: Form, groups: Groups) -> str:
    """Return the id of the first group that claims a form, or ""."""
    for group in groups.groups:
        if group.tool == form.tool and any(
            form.form.startswith(claim[1:]) if claim.startswith("^") else claim in form.form
            for claim in group.claims
        ):
            return group.id
    return ""


def meaning_of(form: Form) -> Meaning:
    """Return what a form means, by its group or else by its source."""
    groups = load_groups()
    for group in groups.groups:
        if form.group and group.id == form.group:
            return group
    return next(
        stage
        for stage in groups.stages
        if stage.tool == form.tool and any(part in form.source for part in stage.files)
    )


def _words(piece: str, *, first: bool, last: bool) -> list[str]:
    """Return the words of a piece that stand whole in a message; those beside a hole may go on."""
    words = piece.split()
    return words[0 if first else 1 : len(words) if last else -1]


@lru_cache
def _index() -> dict[tuple[str, ...], list[Form]]:
    """Return the forms by a run of words that each message of theirs has."""
    index: dict[tuple[str, ...], list[Form]] = {}
    for form in load_forms():
        parts = form.form.split(HOLE)
        runs = [
            _words(part, first=not at or part[:1].isspace(), last=at == len(parts) - 1 or part[-1:].isspace())
            for at, part in enumerate(parts)
        ]
        best = max(runs, key=lambda run: (min(len(run), _RUN), sum(map(len, run))))
        if best:
            start = max(
                range(max(1, len(best) - _RUN + 1)), key=lambda at: len("".join(best[at : at + _RUN]))
            )
            index.setdefault(tuple(best[start : start + _RUN]), []).append(form)
    return index


def known_message(text: str, speaker: str = "") -> Match | None:
    """Return the known message that a text holds, the one with the most words of its own; `speaker` is a tool."""
    words = _WORD.findall(text[:_LOOKED_AT])
    whole = " ".join(words)
    best: tuple[int, Form, tuple[str, ...]] | None = None
    for form in _candidates(words):
        if speaker and form.tool != speaker:
            continue
        pieces = form.pieces
        fixed = sum(map(len, pieces))
        if not speaker and len(" ".join(pieces).split()) < _ENOUGH:
            continue
        if best is not None and fixed <= best[0]:
            continue
        values = _values(pieces, whole, open_start=form.form.startswith(HOLE))
        if values is not None:
            best = fixed, form, values
    return Match(best[1], meaning_of(best[1]), best[2]) if best else None


def _candidates(words: Sequence[str]) -> Iterator[Form]:
    index = _index()
    for size in range(_RUN, 0, -1):
        for at in range(len(words) - size + 1):
            yield from index.get(tuple(words[at : at + size]), ())


def _values(pieces: Sequence[str], text: str, *, open_start: bool) -> tuple[str, ...] | None:
    """Return what stands between the pieces, None unless all are there in their order."""
    values, at = [], 0
    for number, piece in enumerate(pieces):
        found = text.find(piece, at)
        if found < 0:
            return None
        if number == 0 and not open_start and found and (text[found - 1].isalnum()):
            return None
        if number or open_start:
            values.append(text[at:found].strip().strip("'\"`"))
        at = found + len(piece)
    return (*values, text[at:].strip().strip("'\"`."))
