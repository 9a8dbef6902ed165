"""The page: one HTML file with its style, script and data inside, which asks nothing of any network."""

from __future__ import annotations

import re
from functools import cache
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import jinja2
from markupsafe import Markup, escape

from harness.engines import ENGINES
from harness.judge.names import replaced
from harness.report.by_gpu import DISAGREE
from harness.report.compare.grouped import grouped
from harness.report.compare.pairs import Column
from harness.report.compare.upgrade import default_pair, upgrade
from harness.report.counts import attention, clusters, counts, nobody_ran
from harness.report.errors import error_entries
from harness.report.further import further_rows
from harness.report.labels import BUCKETS, CORNERS, KINDS, MARKS, READING, ROLES
from harness.report.page.cells import told_spans
from harness.report.page.columns import NO_GPU, gpus_of, groups, label_of, short_digest
from harness.report.page.data import page_data
from harness.report.page.looks import look, spoken
from harness.report.page.models import LONGEST_MODEL
from harness.report.page.steps import offered, starts
from harness.report.past import NEWS, TREND_MARKS, day, news
from harness.report.project import addresses
from harness.report.templates import environment, policy
from harness.text import capital, clip, visible
from harness.words import Class, Engine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.report.compare.rows import Row
    from harness.report.model import CellView, Results

_PAGE = Path(__file__).parent / "static"
#: A name longer than this is cut in the table; the panel shows it whole.
_NAME_LIMIT = 160
#: Cells named in a cluster or a list; the rest are counted.
_NAMED_CELLS = 12
_FEW_CELLS = 4
#: An engine message in a list of news is cut; the panel shows it whole.
_BRIEF = 240
#: A matrix of more cells is drawn by the script, as far as it is scrolled to: 250 bytes a cell are a quarter of a
#: megabyte for 1000, and a filter has to lay all of them out anew.
_STATIC_CELLS = 500
#: A larger matrix than that has no table for readers without scripts: 40 bytes a cell.
_PLAIN_CELLS = 8000
#: A cell of that table; those of the matrix have a class too.
_BARE_CELL = re.compile(r'<td id="([^"]*)">')
#: Variants named under what changed, over all changes; every change is told.
_MOST_CHANGES = 400
#: Variants named under one cause of failures, each with all targets that it fails on.
_MOST_FAILING = 60
#: Rows of one kind shown before "more".
_STEP_ROWS = 8
_MOST_STEP_ROWS = 100
#: What changed from run to run: rows shown, rows with those behind "earlier", cells named in a row.
_NEWS_ROWS, _MOST_NEWS, _NEWS_CELLS = 12, 100, 3
#: No literal of the scripts is longer than a line.
_NO_CODE = re.compile(r"^ *(?:(?://.*|/\*\*(?:(?!\*/).)*\*/) *\n)?", re.MULTILINE)
#: The style sheets, in the order in which they overrule one another.
STYLES = ("style.css", "matrix.css", "compact.css", "panel.css", "errors.css", "media.css")
#: In the order in which they rely on one another.
_SCRIPTS = (
    *("base", "step", "asked", "query", "folds", "matrix", "sight", "graph", "layers", "panel"),
    *("heads", "explain", "paste", "main"),
)


def render(
    results: Results, models: Mapping[str, bytes] | None = None, suites: Mapping[str, str] | None = None
) -> str:
    """Return the page; the same bytes for the same results.

    `models` are files by their place beside it, of which it holds the small ones; `suites` are the titles of the pages
    that it links to, by their place.
    """
    style, script = "".join(map(asset, STYLES)), _script()
    data, behind = page_data(results, models)
    page = (
        page_templates()
        .get_template("index.html.j2")
        .render(
            results=results,
            report="",
            style=Markup(style),  # noqa: S704  (a file of this package, under the hash that the policy names)
            script=Markup(script),  # noqa: S704
            policy=policy(style, script),
            data=Markup(data),  # noqa: S704  (no "<" is left in it)
            behind=Markup(behind),  # noqa: S704  (nor in this)
            total=len(results.cells),
            project=addresses(),
            suites=suites or {},
            static=len(results.cells) <= _STATIC_CELLS,
            bare=len(results.cells) <= _PLAIN_CELLS,
            **_sections(results),
        )
    )
    return _without_idle_ids(page)


def _sections(results: Results) -> dict[str, Any]:
    """Return what the sections show, by the names that the template has for it."""
    tally, pair = counts(results), default_pair(results)
    labels = {target.id: label_of(target) for target in results.targets}
    by_row: dict[tuple[str, str], list[CellView]] = {}
    for cell in results.cells:
        by_row.setdefault((cell.case, cell.variant), []).append(cell)
    return {
        "tally": tally,
        "lead": nobody_ran(results),
        "groups": groups(results),
        "row_cells": by_row,
        "attention": attention(results),
        "changes": grouped(results.changes, _MOST_CHANGES),
        "pair": pair,
        "step": upgrade(*(Column(results, each, labels.get(each, "")) for each in pair)),
        "offered": offered(results).said,
        "starts": starts(results),
        "clusters": clusters(results),
        "errors": error_entries(results),
        "news": news(results),
        "further": further_rows(results.further),
        "runs": _runs(results),
    }


def _without_idle_ids(page: str) -> str:
    """Return the page whose table for readers without scripts names those cells alone that a link leads to."""
    linked = set(re.findall(r'href="(#[^"]*)"', page))
    return _BARE_CELL.sub(
        lambda found: found[0] if str(escape(_anchor(unescape(found[1])))) in linked else "<td>", page
    )


def asset(name: str) -> str:
    """Return the text of a style sheet or script."""
    return (_PAGE / name).read_text(encoding="utf-8")


def _script() -> str:
    """Return the scripts without indents and without lines that are remarks alone."""
    first, *bodies = [_NO_CODE.sub("", asset(f"{name}.js")) for name in ("unpack", *_SCRIPTS)]
    whole = "".join([first, "const data = await allData();\n", *bodies])
    return f'"use strict";\n(async () => {{\n{whole}}})();\n'


@cache
def page_templates() -> jinja2.Environment:
    """Return the templates of the report and of the pages beside it."""
    made = environment(_PAGE)
    made.globals.update(MARKS=MARKS, BUCKETS=BUCKETS, CORNERS=CORNERS, ROLES=ROLES)
    made.globals.update(NEWS=NEWS, TREND_MARKS=TREND_MARKS, MOST_NEWS=_MOST_NEWS, NEWS_ROWS=_NEWS_ROWS)
    made.globals.update(READING=READING)
    made.globals.update(NEWS_CELLS=_NEWS_CELLS, DISAGREE=DISAGREE)
    made.globals.update(
        Class=Class, Engine=Engine, NAMED=_NAMED_CELLS, FEW=_FEW_CELLS, MOST_FAILING=_MOST_FAILING
    )
    made.globals.update(REPLACED=replaced())
    made.globals.update(KINDS=KINDS, STEP_ROWS=_STEP_ROWS, MOST_STEP_ROWS=_MOST_STEP_ROWS)
    made.filters.update(anchor=_anchor)
    made.filters.update(day=day, brief=_brief, capital=capital, name=_name, cut=_cut, brief_name=_brief_name)
    made.globals.update(LONGEST_MODEL=LONGEST_MODEL)
    made.globals.update(look_of=look, words_of=spoken, used=_used, together=_together, shared=_shared)
    made.filters.update(short_digest=short_digest, told_spans=told_spans, blanks=_blanks)
    made.filters.update(brief_address=_brief_address)
    return made


def _name(text: str) -> str:
    return clip(visible(text), _NAME_LIMIT)


def _anchor(cell: str) -> str:
    """Return the link to a cell by its id, as the script reads it and a browser without scripts follows it."""
    return "#" + quote(cell.encode("utf-8", "replace"), safe="-_.!~*'()")


def _brief(text: str) -> str:
    return clip(text, _BRIEF)


def _brief_name(text: str) -> str:
    return clip(visible(text), 60)


def _used(rows: Sequence[Row]) -> list[str]:
    """Return the columns in which one of the rows says something."""
    return [name for name in ("text", "cause", "instead", "sure") if any(getattr(row, name) for row in rows)]


def _together(rows: Sequence[Row]) -> list[list[Row]]:
    """Return rows of one kind in groups of one cause, with the same to do about it, as sure; as the script does."""
    found: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        same = (row.cause or row.text, row.cause, row.instead, row.sure, row.seen, row.signature)
        found.setdefault(same, []).append(row)
    return list(found.values())


def _shared(rows: Sequence[Row], field: str) -> str:
    """Return what rows have in common: where they differ, each without what stands in brackets behind it."""
    said = dict.fromkeys(str(getattr(row, field)) for row in rows)
    plain = dict.fromkeys(re.sub(r" \([^()]*\)$", "", text) for text in said)
    return "; ".join(plain if len(said) > 1 else said)


def _blanks(text: str) -> Markup:
    """Mark what only a failure fills in, <node>: the script fills it in where somebody pastes one."""
    return Markup(re.sub(r"&lt;(\w+)&gt;", r"<var>\1</var>", str(escape(visible(text)))))  # noqa: S704  (escaped)


def _brief_address(url: str) -> str:
    """Return what tells an address apart: the thread, or the host and the last part."""
    thread = re.fullmatch(r"https://github\.com/([^/]+/[^/]+)/(?:issues|pull)/(\d+)", url)
    plain = url.removeprefix("https://")
    return f"{thread[1]}#{thread[2]}" if thread else f"{plain.partition('/')[0]}, {plain.rpartition('/')[2]}"


def _cut(text: str) -> str:
    return clip(text, 600)


def _runs(results: Results) -> dict[str, Any]:
    """Return when, by what and where the results that are shown were made."""
    stamps = [cell.stamps for cell in results.cells if cell.stamps]
    whens = sorted(stamp.when for stamp in stamps if stamp.when)
    return {
        "first": whens[0] if whens else "",
        "last": whens[-1] if whens else "",
        "harness": sorted({stamp.harness_version for stamp in stamps} - {""}),
        "commits": sorted({stamp.harness_commit for stamp in stamps} - {""}),
        "where": _where(results),
        "cells": sum(cell.measured for cell in results.cells),
    }


def _where(results: Results) -> str:
    """Say which targets were measured on which GPU, and which without one."""
    used: dict[str, set[str]] = {}
    for cell in results.cells:
        if cell.measured and cell.stamps:
            for gpu in gpus_of(cell):
                used.setdefault(gpu, set()).add(cell.target)
    bare = used.pop(NO_GPU, set())
    said = [f"{_listed(results, used[gpu])} on {gpu}" for gpu in sorted(used)]
    if bare:
        engines = {Engine(target.engine) for target in results.targets if target.id in bare}
        apart = any(ENGINES[engine].builds_apart for engine in engines)
        built = " (TensorRT engines built, not run)" if apart else ""
        said.append(f"{_listed(results, bare)} without a GPU{built}")
    return "; ".join(said)


def _listed(results: Results, targets: set[str]) -> str:
    return ", ".join(target.id for target in results.targets if target.id in targets)
