"""The static pages beside the report: one for each error and each case, to link to and to be found by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.report.claimed import says
from harness.report.errors import error_entries, range_of
from harness.report.page.html import STYLES, asset, page_templates
from harness.report.page.looks import look
from harness.text import visible
from harness.words import Grade

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.report.errors import ErrorEntry
    from harness.report.model import CaseView, CellView, Results

#: The list of all pages, their style sheet, which is the report's, and the report, each by its place beside the report.
LIST, STYLE, REPORT = "pages.html", "style.css", "index.html"


def page_of_error(signature: str) -> str:
    """Return the place of an error's page."""
    return f"errors/{signature}.html"


def page_of_case(name: str) -> str:
    """Return the place of a case's page."""
    return f"cases/{name}.html"


def own_pages(results: Results) -> dict[str, str]:
    """Return every page, their list and their style sheet by its place; the same text for the same results."""
    entries = error_entries(results)
    by_case = _signatures(results)
    pages = {LIST: _page(results, "Errors and cases of TensorRT", errors=entries)}
    for entry in entries:
        pages[page_of_error(entry.id)] = _page(
            results,
            entry.title,
            description=f"{entry.cause} {entry.advice}",
            entry=entry,
            failing_so=[case for case in results.cases if entry.id in by_case[case.name]],
        )
    rows = _rows(results)
    for case in results.cases:
        pages[page_of_case(case.name)] = _page(
            results,
            case.title,
            description=case.summary,
            case=case,
            known={variant.name: rows[case.name, variant.name] for variant in case.variants},
            errors=[entry for entry in entries if entry.id in by_case[case.name]],
        )
    return {**pages, STYLE: "".join(map(asset, STYLES))}


def _page(  # noqa: PLR0913  (what a page may show)
    results: Results,
    heading: str,
    description: str = "",
    *,
    entry: ErrorEntry | None = None,
    case: CaseView | None = None,
    known: dict[str, list[tuple[CellView, dict[str, str]]]] | None = None,
    errors: Sequence[ErrorEntry] = (),
    failing_so: Sequence[CaseView] = (),
) -> str:
    top = "../" if entry or case else ""
    made = page_templates()
    made.filters.update(says=says, range_of=range_of)
    return made.get_template("own_page.html.j2").render(
        results=results,
        heading=heading,
        title=f"{visible(heading)} | TensorRT compatibility",
        description=description or heading,
        top=top,
        report=top + REPORT,
        entry=entry,
        case=case,
        known=known,
        errors=errors,
        failing_so=failing_so,
        page_of_case=page_of_case,
        page_of_error=page_of_error,
        LIST=LIST,
        STYLE=STYLE,
    )


def _signatures(results: Results) -> dict[str, set[str]]:
    """Return the signatures that variants of each case were measured, or are reported, to fail by."""
    found: dict[str, set[str]] = {case.name: set() for case in results.cases}
    for cell in results.cells:
        if cell.measured and cell.signature:
            found[cell.case].add(cell.signature)
    for case in results.cases:
        for variant in case.variants:
            claims = variant.expectations
            found[case.name].update(claim.signature for claim in claims if claim.signature)
    return found


def _rows(results: Results) -> dict[tuple[str, str], list[tuple[CellView, dict[str, str]]]]:
    """Return of each variant the cells of which something is measured or reported, with how each looks."""
    variants = {(variant.case, variant.name): variant for case in results.cases for variant in case.variants}
    rows: dict[tuple[str, str], list[tuple[CellView, dict[str, str]]]] = {key: [] for key in variants}
    for cell in results.cells:
        if cell.measured or cell.grade in (Grade.MEASURED, Grade.REPORTED):
            key = cell.case, cell.variant
            rows[key].append((cell, look(cell, variants[key])))
    return rows
