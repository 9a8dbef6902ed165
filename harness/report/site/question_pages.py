"""The page of what users ask: each question is answered by what is measured and reported, and by nothing written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.report.site import paths
from harness.report.site.facts import Line, lines
from harness.report.site.material import Page, told

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.case.questions import Question
    from harness.report.model import TargetView, VariantView
    from harness.report.site.material import Material

#: What `phases` calls the parts of making an engine.
_BUILDING = ("parse", "build")


@dataclass(frozen=True)
class Answer:
    """What is known along the versions, and the variants of which all of it is known alike."""

    lines: tuple[Line, ...]
    variants: tuple[VariantView, ...]


@dataclass(frozen=True)
class Built:
    """Of how many bytes an engine was, and how many seconds it took to parse and build."""

    size: int
    seconds: float


@dataclass(frozen=True)
class Sizes:
    """The engines of variants, None where none was built: a row each, in the order of the targets."""

    targets: tuple[TargetView, ...]
    rows: tuple[tuple[VariantView, tuple[Built | None, ...]], ...]


@dataclass(frozen=True)
class Answered:
    """A question, its answers, those that the most variants share first, and the variants that say nothing yet."""

    question: Question
    answers: tuple[Answer, ...] = ()
    open: tuple[VariantView, ...] = ()
    sizes: Sizes | None = None


def question_pages(material: Material) -> Iterator[Page]:
    """Yield the page of all questions, none where nobody asks."""
    if not material.questions:
        return
    every = [answered(each, material) for each in material.questions]
    yield Page(
        paths.QUESTIONS,
        "Questions of TensorRT users, answered by measurements",
        " ".join(each.question.asks for each in every),
        "Questions",
        "questions.html.j2",
        {"every": every},
    )


def answered(question: Question, material: Material) -> Answered:
    """Return what the results say to a question; a guess says nothing."""
    if question.sizes:
        return Answered(question, sizes=_sizes(question, material))
    groups: dict[tuple[object, ...], list[VariantView]] = {}
    found: dict[tuple[object, ...], tuple[Line, ...]] = {}
    unknown = []
    for key in question.variants:
        if key not in material.variants:  # in results of another commit
            continue
        facts = [each for each in told(material.facts[key]) if each.target.engine == question.engine]
        if not facts:
            unknown.append(material.variants[key])
            continue
        of = lines(facts)
        alike = tuple(map(_said, of))
        found.setdefault(alike, of)
        groups.setdefault(alike, []).append(material.variants[key])
    ranked = sorted(groups, key=lambda alike: -len(groups[alike]))
    answers = tuple(Answer(found[alike], tuple(groups[alike])) for alike in ranked)
    return Answered(question, answers, tuple(unknown))


def _sizes(question: Question, material: Material) -> Sizes:
    built = {
        key: {
            each.target.id: Built(
                each.cell.engine_bytes, sum(each.cell.phases.get(one, 0.0) for one in _BUILDING)
            )
            for each in material.facts[key]
            if each.target.engine == question.engine and each.measured and each.cell.engine_bytes
        }
        for key in question.variants
        if key in material.variants
    }
    names = {name for every in built.values() for name in every}
    targets = tuple(each for each in material.results.targets if each.id in names)
    rows = (
        (material.variants[key], tuple(every.get(each.id) for each in targets))
        for key, every in built.items()
    )
    return Sizes(targets, tuple(rows))


def _said(line: Line) -> tuple[object, ...]:
    clauses = ((each.versions, each.first.said, each.first.graded) for each in line.clauses)
    return line.product, *clauses
