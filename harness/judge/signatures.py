# ruff: noqa: E501  (patterns and texts stand on one line)
r"""The signatures of diagnosis.yaml and the texts of texts.yaml: known causes, by patterns over an engine's messages.

Patterns keep to the subset of regular expressions that means the same in Python and in JavaScript. Python compiles it
with re.ASCII, JavaScript with the flag u. A difference between the two is either rewritten exactly (`.`, `$`, `\A`,
`\Z`, `\s`, `(?P<name>`) or refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from harness.case import Expectation, Link
from harness.document import read_document
from harness.words import Class, Engine

SIGNATURES = Path(__file__).with_name("diagnosis.yaml")

Where = Literal["errors", "parser", "warnings", "native", "any", "reasons", "missing_api", "names", "graph"]

PLACES: tuple[Where, ...] = get_args(Where)
_BESIDE = ("near", "unless", "model")
SAID = ("title", "cause", "advice")
_TEXTS = (*SAID, "harmless")
#: Parts that several patterns share, written {{NAME}} in them.
_PARTS = {
    "END": r"(?:\.\)?\.?| In \w+ at [^\s)]+\)?|\.? due to insuff?icient workspace\. See verbose log for requested "
    r"sizes\.?\)?)?(?<!\s)\s*(?:$|\n)",
    "NO_CALIBRATION": r"memory must be valid if nbElem|Assertion memory != nullptr failed|Assertion getter\(i\) != 0 failed"
    r"|Assertion min_ <= max_ failed|Unexpected exception (?:_Map_base|unordered_map|map)::at",
    "REFUSED": r"(?:UNSUPPORTED_NODE: false\Z|.*(?:is not supported in TensorRT|Plugin not found|No importer registered))",
}
_PART = re.compile(r"\{\{(\w+)\}\}")
#: A group in a text.
GROUP = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Pattern:
    """A regular expression over one message; a message close to it must have `near`, and no one may have `unless`.

    `model` must be found in a line about the model (diagnosis.py); where the model is not at hand it never is.
    """

    where: Where
    regex: re.Pattern[str]
    near: re.Pattern[str] | None = None
    unless: re.Pattern[str] | None = None
    model: re.Pattern[str] | None = None


@dataclass(frozen=True)
class Signature:
    """A known cause.

    title, cause, advice: may use the patterns' named groups as {group}; {op} and {node}, its place in the model, are
        looked up if no pattern captures them.
    advice_variants: `case.variant` ids that prove the advice.
    generic: it is tried last.
    note: it is counted in any outcome, and is the cause only of a lost precision or of wrong numbers.
    standard_op: the group `op` must be an operator of ONNX itself.
    phases: the phases whose failure it can explain; () for all.
    operator: the one that all of the patterns are about.
    harmless: when it may be passed over and when not.
    innocent: it is recognised, but is neither a failure nor a warning.
    form_of: the more general signature that it is a form of.
    not_yet: a name came with a version, and did not go.
    came: `what` the version does not have yet, and `since` which one has it.
    ends: the topic of rows that it ends.
    upgrade_11: the heading of the page on TensorRT 11 that it answers.
    reported: the versions for which others report it, with models that are no variants.
    """

    id: str
    patterns: tuple[Pattern, ...]
    title: str
    cause: str
    advice: str
    advice_variants: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    generic: bool = False
    note: bool = False
    standard_op: bool = False
    phases: tuple[str, ...] = ()
    operator: str = ""
    harmless: str = ""
    innocent: bool = False
    form_of: str = ""
    versions: str = ""
    not_yet: bool = False
    came: dict[str, str] = field(default_factory=dict)
    ends: dict[str, Any] = field(default_factory=dict)
    upgrade_11: str = ""
    reported: tuple[Expectation, ...] = ()

    @property
    def kind(self) -> Literal["failure", "warning", "harmless"]:
        """Return whether it is a failure, a warning or harmless."""
        return "harmless" if self.innocent else "warning" if self.note else "failure"


@lru_cache
def load_signatures(path: Path = SIGNATURES) -> tuple[Signature, ...]:
    """Return the signatures in the order they are tried: as written, generic ones last.

    The file is not checked: the one that is shipped was tested.
    """
    signatures = (_signature(entry) for entry in read_document(path, start="").data)
    return tuple(sorted(signatures, key=lambda signature: signature.generic))


def _report(name: str, entry: dict[str, Any]) -> Expectation:
    source = Link(entry["url"], entry["title"])
    where = {"note": entry["note"], "platform": entry.get("platform"), "signature": name}
    return Expectation.reported(Class.BUILD_FAILED, entry["versions"], source, **where)


def _signature(entry: dict[str, Any]) -> Signature:
    texts = {name: " ".join(entry.get(name, "").split()) for name in _TEXTS}
    lists = {name: tuple(value) for name, value in entry.items() if isinstance(value, list)}
    lists["reported"] = tuple(_report(entry["id"], each) for each in entry.get("reported", ()))
    fields: dict[str, Any] = {**entry, **texts, **lists, "patterns": _patterns(entry)}
    return Signature(**fields)


def _patterns(entry: dict[str, Any]) -> tuple[Pattern, ...]:
    return tuple(
        Pattern(
            where, _compiled(text), *(_compiled(pattern[key]) if key in pattern else None for key in _BESIDE)
        )
        for pattern in entry["patterns"]
        for where, text in pattern.items()
        if where not in _BESIDE
    )


def _whole(text: str) -> str:
    return _PART.sub(lambda match: _PARTS.get(match[1], match[0]), text)


def _compiled(text: str) -> re.Pattern[str]:
    return re.compile(_whole(text), re.ASCII)


def fits_claim(found: str, claimed: str) -> bool:
    """Tell whether a failure of one signature fits a claim of another: the same, or one a form of the other."""
    if found == claimed:
        return True
    forms = {signature.id: signature.form_of for signature in load_signatures() if signature.form_of}
    return forms.get(found) == claimed or forms.get(claimed) == found


# ---- patterns that mean the same in Python and in JavaScript

#: One part of a pattern: an escape, a class, the beginning of a group, a repetition, or a single character.
_TOKEN = re.compile(
    r"(?P<escape>\\(?:x[0-9a-fA-F]{2}|.))"
    r"|(?P<members>\[\^?\]?(?:\\.|[^\]\\])*\])"
    r"|\(\?P<(?P<name>[A-Za-z]\w*)>"
    r"|(?P<plain>\(\?(?::|<?[=!]))"
    r"|(?P<special>\(\?.?)"
    r"|(?P<repeat>(?:[*+?]|\{\d+(?:,\d*)?\})[?+]?)"
    r"|(?P<one>.)",
    re.DOTALL,
)
_IN_MEMBERS = re.compile(r"\\x[0-9a-fA-F]{2}|\\.|.", re.DOTALL)
#: Forms in a character class that a later Python may read as a nested set, a difference, a union and so on.
_SETS = re.compile(r"\A\[\^?\[|(?<!\\)(?:--|&&|~~|\|\|)")
_SPACE = r" \t\n\r\f\v"
#: No character follows an end; a dollar also matches before the last line break.
_REWRITTEN = {
    r"\A": r"(?<![\s\S])",
    r"\Z": r"(?![\s\S])",
    r"\s": f"[{_SPACE}]",
    r"\S": f"[^{_SPACE}]",
    "$": r"(?=\n?(?![\s\S]))",
    ".": r"[^\n]",
    "]": r"\]",
    "}": r"\}",
}
_SAME = frozenset(rf"\{letter}" for letter in "wWdDbBntrfv")
_SYNTAX = frozenset("^$\\.*+?()[]{}|/")
_ANY = r"[\s\S]"
_HEX = r"\x"


class Unportable(ValueError):
    """A part of a pattern that JavaScript lacks or reads differently, and its replacement, in a sentence."""


class _Group(NamedTuple):
    start: int
    captures: int
    negative: bool


@cache
def javascript(pattern: str) -> str:
    """Return the source of the same expression in JavaScript, for the flag u; raises Unportable for a lacking form."""
    made: list[str] = []
    opened: list[_Group] = []
    closed: _Group | None = None
    captures = 0
    for token in _TOKEN.finditer(pattern):
        text, kind = token.group(), token.lastgroup
        if kind in ("special", "name", "plain") or text == "(":
            captures += kind == "name"
            opened.append(_Group(token.start(), captures - (kind == "name"), text in ("(?!", "(?<!")))
            if kind == "special":
                raise Unportable(
                    f"{text!r} is not in the subset that JavaScript shares; spell it out without it"
                )
            text = f"(?<{token['name']}>" if kind == "name" else text
        elif text == ")" and opened:
            closed = opened.pop()
            if closed.negative and captures > closed.captures:
                raise Unportable("a group is captured in what must not be there; capture none with (?:...)")
            made.append(text)
            continue
        elif kind == "repeat":
            _check_repeated(text, pattern[closed.start : token.start()] if closed else "", closed, captures)
        else:
            text = _members(text) if kind == "members" else _character(text)
        closed = None
        made.append(text)
    return "".join(made)


def _check_repeated(text: str, repeated: str, group: _Group | None, captures: int) -> None:
    if text.endswith("+") and text != "+":
        raise Unportable(f"{text!r} never gives back what it took; write {text[:-1]!r}")
    if group is None or text[0] == "?":
        return
    if captures > group.captures:
        raise Unportable(
            "a group is captured in a part that is repeated; capture the whole, or none with (?:...)"
        )
    if re.fullmatch(repeated, "", re.ASCII):
        raise Unportable(f"{repeated!r} is repeated and may be empty; make it take a character")


def _character(text: str) -> str:
    if text in _REWRITTEN:
        return _REWRITTEN[text]
    if text[0] != "\\" or text in _SAME or text.startswith(_HEX):
        if text == "{":
            raise Unportable(r"'{' stands alone; write '\{'")
        return text
    if text == "\\":
        raise Unportable(r"a backslash with nothing behind it ends the pattern; write '\\' for one")
    if text[1].isalnum():
        raise Unportable(f"{text!r} is not in the subset that JavaScript shares; spell it out without it")
    return text if text[1] in _SYNTAX else text[1]


def _members(text: str) -> str:
    """Return a class; of the negated ones only the class of all characters may hold any."""
    if text == _ANY:
        return text
    if found := _SETS.search(text):
        raise Unportable(f"{found.group()!r} may mean a set of sets one day; put a backslash before its end")
    start = "[^" if text.startswith("[^") else "["
    return start + "".join(map(_member, _IN_MEMBERS.findall(text[len(start) : -1]))) + "]"


def _member(text: str) -> str:
    if text == r"\s":
        return _SPACE
    if text in (r"\w", r"\d", *(rf"\{letter}" for letter in "ntrfv"), r"\-") or text.startswith(_HEX):
        return text
    bare = text[-1]
    if text[0] == "\\" and bare.isalnum():
        raise Unportable(
            f"{text!r} in a class is not in the subset that JavaScript shares; spell it out without it"
        )
    return f"\\{bare}" if bare in _SYNTAX else bare


# ---- texts that engines print

TEXTS = Path(__file__).with_name("texts.yaml")


@dataclass(frozen=True)
class Text:
    """A printed text: by the `engine` that was measured printing it, or quoted at `url`."""

    id: str
    place: str
    text: str
    engine: Engine | None
    url: str
    note: str = ""


@lru_cache
def load_texts() -> tuple[Text, ...]:
    """Return the texts in the file's order, which is not checked either."""
    return tuple(_text(entry) for entry in read_document(TEXTS, start="").data)


def _text(entry: dict[str, str]) -> Text:
    seen = entry["from"]
    engine = Engine(seen) if seen in list(Engine) else None
    url = seen if seen.startswith("https://") else ""
    return Text(entry["id"], entry["place"], entry["text"], engine, url, entry.get("note", ""))
