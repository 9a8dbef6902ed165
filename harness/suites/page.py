"""The first page of a suite: how many models of each operator end in which class, by target and by NVIDIA's tables."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
from markupsafe import Markup

from harness.known.listed import State
from harness.known.model import Known, VariantView
from harness.matrix.operators import operator_tables
from harness.report.labels import day
from harness.report.model import Results
from harness.report.page import STATIC
from harness.report.pages import templates
from harness.suites.running import RECIPE, About
from harness.words import GOOD, UNJUDGED, Class, Mark

_STATIC = Path(__file__).parent / "static"
#: The page with every cell, by its place beside this one.
CELLS = "cells.html"
#: Notes on the results, for readers.
NOTE = (
    f"Built as {RECIPE}. Other choices would fail other models. An engine that needs no GPU is built without one, and "
    "then its numbers are not known. ONNX Runtime builds, runs and is held to the expected outputs, by the matrix's "
    "tolerances for the type that it ran in."
)
#: The marks of the states in NVIDIA's operator tables.
TABLED = {
    State.BLOCKED: Mark(
        "fails", "✕", "square", "Blocked", "no importer, not this type, or a broken restriction"
    ),
    State.RESTRICTED: Mark("lost", "!", "tab", "Restricted", "the graph does not decide a restriction"),
    State.UNKNOWN: Mark("unknown", "?", "tab", "Unknown", "needs a plugin, or the graph was not read"),
    State.CLEAR: Mark("unknown", "○", "none", "Clear", "nothing against it, which is no promise"),
}


@dataclass(frozen=True)
class OperatorRow:
    """An operator at an opset: how many of its models end in which class by target, in which state by table."""

    operator: str
    opset: str
    cells: dict[str, Counter[Class]]
    tables: dict[str, Counter[State]]


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
    rows = [
        _row(about, *place, list(rows))
        for place, rows in itertools.groupby(results.rows(), lambda row: about.models[row[0].name])
    ]
    made = templates().overlay(loader=jinja2.FileSystemLoader((_STATIC, STATIC)))
    return made.get_template("suite.html.j2").render(
        {"TABLED": TABLED, "Class": Class, "NOTE": NOTE, "CELLS": CELLS, "day": day},
        about=about,
        results=results,
        rows=rows,
        counts={each.id: sum((row.cells[each.id] for row in rows), Counter()) for each in results.targets},
        tables=[table for table in operator_tables() if any(table.release in row.tables for row in rows)],
        style=Markup((STATIC / "style.css").read_text(encoding="utf-8")),  # noqa: S704  (a file of this package)
    )


def _row(
    about: About, operator: str, opset: str, rows: Sequence[tuple[VariantView, Sequence[Known]]]
) -> OperatorRow:
    cells: dict[str, Counter[Class]] = defaultdict(Counter)
    for _, every in rows:
        for cell in every:
            cells[cell.target][cell.cls] += cell.cls not in UNJUDGED
    tables: dict[str, Counter[State]] = defaultdict(Counter)
    for variant, _ in rows:
        for finding, releases in about.tables.get(variant.name, ()):
            for release in releases:
                tables[release][finding.state] += 1
    return OperatorRow(operator, opset, cells, tables)
