"""The static pages beside the report: one for each error and each case, to link to and to be found by."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, partial
from urllib.parse import quote

import jinja2
from markupsafe import Markup, escape
from packaging.version import Version

from harness.case import Expectation
from harness.engines import ENGINES
from harness.judge.names import NameRow, load_names, replaced
from harness.judge.signatures import load_signatures
from harness.known.claim import says
from harness.known.model import CaseView, VariantView
from harness.report.errors import ErrorEntry, error_entries, range_of
from harness.report.labels import MARKS, ROLES
from harness.report.model import Results
from harness.report.page import STATIC, environment
from harness.text import capital, clip, visible
from harness.words import Basis

#: The list of all pages, their style sheet, which is the report's, and the report, each by its place beside the report.
LIST, STYLE, REPORT = "pages.html", "style.css", "index.html"
#: The changes from TensorRT 10 to 11, in one page.
UPGRADE = "upgrade-11.html"


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
    pages = {
        LIST: _filled("own_page.html.j2", results, LIST, "Errors and cases of TensorRT", errors=entries),
        UPGRADE: _upgrade(results, entries),
    }
    for entry in entries:
        page = page_of_error(entry.id)
        pages[page] = _filled(
            "own_page.html.j2",
            results,
            page,
            entry.title,
            description=f"{entry.cause} {entry.advice}",
            entry=entry,
            failing_so=[case for case in results.cases if entry.id in by_case[case.name]],
        )
    # The measured and reported cells of each variant.
    known = {variant.id: [cell for cell in cells if cell.basis] for variant, cells in results.rows()}
    for case in results.cases:
        page = page_of_case(case.name)
        pages[page] = _filled(
            "own_page.html.j2",
            results,
            page,
            case.title,
            description=case.summary,
            case=case,
            known={variant.name: known[variant.id] for variant in case.variants},
            errors=[entry for entry in entries if entry.id in by_case[case.name]],
        )
    return {**pages, STYLE: (STATIC / STYLE).read_text(encoding="utf-8")}


def _upgrade(results: Results, entries: Sequence[ErrorEntry]) -> str:
    """Return the page on TensorRT 11: signatures by topic, claims, boards, and every name that is gone."""
    by_id = {entry.id: entry for entry in entries}
    topics: dict[str, list[ErrorEntry]] = {}
    for signature in load_signatures():
        if signature.upgrade_11:
            topics.setdefault(signature.upgrade_11, []).append(by_id[signature.id])
    return _filled(
        "upgrade_11.html.j2",
        results,
        UPGRADE,
        "From TensorRT 10 to 11",
        description="Calibrators, precision flags, plugins, plans and names of TensorRT that 11 no longer takes.",
        topics=topics,
        claims=_claims_of_11(results),
        boards=[target for target in results.targets if target.jetpack],
        gone=_gone(),
    )


def _claims_of_11(results: Results) -> list[tuple[CaseView, VariantView, Expectation]]:
    """Return the reported claims of TensorRT from some 11 on that no topic holds."""
    answered = {signature.id for signature in load_signatures() if signature.upgrade_11}
    return [
        (case, variant, claim)
        for case in results.cases
        for variant in case.variants
        for claim in variant.claims
        if ENGINES[claim.engine].by_major and claim.basis is Basis.REPORTED and claim.source
        if re.search(r"[>=~]=11\b", claim.versions or "") and claim.signature not in answered
    ]


def _gone() -> dict[str, list[NameRow]]:
    """Return the names that are gone by the first version without them, the newest version first."""
    yet = {signature.id for signature in load_signatures() if signature.not_yet}
    rows = [row for row in load_names() if row.signature not in yet]
    versions = sorted({row.since for row in rows}, key=Version, reverse=True)
    return {version: [row for row in rows if row.since == version] for version in versions}


def _filled(template: str, results: Results, here: str, heading: str, **shown: object) -> str:
    """Return a page filled in; `here` is its place beside the report, `shown` the names that its template asks for."""
    top = "../" if "/" in here else ""
    more = {"description": heading, "entry": None, "case": None, "errors": (), **shown}
    return (
        templates()
        .get_template(template)
        .render(
            results=results,
            here=here,
            heading=heading,
            title=f"{visible(heading)} | TensorRT compatibility",
            top=top,
            report=top + REPORT,
            **more,
        )
    )


@cache
def templates() -> jinja2.Environment:
    """Return the templates of the page and of those beside it."""
    made = environment(STATIC)
    made.globals.update(
        MARKS=MARKS, ROLES=ROLES, REPLACED=replaced(), LIST=LIST, STYLE=STYLE, UPGRADE=UPGRADE
    )
    made.globals.update(page_of_case=page_of_case, page_of_error=page_of_error)
    made.filters.update(says=says, range_of=range_of, anchor=_anchor, capital=capital, blanks=_blanks)
    made.filters.update(brief=partial(clip, limit=240), brief_address=_brief_address)
    return made


def _anchor(cell: str) -> str:
    """Return the link to a cell by its id, as the report's script reads it."""
    return "#" + quote(cell.encode("utf-8", "replace"), safe="-_.!~*'()")


def _blanks(text: str) -> Markup:
    """Mark the blanks that only a failure fills in, <node>."""
    return Markup(re.sub(r"&lt;(\w+)&gt;", r"<var>\1</var>", str(escape(visible(text)))))  # noqa: S704  (escaped)


def _brief_address(url: str) -> str:
    """Return the part that tells an address from others: the thread, or the host and the last part."""
    thread = re.fullmatch(r"https://github\.com/([^/]+/[^/]+)/(?:issues|pull)/(\d+)", url)
    plain = url.removeprefix("https://")
    return f"{thread[1]}#{thread[2]}" if thread else f"{plain.partition('/')[0]}, {plain.rpartition('/')[2]}"


def _signatures(results: Results) -> dict[str, set[str]]:
    """Return the signatures that variants of each case were measured, or are reported, to fail by."""
    found: dict[str, set[str]] = {case.name: set() for case in results.cases}
    for cell in results.cells:
        if cell.measured and cell.signature:
            found[cell.case].add(cell.signature)
    for variant in results.variants:
        found[variant.case].update(claim.signature for claim in variant.claims if claim.signature)
    return found
