"""From A to B: what breaks, is fixed, loses or gains precision, gets slower or faster, and what to use meanwhile.

The words of the judgement in harness/report/pairs.py, for the page and for `diff`. The page's script says the same from
the same `Side`s (page/upgrade.js); a browser test holds the two together.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from harness.report.pairs import Column, Hindrance, Kind, Pair, hindrance, kinds, pairs, ratio
from harness.report.ranges import PREDICATE, same_precision
from harness.report.sides import STACK, Side
from harness.report.text import milliseconds
from harness.words import GOOD, Precision, Role

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.report.model import Results, TargetView, VariantView

#: Variants named as what to use meanwhile.
_INSTEAD = 2
#: Nodes named that lost their precision.
_NODES = 3
#: What fails a step: of a lost precision no engine says a word, and INT8 is what most variants are about.
_BREAKING = frozenset({Kind.BROKEN, Kind.PRECISION_LOST})


@dataclass(frozen=True)
class Row:
    """One thing that the step does: to which variant, what, why, what to use meanwhile, how sure that is.

    `measured` says that nothing in it is only documented.
    """

    kind: Kind
    case: str
    variant: str
    text: str
    cause: str
    instead: str
    sure: str
    measured: bool


@dataclass(frozen=True)
class Upgrade:
    """The step from one column to another; `same`, `alone` and `unknown` count variants that make no row.

    They are known on both sides, on one, and on none. `headline` answers in a sentence, `basis` says what of it is not
    measured, `coverage` counts the nodes that are wanted in INT8, and `timing` says how far latencies were compared:
    those of `timed` variants.
    """

    before: str
    after: str
    rows: tuple[Row, ...]
    same: int
    alone: int
    unknown: int
    timed: int
    headline: str
    basis: str
    coverage: str
    timing: str

    @property
    def rest(self) -> str:
        """Return the sentence that counts the variants without a row."""
        alone = f", {self.alone} known on one side alone" if self.alone else ""
        unknown = f", {self.unknown} known on neither" if self.unknown else ""
        return f"{self.same} variants are the same on both{alone}{unknown}."

    @property
    def breaks(self) -> bool:
        """Tell whether something that was measured breaks or loses its precision."""
        return any(row.kind in _BREAKING and row.measured for row in self.rows)

    def count(self, kind: Kind) -> int:
        """Return the number of rows of one kind."""
        return sum(row.kind is kind for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """Return the step as plain JSON data, with the counts."""
        return {**dataclasses.asdict(self), "counts": {str(kind): self.count(kind) for kind in Kind}}


def upgrade(before: Column, after: Column) -> Upgrade:
    """Return what the step from one column to another does to every variant; KeyError for an unknown target."""
    step = _Step(before.called, after.called, pairs(before, after))
    rows = [_row(step, pair, kind) for pair in step.pairs for kind in kinds(pair)]
    order = list(Kind)
    rows.sort(key=lambda row: order.index(row.kind))
    still = [
        (pair.old.cls is not None) + (pair.new.cls is not None) for pair in step.pairs if not kinds(pair)
    ]
    timed, timing = _timing(step)
    counts = still.count(2), still.count(1), still.count(0)
    said = _headline(step, rows), _basis(before, after), _coverage(step), timing
    return Upgrade(before.called, after.called, tuple(rows), *counts, timed, *said)


def default_pair(results: Results) -> tuple[str, str]:
    """Return the two newest measured targets of the series with most of them; documented ones where none has two."""
    for measured in (True, False):
        by_series: dict[str, list[TargetView]] = {}
        for target in results.targets:
            if target.stamps or not measured:
                by_series.setdefault(target.series, []).append(target)
        best = max(by_series.values(), key=len, default=[])
        if len(best) > 1:
            older, newer = sorted(best, key=lambda target: Version(target.version))[-2:]
            return older.id, newer.id
    ids = [target.id for target in results.targets] or [""]
    return ids[0], ids[-1]


@dataclass(frozen=True)
class _Step:
    """What the two columns are called, and both sides of every variant."""

    before: str
    after: str
    pairs: tuple[Pair, ...]


def _row(step: _Step, pair: Pair, kind: Kind) -> Row:
    old, new = pair.old, pair.new
    cause = instead = ""
    if kind in (Kind.SLOWER, Kind.FASTER):
        text = _pace(pair)
    else:
        lost = _lost(pair) if kind is Kind.PRECISION_LOST else ""
        text = f"{_said(old)} → {_said(new)}{f': {lost}' if lost else ''}"
        gone = kind in (Kind.FIXED, Kind.PRECISION_GAINED)
        cause = old.why if gone else "" if kind is Kind.NEWLY_UNKNOWN else new.why
        bad = kind in (Kind.BROKEN, Kind.PRECISION_LOST, Kind.OTHERWISE)
        instead = _instead(step, pair) if bad else ""
    known = _known(step, pair)
    text += "".join(f"; flaky on {name} ({', '.join(one.flaky)})" for name, one in known if one.flaky)
    measured = all(one.sure == "measured" for _, one in known)
    return Row(kind, pair.variant.case, pair.variant.name, text, cause, instead, _sure(pair, known), measured)


def _known(step: _Step, pair: Pair) -> list[tuple[str, Side]]:
    """Return the sides of which something is known, each with what it is called."""
    sides = (step.before, pair.old), (step.after, pair.new)
    return [(name, one) for name, one in sides if one.cls is not None]


def _said(one: Side) -> str:
    if one.cls is None:
        return one.why
    documented = "" if one.sure == "measured" else "documented: "
    return f"{documented}{PREDICATE[one.cls]}{f' ({one.chip})' if one.chip else ''}"


def _lost(pair: Pair) -> str:
    told = zip(pair.variant.wanted, pair.new.nodes, strict=False)
    lost = [
        f"{node} in {got} instead of {want}"
        for (node, want), got in told
        if got and not same_precision(want, Precision(got))
    ]
    return ", ".join(lost[:_NODES]) + (f" and {len(lost) - _NODES} more" if len(lost) > _NODES else "")


def _pace(pair: Pair) -> str:
    """Say both medians, and between what and what the change lies."""
    old, new, found = pair.old.box, pair.new.box, ratio(pair)
    if old is None or new is None or found is None:
        return ""
    slower = found[0] > 1
    least, most = (found[0] - 1, found[1] - 1) if slower else (1 - found[1], 1 - found[0])
    low, high = (math.floor(part * 100 + 0.5) for part in (least, most))
    change = f"{low} to {high}" if low != high else f"{low}"
    medians = f"{milliseconds(old.median)} → {milliseconds(new.median)}"
    return f"median {medians}, {change} % {'slower' if slower else 'faster'}"


def _sure(pair: Pair, known: Sequence[tuple[str, Side]]) -> str:
    measured = all(one.sure == "measured" for _, one in known)
    said = ["measured" if measured else ", ".join(f"{name} {one.sure}" for name, one in known)]
    flaky = [name for name, one in known if one.flaky]
    if flaky:
        said.append(f"flaky on {' and '.join(flaky)}")
    if pair.altered:
        said.append("model or recipe changed")
    return "; ".join(said)


def _instead(step: _Step, pair: Pair) -> str:
    """Name the workarounds that hold on the new side: measured ones, or else those documented to."""
    every = _candidates(step, pair)
    if not every:
        return "no workaround of it is known here"
    good = [other for other in every if other.new.cls in GOOD]
    works = [other for other in good if other.new.sure == "measured"]
    if good:
        return "; ".join(map(_use, (works or good)[:_INSTEAD]))
    return f"none of {len(every)} known here works on {step.after}"


def _candidates(step: _Step, pair: Pair) -> Sequence[Pair]:
    """Return the workarounds of a variant or of what it is read against, then what its diagnosis is proven by."""
    own = {other.variant.name: other for other in step.pairs if other.variant.case == pair.variant.case}
    family = [pair.variant.name]
    while (name := own[family[-1]].variant.counterpart) in own and name not in family:
        family.append(name)
    near = [
        other
        for name, other in own.items()
        if other.variant.role is Role.WORKAROUND and (other.variant.counterpart in family or name in family)
    ]
    by_id = {f"{other.variant.case}.{other.variant.name}": other for other in step.pairs}
    proofs = [by_id[proof] for proof in pair.new.proofs if proof in by_id]
    found = {_full(other.variant): other for other in (*near, *proofs) if other is not pair}
    return list(found.values())


def _use(other: Pair) -> str:
    return f"{_full(other.variant)} {_said(other.new)}"


def _full(variant: VariantView) -> str:
    return f"{variant.case}[{variant.name}]"


def _headline(step: _Step, rows: Sequence[Row]) -> str:
    compared = sum(pair.old.cls is not None and pair.new.cls is not None for pair in step.pairs)
    if not compared:
        return f"Nothing is known on both {step.before} and {step.after}, so nothing can be said."
    broken = sum(row.kind is Kind.BROKEN for row in rows)
    lost = sum(row.kind is Kind.PRECISION_LOST for row in rows)
    parts = [f"breaks {broken}"] if broken else []
    parts += [f"loses the precision of {lost}"] if lost else []
    if parts:
        return f"Going to {step.after} {' and '.join(parts)} of {compared} variants known on both."
    return (
        f"Nothing that works on {step.before} breaks or loses precision on {step.after}, "
        f"of {compared} variants known on both."
    )


def _basis(before: Column, after: Column) -> str:
    unrun = dict.fromkeys(column.called for column in (before, after) if not column.view.stamps)
    if not unrun:
        return ""
    return f"Not run here: {' and '.join(unrun)}. What is said of it is documented, not measured."


def _coverage(step: _Step) -> str:
    """Count, by operator, the wanted INT8 nodes that run in it, for each side on which any was built."""
    wanted = [
        (pair, at, pair.variant.ops.get(node, ""))
        for pair in step.pairs
        for at, (node, want) in enumerate(pair.variant.wanted)
        if want is Precision.INT8
    ]

    def told(name: str, look: Callable[[Pair], Side]) -> str:
        found = [(look(pair).nodes, at, op) for pair, at, op in wanted]
        if not any(nodes for nodes, _, _ in found):
            return f"not told on {name}"
        ops = Counter(op or "?" for nodes, at, op in found if len(nodes) > at and nodes[at] == "int8")
        by_op = ", ".join(f"{op} {count}" for op, count in sorted(ops.items()))
        return f"{sum(ops.values())} on {name}{f' ({by_op})' if by_op else ''}"

    if not wanted:
        return ""
    return (
        f"Of {len(wanted)} nodes that should run in INT8, in INT8 are: "
        f"{told(step.before, lambda pair: pair.old)}, {told(step.after, lambda pair: pair.new)}."
    )


def _timing(step: _Step) -> tuple[int, str]:
    """Return how many variants have latencies that were compared, and the sentence on those that have not."""
    both = [pair for pair in step.pairs if pair.old.box and pair.new.box]
    if not both:
        return 0, "Latency is not compared: no variant was timed on both."
    why = Counter(map(hindrance, both))
    left = []
    if why[Hindrance.STACK]:
        left.append(
            f"{why[Hindrance.STACK]} timed on different stacks ({', '.join(_differing(both))} differ)"
        )
    if why[Hindrance.NOISE]:
        left.append(f"{why[Hindrance.NOISE]} too noisy")
    if why[Hindrance.MODEL]:
        left.append(f"{why[Hindrance.MODEL]} of another model or recipe")
    timed = f"Latency is compared for {why[None] or 'none'} of {len(both)} variants timed on both"
    return why[None], f"{timed}{'; left out: ' if left else ''}{', '.join(left)}."


def _differing(both: Sequence[Pair]) -> list[str]:
    """Return the fields of the stack in which the two sides of any variant differ."""
    stacks = [(pair.old.box.stack, pair.new.box.stack) for pair in both if pair.old.box and pair.new.box]
    fields = ("clock", *STACK)
    return [field for at, field in enumerate(fields) if any(one[at] != two[at] for one, two in stacks)]
