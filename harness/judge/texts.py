"""What engines print, by the signature that knows it: what the tests hold signatures to, and readers search for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from harness.document import Document, Form, Problem, checked
from harness.judge.diagnosis import load_signatures
from harness.suggest import did_you_mean
from harness.words import Engine

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXTS = Path(__file__).with_name("texts.yaml")
FORM = Form(Path(__file__).with_name("texts.schema.json"))


@dataclass(frozen=True)
class Text:
    """A text that is printed: by the `engine` that was measured printing it, or quoted at `url`, where one is told."""

    id: str
    place: str
    text: str
    engine: Engine | None
    url: str
    note: str = ""


@lru_cache
def load_texts(path: Path = TEXTS) -> tuple[Text, ...]:
    """Return the texts in the file's order; raises HandledError with file, line and field for one that is not valid."""
    return tuple(_text(entry) for entry in checked(path, FORM, _strangers).data)


def _text(entry: dict[str, str]) -> Text:
    seen = entry["from"]
    engine = Engine(seen) if seen in list(Engine) else None
    url = seen if seen.startswith("https://") else ""
    return Text(entry["id"], entry["place"], entry["text"], engine, url, entry.get("note", ""))


def _strangers(document: Document) -> Iterator[Problem]:
    known = {signature.id for signature in load_signatures()}
    for number, entry in enumerate(document.data):
        if entry["id"] not in known:
            place = (number, "id")
            sentence = f"{entry['id']!r} is the id of no signature; {did_you_mean(entry['id'], known)}"
            yield Problem(document.line(place), place, sentence)
