"""Tells how a model fares on a target, and from one target to another; pure functions of judged cells."""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Container, Iterable
from dataclasses import dataclass

from harness.judge.cell import Judged
from harness.judge.classify import Lost
from harness.layers.datatype import NARROW, same_precision
from harness.layers.operators import MULTIPLYING
from harness.words import CLASSES, FINISHED, OF_SIZES, UNJUDGED, Class, Precision, Word


class Trouble(Word):
    """A trouble that `check --fail-on` can name."""

    BUILD = "build"
    INT8_LOSS = "int8-loss"
    NUMBERS = "numbers"


@dataclass(frozen=True)
class Change:
    """A node that runs in another precision on one side than on the other; None where no layer names it."""

    node: str
    before: Precision | None
    after: Precision | None

    @property
    def loses(self) -> bool:
        """Tell whether a narrow type gave way to another one."""
        return self.before in NARROW and self.after is not None and self.after not in NARROW


def ran(judged: Judged) -> bool:
    """Tell whether the engine was asked anything: no machinery failed, and the target can run here."""
    return judged.classification.cls not in UNJUDGED


def of_sizes(judged: Iterable[Judged]) -> list[Judged]:
    """Return the failures of one model that may come of made-up sizes, which it cannot have.

    There are none where another target built or ran the model at these sizes. Failures of the parser do not count, for
    it sees no sizes; nor does a failed build of an engine that takes the graph alone.
    """
    judged = list(judged)
    if any(
        each.outcome.ran or (each.classification.cls in FINISHED and not _sizeless(each)) for each in judged
    ):
        return []
    return [
        each
        for each in judged
        if each.classification.cls in OF_SIZES
        and each.outcome.failed_phase != "parse"
        and not (each.classification.cls is Class.BUILD_FAILED and _sizeless(each))
    ]


def _sizeless(judged: Judged) -> bool:
    """Tell whether an engine builds without sizes."""
    return judged.cell.target.traits.graph_alone


def sizes_doubted(targets: Iterable[str], made_up: str) -> str:
    """Return the sentence on failures where sizes were made up; `made_up` is as --shapes takes it."""
    return (
        f"the sizes of dynamic inputs are made up, and may be why it fails ({', '.join(dict.fromkeys(targets))}); "
        f"give real ones: --shapes {shlex.quote(made_up)}"
    )


def engine_made(judged: Judged) -> bool:
    """Tell whether an engine was built, whatever became of it."""
    return judged.classification.cls in FINISHED or judged.classification.built


def coverage(judged: Judged) -> tuple[Precision, int, int] | None:
    """Return the narrow type that most nodes are to run in, how many do, how many are to; None where there is none."""
    wished = {node: precision for node, precision in judged.wished.items() if precision in NARROW}
    if not wished:
        return None
    words = list(wished.values())
    word = max(dict.fromkeys(words), key=words.count)
    mine = [node for node, precision in wished.items() if precision is word]
    return word, sum(same_precision(word, judged.precision.get(node)) for node in mine), len(mine)


def troubles(judged: Judged) -> frozenset[Trouble]:
    """Return the troubles of a model on a target; none where it was not judged."""
    found = set()
    if ran(judged) and not engine_made(judged):
        found.add(Trouble.BUILD)
    if judged.classification.lost and judged.demanded:
        found.add(Trouble.INT8_LOSS)
    if CLASSES[judged.classification.cls].breaks in ("runs", "right numbers"):
        found.add(Trouble.NUMBERS)
    return frozenset(found)


def changes(before: Judged, after: Judged) -> tuple[Change, ...]:
    """Return the nodes that run in another precision after than before, in the model's order.

    Where one side made no engine nothing can be said. Of a node that multiplies nothing is lost by being absorbed into
    another layer; of one of the graph's other nodes only a narrow type that became a float is told.
    """
    if not (engine_made(before) and engine_made(after)):
        return ()
    found = []
    for node in before.outcome.nodes:
        old, new = before.precision.get(node.name), after.precision.get(node.name)
        if old is not None and new is not None and not same_precision(old, new):
            change = Change(node.name, old, new)
            found += [change] if node.op in MULTIPLYING or change.loses else []
    return tuple(found)


def lost_by_time(judged: Judged) -> tuple[tuple[Lost, float | None], ...]:
    """Return the nodes that lost their precision with the milliseconds of the layers that they ran in, most first.

    None where no profile was made; those come in the model's order.
    """
    taken: dict[str, float] = {}
    for layer in judged.outcome.layers:
        for node in layer.onnx_nodes if layer.time_ms is not None else ():
            taken[node] = taken.get(node, 0.0) + (layer.time_ms or 0.0)
    found = [(each, taken.get(each.node)) for each in judged.classification.lost]
    return tuple(sorted(found, key=lambda each: -(each[1] or 0.0)))


def worse(before: Judged, after: Judged) -> frozenset[Trouble]:
    """Return the troubles of the later side that the earlier one does not have.

    INT8 is worse as soon as one node that ran in a narrow type before does not any more, whatever else was lost before.
    Of a model that was not built before nothing is taken away.
    """
    if Trouble.BUILD in troubles(before):
        return frozenset()
    found = set(troubles(after) - troubles(before))
    if any(change.loses for change in changes(before, after)) and after.demanded:
        found.add(Trouble.INT8_LOSS)
    return frozenset(found)


def static_troubles(judged: Judged, blocked: Container[tuple[str, str]]) -> frozenset[Trouble]:
    """Return that a model does not build where it was not run and is `blocked`, by variant and target."""
    key = judged.cell.variant.name, judged.cell.target.name
    return frozenset({Trouble.BUILD}) if not ran(judged) and key in blocked else frozenset()


def step_troubles(before: Judged, after: Judged, blocked: Container[tuple[str, str]]) -> frozenset[Trouble]:
    """Return the troubles that are new from one target to another; `blocked` speaks for models that were not run."""
    if ran(before) and ran(after):
        return worse(before, after)
    sides = [troubles(each) | static_troubles(each, blocked) for each in (before, after)]
    return frozenset({Trouble.BUILD}) & (sides[1] - sides[0]) if not ran(after) else frozenset()


def median_ms(judged: Judged) -> float | None:
    """Return the median latency of a model on a target in milliseconds; None where it was not timed."""
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
