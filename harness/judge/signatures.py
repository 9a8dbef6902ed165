# ruff: noqa: E501  (patterns and texts stand on one line)
r"""The signatures of diagnosis.yaml and the texts of texts.yaml: known causes, by patterns over an engine's messages.

Patterns keep to the subset of regular expressions that means the same in Python and in JavaScript; a test holds them to
it. Python compiles it with re.ASCII, JavaScript with the flag u. Some differences are rewritten exactly (`.`, `$`, `\A`,
`\Z`, `\s`, `(?P<name>`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

from harness.case import Expectation, Link
from harness.document import read_document
from harness.words import Class, Engine

SIGNATURES = Path(__file__).with_name("diagnosis.yaml")

Where = Literal["errors", "parser", "warnings", "native", "any", "reasons", "missing_api", "names", "graph"]

PLACES: tuple[Where, ...] = get_args(Where)
_BESIDE = ("near", "unless", "model")
SAID = ("title", "cause", "advice")
WORDED = (*SAID, "harmless")
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
    texts = {name: " ".join(entry.get(name, "").split()) for name in WORDED}
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

#: One part of a pattern: a class, the beginning of a named group, an escape, a repetition, or a single character.
_TOKEN = re.compile(r"(?P<members>\[\^?\]?(?:\\.|[^\]\\])*\])|\(\?P<|\\.|\{\d+(?:,\d*)?\}|[^\\]", re.DOTALL)
_SPACE = r" \t\n\r\f\v"
#: No character follows an end; a dollar also matches before the last line break.
_REWRITTEN = {
    "(?P<": "(?<",
    r"\A": r"(?<![\s\S])",
    r"\Z": r"(?![\s\S])",
    r"\s": f"[{_SPACE}]",
    r"\S": f"[^{_SPACE}]",
    "$": r"(?=\n?(?![\s\S]))",
    ".": r"[^\n]",
    "]": r"\]",
    "}": r"\}",
}
_SYNTAX = frozenset("^$\\.*+?()[]{}|/")
_ANY = r"[\s\S]"


@cache
def javascript(pattern: str) -> str:
    """Return the source of the same expression in JavaScript, for the flag u; a test holds patterns to what both share."""
    return _TOKEN.sub(_translated, pattern)


def _translated(token: re.Match[str]) -> str:
    text = token.group()
    if token["members"] and text != _ANY:
        start = "[^" if text.startswith("[^") else "["
        return start + re.sub(r"(?s)\\.|.", _member, text[len(start) : -1]) + "]"
    bare = text[1:] if text[0] == "\\" else text
    return _REWRITTEN.get(text, text if bare[0].isalnum() or bare[0] in _SYNTAX else bare)


def _member(found: re.Match[str]) -> str:
    text, bare = found.group(), found.group()[-1]
    if text[0] == "\\" and (bare.isalnum() or bare == "-"):
        return _SPACE if bare == "s" else text
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
