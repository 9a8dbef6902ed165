"""The data inside the page: what the first screen needs, the steps between columns and the evidence, each packed."""

from __future__ import annotations

import json
import re
import zlib
from typing import TYPE_CHECKING, Any

from harness.report.compare.steps import Steps
from harness.report.page.called import Called, called
from harness.report.page.cells import facts, grid_of, rows_of
from harness.report.page.columns import label_of
from harness.report.page.explaining import packed as packed_errors
from harness.report.page.models import held
from harness.report.page.packing import pack, table, unsqueezed
from harness.report.page.panel import cell_evidence, variant_evidence
from harness.report.page.steps import packed_steps
from harness.report.project import addresses

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.report.model import CaseView, CellView, Results, VariantView

    Rows = Sequence[tuple[tuple[CaseView, VariantView], Sequence[CellView]]]

#: Rows that are unpacked together: more compress better, fewer open faster.
_CHUNK_ROWS = 16
#: Bytes of packed evidence: so much in any page, and so much more for each cell. What does not fit is left out, the
#: rows in which all is as expected first; results.json has it.
_EVIDENCE_BYTES, _EVIDENCE_BYTES_A_CELL = 400_000, 120
_PACKED = re.compile(r'(?<="packed":")[^"]+(?=")')


def page_data(results: Results, models: Mapping[str, bytes] | None = None) -> tuple[str, str]:
    """Return the JSON text that the page starts with, and that of evidence and models, which nothing waits for.

    Both are safe inside a <script> element, and the same bytes for the same results and zlib. `models` are files by
    their place beside the page.
    """
    rows = list(zip(rows_of(results), grid_of(results), strict=True))
    steps = Steps(results, {target.id: label_of(target) for target in results.targets})
    beside = held(models or {})
    known = addresses()
    steps_to, packed = packed_steps(steps)
    start = {
        **facts(results, steps),
        **steps_to,
        "issues": known["issues"],
        "home": known["home"],
        "called": table(Called, called(results)),
    }
    data = {
        "start": {"packed": pack([start])},
        **packed,
        "errors": {"packed": packed_errors()},
    }
    behind = {"evidence": _evidence(rows, steps, beside.places), "models": {"packed": beside.packed}}
    return _json(data), _json(behind)


def _json(data: dict[str, Any]) -> str:
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e")


def unpacked(page: str) -> str:
    """Return a page with what is packed in plain: another build of zlib packs the same into other bytes."""
    return _PACKED.sub(_plain, page)


def _plain(packed: re.Match[str]) -> str:
    try:
        return unsqueezed(packed.group()).decode("latin-1")
    except (ValueError, zlib.error):
        return packed.group()


def _evidence(rows: Rows, steps: Steps, models: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return chunks: packed rows with their numbers; in a matrix that may not fit, rows with news come first."""
    cells = len(steps.results.cells)
    budget = _EVIDENCE_BYTES + _EVIDENCE_BYTES_A_CELL * cells
    order = (
        sorted(range(len(rows)), key=lambda index: (not _news(rows[index][1]), index))
        if cells > _MANY
        else range(len(rows))
    )
    chunks: list[dict[str, Any]] = []
    for start in range(0, len(rows), _CHUNK_ROWS):
        numbers = list(order[start : start + _CHUNK_ROWS])
        packed = pack(_row(index, *rows[index], steps, models) for index in numbers)
        budget -= len(packed)
        if budget < 0:
            break
        chunks.append({"packed": packed, "rows": numbers})
    return chunks


#: Below this many cells everything fits, and neighbours in the table are best packed together.
_MANY = 5000
_NO_NEWS = frozenset({"expected", "known_failure", "fails_when_run", "not_run"})


def _news(cells: Sequence[CellView]) -> bool:
    return any(str(cell.verdict) not in _NO_NEWS for cell in cells)


def _row(
    index: int,
    names: tuple[CaseView, VariantView],
    cells: Sequence[CellView],
    steps: Steps,
    models: Mapping[str, Any],
) -> dict[str, Any]:
    runs = steps.results.runs
    found = [
        cell_evidence(
            cell,
            names[1],
            runs,
            steps.instead(index, column),
        )
        for column, cell in enumerate(cells)
    ]
    return {"variant": variant_evidence(*names, models), "cells": found}
