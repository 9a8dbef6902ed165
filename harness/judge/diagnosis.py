"""Failed outcome -> a known cause with advice, by the signatures of diagnosis.yaml."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, NamedTuple

import onnx

from harness.case.graph_reader import GraphReader, attribute, inferred, opsets
from harness.case.model import effective_name
from harness.judge import complaints
from harness.judge.classify import Classification
from harness.judge.complaints import NEAR, NO_IMPLEMENTATION, REASON, Place, ended, find_place
from harness.judge.logs import lacked_name
from harness.judge.names import named, read_since
from harness.judge.signatures import GROUP, PLACES, WORDED, Pattern, Signature, Where, load_signatures
from harness.record.outcome import Outcome
from harness.words import CLASSES, FINISHED, GOOD, UNJUDGED

#: An engine's refusal of a tactic; the last one explains why no tactic was left.
SKIPPED = re.compile(r"Skipping tactic \S{1,40} due to .+")
NO_IMPORTER = re.compile(
    r"No importer registered for op: (?P<a>\w+)|could not find plugin:? ?(?P<b>\w+)", re.ASCII
)
#: How many messages before and after one are near it, and of how many places of one text that is looked up.
CLOSE, MOST_PLACES = 12, 20


class Statement(NamedTuple):
    """A text to search, with groups known beforehand; `said` is the message that it is from."""

    text: str
    groups: Mapping[str, str] = {}
    said: str = ""


class Hit(NamedTuple):
    """The place of a found signature: the text and the message that it is from, with the captured groups."""

    where: Where
    text: str
    message: str
    groups: dict[str, str]


@dataclass(frozen=True)
class Texts:
    """All texts of a record by their place; `order` and `positions` tell which messages are near each other.

    `model` returns the lines about the model that a message and its groups are about, none where no model is at hand.
    """

    by_place: Mapping[str, tuple[Statement, ...]]
    order: tuple[str, ...] = ()
    positions: Mapping[str, Sequence[int]] = field(default_factory=dict)
    model: Callable[..., Iterable[str]] = lambda said, groups: ()  # noqa: ARG005

    def around(self, text: str) -> Iterator[str]:
        """Yield the messages near a text."""
        for at in self.positions.get(text, ())[:MOST_PLACES]:
            yield from self.order[max(0, at - CLOSE) : at + CLOSE + 1]


@dataclass(frozen=True)
class Diagnosis:
    """A signature found in an outcome, its texts filled in; `skipped_tactic` is the last refusal, or "".

    `operator` and `node` are its place in the model, "" if the record does not name it.
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
    harmless: str = ""

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


def diagnose(
    outcome: Outcome,
    classification: Classification,
    signatures: Sequence[Signature] | None = None,
    *,
    model: Callable[[], bytes] | None = None,
    network: str = "",
) -> Diagnosis | None:
    """Return the most specific known cause of a failure, or None.

    A cell that works or was not judged has no cause. A failed cell is searched whole, one that finished and lost
    precision or numbers for its warnings alone. `model` gives the model, which only some causes ask; `network` is
    engine and typing: "tensorrt, weakly typed".
    """
    if classification.cls in GOOD | UNJUDGED:
        return None
    # No error was printed: only warnings may explain the class.
    silent = classification.cls in FINISHED
    texts = searched(outcome, graph=_graph(outcome, classification, network))
    if model is not None:
        texts = replace(texts, model=partial(_about, outcome, cache(lambda: tuple(model_lines(model())))))
    places = ("warnings", "graph") if silent else PLACES
    for signature in load_signatures() if signatures is None else signatures:
        # A flood of warnings may explain a wrong precision, but never a failure.
        tried = not signature.innocent and (silent or not signature.note)
        if tried and (not signature.phases or outcome.failed_phase in signature.phases):
            for found in hits(signature, texts, places):
                return diagnosis_of(signature, found, outcome)
    return None


def blank(text: str) -> str:
    """Return a text of a signature with <node> in place of each group."""
    return GROUP.sub(r"<\1>", text)


def notes(outcome: Outcome) -> tuple[Note, ...]:
    """Return the counted warnings of any outcome, in the file's order."""
    texts = searched(outcome)
    said = Counter(complaints.warnings(outcome))
    found = []
    for signature in load_signatures():
        every = list(dict.fromkeys(hit.text for hit in hits(signature, texts))) if signature.note else []
        if every:
            found.append(Note(signature.id, sum(max(said[text], 1) for text in every), every[0]))
    return tuple(found)


def searched(
    outcome: Outcome,
    *,
    missing: Sequence[tuple[str, str]] | None = None,
    order: Iterable[str] | None = None,
    graph: Sequence[str] = (),
) -> Texts:
    """Return the texts of a record by place; `missing` and `order` are a log's, if it was read from one."""
    errors, native = complaints.errors(outcome), complaints.native(outcome)
    if missing is None:
        missing = [(outcome.missing_api, "")] if outcome.missing_api else []
        lacked = [(name, text) for text in errors if (name := lacked_name(text))]
    else:
        lacked = list(missing)
    # Many a message ends in a blank, which one place takes off: it stays one message.
    said = [text.strip() for text in ([each.text for each in outcome.messages] if order is None else order)]
    plain: dict[str, Sequence[str]] = {
        "errors": errors,
        "warnings": complaints.warnings(outcome),
        "native": native,
        "any": (*said, *native),
        "graph": graph,
    }
    places = {
        place: tuple(map(Statement, filter(None, dict.fromkeys(texts)))) for place, texts in plain.items()
    }
    places |= {
        "parser": tuple(_refused(outcome, (*errors, *said))),
        "missing_api": tuple(Statement(name, said=text) for name, text in missing),
        "names": tuple(filter(None, (_named(name, text) for name, text in lacked))),
        "reasons": tuple(_reasons(said)),
    }
    positions: dict[str, list[int]] = {}
    for at, text in enumerate(said):
        for each in (complaints.without_noise(text), text):
            positions.setdefault(each, []).append(at)
    return Texts(places, tuple(said), positions)


def _refused(outcome: Outcome, texts: Sequence[str]) -> Iterator[Statement]:
    """Yield the parser's refusals, and as such how TensorRT up to 9 says that it has no importer for an operator."""
    # A text joined from the parser's list stands in no log: only its parts do.
    listed = zip(complaints.refusals(outcome), outcome.parser_errors, strict=True)
    whole = {text: error.text for text, error in listed if text}
    yield from (Statement(text, said=complaints.without_noise(said)) for text, said in whole.items())
    for text in dict.fromkeys(texts):
        if match := NO_IMPORTER.search(text):
            yield Statement(f"{match['a'] or match['b']}: No importer registered", said=text)


def _named(name: str, text: str) -> Statement | None:
    row = named(name)
    groups = {"name": name.rpartition(".")[2], "since": row.since, "now": row.now} if row else {}
    return Statement(row.signature, groups, text or name) if row else None


def _reasons(order: Sequence[str]) -> Iterator[Statement]:
    """Yield why tactics were given up, each with the layer that has no implementation then, the last first.

    TensorRT 8 says twice in a row that a layer has no implementation; both belong to the same reasons.
    """
    waiting: list[tuple[int, str]] = []
    last: tuple[str, list[tuple[int, str]]] = "", []
    for at, text in enumerate(order):
        failed = NO_IMPLEMENTATION.search(text)
        if REASON.search(text):
            waiting.append((at, text))
        elif failed:
            node = ended(failed["node"])
            if waiting or node != last[0]:
                last = node, waiting
            for then, reason in reversed(last[1]):
                if at - then <= NEAR:
                    yield Statement(reason, {"node": node, "reason": reason}, text)
            waiting = []


def _graph(outcome: Outcome, classification: Classification, network: str) -> tuple[str, ...]:
    """Return the nodes to search if the engine is silent, a line each: `lost Conv /conv: int8; tensorrt, weakly typed`.

    A cell that lost precision gives the nodes that lost it, one that crashed or has wrong numbers gives all.
    """
    lost = {each.node for each in classification.lost}
    how = CLASSES[classification.cls].silently
    return tuple(
        f"{how}{' and lost' * (how == 'wrong' and node.name in lost)} {node.op} {node.name}: "
        f"{', '.join(filter(None, (node.precision, node.fed)))}; {network}"
        for node in outcome.nodes
        if how and (how != "lost" or node.name in lost)
    )


#: Kinds of attributes that a line about a node holds, and elements of a constant up to which it holds them.
_PLAIN = frozenset(
    map(onnx.AttributeProto.AttributeType.Value, ("FLOAT", "INT", "STRING", "FLOATS", "INTS", "STRINGS"))
)
_FEW = 8


def model_lines(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield lines about a model as patterns ask it, each with its node: `opset 13`, `ir 8`, `Clip /c: axis=1; x:?x8`.

    A node's line has its attributes in order of their names, then its inputs: `name:1x?x8`, a small constant as
    `name=0.0,1.0`, and `-` for one that is left out. Behind the sizes stands who makes it: `constant` or `of Concat`.
    """
    model = onnx.load_model_from_string(data)
    yield "", f"ir {model.ir_version}"
    yield from (("", f"opset {version}") for domain, version in opsets(model).items() if not domain)
    reader = GraphReader(inferred(model))
    for node in reader.nodes:
        plain = (each.name for each in node.attribute if each.type in _PLAIN)
        named = ((name, attribute(node, name)) for name in sorted(plain))
        given = (_input(reader, name) for name in node.input)
        said = ", ".join(f"{name}={value}" for name, value in named)
        yield effective_name(node), f"{node.op_type} {effective_name(node)}: {said}; {', '.join(given)}"


def _input(reader: GraphReader, name: str) -> str:
    value, shape, maker = reader.value(name), reader.shapes.get(name), reader.producer(name)
    if not name:
        return "-"
    if value is not None and value.size <= _FEW:
        return f"{name}={','.join(map(str, value.ravel().tolist()))}"
    sizes = "x".join(str(each) if isinstance(each, int) else "?" for each in shape or ())
    made = " constant" if name in reader.constants else f" of {maker.op_type}" if maker else ""
    return f"{name}:{sizes}{made}"


def _about(
    outcome: Outcome, lines: Callable[[], Iterable[tuple[str, str]]], said: str, groups: Mapping[str, str]
) -> Iterator[str]:
    """Yield the lines about the model, and about the node that a message is about; about all if it names none."""
    node = find_place(outcome, said, operator=groups.get("op", ""), node=groups.get("node", "")).node
    # The record of a model that cannot be read has its cause all the same.
    with contextlib.suppress(Exception):
        # A layer of several nodes is called by all of them.
        parts = {node, *groups.get("node", "").split(" + ")}
        yield from (line for mine, line in lines() if not mine or not node or mine in parts)


def hits(signature: Signature, texts: Texts, places: Sequence[str] = PLACES) -> Iterator[Hit]:
    """Yield the places of a signature, pattern by pattern."""
    for pattern in signature.patterns:
        for text, given, said in texts.by_place[pattern.where] if pattern.where in places else ():
            groups = _groups(pattern, texts, text, said or text, given)
            if groups and signature.standard_op:
                known = read_since(groups.get("op", ""))
                groups = groups | known if known else None
            if groups is not None:
                yield Hit(pattern.where, text, said or text, groups)


def _groups(
    pattern: Pattern, texts: Texts, text: str, said: str, given: Mapping[str, str]
) -> dict[str, str] | None:
    """Return the groups that a pattern captures in a text and beside it, None if it is not found."""
    match = pattern.regex.search(text)
    groups = {**given, **_captured(match)}
    beside = _beside(pattern, texts, said, groups) if match else None
    return None if beside is None else groups | beside


def _captured(match: re.Match[str] | None) -> dict[str, str]:
    return {name: value for name, value in (match.groupdict() if match else {}).items() if value is not None}


def _beside(pattern: Pattern, texts: Texts, said: str, groups: Mapping[str, str]) -> dict[str, str] | None:
    """Return the groups captured beside a pattern's text, None if a condition there does not hold."""
    found: dict[str, str] = {}
    if pattern.unless and any(map(pattern.unless.search, texts.around(said))):
        return None
    for regex, lines in ((pattern.near, texts.around), (pattern.model, partial(texts.model, groups=groups))):
        match = regex and next(filter(None, map(regex.search, lines(said))), None)
        if regex and not match:
            return None
        found |= _captured(match)
    return found


def diagnosis_of(signature: Signature, hit: Hit, outcome: Outcome, *, at_error: bool = True) -> Diagnosis:
    """Return the diagnosis by a found signature, its texts filled in; `at_error` as for `find_place`."""
    message, groups = hit.text, hit.groups
    texts = (*(message.text for message in outcome.messages), *complaints.native(outcome))
    skipped = [match.group() for text in texts if (match := SKIPPED.search(text))]
    operator, node = groups.get("op", signature.operator), groups.get("node", "")
    # A name that the version lacks is asked for by the recipe, not by a node.
    asked = hit.where in ("missing_api", "names")
    said = hit.message if hit.where == "parser" else message
    place = Place() if asked else find_place(outcome, said, operator=operator, node=node, at_error=at_error)
    known = {name: text for name, text in (("op", place.operator), ("node", place.node)) if text} | groups
    told: dict[str, Any] = {name: _filled(getattr(signature, name), known) for name in WORDED}
    return Diagnosis(
        id=signature.id,
        message=message,
        groups=groups,
        links=signature.links,
        advice_variants=signature.advice_variants,
        skipped_tactic=skipped[-1] if skipped else "",
        **place._asdict(),
        **told,
    )


def _filled(text: str, groups: Mapping[str, str]) -> str:
    """Put the captured groups in; one that another pattern of the signature captures reads "?"."""
    return GROUP.sub(lambda match: groups.get(match.group(1), "?"), text)
