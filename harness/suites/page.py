"""The page of a suite: its operators by target, in one HTML file that can be read without its script."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import jinja2
from markupsafe import Markup

from harness.known.cell import general_advice
from harness.known.model import Advice, Known, VariantView
from harness.matrix.operators import operator_tables
from harness.models.static import State
from harness.report.labels import MARKS, day
from harness.report.model import Results
from harness.report.page import environment, policy
from harness.suites.running import RECIPE, About
from harness.text import capital, clip, visible
from harness.words import GOOD, UNJUDGED, Class, Mark

_HERE = Path(__file__).parent / "static"
_STYLE = Path(__file__).parents[1] / "report" / "static" / "style.css"
#: Causes that a row names before it is opened.
_NAMED = 2
#: Characters of a reason, and of the one that a row without a known cause names; the record has all of it.
_LONGEST, _BRIEF = 220, 100
#: A part of a cause's title that only a failure fills in.
_BLANK = re.compile(r"<\w+>")
_UNCLAIMED = "nothing is claimed about this cell; it "
#: What to know of the results, for readers.
NOTE = (
    f"Built as {RECIPE}. Other choices would fail other models. An engine that needs no GPU is built where there is "
    "none, and then its numbers are not known. ONNX Runtime builds, runs and is held to the expected outputs, by the "
    "matrix's tolerances for the type that it ran in."
)
#: What an operator table of NVIDIA's says, as it is marked.
TABLED = {
    State.BLOCKED: Mark(
        "fails", "✕", "square", "Blocked", "no importer, not this type, or a broken restriction"
    ),
    State.RESTRICTED: Mark("lost", "!", "tab", "Restricted", "the graph does not decide a restriction"),
    State.UNKNOWN: Mark("unknown", "?", "tab", "Unknown", "needs a plugin, or the graph was not read"),
    State.CLEAR: Mark("unknown", "○", "none", "Clear", "nothing against it, which is no promise"),
}


@dataclass(frozen=True)
class Way:
    """A way to fail in a row: the models that end so, all on the same targets."""

    cls: Class
    signature: str | None
    reason: str
    targets: tuple[str, ...]
    models: tuple[str, ...]


@dataclass(frozen=True)
class Against:
    """What operator tables have against models of a row, alike; `node` is named where it is one model's."""

    state: State
    words: str
    node: str
    releases: tuple[str, ...]
    models: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """An operator at an opset: how many models end in which class on each target, and the ways to fail.

    `tables` are how many models each of NVIDIA's tables has in which state, by its release, `against` what it has.
    """

    operator: str
    opset: str
    models: int
    cells: dict[str, dict[Class, int]]
    ways: tuple[Way, ...]
    tables: dict[str, dict[State, int]]
    against: tuple[Against, ...]

    @property
    def states(self) -> list[str]:
        """Return the classes in which a model ends on some target, and the states that some table has one in."""
        ended = {str(cls) for cell in self.cells.values() for cls in cell}
        return sorted(ended | {str(state) for table in self.tables.values() for state in table})

    @property
    def blocked(self) -> int:
        """Return how many models some table blocks."""
        return len({model for each in self.against if each.state is State.BLOCKED for model in each.models})

    @property
    def failing(self) -> int:
        """Return how many models fail on some target."""
        return len({model for way in self.ways for model in way.models})

    @property
    def causes(self) -> list[str]:
        """Return the commonest known causes, else the reason of the commonest way to fail."""
        found = Counter[str]()
        for way in self.ways:
            if way.signature:
                found[title_of(way.signature, self.operator)] += len(way.models)
        named = [title for title, _ in found.most_common(_NAMED)]
        return named or [clip(way.reason, _BRIEF) for way in self.ways[:1]]


def turned(results: Results) -> dict[str, dict[str, list[tuple[Known, Class]]]]:
    """Return the cells that ended otherwise in the run before their last, with their class then.

    By target, then by kind: "broken", "fixed" or "otherwise", failing in another way. That one run had no GPU for a
    model is no change.
    """
    began = {run.id: run.when for run in results.runs}
    found: dict[str, dict[str, list[tuple[Known, Class]]]] = {}
    for cell in results.cells:
        before = cell.past.before if cell.past and cell.past.since == began.get(cell.stamps) else None
        if before is None or cell.cls in UNJUDGED or (before in GOOD and cell.cls in GOOD):
            continue
        kind = "fixed" if cell.cls in GOOD else "broken" if before in GOOD else "otherwise"
        found.setdefault(cell.target, {}).setdefault(kind, []).append((cell, before))
    return found


def render_suite(about: About, results: Results) -> str:
    """Return the page; the same bytes for the same results."""
    style = _STYLE.read_text(encoding="utf-8") + (_HERE / "suite.css").read_text(encoding="utf-8")
    script = (_HERE / "suite.js").read_text(encoding="utf-8")
    rows = _rows(about, results)
    counts = {target.id: Counter[Class]() for target in results.targets}
    for cell in results.cells:
        counts[cell.target][cell.cls] += cell.cls not in UNJUDGED
    signatures = sorted({way.signature for row in rows for way in row.ways if way.signature})
    products = list(dict.fromkeys(target.product for target in results.targets))
    return (
        _environment()
        .get_template("suite.html.j2")
        .render(
            about=about,
            targets=results.targets,
            counts=counts,
            rows=rows,
            tables=[table for table in operator_tables() if any(table.release in row.tables for row in rows)],
            moved=turned(results),
            classes=[cls for cls in Class if any(each[cls] for each in counts.values())],
            causes=[advice for each in signatures if (advice := general_advice(each))],
            lead=(
                f"{len(results.variants)} models of {len(results.cases)} operators, each with inputs and expected "
                f"outputs of its own, and which of them each version of {' and '.join(products)} takes."
            ),
            note=NOTE,
            style=Markup(style),  # noqa: S704  (a file of this package, under the hash that the policy names)
            script=Markup(script),  # noqa: S704
            policy=policy(style, script),
        )
    )


def title_of(signature: str, operator: str) -> str:
    """Return the title of a cause for an operator; other parts that only a failure fills in are left open."""
    advice: Advice | None = general_advice(signature)
    title = advice.title.replace("<op>", operator).replace("<node>", "a node") if advice else signature
    return capital(_BLANK.sub("…", title.replace("<gpu>", "this GPU")))


def _rows(about: About, results: Results) -> list[Row]:
    def place(row: tuple[VariantView, Sequence[Known]]) -> tuple[str, str]:
        return about.models[row[0].name]

    return [
        _row(about, operator, opset, list(rows))
        for (operator, opset), rows in itertools.groupby(results.rows(), place)
    ]


def _row(about: About, operator: str, opset: str, rows: Sequence[tuple[VariantView, Sequence[Known]]]) -> Row:
    cells: dict[str, Counter[Class]] = {}
    on: dict[tuple[Class, str | None, str, str], list[str]] = {}
    for variant, every in rows:
        for cell in every:
            counted = cells.setdefault(cell.target, Counter())
            if cell.cls in UNJUDGED:
                continue
            counted[cell.cls] += 1
            if cell.cls not in GOOD:
                key = (cell.cls, cell.signature, _reason(cell), variant.name)
                on.setdefault(key, []).append(cell.target)
    alike: dict[tuple[Class, str | None, str, tuple[str, ...]], list[str]] = {}
    for (cls, signature, reason, model), targets in on.items():
        alike.setdefault((cls, signature, reason, tuple(targets)), []).append(model)
    ways = [Way(*key, tuple(models)) for key, models in alike.items()]
    ways.sort(key=lambda way: (-len(way.models) * len(way.targets), way.models, way.targets))
    shown = {target: {cls: every[cls] for cls in Class if every[cls]} for target, every in cells.items()}
    return Row(
        operator, opset, len(rows), shown, tuple(ways), *_tabled(about, [each.name for each, _ in rows])
    )


def _tabled(about: About, models: Sequence[str]) -> tuple[dict[str, dict[State, int]], tuple[Against, ...]]:
    """Return how many of a row's models each table has in which state, and what it has against them."""
    counts: dict[str, Counter[State]] = {}
    alike: dict[tuple[State, str, tuple[str, ...]], dict[str, str]] = {}
    for model in models:
        for finding, releases in about.tables.get(model, ()):
            for release in releases:
                counts.setdefault(release, Counter())[finding.state] += 1
            words = ": ".join(filter(None, (finding.operator, finding.restriction)))
            if finding.state is not State.CLEAR:
                alike.setdefault((finding.state, words, releases), {})[model] = finding.node
    against = [
        Against(state, words, next(iter(nodes.values())) if len(nodes) == 1 else "", releases, tuple(nodes))
        for (state, words, releases), nodes in alike.items()
    ]
    against.sort(key=lambda each: (list(State).index(each.state), -len(each.models), each.models))
    return {
        release: {state: on[state] for state in TABLED if on[state]} for release, on in counts.items()
    }, tuple(against)


def _reason(cell: Known) -> str:
    # ONNX names the nodes of a function after the test: without that, messages that are alike are one.
    named = re.compile(rf"test_{re.escape(cell.variant)}(?=_)", re.IGNORECASE)
    text = visible(cell.reason.removeprefix(_UNCLAIMED))
    return clip(" ".join(named.sub("…", text).split()), _LONGEST)


@cache
def _environment() -> jinja2.Environment:
    made = environment(_HERE)
    made.globals.update(MARKS=MARKS, TABLED=TABLED, title_of=title_of)
    made.filters.update(day=day, capital=capital)
    return made
