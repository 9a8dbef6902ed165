"""From A to B: what breaks, is fixed, loses or gains precision, gets slower or faster, and what to use meanwhile.

The judgement of kinds.py, for the page and for `diff`; rows.py words the rows, sentences.py what stands above them.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from packaging.version import Version

from harness.engines import ENGINES
from harness.report.compare.instead import Meanwhile
from harness.report.compare.kinds import Kind, standing
from harness.report.compare.pairs import Step, known, pairs
from harness.report.compare.rows import TIMED, Row, row_of
from harness.report.compare.sentences import basis, coverage, headline, timing
from harness.report.compare.troubles import Trouble, counted, troubles
from harness.report.labels import KINDS, MARKS
from harness.words import Engine, Grade

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.report.compare.pairs import Column
    from harness.report.model import Results, TargetView

_ORDER = {kind: at for at, kind in enumerate(Kind)}
#: What fails a step: of a lost precision no engine says a word, and INT8 is what most variants are about. What failed
#: before and now builds without its precision takes nothing away from anybody.
_BREAKING = frozenset({Kind.BROKEN, Kind.PRECISION_LOST})


class Tile(NamedTuple):
    """How often a step does one kind of thing, as it is shown: a number, or a dash where that is not known."""

    kind: Kind
    number: str
    label: str
    rows: int


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
    what is known on both. `headline` answers in a sentence, `basis` says what of it was not
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

    @cached_property
    def _counts(self) -> Counter[Kind]:
        return Counter([row.kind for row in self.rows])

    def count(self, kind: Kind) -> int:
        """Return the number of rows of one kind."""
        return self._counts[kind]

    @property
    def quiet(self) -> str:
        """Return what stands below the numbers: the variants without a row, the INT8 nodes, the latencies."""
        return " ".join(filter(None, (self.rest, self.coverage, self.timing)))

    def tiles(self) -> list[Tile]:
        """Return what stands on top: every kind with its number."""
        return [self._tile(kind, KINDS[kind][0], self.count(kind)) for kind in Kind]

    def _tile(self, kind: Kind, name: str, count: int) -> Tile:
        if kind in TIMED and not self.timed:
            return Tile(kind, "\N{EN DASH}", f"{name}, not compared", count)
        # Of a step of which nothing is known, none is no answer.
        nothing = not (self.known or count or kind is Kind.NEWLY_UNKNOWN)
        return Tile(kind, "\N{EN DASH}" if nothing else str(count), name + self._besides(kind, count), count)

    def _besides(self, kind: Kind, count: int) -> str:
        """Say how many rows of a tile rest on a report, and how many more fail so with nothing known before."""
        found = [row for row in self.rows if row.kind is kind and row.seen]
        reported = 0 if kind is Kind.NEWLY_UNKNOWN else len(found)
        said = f", {f'{reported} ' if reported < count else ''}reported" if reported else ""
        alone = sum(one.kind is kind for one in self.alone)
        return f"{said}; {alone} more with nothing known before" if alone else said

    def to_json(self) -> dict[str, Any]:
        """Return the step as plain JSON data, with the counts."""
        return {**dataclasses.asdict(self), "counts": {str(kind): self.count(kind) for kind in Kind}}


def upgrade(before: Column, after: Column) -> Upgrade:
    """Return what the step from one column to another does to every variant; KeyError for an unknown target."""
    (old,), (new,) = (known(one.results, {one.target: one.name}) for one in (before, after))
    step = Step(old, new, pairs(old, new))
    return judged(step, Meanwhile([(pair.variant, pair.new) for pair in step.pairs], new.called))


def judged(step: Step, meanwhile: Meanwhile) -> Upgrade:
    """Return what a step does to every variant; `meanwhile` knows what to use on its new side."""
    before, after = step.before, step.after
    rows = [row_of(step, at, kind, meanwhile) for at, pair in enumerate(step.pairs) for kind in pair.kinds]
    rows.sort(key=lambda row: _ORDER[row.kind])
    still = Counter(
        "open" if pair.open else (pair.old.cls is not None, pair.new.cls is not None)
        for pair in step.pairs
        if not pair.kinds
    )
    timed, compared = timing(step)
    counts = still[True, True], still[False, True], still[True, False], still[False, False], still["open"]
    met = troubles(step)
    said = headline(step, rows) + counted(met, after.called), basis(step), coverage(step), compared
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
    return Upgrade(
        before.called, after.called, tuple(rows), *counts, len(step.known), timed, *said, alone, met
    )


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
