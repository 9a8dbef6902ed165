"""The kinds of change between the two sides of a variant, of one pair and of every pair of a row's columns; pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from harness.case import Expectation
from harness.case.floor import Asked, Missing, Side, gained, missing
from harness.judge.timing import RUN_TO_RUN
from harness.known.claim import on_precision
from harness.known.model import NOT_THERE_YET, Known, Timing, VariantView
from harness.layers.datatype import NARROW, same_precision
from harness.text import milliseconds, some
from harness.words import GOOD, PREDICATE, Basis, Class, Precision, Word, said

#: The standing of a class that works.
_STANDS = 2


class Kind(Word):
    """The change that a step from one column to another makes to a variant, the worst first."""

    BROKEN = "broken"
    PRECISION_LOST = "precision_lost"
    BUILDS_WITHOUT = "builds_without"
    WIDER = "wider"
    SLOWER = "slower"
    OTHERWISE = "otherwise"
    FIXED = "fixed"
    PRECISION_GAINED = "precision_gained"
    NARROWER = "narrower"
    FASTER = "faster"
    VARIES = "varies"
    NOT_YET = "not_yet"
    NEWLY_UNKNOWN = "newly_unknown"


#: Kinds about latency.
TIMED = frozenset({Kind.SLOWER, Kind.FASTER})
_WITHOUT = frozenset({Kind.PRECISION_LOST, Kind.BUILDS_WITHOUT})
#: Kinds that a choice of the builder decides. One that now fails is told, whatever another GPU does.
_CHOSEN = frozenset({Kind.PRECISION_LOST, Kind.PRECISION_GAINED, Kind.WIDER, Kind.NARROWER})
_UNSURE = _CHOSEN | {Kind.BUILDS_WITHOUT, Kind.FIXED}
#: Kinds whose cause is that of the side before.
OF_BEFORE = frozenset({Kind.FIXED, Kind.PRECISION_GAINED})


class Pace(NamedTuple):
    """Two timings that are compared; `least` and `most` enclose the ratio of their medians, new over old, with 99 %."""

    old: Timing
    new: Timing
    least: float
    most: float


@dataclass(frozen=True)
class Pair:
    """A variant's `Known` on both sides of a step, both on one GPU if any took part, with the claim behind each.

    wanted: nodes with the precision that they should run in.
    altered: model or recipe differ.
    apart: the two sides have no GPU in common.
    asks: of an altered one, what each side asks for and lost.
    others: further GPUs of the compute capability on which a side has another result, in words.
    """

    wanted: tuple[tuple[str, Precision], ...]
    old: Known
    new: Known
    claims: tuple[Expectation | None, Expectation | None] = (None, None)
    altered: bool = False
    apart: bool = False
    asks: tuple[Side, Side] | None = None
    others: tuple[str, ...] = ()

    @property
    def lacks(self) -> Missing:
        """Return what an altered variant no longer asks for, or lost since; a baseline need keep nothing."""
        return missing(*self.asks) if self.asks and self.new.demanded else Missing((), ())

    @property
    def nodes(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the precisions of the wanted nodes on either side; () if one side is only claimed."""
        sides = zip((self.old, self.new), self.claims, strict=True)
        old, new = (() if claim else one.nodes(self.wanted) for one, claim in sides)
        return old, new

    @property
    def open(self) -> bool:
        """Return True if both sides are known but cannot be compared.

        That is so if one claim covers both and neither was run; if one side builds or runs by a claim that is
        silent on the precision, and the other only lost its precision; or if one side lacked a GPU to build.
        """
        stands = self.old.stands, self.new.stands
        if None in stands:
            return False
        if Class.NEEDS_GPU_TO_BUILD in stands and any(map(self._had_gpu, (0, 1))):
            return True
        before, after = self.claims
        one = before is not None and before == after and before.basis is not Basis.MEASURED
        silent = any(claim and not on_precision(claim) for claim in self.claims)
        return one or (silent and set(map(standing, stands)) == {1, 2})

    @property
    def known(self) -> bool:
        """Tell whether both sides are known, each for itself."""
        return self.old.stands is not None and self.new.stands is not None and not self.open

    @property
    def unheralded(self) -> bool:
        """Return True if the new side fails or loses precision, and the old one is unknown."""
        return self.old.stands is None and fails(self.new.stands)

    @property
    def measured(self) -> bool:
        """Tell whether no known side is only reported or listed, and both are of one GPU."""
        return not self.apart and {*self.bases} <= {None, Basis.MEASURED}

    @property
    def bases(self) -> tuple[Basis | None, Basis | None]:
        """Return how sure each side is: a built engine that is reported to fail when run is reported."""
        old, new = (
            claim.basis if claim else one.basis
            for one, claim in zip((self.old, self.new), self.claims, strict=True)
        )
        return old, new

    @property
    def crossed(self) -> list[tuple[str, Precision, Precision]]:
        """Return the nodes wanted in no precision that left or took a narrow type, with before and after."""
        before, after = self.old.other, self.new.other
        if any(self.claims) or not (before and self.new.demanded):
            return []
        if not (standing(self.old.stands) and standing(self.new.stands)):
            return []
        both = [(node, before[node], after[node]) for node in sorted(after) if node in before]
        return [(node, old, new) for node, old, new in both if (old in NARROW) != (new in NARROW)]

    @property
    def left(self) -> bool:
        """Tell whether a node, wanted in a precision or not, ran in a narrow type before and runs in a float after."""
        told = {**self.new.precision}
        return any(
            kind in NARROW and told.get(node, Precision.UNKNOWN) not in NARROW | {Precision.UNKNOWN}
            for node, kind in self.old.precision.items()
        )

    @property
    def pace(self) -> Pace | None:
        """Return both timings if they can be compared."""
        old, new = self.old.latency, self.new.latency
        if self.altered or any(self.claims) or old is None or new is None or old.stack != new.stack:
            return None
        if old.low is None or old.high is None or new.low is None or new.high is None:
            return None
        return Pace(old, new, new.low / old.high, new.high / old.low)

    def kinds(self) -> list[Kind]:
        """Return the changes of the variant: at most one, and that of its latency."""
        kind = self.result or self._width()
        sure = self.lacks.unasked
        if not sure and kind in _UNSURE and (self.others or (kind in _CHOSEN and self._tossed())):
            kind = Kind.VARIES
        return [each for each in (kind, self._speed()) if each]

    def detail(self, kind: Kind) -> str:
        """Return the detail that a row of this kind adds to both sides' words: nodes, or the change of the median."""
        if kind in TIMED and self.pace:
            return _paced(self.pace, slower=kind is Kind.SLOWER)
        if kind is Kind.VARIES:
            tossed = self._tossed()
            return "; ".join([*self.others, *([f"a toss-up: {some(tossed)}"] if tossed else [])])
        lost = (str(self.lacks) or some(self._lost())) if kind in _WITHOUT else ""
        crossed = some([f"{node} {said(old)} → {said(new)}" for node, old, new in self.crossed])
        if crossed and kind not in (Kind.WIDER, Kind.NARROWER):
            crossed = f"not asked for: {crossed}"
        return "; ".join(filter(None, (lost, crossed)))

    def _had_gpu(self, side: int) -> bool:
        """Tell whether a side is about a machine with a GPU, as a claim of a version is unless it says otherwise."""
        one, claim = (self.old, self.new)[side], self.claims[side]
        if claim and claim.basis is not Basis.MEASURED:
            return one.stands is not Class.NEEDS_GPU_TO_BUILD
        return one.gpu is not None or bool(claim and claim.compute_capability)

    @property
    def result(self) -> Kind | None:
        """Return the change of the result or of a wanted precision, on these two sides alone."""
        old, new = self.old.stands, self.new.stands
        if old is None or new is None:
            # Silence of a table is no promise: a graph that it no longer blocks is as little known as before.
            was_known = old is not None and self.old.basis is not Basis.LISTED
            lost_sight = was_known and self.new.cls is not Class.NOT_APPLICABLE
            return Kind.NEWLY_UNKNOWN if lost_sight else None
        if self.open:
            return None
        if self.old.not_yet:
            return None if self.new.not_yet else Kind.NOT_YET
        return self._between(standing(old), standing(new))

    def _between(self, was: int, now: int) -> Kind | None:
        if now == 0:
            otherwise = Kind.OTHERWISE if self._fails_otherwise() else None
            return Kind.BROKEN if was else otherwise
        if any(self.lacks):
            return Kind.PRECISION_LOST
        if not was:
            # An engine that was refused and is now built without its precision has not been fixed: it fails silently.
            return Kind.BUILDS_WITHOUT if now == 1 else Kind.FIXED
        return self._moved(now - was) if self.new.demanded else None

    def _moved(self, by_class: int) -> Kind | None:
        """Return the change of a wanted precision of an engine that works on both sides."""
        gain = (len(gained(*self.asks)) if self.asks else 0) or self._gained(by_class)
        return Kind.PRECISION_LOST if gain < 0 else Kind.PRECISION_GAINED if gain else None

    def _fails_otherwise(self) -> bool:
        before, after = self.signatures
        return self.old.stands is not self.new.stands or (all(self.signatures) and before != after)

    @property
    def signatures(self) -> tuple[str, str]:
        """Return the signature of each side, by its claim or its record; "" without one."""
        sides = zip((self.old, self.new), self.claims, strict=True)
        old, new = ((claim.signature if claim else one.signature) or "" for one, claim in sides)
        return old, new

    def _gained(self, by_class: int) -> int:
        """Return how many wanted nodes gained their precision; by the classes if a side has no layers.

        The nodes outweigh the classes: ONNX Runtime is not judged by precision, and works without it. A node of unknown
        precision on one side has neither kept nor lost it.
        """
        old, new = self.nodes
        if old and new:
            return _kept(self.wanted, new, old) - _kept(self.wanted, old, new)
        better = new if by_class > 0 else old
        return 0 if better and not any(better) else by_class

    def _tossed(self) -> list[str]:
        """Return the nodes whose precision changed, if each of them was a toss-up on a side; else none."""
        old, new = self.nodes
        sides = zip(self.wanted, old, new, strict=False)
        moved = [node for (node, _), was, now in sides if was and now and was != now]
        moved = [each.node for each in self.lacks.lost] or moved or [node for node, *_ in self.crossed]
        return moved if {*moved} <= {*self.old.toss_ups, *self.new.toss_ups} else []

    def _width(self) -> Kind | None:
        """Return the change of width of nodes without a wanted precision; it fails no step."""
        if any(before in NARROW for _, before, _ in self.crossed):
            return Kind.WIDER
        return Kind.NARROWER if self.crossed else None

    def _speed(self) -> Kind | None:
        """Tell slower from faster, of engines that work: the time of one that fails or errs is no speed."""
        found = self.pace
        if not (found and standing(self.old.stands) and standing(self.new.stands)):
            return None
        margin = 1 + RUN_TO_RUN[found.old.clock]
        if found.least > margin:
            return Kind.SLOWER
        return Kind.FASTER if found.most < 1 / margin else None

    def _lost(self) -> list[str]:
        ran = zip(self.wanted, self.nodes[1], strict=False)
        return [
            f"{node} in {said(got)} instead of {said(want)}"
            for (node, want), got in ran
            if got and not same_precision(want, Precision(got))
        ]


def side_of(variant: VariantView, cell: Known) -> Side:
    """Return what a variant asks for, and what of it a cell lost; all of it is untold without layers."""
    ops = {node.name: node.op for node in variant.graph.nodes}
    asked = tuple(Asked(node, ops.get(node, ""), want) for node, want in variant.wanted)
    ran = dict(zip((node for node, _ in variant.wanted), cell.nodes(variant.wanted), strict=False))
    lost = [
        each.node
        for each in asked
        if (got := ran.get(each.node)) and not same_precision(each.precision, Precision(got))
    ]
    untold = [each.node for each in asked if not ran.get(each.node)]
    return Side(asked, frozenset(lost), frozenset(untold), frozenset(ops))


def like_with_like(pair: Pair) -> Pair:
    """Return the pair on the GPU that both sides have, of several the one on which most is lost."""
    old, new = pair.old, pair.new
    alike = old.gpu == new.gpu or not (old.gpu and new.gpu)
    if alike and not (old.beside or new.beside):
        return pair
    olds, news = ([each for each in (one, *one.beside) if each.gpu] for one in (old, new))
    both = [
        replace(pair, old=one, new=other, claims=(_own(pair, 0, one), _own(pair, 1, other)))
        for one, other in itertools.product(olds, news)
        if one.gpu == other.gpu
    ]
    return min(both, key=_worst) if both else replace(pair, apart=bool(olds and news))


def _worst(pair: Pair) -> int:
    order = list(Kind)
    return min(map(order.index, pair.kinds()), default=len(order))


def pair_of(
    variants: tuple[VariantView, VariantView], cells: tuple[Known, Known], *, altered: bool = False
) -> Pair:
    """Return the two sides of a variant as they are compared, with the nodes that the new side's variant wants."""
    (old, new), (before, after) = cells, variants
    claims = claim_of(before, old), claim_of(after, new)
    found = like_with_like(Pair(after.wanted, old, new, claims, altered))
    if altered:
        found = replace(found, asks=(side_of(before, found.old), side_of(after, found.new)))
    others = (*_others(before, old, found.old, "old"), *_others(after, new, found.new, "new"))
    return replace(found, others=others)


def _others(variant: VariantView, cell: Known, chosen: Known, side: str) -> list[str]:
    """Return the results of a cell on further GPUs of the compute capability, that differ in kind."""
    if chosen.gpu is None or chosen.basis is not Basis.MEASURED:
        return []
    found = {each.gpu: each.cls for each in (cell, *cell.beside)}
    for claim in filter(_measured_on_one, (variant.claims[number] for number in cell.claims)):
        found.setdefault((claim.compute_capability or "", claim.product or ""), claim.outcome)
    return [
        f"the {side} version {PREDICATE[cls]} on {gpu[1]}"
        for gpu, cls in found.items()
        if gpu not in (None, chosen.gpu)
        and gpu[0] == chosen.gpu[0]
        and standing(cls) != standing(chosen.stands)
    ]


def _measured_on_one(claim: Expectation) -> bool:
    """Tell whether a claim is of a measurement on one product."""
    return claim.basis is Basis.MEASURED and bool(claim.compute_capability and claim.product)


def _own(pair: Pair, side: int, one: Known) -> Expectation | None:
    """Return the claim of a side, which its results on further GPUs do not rest on."""
    return pair.claims[side] if one in (pair.old, pair.new) else None


def fails(cls: Class | None) -> bool:
    """Return True if a class is known and does not work as wanted; a missing GPU is no failure."""
    return cls not in (None, Class.NEEDS_GPU_TO_BUILD) and standing(cls) < _STANDS


def standing(cls: Class | None) -> int:
    """Return 2 for a class that works, 1 for one that works without its precision, 0 for a failure or no class."""
    return _STANDS if cls in GOOD else 1 if cls is Class.PRECISION_LOST else 0


def sentence(pair: Pair, kind: Kind) -> str:
    """Return the change of a variant in words: "builds (INT8 1/1) → loses precision: conv in fp32 instead of int8"."""
    detail = pair.detail(kind)
    if kind in TIMED:
        return detail
    was, now = (
        NOT_THERE_YET if one.not_yet else one.text or PREDICATE[one.cls] for one in (pair.old, pair.new)
    )
    return f"{was} → {now}{f': {detail}' if detail else ''}"


def phenomenon(pair: Pair, kind: Kind) -> str:
    """Return the one cause of a change: what was not there yet, else the signature, else the words of both sides.

    Variants that change in one kind for one cause are one phenomenon. Times, and what varies, have no common cause.
    """
    if kind in TIMED or kind is Kind.VARIES:
        return f"{pair.new.case}.{pair.new.variant}"
    if kind is Kind.NOT_YET and pair.old.not_yet:
        return pair.old.not_yet.what
    old, new = pair.signatures
    before = kind in OF_BEFORE or (kind is Kind.BUILDS_WITHOUT and not new)
    return (old if before else new) or f"{pair.new.case}: {pair.old.text} → {pair.new.text}"


def _kept(wanted: Sequence[tuple[str, Precision]], one: Sequence[str], other: Sequence[str]) -> int:
    """Count the wanted nodes that kept their precision on one side, among those whose precision is known on both."""
    told = zip(wanted, one, other, strict=False)
    return sum(
        bool(got and elsewhere) and same_precision(want, Precision(got)) for (_, want), got, elsewhere in told
    )


def _paced(found: Pace, *, slower: bool) -> str:
    """Return both medians, and the bounds of the change in percent."""
    least, most = (found.least - 1, found.most - 1) if slower else (1 - found.most, 1 - found.least)
    low, high = (math.floor(part * 100 + 0.5) for part in (least, most))
    change = f"{low} to {high}" if low != high else f"{low}"
    medians = f"{milliseconds(found.old.median)} → {milliseconds(found.new.median)}"
    return f"median {medians}, {change} % {'slower' if slower else 'faster'}"


@dataclass(frozen=True)
class RowSteps:
    """The steps of one row: `known` numbers its different knowns, a column each.

    kinds: those that differ: number before, number after, kind, and the number of its detail in `Steps.details`.
    open: numbers before and after of which both are known and not told apart.
    phenomena: the phenomenon of each of `kinds`, such a number too; variants that change in one kind for one phenomenon
        change for one cause.
    """

    known: tuple[int, ...]
    kinds: tuple[tuple[int, int, Kind, int], ...]
    open: tuple[tuple[int, int], ...]
    phenomena: tuple[int, ...] = ()


@dataclass(frozen=True)
class Steps:
    """The steps between columns: those of each row, and their details, each once."""

    details: tuple[str, ...] = ("",)
    variants: tuple[RowSteps, ...] = ()


def steps_of(rows: Iterable[tuple[VariantView, Sequence[Known]]]) -> Steps:
    """Return the changes of each variant by each step between two columns; cells are in the columns' order."""
    details = {"": 0}
    variants = tuple(_row_steps(variant, cells, details) for variant, cells in rows)
    return Steps(tuple(details), variants)


def _row_steps(variant: VariantView, cells: Sequence[Known], details: dict[str, int]) -> RowSteps:
    numbers: dict[object, int] = {}
    known = tuple(numbers.setdefault(_compared(variant, cell), len(numbers)) for cell in cells)
    first = {number: cells[at] for at, number in reversed(list(enumerate(known)))}
    pairs = {
        (old, new): pair_of((variant, variant), (first[old], first[new]))
        for old, new in itertools.product(range(len(numbers)), repeat=2)
        # A step from the unknown is no change.
        if first[old].stands is not None
    }
    kinds: list[tuple[int, int, Kind, int]] = []
    phenomena: list[int] = []
    for (old, new), pair in pairs.items():
        for kind in pair.kinds() if old != new else ():
            texts = pair.detail(kind), phenomenon(pair, kind)
            detail, cause = (details.setdefault(text, len(details)) for text in texts)
            kinds.append((old, new, kind, detail))
            phenomena.append(cause)
    alike = tuple(ends for ends, pair in pairs.items() if pair.open)
    return RowSteps(known, tuple(kinds), alike, tuple(phenomena))


def claim_of(variant: VariantView, cell: Known) -> Expectation | None:
    """Return the claim that a cell stands on, None if it stands on a record or is unknown."""
    return None if cell.claim is None else variant.claims[cell.claim]


def _compared(variant: VariantView, cell: Known) -> object:
    """Return all of a cell that a step looks at."""
    return (
        cell.stands,
        cell.cls is Class.NOT_APPLICABLE,
        cell.basis,
        _compared_claim(claim_of(variant, cell)),
        cell.signature,
        cell.nodes(variant.wanted),
        tuple(cell.other.items()),
        cell.latency and (cell.latency.low, cell.latency.high, cell.latency.stack),
        cell.gpu,
        cell.by_gpu[1:],
        cell.demanded,
        cell.toss_ups,
        cell.not_yet,
        tuple(_others(variant, cell, cell, "")),
    )


def _compared_claim(claim: Expectation | None) -> object:
    """Return the part of a claim that a step compares: two measurements may agree, two reports are two sources."""
    if claim is None or claim.basis is not Basis.MEASURED:
        return claim
    return claim.signature, bool(claim.compute_capability), on_precision(claim)
