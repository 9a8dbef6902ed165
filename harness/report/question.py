"""A question -> the lexicon's words in it: versions, cards, operators, precisions, what is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.report.lexicon import TOKEN, plain

#: Whole numbers from here on may be a major version; none is as high as the other.
_BARE, _NEWEST_MAJOR = 7, 12


@dataclass(frozen=True)
class Version:
    """A version in a question: its scale ("tensorrt", "jetpack", "cuda"), and the number, "10" for 10.x."""

    scale: str
    number: str


@dataclass
class Question:
    """What a question names: `about` are the words that rows are looked through for, each with its like."""

    versions: list[Version] = field(default_factory=list)
    cards: list[str] = field(default_factory=list)
    operators: list[str] = field(default_factory=list)
    precisions: list[str] = field(default_factory=list)
    asks: list[str] = field(default_factory=list)
    about: list[tuple[str, list[str]]] = field(default_factory=list)
    jetson: bool = False
    turned: bool = False


def read(table: Mapping[str, Any], question: str) -> Question:
    """Find the lexicon's words in a question, the longest first; a word that is none of them is looked for in rows."""
    return _Reading(table, plain(question)).asked()


class _Reading:
    def __init__(self, table: Mapping[str, Any], text: str) -> None:
        self._table, self._text = table, text
        self._tokens = [(found.group(), found.start(), found.end()) for found in TOKEN.finditer(text)]
        self._scale: str | None = None
        self._found = Question()

    def asked(self) -> Question:
        at = 0
        while at < len(self._tokens):
            many, meaning = self._term(at)
            if meaning is None:
                self._unknown(at)
            else:
                self._take(meaning, self._slice(at, many))
            at += many
        if not self._found.about and "FP32" in self._found.precisions:
            self._found.about.append(("FP32", ["fp32"]))
        return self._found

    def _slice(self, at: int, many: int) -> str:
        return self._text[self._tokens[at][1] : self._tokens[at + many - 1][2]]

    def _term(self, at: int) -> tuple[int, str | None]:
        """Return how many tokens the longest term has that begins here, and what it is."""
        terms = self._table["terms"]
        for many in range(min(6, len(self._tokens) - at), 0, -1):
            text = self._slice(at, many)
            meaning = terms.get(text) or terms.get(text.lower())
            number = bool(meaning) and meaning.startswith("scales:") and self._digits(at + many)
            if meaning and not self._glued(at) and (number or not self._glued(at + many)):
                return many, meaning
        return 1, None

    def _digits(self, at: int) -> bool:
        return at < len(self._tokens) and self._tokens[at][0][0].isdigit()

    def _glued(self, at: int) -> bool:
        """Tell whether a word or number follows the one before it without a blank."""
        if not 0 < at < len(self._tokens):
            return False
        (left, _, end), (right, start, _) = self._tokens[at - 1 : at + 1]
        return end == start and left[-1].isalnum() and right[0].isalnum()

    def _take(self, meaning: str, text: str) -> None:
        kind, _, name = meaning.partition(":")
        found, scale = self._found, None
        if kind == "scales":
            scale = name
            found.jetson |= name in ("jetpack", "l4t")
        elif kind in ("between", "stop"):
            scale = self._scale
            found.turned |= text.lower() == "than" and len(found.versions) == 1
        elif kind == "asks":
            found.asks.append(name)
        elif kind == "card":
            found.cards.append(name)
            found.jetson |= bool(self._table["capabilities"][self._table["cards"][name]]["jetson"])
        elif kind == "jetson":
            found.jetson = True
        elif kind == "newest":
            found.asks.append("newest")
        elif kind == "column":
            column = next(each for each in self._table["columns"] if each["id"] == name)
            found.jetson |= bool(column["jetpacks"])
            found.versions.append(Version(column["scale"], column["short"]))
        elif kind == "alike":
            found.about.append((text, self._table["alike"][int(name)]))
        else:
            {"op": found.operators, "precision": found.precisions}[kind].append(name)
            like = [name.lower()] if kind == "op" else self._table["precisions"][name]["like"]
            if name != "FP32":
                found.about.append((text, like))
        self._scale = scale

    def _unknown(self, at: int) -> None:
        """Take a token that is no term: a version, a sign, or a word, which a number may be glued to."""
        text = self._tokens[at][0].lower()
        if text[0].isdigit():
            self._number(at, text)
        elif text[0].isalpha() and len(text) > 1 and not self._glued(at):
            self._found.about.append((text, [text]))
            self._scale = None
        elif text not in self._table["terms"] and not text.isalpha():
            return
        else:
            self._scale = None

    def _number(self, at: int, text: str) -> None:
        found, scale = self._found, self._scale
        self._scale = None
        number = text.removesuffix(".x")
        parts = number.split(".")
        before = self._tokens[at - 1][0].lower() if at else ""
        if (scale is None and self._glued(at)) or self._glued(at + 1):
            return
        if scale == "sm":
            self._capability(number)
        elif scale is not None:
            # trt8510 is a build's short name, which has no one reading.
            if scale and (scale != "tensorrt" or int(parts[0]) < _NEWEST_MAJOR):
                found.versions.append(Version(scale, number))
        elif len(parts) == 2 and 20 <= int(parts[0]) <= 39 and len(parts[1]) == 2:  # noqa: PLR2004
            found.versions.append(Version("ngc", number))
        elif found.versions and before in self._table["roles"] and len(parts) <= 4:  # noqa: PLR2004
            found.versions.append(Version(found.versions[-1].scale, number))
        elif int(parts[0]) < _NEWEST_MAJOR and (
            len(parts) > 1 or text != number or (before in self._table["roles"] and int(number) >= _BARE)
        ):
            found.versions.append(Version("tensorrt", number))

    def _capability(self, number: str) -> None:
        dotted = number if "." in number else f"{number[:-1]}.{number[-1:]}"
        name = next((name for name, each in self._table["cards"].items() if each == dotted), None)
        if name:
            self._found.cards.append(name)
