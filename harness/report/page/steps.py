"""The steps that the page can show, judged and packed by the column that they start from; the script only draws them.

A step is opened with all others from its column: they are a few kilobytes together, and the matrix tells latencies
against that column.
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

#: Variants that are compared over all steps: 3 to 4 bytes and 25 microseconds each. Steps grow with the square of the
#: columns.
_MOST_COMPARED = 200_000


class Line(NamedTuple):
    """A row of a step: which variant, by its number, and the phrases that are shown, by theirs."""

    kind: str
    row: int
    text: int
    cause: int
    instead: int
    sure: int
    seen: int
    signature: int
    guessed: bool


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


def packed_steps(steps: Steps) -> dict[str, Any]:
    """Return for each column its steps, packed, with the columns that they go to, in the same order; and the phrases.

    What is said of a variant on one column is said in each of its steps: the phrases of all stand in one chunk.
    """
    lines = _Lines(steps)
    return {
        "choices": HEADS,
        "steps": [
            {"packed": pack(_step(steps, before, after, lines, onward) for after in afters), "to": afters}
            for before, afters in enumerate(offered(steps.results).columns)
            for onward in [_onward(steps.results, before)]
        ],
        "phrases": {"packed": pack(lines.phrases)},
    }


def _onward(results: Results, before: int) -> set[int]:
    """Return the columns of the later versions of a column's series."""
    ids = [target.id for target in results.targets]
    return set(map(ids.index, later(results, ids[before])))


class _Lines:
    """Numbers variants, and phrases in the order in which they are first said."""

    def __init__(self, steps: Steps) -> None:
        self.phrases: dict[str, int] = {}
        # Many steps have the same rows. They are kept with their lines, as their places in memory are the keys.
        self._lines: dict[int, tuple[Row, Line]] = {}
        self._rows = {key: row for each in steps.known[:1] for row, key in enumerate(each.variants)}

    def of(self, row: Row) -> Line:
        """Return a row of a step by numbers."""
        found = self._lines.get(id(row))
        if found is None:
            found = self._lines[id(row)] = row, self._line(row)
        return found[1]

    def _line(self, row: Row) -> Line:
        said = row.text, row.cause, row.instead, row.sure, row.seen, row.signature
        place = self.phrases.setdefault
        text, cause, instead, sure, seen, signature = [place(phrase, len(self.phrases)) for phrase in said]
        number = self._rows[row.case, row.variant]
        return Line(str(row.kind), number, text, cause, instead, sure, seen, signature, row.guessed)


def _step(steps: Steps, before: int, after: int, lines: _Lines, onward: Collection[int]) -> dict[str, Any]:
    step, found, guessed = steps.step(before, after)
    crossings = (
        Crossing(row, node, said(old), said(new))
        for row, pair in enumerate(step.pairs)
        for node, old, new in pair.crossed
    )
    changes = (Change(row, change(pair)) for row, pair in enumerate(step.pairs))
    told = _told(found, lines)
    with_guesses = _told(guessed, lines) if guessed is not found else told
    return {
        **told,
        **({"choice": choice(found)} if after in onward else {}),
        "guesses": {key: value for key, value in with_guesses.items() if value != told[key]},
        "crossed": columns(Crossing, crossings),
        "changes": columns(Change, (one for one in changes if one.said)),
        **(
            {"troubles": [(one.id, one.title, one.seen, one.advice) for one in found.troubles]}
            if found.troubles
            else {}
        ),
    }


def _told(found: Upgrade, lines: _Lines) -> dict[str, Any]:
    """Return what guesses can change; what they do not change is written once."""
    return {
        "headline": found.headline,
        "basis": found.basis,
        "quiet": found.quiet,
        "tiles": columns(Shown, (Shown(tile.kind, tile.label, _number(tile)) for tile in found.tiles())),
        "rows": columns(Line, map(lines.of, found.rows)),
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
