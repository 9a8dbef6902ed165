"""Tells how a model fares on a target; pure functions of judged cells."""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Iterable
from typing import NamedTuple

from harness.judge.cell import Judged
from harness.judge.classify import Lost
from harness.known.further import Became
from harness.layers.datatype import NARROW, same_precision
from harness.layers.operators import MULTIPLYING
from harness.words import GOOD, UNJUDGED, Class, Precision, Word

#: Classes that may come of sizes that nobody gave.
_BY_SIZES = frozenset(
    {
        Class.BUILD_FAILED,
        Class.LOAD_FAILED,
        Class.RUN_FAILED,
        Class.CRASHED,
        Class.TIMED_OUT,
        Class.OUT_OF_MEMORY,
    }
)
_BUILT = GOOD | {Class.PRECISION_LOST, Class.INACCURATE}


class Trouble(Word):
    """A trouble that `check --fail-on` can name."""

    BUILD = "build"
    INT8_LOSS = "int8-loss"
    NUMBERS = "numbers"


class Change(NamedTuple):
    """A node that runs in another precision on one side than on the other."""

    node: str
    before: Precision
    after: Precision


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
        each.outcome.ran or (each.classification.cls in _BUILT and not _sizeless(each)) for each in judged
    ):
        return []
    return [
        each
        for each in judged
        if each.classification.cls in _BY_SIZES
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
    return judged.classification.cls in _BUILT or judged.classification.built


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
    if engine_made(judged) and judged.classification.cls not in GOOD | {Class.PRECISION_LOST}:
        found.add(Trouble.NUMBERS)
    return frozenset(found)


def changes(before: Judged, after: Judged) -> tuple[Change, ...]:
    """Return the nodes that run in another precision after than before, in the model's order.

    Empty if either side built no engine. Of nodes that do not multiply only those are told that left a narrow type.
    """
    if not (engine_made(before) and engine_made(after)):
        return ()
    found = []
    for node in before.outcome.nodes:
        old, new = before.precision.get(node.name), after.precision.get(node.name)
        if old is not None and new is not None and not same_precision(old, new):
            left = old in NARROW and new not in NARROW
            found += [Change(node.name, old, new)] if left or node.op in MULTIPLYING else []
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


def became(judged: Judged) -> Became:
    """Return the outcome of a model in short."""
    precision, kept, wanted = (coverage(judged) if judged.outcome.layers else None) or (None, 0, 0)
    found = judged.classification
    return Became(found.cls, judged.signature, found.reason, precision, kept, wanted)


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
