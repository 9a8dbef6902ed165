"""The data inside the page: facts of every cell as plain JSON; the steps between columns and the evidence packed."""

from __future__ import annotations

import base64
import json
import re
import zlib
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata
from typing import TYPE_CHECKING, Any

from harness.report.compare.steps import Steps
from harness.report.page.called import Called, called
from harness.report.page.cells import facts, grid_of, rows_of
from harness.report.page.packing import clean, pack, table
from harness.report.page.panel import cell_evidence, variant_evidence
from harness.report.page.recognise import packed as packed_errors
from harness.report.page.steps import packed_steps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.report.model import CaseView, CellView, Results, VariantView

    Rows = Sequence[tuple[tuple[CaseView, VariantView], Sequence[CellView]]]

#: Rows that are unpacked together: more compress better, fewer open faster.
_CHUNK_ROWS = 16
#: Bytes of packed evidence: so much in any page, and so much more for each cell. What does not fit is left out, the
#: rows in which all is as expected first; results.json has it.
_EVIDENCE_BYTES, _EVIDENCE_BYTES_A_CELL = 400_000, 36
#: Labels of an address that takes reports, as packages name it.
_ISSUES = frozenset({"issues", "bug tracker", "issue tracker", "tracker"})
_PACKED = re.compile(r'(?<="packed":")[A-Za-z0-9+/=]+(?=")')


#: A model of so many bytes is in the page, so that it needs no file beside it, and so many bytes of models altogether:
#: the smallest first.
LONGEST_MODEL, MOST_MODELS = 64 << 10, 1 << 20


def page_data(
    results: Results, archives: Sequence[str] = (), models: Mapping[str, bytes] | None = None
) -> str:
    """Return the JSON text, safe inside a <script> element; the same bytes for the same results and zlib.

    `archives` are what the page finds packed beside it, `models` files by their place.
    """
    rows = list(zip(rows_of(results), grid_of(results), strict=True))
    steps = Steps(results)
    plain = clean(facts(results, steps))
    packed = {
        **packed_steps(steps),
        "evidence": _evidence(rows, steps, _held(models or {})),
        "errors": {"packed": packed_errors()},
    }
    asked = {"called": table(Called, called(results))}
    data = {**plain, "archives": list(archives), "issues": issues_page(), **asked, **packed}
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e")


@cache
def issues_page() -> str:
    """Return the address at which this project takes reports, as its package names it, or ""."""
    try:
        named = metadata("trt-compat").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    found = [str(entry).partition(", ") for entry in named]
    return next(
        (url for label, _, url in found if label.lower() in _ISSUES and url.startswith("https://")), ""
    )


def unpacked(page: str) -> str:
    """Return a page with what is packed in plain: another build of zlib packs the same into other bytes."""
    return _PACKED.sub(_plain, page)


def _plain(packed: re.Match[str]) -> str:
    try:
        return zlib.decompress(base64.b64decode(packed.group())).decode()
    except (ValueError, zlib.error):
        return packed.group()


def _held(models: Mapping[str, bytes]) -> dict[str, str]:
    """Return the models that the page holds, in Base64 by the file's name; equal ones count once."""
    held: dict[str, str] = {}
    last, total = b"", 0
    for name, data in sorted(models.items(), key=lambda entry: (len(entry[1]), entry[1], entry[0])):
        total += 0 if data == last else len(data)
        if len(data) > LONGEST_MODEL or total > MOST_MODELS:
            break
        last = data
        held[name.rpartition("/")[2]] = base64.b64encode(data).decode()
    return held


def _evidence(rows: Rows, steps: Steps, models: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return chunks: packed rows with their numbers; in a matrix that may not fit, rows with news come first."""
    cells = len(steps.results.cells)
    budget = _EVIDENCE_BYTES + _EVIDENCE_BYTES_A_CELL * cells + sum(map(len, models.values()))
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
_NO_NEWS = frozenset({"expected", "known_failure", "not_run"})


def _news(cells: Sequence[CellView]) -> bool:
    return any(str(cell.verdict) not in _NO_NEWS for cell in cells)


def _row(
    index: int,
    names: tuple[CaseView, VariantView],
    cells: Sequence[CellView],
    steps: Steps,
    models: Mapping[str, str],
) -> dict[str, Any]:
    runs = steps.results.runs
    found = [
        cell_evidence(
            cell,
            names[1],
            runs,
            {guesses: steps.instead(index, column, guesses=guesses) for guesses in (False, True)},
        )
        for column, cell in enumerate(cells)
    ]
    return {"variant": variant_evidence(*names, models), "cells": found}
