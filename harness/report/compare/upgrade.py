"""From A to B: what breaks, is fixed, loses or gains precision, gets slower or faster, and what to use meanwhile.

The words of the judgement in pairs.py, for the page and for `diff`; the sentences above the rows are in sentences.py.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from packaging.version import Version

from harness.engines import ENGINES
from harness.layers.datatype import same_precision
from harness.report.compare.instead import Meanwhile
from harness.report.compare.pairs import Kind, Pair, Step, known, pace, pairs, standing
from harness.report.compare.sentences import basis, coverage, headline, timing
from harness.report.compare.troubles import Trouble, counted, troubles
from harness.report.labels import KINDS, MARKS
from harness.report.text import milliseconds
from harness.words import Engine, Grade, Precision, said

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.report.compare.pairs import Column, Pace
    from harness.report.compare.sides import Side
    from harness.report.model import Results, TargetView

#: Nodes named that run in another precision.
_NODES = 3
_ORDER = {kind: at for at, kind in enumerate(Kind)}
#: What fails a step: of a lost precision no engine says a word, and INT8 is what most variants are about. What failed
#: before and now builds without its precision takes nothing away from anybody.
_BREAKING = frozenset({Kind.BROKEN, Kind.PRECISION_LOST})
#: Kinds whose rows say what to use meanwhile, and kinds whose rows say which nodes run in another precision.
_WANTING = frozenset({Kind.BROKEN, Kind.PRECISION_LOST, Kind.BUILDS_WITHOUT, Kind.OTHERWISE})
_WITHOUT = frozenset({Kind.PRECISION_LOST, Kind.BUILDS_WITHOUT})
#: Kinds about latency, of which nothing is known where no latency was compared.
_TIMED = frozenset({Kind.SLOWER, Kind.FASTER})
#: Kinds about nodes that are wanted in no precision.
_UNASKED = frozenset({Kind.WIDER, Kind.NARROWER})


class Tile(NamedTuple):
    """How often a step does one kind of thing, as it is shown: a number, or a dash where that is not known."""

    kind: Kind
    number: str
    label: str
    rows: int


@dataclass(frozen=True)
class Row:
    """One thing that the step does: to which variant, what, why, what to use meanwhile, how sure that is, says who.

    `measured` says that nothing in it is only reported or guessed, nor of another GPU before than after; `guessed` that
    a side of it is only guessed. `signature` is that of the cause, "" where it has none.
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
    guessed: bool = False
    signature: str = ""


class Alone(NamedTuple):
    """A variant that fails or loses precision on the new side, and nothing is known of it on the old one."""

    case: str
    variant: str
    said: str
    grade: Grade
    kind: Kind


@dataclass(frozen=True)
class Upgrade:
    """The step from one column to another; `same`, `added`, `dropped`, `unknown`, `open` count variants without a row.

    They are known on both sides, on the new one alone, on the old one and not applicable to the new one, on none, and
    on both by what does not tell them apart; `alone` are those of `added` that fail or lose precision. `known` counts
    what is known on both and not only guessed. `headline` answers in a sentence, `basis` says what of it was not
    measured or run, or is flaky, `coverage` counts the nodes that are wanted in INT8, and `timing` says how far
    latencies were compared: those of `timed` variants. `troubles` are what else is reported of the new side and
    that no variant shows.
    """

    before: str
    after: str
    rows: tuple[Row, ...]
    same: int
    added: int
    dropped: int
    unknown: int
    open: int
    known: int
    timed: int
    headline: str
    basis: str
    coverage: str
    timing: str
    alone: tuple[Alone, ...] = ()
    troubles: tuple[Trouble, ...] = ()

    @property
    def rest(self) -> str:
        """Return the sentence that counts the variants without a row."""
        bad = f" ({len(self.alone)} of them to fail or lose precision)" if self.alone else ""
        counted = (
            (self.added, f"known on {self.after} alone{bad}"),
            (self.dropped, f"known on {self.before} but not applicable to {self.after}"),
            (self.open, "with nothing said of both that tells the two apart"),
            (self.unknown, "known on neither"),
        )
        more = "".join(f", {count} {said}" for count, said in counted if count)
        return f"{self.same} variants are the same on both{more}."

    @property
    def breaks(self) -> bool:
        """Tell whether something that was measured breaks or loses its precision."""
        return any(row.kind in _BREAKING and row.measured for row in self.rows)

    def count(self, kind: Kind) -> int:
        """Return the number of rows of one kind."""
        return sum(row.kind is kind for row in self.rows)

    @property
    def quiet(self) -> str:
        """Return what stands below the numbers: the variants without a row, the INT8 nodes, the latencies."""
        return " ".join(filter(None, (self.rest, self.coverage, self.timing)))

    def tiles(self) -> list[Tile]:
        """Return what stands on top: every kind with its number."""
        return [self._tile(kind, KINDS[kind][0], self.count(kind)) for kind in Kind]

    def _tile(self, kind: Kind, name: str, count: int) -> Tile:
        if kind in _TIMED and not self.timed:
            return Tile(kind, "\N{EN DASH}", f"{name}, not compared", count)
        # Of a step of which nothing is known, none is no answer.
        nothing = not (self.known or count or kind is Kind.NEWLY_UNKNOWN)
        return Tile(kind, "\N{EN DASH}" if nothing else str(count), name + self._besides(kind, count), count)

    def _besides(self, kind: Kind, count: int) -> str:
        """Say how many rows of a tile rest on a report, and how many more fail so with nothing known before."""
        found = [row for row in self.rows if row.kind is kind and row.seen and not row.guessed]
        reported = 0 if kind is Kind.NEWLY_UNKNOWN else len(found)
        said = f", {f'{reported} ' if reported < count else ''}reported" if reported else ""
        alone = sum(one.kind is kind for one in self.alone)
        return f"{said}; {alone} more with nothing known before" if alone else said

    def to_json(self) -> dict[str, Any]:
        """Return the step as plain JSON data, with the counts."""
        return {**dataclasses.asdict(self), "counts": {str(kind): self.count(kind) for kind in Kind}}


def upgrade(before: Column, after: Column, *, guesses: bool = False) -> Upgrade:
    """Return what the step from one column to another does to every variant; KeyError for an unknown target.

    What is only guessed is left out, unless `guesses` asks for it.
    """

    def step(*, guesses: bool) -> Step:
        (old,), (new,) = (
            known(one.results, {one.target: one.name}, guesses=guesses) for one in (before, after)
        )
        return Step(old, new, pairs(old, new))

    full = step(guesses=True)
    rows = [(pair.variant, pair.new) for pair in full.pairs]
    return judged(
        full if guesses else step(guesses=False), Meanwhile(rows, full.after.called, guesses=guesses)
    )


def judged(step: Step, meanwhile: Meanwhile, plain: tuple[Step, Upgrade] | None = None) -> Upgrade:
    """Return what a step does to every variant; `meanwhile` knows what to use on its new side.

    `plain` is the same step without guesses, and what it does: these leave its timings and nodes as they are.
    """
    before, after = step.before, step.after
    rows = _rows(step, meanwhile, plain)
    still = Counter(
        "open" if pair.open else (pair.old.cls is not None, pair.new.cls is not None)
        for pair in step.pairs
        if not pair.kinds
    )
    timed = (plain[1].timed, plain[1].timing) if plain else timing(step)
    covered = plain[1].coverage if plain else coverage(step)
    counts = still[True, True], still[False, True], still[True, False], still[False, False], still["open"]
    sure = sum(pair.known and pair.grade is not Grade.GUESSED for pair in step.pairs)
    met = troubles(step)
    said = headline(step, rows) + counted(met, after.called), basis(step), covered, timed[1]
    alone = tuple(
        Alone(
            pair.variant.case,
            pair.variant.name,
            pair.new.told() if pair.new.claim else f"{MARKS[cls].name}, {grade}",
            grade,
            Kind.PRECISION_LOST if standing(cls) else Kind.BROKEN,
        )
        for pair in step.pairs
        if pair.unheralded and (cls := pair.new.cls) and (grade := pair.new.grade)
    )
    return Upgrade(before.called, after.called, tuple(rows), *counts, sure, timed[0], *said, alone, met)


def _rows(step: Step, meanwhile: Meanwhile, plain: tuple[Step, Upgrade] | None) -> list[Row]:
    """Return the rows, worst first; of what guesses leave as it is nothing but what to use meanwhile is new."""
    same = [one is other for one, other in zip(plain[0].pairs, step.pairs, strict=True)] if plain else []
    known = {(row.kind, row.case, row.variant): row for row in plain[1].rows} if plain else {}
    rows = []
    for at, pair in enumerate(step.pairs):
        for kind in pair.kinds:
            row = known[kind, pair.variant.case, pair.variant.name] if plain and same[at] else None
            if row is None:
                row = _row(step, at, kind, meanwhile)
            elif kind in _WANTING and row.instead != meanwhile.of(at):
                row = dataclasses.replace(row, instead=meanwhile.of(at))
            rows.append(row)
    return sorted(rows, key=lambda row: _ORDER[row.kind])


def default_pair(results: Results) -> tuple[str, str]:
    """Return the two newest measured targets of the series with most of them, of TensorRT itself where it has two.

    Where no series has two, the targets that were not run count as well; where still none has, the first and the last.
    """

    def worth(series: Sequence[TargetView]) -> tuple[bool, int]:
        asked_for = ENGINES[Engine(series[0].engine)].by_major and bool(series[0].stamps)
        return asked_for and len(series) > 1, len(series)

    for measured in (True, False):
        by_series: dict[str, list[TargetView]] = {}
        for target in results.targets:
            if target.stamps or not measured:
                by_series.setdefault(target.series, []).append(target)
        best = max(by_series.values(), key=worth, default=[])
        if len(best) > 1:
            older, newer = sorted(best, key=lambda target: Version(target.version))[-2:]
            return older.id, newer.id
    ids = [target.id for target in results.targets] or [""]
    return ids[0], ids[-1]


def change(pair: Pair) -> str:
    """Return the change of the median in percent, "≈+3 %" where runs of one machine differ as much; "" for none."""
    found = pace(pair)
    if not found:
        return ""
    part = math.floor((found.new.median / found.old.median - 1) * 100 + 0.5)
    about = "" if _TIMED & set(pair.kinds) else "≈"
    sign = "\N{MINUS SIGN}" if part < 0 else "+"
    return f"{about}{sign}{abs(part)} %"


def _row(step: Step, at: int, kind: Kind, meanwhile: Meanwhile) -> Row:
    pair = step.pairs[at]
    if kind not in pair.words:
        pair.words[kind] = _worded(pair, kind)
    text, cause, signature = pair.words[kind]
    instead = meanwhile.of(at) if kind in _WANTING else ""
    known = _known(step, pair)
    measured = all(one.grade is Grade.MEASURED for _, one in known) and not pair.apart
    text += "".join(f"; flaky on {name} ({', '.join(one.flaky)})" for name, one in known if one.flaky)
    text = f"on {pair.gpu}: {text}" if pair.gpu else text
    sure = _sure(pair, known, measured=measured)
    guessed = any(one.grade is Grade.GUESSED for _, one in known)
    where = pair.variant.case, pair.variant.name
    return Row(kind, *where, text, cause, instead, sure, measured, _seen(known), guessed, signature)


def _worded(pair: Pair, kind: Kind) -> tuple[str, str, str]:
    """Return what became of a variant, the cause and its signature: in words that hold in every step of both sides."""
    old, new = pair.old, pair.new
    found = pace(pair)
    if found and kind in _TIMED:
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
    sides = (step.before.called, pair.old), (step.after.called, pair.new)
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
