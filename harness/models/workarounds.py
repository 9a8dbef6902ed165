"""Tries every known rewrite on a user's own model: which help on a target, and how far each is off in numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import onnx

from harness.case import Profile
from harness.judge.cell import Judged
from harness.known.further import Tried, Workarounds
from harness.known.listed import State
from harness.models.answers import became, engine_made, kept, ran
from harness.models.blockers import blamed
from harness.models.graphs import outside, valid, with_shapes
from harness.models.own.shapes import evaluated
from harness.models.reading import MOST_EVALUATED, bounded
from harness.models.rewrites import REWRITES, Rewrite
from harness.record.outcome import Accuracy
from harness.run.numbers.reference import compare
from harness.run.numbers.wire import Array
from harness.words import Class


class _Attempt(NamedTuple):
    """A rewrite, the model that it made and its outcome; `gain` is the improvement in words, "" without one."""

    rewrite: Rewrite
    model: onnx.ModelProto
    judged: Judged
    gain: str


def workarounds(
    model: onnx.ModelProto,
    before: Judged,
    attempt: Callable[[onnx.ModelProto], Judged],
    *,
    also: Sequence[str] = (),
    inputs: Mapping[str, Array] | None = None,
) -> tuple[Workarounds, onnx.ModelProto | None]:
    """Return the outcome of each rewrite, alone, of a model that fails or loses precision, and the best one's model.

    The best is the cheapest of those after which most nodes run in the types asked of them.

    If no rewrite alone lets it be built, those that get it further are tried one on top of the other. `also` are nodes
    that are blamed beside those of `before`. The inputs are the user's, or those of any variant.
    """
    began = time.monotonic()
    made, unfit = _rewritten(model, before, (*blamed(before), *also))
    outcomes = [(rewrite, other, attempt(other)) for rewrite, other in made]
    tried = [_Attempt(*each, gain(before, each[2])) for each in outcomes]
    if not any(each.gain for each in tried) and (several := _together(model, before, attempt, also)):
        tried.append(several)
    best = max((each for each in tried if each.gain), key=lambda each: kept(each.judged), default=None)
    return _told(model, before, tried, unfit, best, inputs=inputs, began=began)


def listed_workarounds(
    model: onnx.ModelProto,
    before: Judged,
    blamed_nodes: Sequence[str],
    state_of: Callable[[onnx.ModelProto], State],
    *,
    inputs: Mapping[str, Array] | None = None,
) -> tuple[Workarounds, onnx.ModelProto | None]:
    """Return the rewrites after which nothing is known against a model on a target that is not run, and the best's.

    `state_of` gives the static answer for a model. Rewrites that change nothing in it are left out.
    """
    began = time.monotonic()
    made, unfit = _rewritten(model, before, blamed_nodes)
    states = [(rewrite, other, state_of(other)) for rewrite, other in made]
    tried = [
        _Attempt(rewrite, other, before, f"{state} in NVIDIA's tables")
        for rewrite, other, state in states
        if state in (State.CLEAR, State.RESTRICTED)
    ]
    best = max(tried, key=lambda each: each.gain.startswith(State.CLEAR), default=None)
    return _told(model, before, tried, unfit, best, inputs=inputs, began=began)


def _told(  # noqa: PLR0913  (all that is told)
    model: onnx.ModelProto,
    before: Judged,
    tried: Sequence[_Attempt],
    unfit: Sequence[str],
    best: _Attempt | None,
    *,
    inputs: Mapping[str, Array] | None,
    began: float,
) -> tuple[Workarounds, onnx.ModelProto | None]:
    found = _compared(model, tried, before.cell.variant.recipe.profiles, inputs or {})
    seconds = round(time.monotonic() - began, 3)
    whole = Workarounds(best.rewrite.name if best else None, tuple(found), tuple(unfit), seconds)
    return whole, best.model if best else None


def _rewritten(
    model: onnx.ModelProto, before: Judged, blamed_nodes: Iterable[str]
) -> tuple[list[tuple[Rewrite, onnx.ModelProto]], list[str]]:
    """Return the rewrites with the models that they make, and the names of those that are of no use for this one."""
    made, unfit, names = [], [], tuple(dict.fromkeys(blamed_nodes))
    sound = valid(model)
    for rewrite in REWRITES:
        other = None if rewrite.gives_up and engine_made(before) else _applied(rewrite, model, names, before)
        if other is None or (sound and not valid(other)):
            unfit.append(rewrite.name)
        else:
            made.append((rewrite, other))
    return made, unfit


def _applied(
    rewrite: Rewrite, model: onnx.ModelProto, names: Sequence[str], judged: Judged
) -> onnx.ModelProto | None:
    """Return a model rewritten; one that fixes shapes has the usual ones of its profiles."""
    profiles = judged.cell.variant.recipe.profiles
    if rewrite.fixes:
        model = with_shapes(model, {each.input: each.optimum for each in profiles})
    return rewrite.apply(model, names)


def gain(before: Judged, after: Judged) -> str:
    """Return the improvement by a rewrite in words; "" without one, or if something is worse."""
    if not (ran(before) and ran(after) and engine_made(after)):
        return ""
    lost = len(after.classification.lost)
    if not engine_made(before):
        return f"builds, and loses {lost}" if lost else "builds"
    more = kept(after) - kept(before)
    if more > 0:
        return f"{more} more in what {'it is' if more == 1 else 'they are'} asked to"
    less = len(before.classification.lost) - lost
    return (
        f"{less} less asked for in INT8, {f'{lost} still lost' if lost else 'nothing lost'}"
        if more == 0 < less
        else ""
    )


def _together(
    model: onnx.ModelProto,
    before: Judged,
    attempt: Callable[[onnx.ModelProto], Judged],
    also: Sequence[str],
) -> _Attempt | None:
    """Return rewrites that let a model be built one on top of the other, if there are any."""
    used: list[Rewrite] = []
    made, judged = model, before
    while ran(judged) and not engine_made(judged):
        step = _next(made, judged, attempt, also, used)
        if step is None:
            return None
        rewrite, made, judged = step
        used.append(rewrite)
    if len(used) < 2:  # noqa: PLR2004  (one alone was tried)
        return None
    return _Attempt(_joined(used), made, judged, gain(before, judged))


def _joined(used: Sequence[Rewrite]) -> Rewrite:
    return Rewrite(
        " + ".join(each.name for each in used),
        "one on top of the other",
        "; ".join([each.cost for each in used if each.cost != "nothing"] or [used[0].cost]),
        tuple(dict.fromkeys(name for each in used for name in each.proof)),
        lambda model, _: model,
    )


def _next(
    model: onnx.ModelProto,
    judged: Judged,
    attempt: Callable[[onnx.ModelProto], Judged],
    also: Sequence[str],
    used: Sequence[Rewrite],
) -> tuple[Rewrite, onnx.ModelProto, Judged] | None:
    """Return the first rewrite that gets a model further, with its model and outcome, if one does."""
    for rewrite in (each for each in REWRITES if each not in used):
        other = _applied(rewrite, model, (*blamed(judged), *also), judged)
        after = None if other is None else attempt(other)
        if other is not None and after is not None and _further(judged, after):
            return rewrite, other, after
    return None


def _further(before: Judged, after: Judged) -> bool:
    """Tell whether another thing is refused than before, and not earlier."""
    if not ran(after) or engine_made(after):
        return ran(after)
    earlier = after.classification.cls is Class.PARSE_FAILED is not before.classification.cls
    return not earlier and (after.signature, blamed(after)) != (before.signature, blamed(before))


def _compared(
    model: onnx.ModelProto,
    tried: Sequence[_Attempt],
    profiles: tuple[Profile, ...],
    inputs: Mapping[str, Array],
) -> list[Tried]:
    """Return the attempts, each that helps with how far its outputs are off."""
    models = [each.model.SerializeToString() for each in tried if each.gain]
    data, why = model.SerializeToString(), ""
    off: list[tuple[Accuracy, ...] | str] = []
    if outside(model):
        why = "no reference was computed: the model's weights stay in their files"
    elif len(data) > MOST_EVALUATED:
        why = f"no reference was computed: the model has {len(data) / 2**30:.1f} GiB"
    elif models:
        off, failed = bounded(_numbers, [data, *models], profiles, dict(inputs), size=len(data))
        why = f"the process that computes the reference {failed}"
    left = iter(off)
    return [_tried(each, next(left, why) if each.gain else ()) for each in tried]


def _tried(found: _Attempt, off: tuple[Accuracy, ...] | str) -> Tried:
    rewrite, (numbers, why) = found.rewrite, ((), off) if isinstance(off, str) else (off, "")
    said = rewrite.name, rewrite.title, rewrite.cost, rewrite.proof, found.gain
    return Tried(*said, became(found.judged), numbers, why)


def _numbers(
    models: Sequence[bytes], profiles: tuple[Profile, ...], inputs: dict[str, Array]
) -> Iterator[tuple[Accuracy, ...] | str]:
    """Yield for each model but the first how far its outputs are from that one's; a sentence if nobody can tell."""
    found = evaluated(map(onnx.load_model_from_string, models), profiles, inputs)
    wanted = next(found)
    for got in found:
        if wanted.outputs is None or got.outputs is None:
            yield wanted.reason or got.reason
        else:
            # A Squeeze whose axes are named keeps an axis of size 1 that the model does not.
            alike = {name: _as(wanted.outputs.get(name), array) for name, array in got.outputs.items()}
            yield compare(wanted.outputs, alike)


def _as(wanted: Array | None, array: Array) -> Array:
    """Return an array in the shape of another, if they differ in axes of size 1 alone."""
    alike = wanted is not None and np.squeeze(wanted).shape == np.squeeze(array).shape
    return array.reshape(wanted.shape) if wanted is not None and alike else array
