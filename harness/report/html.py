"""The page: one HTML file with its style, script and data inside, which asks nothing of any network."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from harness.report.counts import attention, clusters, counts
from harness.report.labels import BUCKETS, CORNERS, MARKS, ROLES, bucket
from harness.report.pagedata import page_data
from harness.report.text import capital, clip, visible
from harness.words import Class

if TYPE_CHECKING:
    from harness.report.model import CellView, Results, TargetView, Timing, VariantView

_PAGE = Path(__file__).parent / "page"
#: A name longer than this is cut in the table; the panel shows it whole.
_NAME_LIMIT = 160
#: Cells named in a cluster or a list; the rest are counted.
_NAMED_CELLS = 12
_FEW_CELLS = 4
#: An engine message in a list of news is cut; the panel shows it whole.
_BRIEF = 240


def render(results: Results) -> str:
    """Return the page; the same bytes for the same results."""
    style, script = _asset("style.css"), _asset("page.js")
    tally = counts(results)
    by_row: dict[tuple[str, str], list[CellView]] = {}
    for cell in results.cells:
        by_row.setdefault((cell.case, cell.variant), []).append(cell)
    return (
        _environment()
        .get_template("index.html.j2")
        .render(
            results=results,
            style=Markup(style),  # noqa: S704  (a file of this package, under the hash that the policy names)
            script=Markup(script),  # noqa: S704
            policy=_policy(style, script),
            data=Markup(page_data(results)),  # noqa: S704  (no "<" is left in it)
            tally=tally,
            total=len(results.cells),
            groups=[
                (name, list(found)) for name, found in groupby(results.targets, lambda each: each.family)
            ],
            row_cells=by_row,
            attention=attention(results),
            changes=_changes(results),
            clusters=clusters(results),
            runs=_runs(results),
            differing={(change.case, change.variant) for change in results.changes},
        )
    )


def _asset(name: str) -> str:
    return (_PAGE / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; style-src 'sha256-{_sha256(style)}'; script-src 'sha256-{_sha256(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_PAGE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.globals.update(MARKS=MARKS, BUCKETS=BUCKETS, CORNERS=CORNERS, ROLES=ROLES)
    made.globals.update(Class=Class, NAMED=_NAMED_CELLS, FEW=_FEW_CELLS)
    made.filters.update(brief=_brief, capital=capital, name=_name, look=_look, words=_words)
    return made


def _name(text: str) -> str:
    return clip(visible(text), _NAME_LIMIT)


def _brief(text: str) -> str:
    return clip(text, _BRIEF)


def _shown(value: Any) -> Any:  # noqa: ANN401  (whatever the template prints)
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _look(cell: CellView, variant: VariantView) -> dict[str, str]:
    """Return what the table cell shows: badge, class names, chip, time."""
    where = bucket(cell)
    shown = variant.expectations[cell.documented[0]].outcome if where == "documented" else cell.cls
    mark = MARKS[shown]
    return {
        "letters": mark.letters,
        "classes": f"{mark.shape} k-{shown} b-{where}",
        "corner": CORNERS.get(cell.verdict, "") if cell.measured else "",
        "under": "doc" if where == "documented" else "old" if where == "stale" else cell.chip,
        "time": _time(cell.latency) if cell.latency else "",
    }


def _words(cell: CellView, variant: VariantView) -> str:
    """Return the cell in full words, for the tooltip and for screen readers."""
    where = bucket(cell)
    if where == "documented":
        claims = [variant.expectations[index] for index in cell.documented]
        told = "; ".join(f"{MARKS[claim.outcome].name.lower()} ({claim.certainty})" for claim in claims)
        return f"Not run here. Documented: {told}"
    if not cell.measured:
        return f"{BUCKETS[where][0]}: {clip(cell.reason or cell.sentence, 200)}"
    parts = [f"{BUCKETS[where][0]}: {MARKS[cell.cls].name.lower()}", cell.chip]
    if cell.latency:
        parts.append(
            f"median {_milliseconds(cell.latency.median)}{', too noisy' if cell.latency.noise else ''}"
        )
    if cell.diagnosis:
        parts.append(cell.diagnosis.title)
    return ". ".join(part for part in parts if part)


def _time(latency: Timing) -> str:
    """Return the median, marked as approximate where the samples are too noisy to compare."""
    return f"{'≈' if latency.noise else ''}{_milliseconds(latency.median)}"


def _milliseconds(value: float) -> str:
    if value < 0.1:  # noqa: PLR2004
        return f"{value * 1000:.3g} µs"
    return f"{value:.3g} ms" if value < 1000 else f"{value:.0f} ms"  # noqa: PLR2004


def _changes(results: Results) -> list[tuple[str, str, list[Any]]]:
    rows = groupby(results.changes, lambda change: (change.case, change.variant))
    return [(case, variant, list(found)) for (case, variant), found in rows]


def _runs(results: Results) -> dict[str, Any]:
    """Return when, by what and where the results that are shown were made."""
    stamps = [cell.stamps for cell in results.cells if cell.stamps]
    whens = sorted(stamp.when for stamp in stamps if stamp.when)
    gpus = {stamp.environment.get("gpu", "") for stamp in stamps} - {""}
    measured: list[TargetView] = [target for target in results.targets if target.stamps]
    return {
        "first": whens[0] if whens else "",
        "last": whens[-1] if whens else "",
        "harness": sorted({stamp.harness_version for stamp in stamps} - {""}),
        "gpus": sorted(gpus),
        "measured": measured,
        "cells": sum(cell.measured for cell in results.cells),
    }
