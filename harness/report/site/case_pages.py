"""The pages of cases and of their variants."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from harness.report.labels import ROLES
from harness.report.page.columns import gpus_of
from harness.report.past import sentences
from harness.report.site import paths
from harness.report.site.causes import causes
from harness.report.site.facts import lines
from harness.report.site.material import Page, guesses, told
from harness.report.site.titles import title_of, title_of_case, verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.report.model import CaseView, VariantView
    from harness.report.site.facts import Fact, Line
    from harness.report.site.material import Material

_TRAIL = (("Cases", paths.CASES),)


def case_pages(material: Material) -> Iterator[Page]:
    """Yield the list of cases, the page of each, and those of its variants."""
    cases = material.results.cases
    yield Page(
        paths.CASES,
        "TensorRT problems with small ONNX models that reproduce them",
        f"{len(cases)} problems that users of TensorRT met, {len(material.variants)} small models that reproduce, "
        "avoid or narrow them, and how each fares on every version.",
        "Cases",
        "cases.html.j2",
        {"cases": [(case, _news(material, case)) for case in cases]},
    )
    for case in cases:
        yield _case(material, case)
        for variant in case.variants:
            yield _variant(material, case, variant)


def _news(material: Material, case: CaseView) -> str:
    title = title_of_case(case, _facts(material, case))
    return title[len(case.title) + 2 :] if title.startswith(f"{case.title}: ") else ""


def _facts(material: Material, case: CaseView) -> list[list[Fact]]:
    return [material.facts[case.name, variant.name] for variant in case.variants]


def _case(material: Material, case: CaseView) -> Page:
    rows = [(variant, *_told(material, variant)) for variant in case.variants]
    return Page(
        paths.case(case.name),
        title_of_case(case, _facts(material, case)),
        case.summary,
        case.title,
        "case.html.j2",
        {
            "case": case,
            "rows": [(variant, known) for variant, known, _ in rows],
            "guesses": [(variant, guessed) for variant, _, guessed in rows if guessed],
            "roles": ROLES,
        },
        _TRAIL,
    )


def _told(material: Material, variant: VariantView) -> tuple[tuple[Line, ...], tuple[Line, ...]]:
    """Return what is measured or reported of a variant, and what is guessed."""
    facts = material.facts[variant.case, variant.name]
    bare = [each if not each.guessed else each.unknown for each in facts]
    return lines(bare), lines(each if each.guessed else each.unknown for each in facts)


class Row(NamedTuple):
    """Neighbouring targets of a series of which the same is known, and what to use there meanwhile."""

    facts: tuple[Fact, ...]
    instead: str

    @property
    def first(self) -> Fact:
        """Return one of them."""
        return self.facts[0]

    @property
    def many(self) -> int:
        """Return how many targets it is about."""
        return len(self.facts)

    @property
    def gpus(self) -> list[str]:
        """Return on what they were measured."""
        return sorted({gpu for each in self.facts if each.cell.measured for gpu in gpus_of(each.cell)})

    @property
    def days(self) -> list[str]:
        """Return when they were measured."""
        cells = [each.cell for each in self.facts if each.cell.measured]
        return sorted({cell.stamps.when[:10] for cell in cells if cell.stamps})


def _rows(material: Material, facts: Sequence[Fact]) -> list[Row]:
    def instead(each: Fact) -> str:
        # By its name no target would have a neighbour of which the same is told.
        return material.instead(each).replace(each.target.label, "it")

    def same(each: Fact) -> tuple[object, ...]:
        alone = each.target.id if each.cell.latency or len(each.cell.by_gpu) > 1 else ""
        why = each.advice.title if each.advice else ""
        known = each.said, each.graded, each.claim, why, instead(each), each.cell.lost
        return each.target.series, *known, alone

    every = (tuple(group) for _, group in groupby(facts, same))
    return [Row(alike, instead(alike[0])) for alike in every]


def _variant(material: Material, case: CaseView, variant: VariantView) -> Page:
    facts = material.facts[variant.case, variant.name]
    known, guessed = told(facts), guesses(facts)
    title = title_of(variant, facts)
    said = verdict(facts)
    model = paths.model(variant.case, variant.name)
    return Page(
        paths.variant(variant.case, variant.name),
        title,
        f"{variant.case}[{variant.name}]: {variant.title}. {said[:1].upper()}{said[1:]}{'. ' if said else ''}"
        f"{case.title}: result on every version, cause, workaround, model.",
        f"{variant.case}[{variant.name}]",
        "variant.html.j2",
        {
            "case": case,
            "variant": variant,
            "verdict": said,
            "role": ROLES[variant.role],
            "rows": _rows(material, known),
            "example": (known or facts)[0].cell.id,
            "guesses": guessed,
            "unknown": [each.target for each in facts if each.cls is None],
            "causes": causes(known),
            "past": [(each.target, list(sentences(each.cell))) for each in known if each.cell.history],
            "model": model if model in material.models else "",
            "archived": f"{variant.case}-{variant.name}.onnx",
            "by_hand": [(each.target, each.cell) for each in facts if each.cell.by_hand],
        },
        (*_TRAIL, (case.title, paths.case(case.name))),
    )
