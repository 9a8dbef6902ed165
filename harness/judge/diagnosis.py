"""Failed outcome -> a known cause with advice, by the signatures of diagnosis.yaml."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import onnx
import yaml

from harness.errors import HandledError
from harness.judge import engine_errors
from harness.judge.place import Place, find_place
from harness.words import GOOD, UNJUDGED, Class

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.judge.classify import Classification
    from harness.record.outcome import Outcome

SIGNATURES = Path(__file__).with_name("diagnosis.yaml")

Where = Literal["errors", "parser", "warnings", "native", "missing_api"]

_PLACES = ("errors", "parser", "warnings", "native", "missing_api")
_TEXTS = ("id", "title", "cause", "advice")
_OPTIONAL = {"advice_variants", "links", "generic", "note", "standard_op", "phases", "patterns", "operator"}
_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
#: What an engine says of one tactic that it could not use; the last one is why none was left.
_SKIPPED = re.compile(r"Skipping tactic 0x[0-9a-f]+ due to .+")
#: Groups that a text may use though no pattern captures them: the record says where a complaint belongs.
_LOOKED_UP = {"op", "node"}
#: In these classes nothing failed loudly, so that warnings are all there is to go by.
_SILENT = frozenset({Class.PRECISION_LOST, Class.INACCURATE})


@dataclass(frozen=True)
class Pattern:
    """A regular expression over one message from one place."""

    where: Where
    regex: re.Pattern[str]


@dataclass(frozen=True)
class Signature:
    """A known cause.

    `title`, `cause` and `advice` may use the patterns' named groups as {group}, and {op} and {node} in any case; the
    groups `op` and `node` say where in the model it is, which is looked up where no pattern captures them;
    `operator` is the one that all of the patterns are about.
    `advice_variants` are `case.variant`
    ids that prove the advice. `generic` ones are tried last; a `note` is counted in any outcome and no cause
    of a failure; `standard_op` wants the group `op` to be an operator of ONNX itself; `phases`, where given,
    are those whose failure it can explain.
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


@dataclass(frozen=True)
class Diagnosis:
    """A signature found in an outcome, its texts filled in; `skipped_tactic` is the last refusal, or "".

    `operator` and `node` are where in the model it is, "" for what the record does not tell.
    """

    id: str
    title: str
    cause: str
    advice: str
    message: str
    groups: Mapping[str, str]
    links: tuple[str, ...]
    advice_variants: tuple[str, ...]
    skipped_tactic: str = ""
    operator: str = ""
    node: str = ""

    @property
    def place(self) -> str:
        """Return operator and node in words, "" where neither is known."""
        return str(Place(self.operator, self.node))


@dataclass(frozen=True)
class Note:
    """A warning that is counted rather than blamed."""

    id: str
    count: int
    example: str


@lru_cache
def load_signatures(path: Path = SIGNATURES) -> tuple[Signature, ...]:
    """Return the signatures in the order they are tried: as written, generic ones last.

    Raises HandledError naming file and entry for a file that is not valid.
    """
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise HandledError(f"{path}: cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(entries, list):
        raise HandledError(f"{path}: wants a list of signatures")
    signatures = tuple(
        _signature(entry, f"{path}: entry {number}") for number, entry in enumerate(entries, start=1)
    )
    ids = [signature.id for signature in signatures]
    for name in ids:
        if ids.count(name) > 1:
            raise HandledError(f"{path}: two entries are called {name!r}")
    return tuple(sorted(signatures, key=lambda signature: signature.generic))


def _signature(entry: Any, place: str) -> Signature:  # noqa: ANN401  (unchecked YAML)
    if not isinstance(entry, dict):
        raise HandledError(f"{place}: wants a mapping with id, patterns, title, cause and advice")
    place = f"{place} ({entry.get('id')})"
    unknown = sorted(set(map(str, entry)) - {*_TEXTS, *_OPTIONAL})
    if unknown:
        raise HandledError(f"{place}: knows no field {unknown[0]!r}")
    for name in _TEXTS:
        if not isinstance(entry.get(name), str) or not entry[name].strip():
            raise HandledError(f"{place}: {name} wants a text")
    if not _ID.fullmatch(entry["id"]):
        raise HandledError(f"{place}: an id is lower-case words joined by '-'")
    for name in ("generic", "note", "standard_op"):
        if not isinstance(entry.get(name, False), bool):
            raise HandledError(f"{place}: {name} wants true or false")
    operator = entry.get("operator", "")
    if not isinstance(operator, str):
        raise HandledError(f"{place}: operator wants the name of one")
    patterns = _patterns(entry.get("patterns"), place)
    signature = Signature(
        id=entry["id"],
        title=_flat(entry["title"]),
        cause=_flat(entry["cause"]),
        advice=_flat(entry["advice"]),
        patterns=patterns,
        advice_variants=_texts(entry, "advice_variants", place),
        links=_texts(entry, "links", place),
        phases=_texts(entry, "phases", place),
        generic=entry.get("generic", False),
        note=entry.get("note", False),
        standard_op=entry.get("standard_op", False),
        operator=operator,
    )
    _check_groups(signature, place)
    return signature


def _flat(text: str) -> str:
    return " ".join(text.split())


def _patterns(entries: Any, place: str) -> tuple[Pattern, ...]:  # noqa: ANN401
    if not isinstance(entries, list) or not entries:
        raise HandledError(f"{place}: patterns wants a list of one-key mappings such as errors: <regex>")
    patterns = []
    for entry in entries:
        if not isinstance(entry, dict) or len(entry) != 1 or next(iter(entry)) not in _PLACES:
            raise HandledError(
                f"{place}: a pattern is one of {', '.join(_PLACES)} and a regex, not {entry!r}"
            )
        ((where, text),) = entry.items()
        try:
            patterns.append(Pattern(where, re.compile(text)))
        except (re.error, TypeError) as error:
            raise HandledError(f"{place}: {text!r} is no regular expression: {error}") from error
    return tuple(patterns)


def _texts(entry: dict[str, Any], name: str, place: str) -> tuple[str, ...]:
    values = entry.get(name, [])
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise HandledError(f"{place}: {name} wants a list of texts")
    return tuple(values)


def _check_groups(signature: Signature, place: str) -> None:
    known = {group for pattern in signature.patterns for group in pattern.regex.groupindex}
    used = set(re.findall(r"\{(\w+)\}", signature.title + signature.cause + signature.advice))
    if not used <= known | _LOOKED_UP:
        strange = min(used - known - _LOOKED_UP)
        raise HandledError(f"{place}: its text uses {{{strange}}}, which no pattern of it captures")
    if signature.standard_op and "op" not in known:
        raise HandledError(f"{place}: standard_op needs a pattern that captures (?P<op>...)")


def diagnose(
    outcome: Outcome, classification: Classification, signatures: Sequence[Signature] | None = None
) -> Diagnosis | None:
    """Return the most specific known cause of a failure, or None.

    A cell that works or was not judged has none. A cell that failed is searched whole; one that finished and
    lost precision or numbers has its warnings to tell.
    """
    if classification.cls in GOOD | UNJUDGED:
        return None
    silent = classification.cls in _SILENT
    texts = _searched(outcome)
    for signature in load_signatures() if signatures is None else signatures:
        # A flood of warnings explains what finished in the wrong precision, and never why something failed.
        if signature.note and not silent:
            continue
        if signature.phases and outcome.failed_phase not in signature.phases:
            continue
        found = _first(signature, texts, ("warnings",) if silent else _PLACES)
        if found is not None:
            return _diagnosis(signature, *found, outcome)
    return None


def notes(outcome: Outcome, signatures: Sequence[Signature] | None = None) -> tuple[Note, ...]:
    """Return the counted warnings of any outcome, in the file's order."""
    texts = _searched(outcome)
    found = []
    for signature in load_signatures() if signatures is None else signatures:
        hits = list(_hits(signature, texts, _PLACES)) if signature.note else []
        if hits:
            found.append(Note(signature.id, len(hits), hits[0][0]))
    return tuple(found)


def _searched(outcome: Outcome) -> dict[str, tuple[str, ...]]:
    return {
        "errors": engine_errors.errors(outcome),
        "parser": engine_errors.refusals(outcome),
        "warnings": engine_errors.warnings(outcome),
        "native": engine_errors.native(outcome),
        "missing_api": (outcome.missing_api,) if outcome.missing_api else (),
    }


def _first(
    signature: Signature, texts: Mapping[str, tuple[str, ...]], places: Sequence[str]
) -> tuple[str, dict[str, str]] | None:
    return next(_hits(signature, texts, places), None)


def _hits(
    signature: Signature, texts: Mapping[str, tuple[str, ...]], places: Sequence[str]
) -> Iterator[tuple[str, dict[str, str]]]:
    for pattern in signature.patterns:
        for text in texts[pattern.where] if pattern.where in places else ():
            match = pattern.regex.search(text)
            if match is None:
                continue
            groups = {name: value for name, value in match.groupdict().items() if value is not None}
            if not signature.standard_op or onnx.defs.has(groups.get("op", "")):
                yield text, groups


def _diagnosis(signature: Signature, message: str, groups: dict[str, str], outcome: Outcome) -> Diagnosis:
    skipped = [
        match.group()
        for text in (*(message.text for message in outcome.messages), *engine_errors.native(outcome))
        if (match := _SKIPPED.search(text))
    ]
    operator, node = groups.get("op", signature.operator), groups.get("node", "")
    # A name that the version lacks is asked for by the recipe, not by a node.
    asked = message == outcome.missing_api
    place = Place() if asked else find_place(outcome, message, operator=operator, node=node)
    known = {name: text for name, text in (("op", place.operator), ("node", place.node)) if text} | groups
    return Diagnosis(
        id=signature.id,
        title=_filled(signature.title, known),
        cause=_filled(signature.cause, known),
        advice=_filled(signature.advice, known),
        message=message,
        groups=groups,
        links=signature.links,
        advice_variants=signature.advice_variants,
        skipped_tactic=skipped[-1] if skipped else "",
        operator=place.operator,
        node=place.node,
    )


def _filled(text: str, groups: Mapping[str, str]) -> str:
    """Put the captured groups in; one that another pattern of the signature captures reads "?"."""
    return re.sub(r"\{(\w+)\}", lambda match: groups.get(match.group(1), "?"), text)
