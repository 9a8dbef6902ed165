"""The steps that the page can show, judged and packed; the script only draws them.

What stands above a step's rows is listed by the column that it starts from, as the matrix tells latencies against that
column. The rows are packed by variant: of one variant few columns differ, and what two of them make of one another is
the same in all steps between such columns, and in those of its siblings. So they are written once, with marks in place
of both columns' names, but in what to use meanwhile: 0.06 MB in place of 0.33 for 784 steps of 234 variants.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from packaging.version import Version

from harness.engines import ENGINES
from harness.report.compare.choices import HEADS, choice, later
from harness.report.compare.rows import change
from harness.report.compare.upgrade import default_pair
from harness.report.page.packing import columns, pack
from harness.words import Engine, said

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from harness.report.compare.rows import Row
    from harness.report.compare.steps import Steps
    from harness.report.compare.upgrade import Tile, Upgrade
    from harness.report.model import Results, TargetView

#: Variants that are compared over all steps: 1 to 3 bytes and some 12 microseconds each. Steps grow with the square of
#: the columns.
_MOST_COMPARED = 200_000


#: Stand for the names of both columns in rows. They are no characters, and Unicode keeps them for such use: a text of
#: somebody's that has them all the same shows a column's name there.
MARKS = ("\ufdd0", "\ufdd1")


class Line(NamedTuple):
    """What a step does of one kind to a variant: the phrases that are shown, by their numbers."""

    kind: str
    text: int
    cause: int
    instead: int
    sure: int
    seen: int
    signature: int


class Shown(NamedTuple):
    """A tile; its number is "" where it is that of the rows of its kind."""

    kind: str
    label: str
    number: str


class Crossing(NamedTuple):
    """A node that nobody wished for and that left or took a narrow type."""

    row: int
    node: str
    before: str
    after: str


class Change(NamedTuple):
    """The change of a variant's latency where it may be compared."""

    row: int
    said: str


class Offer(NamedTuple):
    """The columns that each column has a step to, and a sentence on which steps these are: "" for all."""

    columns: list[list[int]]
    said: str


def packed_steps(steps: Steps) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the columns that each column has steps to; and, packed, these steps in the same order and all rows.

    The rows are four lists: phrases; lines of them; what becomes of a variant, as its lines; and for each variant, each
    column and each step from there, what becomes of it.
    """
    rows, there = _Rows(steps), offered(steps.results).columns
    packed = pack(
        [_step(steps, before, after, rows, onward) for after in afters]
        for before, afters in enumerate(there)
        for onward in [_onward(steps.results, before)]
    )
    return {"choices": HEADS, "to": there}, {
        "steps": {"packed": packed},
        "rowsOfSteps": {"packed": pack(rows.lists())},
    }


def _onward(results: Results, before: int) -> set[int]:
    """Return the columns of the later versions of a column's series."""
    ids = [target.id for target in results.targets]
    return set(map(ids.index, later(results, ids[before])))


class _Rows:
    """Takes the rows of one step after the other; phrases and lines have numbers in the order in which they come."""

    def __init__(self, steps: Steps) -> None:
        self._phrases: dict[str, int] = {}
        self._lines: dict[Line, int] = {}
        self._found: dict[tuple[int, ...], int] = {(): 0}
        # Many steps have the same rows. They are kept with their lines, as their places in memory are the keys.
        self._known: dict[int, tuple[Row, int]] = {}
        keys = steps.known[0].variants if steps.known else ()
        self._numbers = {key: at for at, key in enumerate(keys)}
        self._variants: list[list[list[int]]] = [[[] for _ in steps.known] for _ in keys]

    def add(self, before: int, found: Upgrade) -> None:
        """Take the rows of the next step from a column."""
        lines = self._by_variant(found)
        for key, number in self._numbers.items():
            become = lines.get(key, ())
            self._variants[number][before].append(self._found.setdefault(become, len(self._found)))

    def _by_variant(self, found: Upgrade) -> dict[tuple[str, str], tuple[int, ...]]:
        by_variant: dict[tuple[str, str], tuple[int, ...]] = {}
        for row in found.rows:
            key = row.case, row.variant
            by_variant[key] = *by_variant.get(key, ()), self._line(row)
        return by_variant

    def _line(self, row: Row) -> int:
        known = self._known.get(id(row))
        if known is None:
            said = row.text, row.cause, row.instead, row.sure, row.seen, row.signature
            place = self._phrases.setdefault
            text, cause, instead, sure, seen, signature = [place(each, len(self._phrases)) for each in said]
            line = Line(str(row.kind), text, cause, instead, sure, seen, signature)
            known = self._known[id(row)] = row, self._lines.setdefault(line, len(self._lines))
        return known[1]

    def lists(self) -> Iterator[dict[str, Any] | list[Any]]:
        """Yield all that was taken."""
        yield list(self._phrases)
        yield columns(Line, self._lines)
        yield list(self._found)
        yield self._variants


def _step(steps: Steps, before: int, after: int, rows: _Rows, onward: Collection[int]) -> dict[str, Any]:
    step, found = steps.step(before, after, MARKS)
    rows.add(before, found)
    crossings = (
        Crossing(row, node, said(old), said(new))
        for row, pair in enumerate(step.pairs)
        for node, old, new in pair.crossed
    )
    changes = (Change(row, change(pair)) for row, pair in enumerate(step.pairs))
    return {
        "headline": found.headline,
        "basis": found.basis,
        "quiet": found.quiet,
        "tiles": columns(Shown, (Shown(tile.kind, tile.label, _number(tile)) for tile in found.tiles())),
        **({"choice": choice(found)} if after in onward else {}),
        "crossed": columns(Crossing, crossings),
        "changes": columns(Change, (one for one in changes if one.said)),
        **(
            {"troubles": [(one.id, one.title, one.seen, one.advice) for one in found.troubles]}
            if found.troubles
            else {}
        ),
    }


def _number(tile: Tile) -> str:
    return "" if tile.number == str(tile.rows) else tile.number


def offered(results: Results) -> Offer:
    """Return the steps that are worth their place: all, or else as many of the nearest as are not too many."""
    targets = range(len(results.targets))
    many = sum(len(case.variants) for case in results.cases)
    tiers = list(_tiers(results))
    for name, fits in tiers:
        columns = [
            [after for after in targets if before == after or fits(before, after)] for before in targets
        ]
        if many * sum(map(len, columns)) <= _MOST_COMPARED or name == tiers[-1][0]:
            break
    return Offer(columns, name and f"The page has the steps {name}")


def _tiers(results: Results) -> Iterator[tuple[str, Callable[[int, int], bool]]]:
    ids = [target.id for target in results.targets]
    ends = default_pair(results)
    pair = {ids.index(end) for end in ends if end in ids}
    place = _places(results)
    between = " and ".join(ends)

    def near(most: int) -> Callable[[int, int], bool]:
        def fits(one: int, other: int) -> bool:
            (series, at), (its, place_of_other) = place[one], place[other]
            return bool(pair & {one, other}) or (series == its and abs(at - place_of_other) <= most)

        return fits

    yield "", lambda *_: True
    yield f"between versions of one series, and those from and to {between}", near(len(ids))
    yield f"between neighbours in one series, and those from and to {between}", near(1)
    yield f"between {between}", lambda one, other: {one, other} <= pair


class Start(NamedTuple):
    """Steps of a product that are one click from the first screen: from and to, each a target."""

    product: str
    steps: tuple[tuple[TargetView, TargetView], ...]


def starts(results: Results) -> list[Start]:
    """Return the steps of TensorRT, and of it on Jetson, from the newest of each major version to that of a later one.

    Readers come for these, while the step that is shown first is one that was measured.
    """
    there = offered(results).columns
    shown = default_pair(results)
    found = []
    for series in series_of(results):
        every = [results.targets[column] for column in series]
        newest = {Version(target.version).major: at for at, target in zip(series, every, strict=True)}
        pairs = [
            (results.targets[before], results.targets[after])
            for before, after in combinations(newest.values(), 2)
            if after in there[before]
        ]
        steps = tuple(pair for pair in pairs if (pair[0].id, pair[1].id) != shown)
        if ENGINES[Engine(every[0].engine)].by_major and "," not in every[0].series and steps:
            found.append(Start(every[0].product, steps))
    return found


def series_of(results: Results) -> list[list[int]]:
    """Return the columns of each series in the order of their versions."""
    found: dict[str, list[int]] = {}
    for column, target in enumerate(results.targets):
        found.setdefault(target.series, []).append(column)
    return [
        sorted(columns, key=lambda at: Version(results.targets[at].version)) for columns in found.values()
    ]


def _places(results: Results) -> dict[int, tuple[int, int]]:
    return {
        column: (number, at)
        for number, columns in enumerate(series_of(results))
        for at, column in enumerate(columns)
    }
