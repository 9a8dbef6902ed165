"""The data inside the page: facts of every cell as plain JSON, and the evidence packed, with no key of a stranger's.

Evidence comes in chunks of a few rows: JSON in which `table` holds what occurs more than once (`{"$": n}` stands for
its entry n), compressed and in Base64. Maps keyed by names are lists of pairs.
"""

from __future__ import annotations

import base64
import json
import math
import re
import zlib
from collections import Counter
from typing import TYPE_CHECKING, Any

from harness.report.drilldown import cell_evidence, variant_evidence
from harness.report.facts import facts, grid_of, rows_of
from harness.report.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.report.model import CaseView, CellView, Results, RunView, VariantView

    Rows = Sequence[tuple[tuple[CaseView, VariantView], Sequence[CellView]]]

#: A repeated piece shorter than this costs less than the reference to it.
_WORTH_SHARING = 24
#: Rows that are unpacked together: more compress better, fewer open faster.
_CHUNK_ROWS = 16
#: Bytes of packed evidence: so much in any page, and so much more for each cell. What does not fit is left out,
#: the rows in which all is as expected first; results.json has it.
_EVIDENCE_BYTES, _EVIDENCE_BYTES_A_CELL = 400_000, 36
_PACKED = re.compile(r'"evidence":\[(?:\[[^\[\]]*\],?)*\]')
_BASE64 = re.compile(r'(?<=\[")[A-Za-z0-9+/=]+(?=")')


def page_data(results: Results) -> str:
    """Return the JSON text, safe inside a <script> element; the same bytes for the same results and zlib."""
    rows = list(zip(rows_of(results), grid_of(results), strict=True))
    data = {**_clean(facts(results)), "evidence": _evidence(rows, len(results.cells), results.runs)}
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e")


def unpacked(page: str) -> str:
    """Return a page with its evidence in plain: another build of zlib packs the same evidence into other bytes."""
    return _PACKED.sub(lambda found: _BASE64.sub(_plain, found.group()), page)


def _plain(packed: re.Match[str]) -> str:
    try:
        return zlib.decompress(base64.b64decode(packed.group())).decode()
    except (ValueError, zlib.error):
        return packed.group()


def _evidence(rows: Rows, cells: int, runs: Sequence[RunView]) -> list[list[Any]]:
    """Return chunks: packed rows, and then the numbers of the rows in it; rows with news come first."""
    budget = _EVIDENCE_BYTES + _EVIDENCE_BYTES_A_CELL * cells
    order = (
        sorted(range(len(rows)), key=lambda index: (not _news(rows[index][1]), index))
        if cells > _MANY
        else range(len(rows))
    )
    chunks: list[list[Any]] = []
    for start in range(0, len(rows), _CHUNK_ROWS):
        numbers = list(order[start : start + _CHUNK_ROWS])
        packed = _pack([_row(*rows[index], runs) for index in numbers])
        budget -= len(packed)
        if budget < 0:
            break
        chunks.append([packed, *numbers])
    return chunks


#: Below this many cells everything fits, and neighbours in the table are best packed together.
_MANY = 5000
_NO_NEWS = frozenset({"expected", "known_failure", "not_run"})


def _news(cells: Sequence[CellView]) -> bool:
    return any(str(cell.verdict) not in _NO_NEWS for cell in cells)


def _row(
    names: tuple[CaseView, VariantView], cells: Sequence[CellView], runs: Sequence[RunView]
) -> dict[str, Any]:
    return {"variant": variant_evidence(*names), "cells": [cell_evidence(cell, runs) for cell in cells]}


def _pack(rows: list[dict[str, Any]]) -> str:
    text = json.dumps(_share(_clean({"rows": rows})), separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _clean(value: Any) -> Any:  # noqa: ANN401  (walks JSON)
    """Return the data with hidden characters written out, and no number that JSON does not have."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {key: _clean(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(entry) for entry in value]
    return value


def _share(data: dict[str, Any]) -> dict[str, Any]:
    """Put every string, list and object that occurs more than once into a table."""
    seen: Counter[str] = Counter()
    for value in data.values():
        _count(value, seen)
    repeated = (key for key, times in seen.items() if times > 1 and len(key) >= _WORTH_SHARING)
    shared = _Shared(frozenset(repeated))
    plain = {key: shared.inside(value) for key, value in data.items()}
    return {**plain, "table": shared.table}


def _count(value: Any, seen: Counter[str]) -> None:  # noqa: ANN401
    """Count the pieces of a value; what is inside a piece seen before goes with it, uncounted."""
    if isinstance(value, str | list | dict):
        key = json.dumps(value)
        seen[key] += 1
        if seen[key] == 1:
            for entry in _entries(value):
                _count(entry, seen)


def _entries(value: str | list[Any] | dict[str, Any]) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


class _Shared:
    """The table under construction; `repeated` are the pieces to put into it, as JSON."""

    def __init__(self, repeated: frozenset[str]) -> None:
        self.table: list[Any] = []
        self._repeated = repeated
        self._place: dict[str, int] = {}

    def inside(self, value: Any) -> Any:  # noqa: ANN401
        """Return a value with the repeated pieces inside it replaced by references."""
        if isinstance(value, dict):
            return {key: self._refer(entry) for key, entry in value.items()}
        return [self._refer(entry) for entry in value] if isinstance(value, list) else value

    def _refer(self, value: Any) -> Any:  # noqa: ANN401
        key = json.dumps(value)
        if key not in self._repeated:
            return self.inside(value)
        if key not in self._place:
            plain = self.inside(value)
            self._place[key] = len(self.table)
            self.table.append(plain)
        return {"$": self._place[key]}
