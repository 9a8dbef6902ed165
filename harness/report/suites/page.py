"""The page of a suite: one HTML file that asks nothing of any network and can be read without its script."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2
from markupsafe import Markup

from harness.report.labels import MARKS
from harness.report.past import day
from harness.report.templates import environment, policy
from harness.text import capital, clip
from harness.words import Class

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.report.suites.compare import Turned
    from harness.report.suites.model import Ending, Pair, SuiteModel, SuiteResults

_HERE = Path(__file__).parent / "static"
_SHARED = Path(__file__).parents[1] / "static"
#: Causes that a row names before it is opened.
_NAMED = 2
#: Characters of the message that a row without a known cause names.
_BRIEF = 100
#: An engine in the name of a target: "Jetson, TensorRT 8.6.2".
_PRODUCT = re.compile(r"[A-Za-z][A-Za-z ]*?(?= \d)")
#: What only a failure fills in.
_BLANK = re.compile(r"<\w+>")
#: What to know of the results, for readers.
NOTE = (
    "Other choices would fail other models. An engine that needs no GPU is built where there is none, and then its "
    "numbers are not known. ONNX Runtime builds, runs and is held to the expected outputs, by the matrix's tolerances "
    "for the type that it ran in."
)


@dataclass(frozen=True)
class Way:
    """A way to fail in a row: the models that end so, all on the same targets."""

    ending: Ending
    targets: tuple[str, ...]
    models: tuple[str, ...]


@dataclass(frozen=True)
class RowView:
    """A row: how many models end in which class on each target, and the ways in which some do not work.

    `differs` says that a step between versions turns one of the models.
    """

    operator: str
    opset: str
    models: int
    cells: dict[str, dict[Class, int]]
    ways: tuple[Way, ...]
    causes: tuple[str, ...]
    differs: bool

    @property
    def classes(self) -> list[str]:
        """Return the classes in which a model ends on some target."""
        return sorted({str(cls) for cell in self.cells.values() for cls in cell})

    @property
    def failing(self) -> int:
        """Return how many models fail on some target."""
        return len({model for way in self.ways for model in way.models})


def render_suite(results: SuiteResults, name: str) -> str:
    """Return the page; the same bytes for the same results. `name` is that of its folder and of its JSON beside it."""
    style = "".join((_SHARED / f"{each}.css").read_text(encoding="utf-8") for each in ("style",))
    style += (_HERE / "suite.css").read_text(encoding="utf-8")
    script = (_HERE / "suite.js").read_text(encoding="utf-8")
    rows = _rows(results)
    operators = len({(row.operator, row.opset.rpartition(" ")[0]) for row in rows})
    products = _products(results)
    present = [cls for cls in Class if any(str(cls) in target.counts for target in results.targets)]
    return (
        _environment()
        .get_template("suite.html.j2")
        .render(
            results=results,
            name=name,
            data=f"{name}.json",
            style=Markup(style),  # noqa: S704  (a file of this package, under the hash that the policy names)
            script=Markup(script),  # noqa: S704
            policy=policy(style, script),
            rows=rows,
            classes=present,
            lead=_lead(results, products, operators),
            products=products,
            groups=groups(results),
            labels={target.id: target.label for target in results.targets},
            places={model.id: f"{model.operator} {model.opset}" for model in results.models},
            note=NOTE,
        )
    )


def _products(results: SuiteResults) -> list[str]:
    """Return what engines there are, in the words of their targets."""
    found = (_PRODUCT.search(target.label) for target in results.targets)
    return list(dict.fromkeys(each[0] for each in found if each))


def _lead(results: SuiteResults, products: Sequence[str], operators: int) -> str:
    """Return what the page is, in a sentence."""
    return (
        f"{len(results.models)} models of {operators} operator{'s' if operators != 1 else ''}, each with inputs and "
        f"expected outputs of its own: which of them each version of {' and '.join(products) or 'an engine'} takes, "
        "and what it fixed and broke."
    )


def groups(results: SuiteResults) -> list[tuple[str, list[Pair]]]:
    """Return the steps to the next version, those to another target of the same version, and the longer ones."""
    version = {target.id: target.version for target in results.targets}
    sides = {(pair.before, pair.after) for pair in results.versions}
    found: dict[str, list[Pair]] = {
        "": [],
        "The same version, built for something else:": [],
        "Longer steps:": [],
    }
    near, aside, far = found.values()
    for pair in results.versions:
        over = any({(pair.before, name), (name, pair.after)} <= sides for name in version)
        same = version[pair.before] == version[pair.after]
        (aside if same else far if over else near).append(pair)
    return [(told, pairs) for told, pairs in found.items() if pairs]


def _rows(results: SuiteResults) -> tuple[RowView, ...]:
    turned = {
        each.model
        for pair in results.versions
        for each in (*pair.step.fixed, *pair.step.broken, *pair.step.otherwise)
    }
    return tuple(_row(results, operator, opset, models, turned) for operator, opset, models in results.rows())


def _row(
    results: SuiteResults, operator: str, opset: str, models: Sequence[SuiteModel], turned: set[str]
) -> RowView:
    cells = {}
    for target in results.targets:
        found = Counter(
            results.endings[model.ended[target.id]].cls for model in models if target.id in model.ended
        )
        cells[target.id] = {cls: found[cls] for cls in Class if found[cls]}
    ways = _ways(results, models)
    causes = Counter[str]()
    for way in ways:
        if way.ending.signature:
            causes[_title(results, way.ending.signature, operator)] += len(way.models)
    return RowView(
        operator=operator,
        opset=opset,
        models=len(models),
        cells=cells,
        ways=ways,
        causes=tuple(title for title, _ in causes.most_common(_NAMED))
        or tuple(clip(way.ending.reason, _BRIEF) for way in ways[:1]),
        differs=any(model.id in turned for model in models),
    )


def _ways(results: SuiteResults, models: Sequence[SuiteModel]) -> tuple[Way, ...]:
    """Return how models do not work, what most do first."""
    on: dict[tuple[int, str], list[str]] = {}
    for model in models:
        for target, ending in model.ended.items():
            if not results.endings[ending].good:
                on.setdefault((ending, model.id), []).append(target)
    ways: dict[tuple[int, tuple[str, ...]], list[str]] = {}
    for (ending, model_id), targets in on.items():
        ways.setdefault((ending, tuple(targets)), []).append(model_id)
    found = [Way(results.endings[ending], targets, tuple(names)) for (ending, targets), names in ways.items()]
    return tuple(
        sorted(found, key=lambda way: (-len(way.models) * len(way.targets), way.models, way.targets))
    )


def _said(results: SuiteResults, ended: str, place: str) -> str:
    """Return how a model ended, in words: the class, and the cause where one is known."""
    cls, _, signature = ended.partition(" ")
    name = MARKS[Class(cls)].name.lower()
    if not signature:
        return name
    known = signature in results.advice
    return f"{name} ({_title(results, signature, place.partition(' ')[0]) if known else signature})"


def _title(results: SuiteResults, signature: str, operator: str) -> str:
    """Return what a cause is called where it is one of an operator; what else only a failure fills in is left open."""
    title = results.advice[signature].title.replace("<op>", operator).replace("<node>", "a node")
    return capital(_BLANK.sub("…", title.replace("<gpu>", "this GPU")))


def _kinds(pair: Pair) -> list[tuple[str, str, tuple[Turned, ...]]]:
    """Return the lists of a step that hold something: key of the style sheet, name, models."""
    every = (
        ("broken", "Broken", pair.step.broken),
        ("fixed", "Fixed", pair.step.fixed),
        ("otherwise", "Fails in another way", pair.step.otherwise),
    )
    return [each for each in every if each[2]]


def _alike(turned: Sequence[Turned], places: dict[str, str]) -> list[tuple[str, str, str, list[str]]]:
    """Return what turned by operator and how: place, before, after, models."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for each in turned:
        found.setdefault((places.get(each.model, ""), each.before, each.after), []).append(each.model)
    return [
        (*key, models)
        for key, models in sorted(found.items(), key=lambda entry: (entry[0][0].lower(), entry[0]))
    ]


@cache
def _environment() -> jinja2.Environment:
    made = environment(_HERE)
    made.globals.update(MARKS=MARKS, kinds=_kinds, alike=_alike, title=_title, said=_said)
    made.filters.update(day=day, capital=capital)
    return made
