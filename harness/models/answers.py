"""Tells how a model fares on a target, from one target to another, and what decides for a CI; pure."""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import onnx
from msgspec import structs
from packaging.version import Version

from harness.compare.kinds import Kind, Pair
from harness.judge.cell import Judged
from harness.judge.classify import Lost
from harness.known.cell import known_of
from harness.known.further import Became, Further
from harness.known.listed import State, Static
from harness.known.model import Known
from harness.layers.datatype import NARROW, same_precision
from harness.layers.operators import MULTIPLYING
from harness.matrix import Target
from harness.text import some
from harness.words import CLASSES, FINISHED, OF_SIZES, PREDICATE, UNJUDGED, Basis, Class, Precision, Word


class Trouble(Word):
    """A trouble that `check --fail-on` can name."""

    BUILD = "build"
    INT8_LOSS = "int8-loss"
    NUMBERS = "numbers"


class NodeChange(NamedTuple):
    """A node that runs in another precision on one side than on the other."""

    node: str
    before: Precision
    after: Precision


def ran(judged: Judged) -> bool:
    """Tell whether the engine was asked anything: no machinery failed, and the target can run here."""
    return judged.classification.cls not in UNJUDGED


def of_sizes(judged: Iterable[Judged]) -> list[Judged]:
    """Return the failures of one model that may come of made-up sizes, which it cannot have.

    If another target built or ran the model at these sizes, it has them. Failures of the parser do not count, for
    it sees no sizes; nor does a failed build of an engine that takes the graph alone.
    """
    found = []
    for each in judged:
        cls, graph_alone = each.classification.cls, each.cell.target.traits.graph_alone
        if each.outcome.ran or (cls in FINISHED and not graph_alone):
            return []
        refused = each.outcome.failed_phase == "parse" or (cls is Class.BUILD_FAILED and graph_alone)
        found += [each] if cls in OF_SIZES and not refused else []
    return found


def sizes_doubted(targets: Iterable[str], made_up: str) -> str:
    """Return the sentence on failures with made-up sizes; `made_up` is as --shapes takes it."""
    return (
        f"the sizes of dynamic inputs are made up, and may be why it fails ({', '.join(dict.fromkeys(targets))}); "
        f"give real ones: --shapes {shlex.quote(made_up)}"
    )


def engine_made(judged: Judged) -> bool:
    """Tell whether an engine was built, whatever became of it."""
    return judged.classification.cls in FINISHED or judged.classification.built


def coverage(judged: Judged) -> tuple[Precision, int, int] | None:
    """Return the narrow type, if any, that most nodes are to run in, how many do, and how many are to."""
    wished = {node: precision for node, precision in judged.wished.items() if precision in NARROW}
    if not wished:
        return None
    words = list(wished.values())
    word = max(dict.fromkeys(words), key=words.count)
    mine = [node for node, precision in wished.items() if precision is word]
    return word, sum(same_precision(word, judged.precision.get(node)) for node in mine), len(mine)


def troubles(judged: Judged) -> frozenset[Trouble]:
    """Return the troubles of a model on a target, as far as it was judged."""
    if not ran(judged):
        return frozenset()
    found = {Trouble.INT8_LOSS} if judged.classification.lost and judged.demanded else set()
    if not engine_made(judged):
        found.add(Trouble.BUILD)
    elif CLASSES[judged.classification.cls].breaks in ("runs", "right numbers"):
        found.add(Trouble.NUMBERS)
    return frozenset(found)


def changes(before: Judged, after: Judged) -> tuple[NodeChange, ...]:
    """Return the nodes that run in another precision after than before, in the model's order.

    Empty if either side built no engine. Nodes that do not multiply count only if they left a narrow type.
    """
    if not (engine_made(before) and engine_made(after)):
        return ()
    found = []
    for node in before.outcome.nodes:
        old, new = before.precision.get(node.name), after.precision.get(node.name)
        if old is not None and new is not None and not same_precision(old, new):
            left = old in NARROW and new not in NARROW
            found += [NodeChange(node.name, old, new)] if left or node.op in MULTIPLYING else []
    return tuple(found)


def lost_by_time(judged: Judged) -> tuple[tuple[Lost, float | None], ...]:
    """Return the nodes that lost their precision with the milliseconds of the layers that they ran in, most first.

    Without a profile they have no time, and come in the model's order.
    """
    taken: dict[str, float] = {}
    for layer in judged.outcome.layers:
        for node in layer.onnx_nodes if layer.time_ms is not None else ():
            taken[node] = taken.get(node, 0.0) + (layer.time_ms or 0.0)
    found = [(each, taken.get(each.node)) for each in judged.classification.lost]
    return tuple(sorted(found, key=lambda each: -(each[1] or 0.0)))


def became(judged: Judged) -> Became:
    """Return the outcome of a model in short."""
    precision, kept, wanted = (coverage(judged) if judged.outcome.layers else None) or (None, 0, 0)
    found = judged.classification
    return Became(found.cls, judged.signature, found.reason, precision, kept, wanted)


def median_ms(judged: Judged) -> float | None:
    """Return the median latency of a model on a target in milliseconds, if it was timed."""
    samples = judged.outcome.latency.samples_ms if judged.outcome.latency else ()
    return statistics.median(samples) if samples else None


def kept(judged: Judged) -> int:
    """Return how many nodes run in the narrow type that their graph asks of them."""
    return sum(
        precision in NARROW and same_precision(precision, judged.precision.get(node))
        for node, precision in judged.wished.items()
    )


def works(judged: Judged) -> bool:
    """Tell whether an engine is built in which each node keeps the precision that its graph asks of it."""
    return ran(judged) and engine_made(judged) and not judged.classification.lost


def untold(judged: Judged) -> tuple[str, ...]:
    """Return the nodes that ask for a type while no layer tells the one they ran in."""
    if not (judged.outcome.layers and judged.demanded):
        return ()
    unknown = (None, Precision.UNKNOWN)
    return tuple(node for node in judged.wished if judged.precision.get(node) in unknown)


@dataclass(frozen=True)
class Answer:
    """One model on one target: its judged record, the static answer, and the tries beyond it.

    `made_up` are sizes, as --shapes takes them, that may be why it fails; "" if the user gave all. `made` are the
    models that tries made, by their question: the one that helps, or that was asked for. `left_out` says that it did
    not end within the limit that the user gave.
    """

    judged: Judged
    static: Static = field(default_factory=Static)
    made_up: str = ""
    tried: Further | None = None
    made: Mapping[str, onnx.ModelProto] = field(default_factory=dict)
    left_out: bool = False

    @property
    def model(self) -> str:
        """Return the user's name for the model."""
        return self.judged.cell.variant.title

    @property
    def target(self) -> str:
        """Return the target's name."""
        return self.judged.cell.target.name

    @property
    def ran(self) -> bool:
        """Tell whether the target answered: it can run here, no machinery failed, and it was given the time."""
        return ran(self.judged) and not self.left_out

    @property
    def further(self) -> Further:
        """Return the answers to the tries beyond the model as it is."""
        cell = self.judged.cell
        return self.tried or Further(cell.id, cell.variant.name, cell.variant.title, cell.target.name)

    def with_further(self, made: onnx.ModelProto | None = None, **answer: Any) -> Answer:  # noqa: ANN401
        """Return it with the answer to one question, by its name, and the model that was made for it."""
        models = {**self.made, **dict.fromkeys(answer, made)} if made else self.made
        return replace(self, tried=structs.replace(self.further, **answer), made=models)

    @cached_property
    def known(self) -> Known:
        """Return the knowledge of the model there, without a run too."""
        return known_of([self.judged], static=self.static.gravest)

    @property
    def blocked(self) -> bool:
        """Tell whether NVIDIA's tables alone say that the model is not built."""
        return not self.left_out and self.known.basis is Basis.LISTED and self.known.stands is not None

    @property
    def troubles(self) -> frozenset[Trouble]:
        """Return the known troubles of the model there."""
        if self.blocked:
            return frozenset({Trouble.BUILD})
        if self.left_out:
            return frozenset()
        wrong = not self.ran and self.static.state is State.IGNORED
        return frozenset({Trouble.NUMBERS}) if wrong else troubles(self.judged)


@dataclass(frozen=True)
class ModelStep:
    """A model from one target to another."""

    before: Answer
    after: Answer

    @cached_property
    def pair(self) -> Pair:
        """Return both sides as they are compared everywhere."""
        return Pair(tuple(self.after.judged.wished.items()), self.before.known, self.after.known)

    @property
    def unknown(self) -> Answer | None:
        """Return the side, if any, that did not run, or that fails with sizes that were made up."""
        return next((each for each in (self.before, self.after) if not each.ran or each.made_up), None)

    @property
    def worse(self) -> frozenset[Trouble]:
        """Return the troubles that are new on the later side. If it did not build before, it cannot get worse."""
        kinds, after = {*self.pair.kinds()}, self.after
        if Trouble.BUILD in self.before.troubles or not (after.blocked or (self.before.ran and after.ran)):
            return frozenset()
        fails = kinds & {Kind.BROKEN, Kind.OTHERWISE} or self.pair.unheralded
        found = after.troubles - self.before.troubles - {Trouble.INT8_LOSS} if fails else frozenset()
        loses = after.judged.demanded and (Kind.PRECISION_LOST in kinds or self.pair.left)
        return found | {Trouble.INT8_LOSS} if loses else found


def deciding(targets: Iterable[Target], named: Collection[str] = ()) -> tuple[str, ...]:
    """Return the targets that decide, in the matrix's order: those that are named, else the newest of each engine."""
    every = list(targets)
    if named:
        return tuple(each.name for each in every if each.name in named)
    newest: dict[str, Target] = {}
    for each in every:
        first = newest.setdefault(each.engine, each)
        if Version(each.version) > Version(first.version):
            newest[each.engine] = each
    return tuple(each.name for each in every if newest[each.engine] is each)


@dataclass(frozen=True)
class GateVerdict:
    """The sentence on what decided; it is `broken` by a trouble to fail on, or `unknown`, as something is missing."""

    sentence: str
    broken: bool = False
    unknown: bool = False


def verdict(  # noqa: PLR0913  (all that a command line says of it)
    answers: Sequence[Answer],
    steps: Sequence[ModelStep],
    *,
    decides: Sequence[str],
    required: Collection[str] = (),
    fail_on: Collection[Trouble] = (),
    allow_left_out: bool = False,
) -> GateVerdict:
    """Return the verdict of answers on the targets that decide, or of the steps from one to another."""
    asked = [each for each in answers if each.target in decides]
    worse = list(_worse(asked, steps, {*fail_on}))
    if worse:
        return GateVerdict(f"decided by {some(worse, separator='; ')}", broken=True)
    names, left = ", ".join(decides), _left_out(answers)
    unknown = (
        "" if any(each.ran for each in asked) else f"nothing that was asked ran, of {names}",
        some(
            [_missing(each) for each in asked if _lacks(each, required, strictly=bool(steps))], separator="; "
        ),
        "" if allow_left_out else left,
        _doubted(each for each in asked if each.troubles & {*fail_on}),
    )
    for why in filter(None, unknown):
        return GateVerdict(f"not decided: {why}", unknown=True)
    wrong = ", ".join(sorted(fail_on)) or "nothing to fail on"
    fine = f"decided by {names}: none of {wrong}{_models(() if steps else asked)}"
    return GateVerdict("; ".join(filter(None, (fine, left))))


def _worse(asked: Iterable[Answer], steps: Sequence[ModelStep], fail_on: set[Trouble]) -> Iterator[str]:
    """Yield each answer, or later side of a step, with a trouble to fail on that no made-up size explains."""
    sides = [(each.after, each.worse, each.before.made_up or each.after.made_up) for each in steps]
    for answer, troubles, doubt in sides or ((each, each.troubles, each.made_up) for each in asked):
        if not doubt and troubles & fail_on:
            yield _said(answer, troubles & fail_on)


def _left_out(answers: Sequence[Answer]) -> str:
    left = [_of(each) for each in answers if each.left_out]
    return (
        f"{len(left)} of {len(answers)} builds were left out by --seconds: {some(left, separator='; ')}"
        if left
        else ""
    )


def _doubted(troubled: Iterable[Answer]) -> str:
    doubted = some([_of(each) for each in troubled if each.made_up], separator="; ")
    return f"made-up sizes, {doubted}" if doubted else ""


def _models(asked: Iterable[Answer]) -> str:
    many = len({each.judged.cell.variant.name for each in asked})
    return f", of {many} model{'s' * (many != 1)}" if many else ""


def _lacks(answer: Answer, required: Collection[str], *, strictly: bool) -> bool:
    """Tell whether a deciding answer is missing: the machinery failed, or nothing is known without a run."""
    if answer.ran or answer.left_out:
        return False
    infra = answer.judged.classification.cls is Class.INFRA_ERROR
    return infra or strictly or answer.target in required or answer.static.state is State.UNKNOWN


def _of(answer: Answer) -> str:
    return f"{answer.model} on {answer.target}"


def _missing(answer: Answer) -> str:
    return f"{_of(answer)} {PREDICATE[answer.judged.classification.cls]}"


def _said(answer: Answer, found: Collection[Trouble]) -> str:
    how = "is blocked" if answer.blocked else PREDICATE[answer.judged.classification.cls]
    return f"{answer.target}: {answer.model} {how} ({', '.join(sorted(found))})"
