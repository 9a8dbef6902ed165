"""A row of a step: what became of one variant, why, what to use meanwhile, how sure that is and who says so."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.layers.datatype import same_precision
from harness.report.compare.kinds import Kind, pace
from harness.text import milliseconds
from harness.words import Grade, Precision, said

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.report.compare.instead import Meanwhile
    from harness.report.compare.kinds import Pace
    from harness.report.compare.pairs import Pair, Step
    from harness.report.compare.sides import Side

#: Nodes named that run in another precision.
_NODES = 3
#: Kinds whose rows say what to use meanwhile, and kinds whose rows say which nodes run in another precision.
WANTING = frozenset({Kind.BROKEN, Kind.PRECISION_LOST, Kind.BUILDS_WITHOUT, Kind.OTHERWISE})
_WITHOUT = frozenset({Kind.PRECISION_LOST, Kind.BUILDS_WITHOUT})
#: Kinds about latency, of which nothing is known where no latency was compared.
TIMED = frozenset({Kind.SLOWER, Kind.FASTER})
#: Kinds about nodes that are wanted in no precision.
_UNASKED = frozenset({Kind.WIDER, Kind.NARROWER})


@dataclass(frozen=True)
class Row:
    """One thing that the step does: to which variant, what, why, what to use meanwhile, how sure that is, says who.

    `measured` says that nothing in it is only reported, nor of another GPU before than after. `signature` is that of
    the cause, "" where it has none.
    """

    kind: Kind
    case: str
    variant: str
    text: str
    cause: str
    instead: str
    sure: str
    measured: bool
    seen: str = ""
    signature: str = ""


def change(pair: Pair) -> str:
    """Return the change of the median in percent, "≈+3 %" where runs of one machine differ as much; "" for none."""
    found = pace(pair)
    if not found:
        return ""
    part = math.floor((found.new.median / found.old.median - 1) * 100 + 0.5)
    about = "" if TIMED & set(pair.kinds) else "≈"
    sign = "\N{MINUS SIGN}" if part < 0 else "+"
    return f"{about}{sign}{abs(part)} %"


def row_of(step: Step, at: int, kind: Kind, meanwhile: Meanwhile) -> Row:
    """Return what a step does of one kind to the variant of its pair at this place."""
    pair = step.pairs[at]
    instead = meanwhile.of(at) if kind in WANTING else ""
    place = (kind, instead, *step.called)
    found = pair.rows.get(place)
    if found is None:
        found = pair.rows[place] = _row(pair, kind, instead, _known(step, pair))
    return found


def _row(pair: Pair, kind: Kind, instead: str, known: Sequence[tuple[str, Side]]) -> Row:
    text, cause, signature = _worded(pair, kind)
    measured = all(one.grade is Grade.MEASURED for _, one in known) and not pair.apart
    text += "".join(f"; flaky on {name} ({', '.join(one.flaky)})" for name, one in known if one.flaky)
    text = f"on {pair.gpu}: {text}" if pair.gpu else text
    sure = _sure(pair, known, measured=measured)
    where = pair.variant.case, pair.variant.name
    return Row(kind, *where, text, cause, instead, sure, measured, _seen(known), signature)


def _worded(pair: Pair, kind: Kind) -> tuple[str, str, str]:
    """Return what became of a variant, the cause and its signature: in words that hold in every step of both sides."""
    old, new = pair.old, pair.new
    found = pace(pair)
    if found and kind in TIMED:
        return _paced(found, slower=kind is Kind.SLOWER), "", ""
    parts = [_lost(pair) if kind in _WITHOUT else "", _crossed(pair, kind)]
    told = "; ".join(filter(None, parts))
    # What failed before had no precision to lose.
    now = new.told("builds without its precision" if kind is Kind.BUILDS_WITHOUT else "")
    failing = old if kind in (Kind.FIXED, Kind.PRECISION_GAINED) else new
    cause = "" if kind is Kind.NEWLY_UNKNOWN else failing.why
    return f"{old.told()} → {now}{f': {told}' if told else ''}", cause, (cause and failing.signature) or ""


def _seen(known: Sequence[tuple[str, Side]]) -> str:
    """Say where what is reported was read, once where both sides were read in one place."""
    told = [(name, one.seen) for name, one in known if one.grade is Grade.REPORTED]
    if len({text for _, text in told}) == 1:
        return told[0][1]
    return "; ".join(f"{name}: {text}" for name, text in told)


def _known(step: Step, pair: Pair) -> list[tuple[str, Side]]:
    """Return the sides of which something is known, each with what it is called."""
    sides = zip(step.called, (pair.old, pair.new), strict=True)
    return [(name, one) for name, one in sides if one.cls is not None]


def _lost(pair: Pair) -> str:
    told = zip(pair.variant.wanted, pair.new.nodes, strict=False)
    lost = [
        f"{node} in {said(got)} instead of {said(want)}"
        for (node, want), got in told
        if got and not same_precision(want, Precision(got))
    ]
    return _some(lost)


def _crossed(pair: Pair, kind: Kind) -> str:
    """Name the nodes that nobody wished for and that left or took a narrow type."""
    found = [f"{node} {said(old)} → {said(new)}" for node, old, new in pair.crossed]
    return f"{'' if kind in _UNASKED or not found else 'not asked for: '}{_some(found)}"


def _some(told: Sequence[str]) -> str:
    return ", ".join(told[:_NODES]) + (f" and {len(told) - _NODES} more" if len(told) > _NODES else "")


def _paced(found: Pace, *, slower: bool) -> str:
    """Say both medians, and between what and what the change lies."""
    least, most = (found.least - 1, found.most - 1) if slower else (1 - found.most, 1 - found.least)
    low, high = (math.floor(part * 100 + 0.5) for part in (least, most))
    change = f"{low} to {high}" if low != high else f"{low}"
    medians = f"{milliseconds(found.old.median)} → {milliseconds(found.new.median)}"
    return f"median {medians}, {change} % {'slower' if slower else 'faster'}"


def _sure(pair: Pair, known: Sequence[tuple[str, Side]], *, measured: bool) -> str:
    said = ["measured" if measured else ", ".join(f"{name} {one.graded}" for name, one in known)]
    flaky = [name for name, one in known if one.flaky]
    if flaky:
        said.append(f"flaky on {' and '.join(flaky)}")
    if pair.altered:
        said.append("model or recipe changed")
    if pair.apart:
        said.append(f"on {_gpu(pair.old)} before and {_gpu(pair.new)} after")
    return "; ".join(said)


def _gpu(one: Side) -> str:
    return one.gpu[1] if one.gpu else "no GPU"
