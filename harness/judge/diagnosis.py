"""Failed outcome -> a known cause with advice, by the signatures of diagnosis.yaml."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import onnx

from harness.case import Expectation, Link
from harness.document import Document, Form, Problem, checked
from harness.judge import engine_errors
from harness.judge.place import Place, find_place
from harness.judge.portable import Unportable, javascript
from harness.suggest import did_you_mean
from harness.words import GOOD, UNJUDGED, Class

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.judge.classify import Classification
    from harness.record.outcome import Outcome

SIGNATURES = Path(__file__).with_name("diagnosis.yaml")
FORM = Form(Path(__file__).with_name("diagnosis.schema.json"))

Where = Literal["errors", "parser", "warnings", "native", "missing_api", "graph"]

_PLACES = ("errors", "parser", "warnings", "native", "missing_api", "graph")
_SAID = ("title", "cause", "advice")
_TEXTS = (*_SAID, "harmless")
#: What an engine says of one tactic that it could not use; the last one is why none was left.
SKIPPED = re.compile(r"Skipping tactic 0x[0-9a-f]+ due to .+")
#: A group in a text.
_GROUP = re.compile(r"\{(\w+)\}")
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
    groups `op` and `node` say where in the model it is, which is looked up where no pattern captures them; `operator`
    is the one that all of the patterns are about. `advice_variants` are `case.variant` ids that prove the advice.
    `generic` ones are tried last; a `note` is counted in any outcome, and is the cause only of a lost precision or of
    wrong numbers, and an `innocent` one is neither, only known; `harmless` says where it may be passed over and where
    not; `reported` is of which versions others report it, of models that are no variants; `standard_op` wants the
    group `op` to be an operator of ONNX itself; `phases`, where given, are those whose failure it can explain.
    `form_of` is the more general signature that it is a form of.
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
    reported: tuple[Expectation, ...] = ()


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
    skipped_tactic: str
    operator: str
    node: str

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

    Raises HandledError with file, line and field for a file that is not valid.
    """
    entries = checked(path, FORM, _bad_regexes, _contradictions).data
    signatures = (_signature(entry) for entry in entries)
    return tuple(sorted(signatures, key=lambda signature: signature.generic))


def _bad_regexes(document: Document) -> Iterator[Problem]:
    for number, entry in enumerate(document.data):
        for index, pattern in enumerate(entry["patterns"]):
            ((where, text),) = pattern.items()
            place = (number, "patterns", index, where)
            try:
                # It refuses what Python warns of as well, so it comes first.
                javascript(text)
                re.compile(text, re.ASCII)
            except (re.error, OverflowError) as error:
                sentence = f"{text!r} is no regular expression: {error}; correct it"
                yield Problem(document.line(place), place, sentence)
            except Unportable as error:
                yield Problem(document.line(place), place, str(error))


def _contradictions(document: Document) -> Iterator[Problem]:
    """Find ids given twice, and groups that a text uses and no pattern captures."""
    lines: dict[str, int] = {}
    for number, entry in enumerate(document.data):
        for field, sentence in _uncaptured(entry):
            yield Problem(document.line((number, field)), (number, field), sentence)
        line = document.line((number, "id"))
        first = lines.setdefault(entry["id"], line)
        if first != line:
            sentence = f"{entry['id']!r} is the id of the signature on line {first} too; rename one"
            yield Problem(line, (number, "id"), sentence)
        for at, report in enumerate(entry.get("reported", ())):
            place = (number, "reported", at, "versions")
            try:
                _report(entry["id"], report)
            except ValueError as error:
                yield Problem(document.line(place), place, str(error))


def _report(name: str, entry: dict[str, Any]) -> Expectation:
    source = Link(entry["url"], entry["title"])
    where = {"note": entry["note"], "platform": entry.get("platform"), "signature": name}
    return Expectation.reported(Class.BUILD_FAILED, entry["versions"], source, **where)


def _uncaptured(entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    captured = {group for pattern in _patterns(entry) for group in pattern.regex.groupindex}
    for field in _TEXTS:
        for group in set(_GROUP.findall(entry.get(field, ""))) - _LOOKED_UP - captured:
            guess = did_you_mean(group, captured | _LOOKED_UP)
            yield field, f"uses {{{group}}}, which no pattern of the entry captures; {guess}"
    if entry.get("standard_op") and "op" not in captured:
        yield "standard_op", "needs a pattern that captures (?P<op>...); add one or delete it"


def _signature(entry: dict[str, Any]) -> Signature:
    texts = {name: " ".join(entry.get(name, "").split()) for name in _TEXTS}
    lists = {name: tuple(value) for name, value in entry.items() if isinstance(value, list)}
    lists["reported"] = tuple(_report(entry["id"], each) for each in entry.get("reported", ()))
    fields: dict[str, Any] = {**entry, **texts, **lists, "patterns": _patterns(entry)}
    return Signature(**fields)


def _patterns(entry: dict[str, Any]) -> tuple[Pattern, ...]:
    return tuple(
        Pattern(where, re.compile(text, re.ASCII))
        for pattern in entry["patterns"]
        for where, text in pattern.items()
    )


def fits_claim(found: str, claimed: str) -> bool:
    """Tell whether a failure of one signature is what a claim of another says: the same, or one a form of the other."""
    if found == claimed:
        return True
    forms = {signature.id: signature.form_of for signature in load_signatures() if signature.form_of}
    return forms.get(found) == claimed or forms.get(claimed) == found


def diagnose(
    outcome: Outcome, classification: Classification, signatures: Sequence[Signature] | None = None
) -> Diagnosis | None:
    """Return the most specific known cause of a failure, or None.

    A cell that works or was not judged has none. A cell that failed is searched whole; one that finished and lost
    precision or numbers has its warnings to tell.
    """
    if classification.cls in GOOD | UNJUDGED:
        return None
    silent = classification.cls in _SILENT
    texts = {**_searched(outcome), "graph": _graph(outcome, classification)}
    for signature in load_signatures() if signatures is None else signatures:
        # A flood of warnings explains what finished in the wrong precision, and never why something failed.
        if signature.innocent or (signature.note and not silent):
            continue
        if signature.phases and outcome.failed_phase not in signature.phases:
            continue
        found = _first(signature, texts, ("warnings", "graph") if silent else _PLACES)
        if found is not None:
            return _diagnosis(signature, *found, outcome)
    return None


def in_general(signature: Signature) -> Diagnosis:
    """Return a signature as the diagnosis of no outcome in particular; what an outcome would fill in reads <node>."""
    return Diagnosis(
        id=signature.id,
        **{text: blank(getattr(signature, text)) for text in _SAID},
        message="",
        groups={},
        links=signature.links,
        advice_variants=signature.advice_variants,
        skipped_tactic="",
        operator=signature.operator,
        node="",
    )


def blank(text: str) -> str:
    """Return a text of a signature with <node> in place of what a failure fills in."""
    return _GROUP.sub(r"<\1>", text)


def notes(outcome: Outcome) -> tuple[Note, ...]:
    """Return the counted warnings of any outcome, in the file's order."""
    texts = _searched(outcome)
    found = []
    for signature in load_signatures():
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
        "graph": (),
    }


def _graph(outcome: Outcome, classification: Classification) -> tuple[str, ...]:
    """Return what the record knows of the model where the engine is silent, a line a node: `lost Conv /conv: int8`.

    Of a cell that lost precision these are the nodes that lost it, of one that crashed they are all.
    """
    lost = {each.node for each in classification.lost}
    if classification.cls not in (Class.PRECISION_LOST, Class.CRASHED):
        return ()
    how = "lost" if classification.cls is Class.PRECISION_LOST else "crashed"
    return tuple(
        f"{how} {node.op} {node.name}: {', '.join(filter(None, (node.precision, node.fed)))}"
        for node in outcome.nodes
        if how == "crashed" or node.name in lost
    )


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
        if (match := SKIPPED.search(text))
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
    return _GROUP.sub(lambda match: groups.get(match.group(1), "?"), text)
