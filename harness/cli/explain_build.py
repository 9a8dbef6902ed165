"""The tactics part of `explain`: why layers lost their precision in a build log, and the changes between two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

from harness.cli.terminal import wrapped
from harness.judge.builds import BuiltLayer, Change, changes
from harness.text import clip
from harness.words import said

#: Layers of a sort that are printed; --json has all.
_MOST = 12
_SLOWEST = 5
_NAME = 120


def of_one(layers: Sequence[BuiltLayer]) -> Iterator[str]:
    """Yield the lines on one build: layers without their precision or without a kernel, toss-ups, the slowest."""
    reasons = [each.reason for each in layers if each.reason]
    timed = [each for each in layers if each.time_us is not None and each.multiplies]
    yield "tactics, with times as the builder took them on its GPU"
    if reasons:
        yield "lost precision, or no kernel"
        yield from _some(f"  {each}" for each in reasons if not each.toss_up)
    if close := [each for each in reasons if each.toss_up]:
        yield "closest calls: another build may choose otherwise"
        yield from _some(f"  {each}" for each in close)
    if not reasons:
        yield "  each runs in the finest precision that was offered"
    slowest = sorted(timed, key=lambda each: -(each.time_us or 0))[:_SLOWEST]
    if slowest:
        yield "slowest"
        yield from (f"  {clip(each.name, _NAME)}: {each}" for each in slowest)


def of_two(old: Sequence[BuiltLayer], new: Sequence[BuiltLayer]) -> Iterator[str]:
    """Yield the lines on an upgrade: the layers that changed, lost precision first."""
    found = changes(old, new)
    changed = [each for each in found if each.old and each.new]
    yield f"{len(changed)} of {len(new)} layers changed from the old log to the new one"
    yield from _some(_change(each) for each in changed)
    names = {each.new.name for each in changed if each.new}
    if same := [each.reason for each in new if each.reason and each.name not in names]:
        yield "unchanged, without the precision that was asked or offered"
        yield from _some(f"{each}" for each in same)
    for title, alone in (
        ("only in the old log", [each.old for each in found if not each.new]),
        ("only in the new log", [each.new for each in found if not each.old]),
    ):
        if alone:
            yield title
            yield from _some(f"  {clip(each.name, _NAME)}: {each}" for each in alone if each)
    sums = [sum(each.time_us or 0 for each in side) for side in (old, new)]
    if all(sums):
        yield f"sum of the kernels that were timed: {sums[0]:.1f} us in the old, {sums[1]:.1f} us in the new"


def _change(change: Change) -> str:
    old, new = change.old, change.new
    lost = "LOST " if change.coarser else ""
    why = f"; {new.reason.sentence}" if new and new.reason and new.reason != (old and old.reason) else ""
    return f"  {lost}{clip(change.name, _NAME)}: {old} -> {new}{why}"


def _some(lines: Iterable[str]) -> Iterator[str]:
    every = list(lines)
    for line in every[:_MOST]:
        yield from wrapped(line.strip(), "  ", "    ")
    if every[_MOST:]:
        yield f"  and {len(every) - _MOST} more, which --json has"


def as_json(layers: Sequence[BuiltLayer]) -> list[dict[str, object]]:
    """Return the layers of a build as `--json` prints them."""
    return [
        {
            "name": each.name,
            "precision": said(each.precision),
            "time_us": each.time_us,
            "tactic": each.tactic,
            "multiplies": each.multiplies,
            "reason": {**asdict(each.reason), "sentence": each.reason.sentence} if each.reason else None,
        }
        for each in layers
    ]
