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
from typing import TYPE_CHECKING, Any

from harness.report.page.cells import facts, grid_of, rows_of
from harness.report.page.panel import cell_evidence, variant_evidence
from harness.report.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.report.model import CaseView, CellView, Results, RunView, VariantView

    Entries = tuple["_Piece", ...]
    Names = tuple[str, ...]
    Rows = Sequence[tuple[tuple[CaseView, VariantView], Sequence[CellView]]]

#: A repeated piece shorter than this costs less than the reference to it.
_WORTH_SHARING = 24
#: Rows that are unpacked together: more compress better, fewer open faster.
_CHUNK_ROWS = 16
#: Bytes of packed evidence: so much in any page, and so much more for each cell. What does not fit is left out,
#: the rows in which all is as expected first; results.json has it.
_EVIDENCE_BYTES, _EVIDENCE_BYTES_A_CELL = 400_000, 36
_PACKED = re.compile(r'"evidence":\[(?:\[[^\[\]]*\],?)*\]')
_encode = json.JSONEncoder().encode
_BASE64 = re.compile(r'(?<=\[")[A-Za-z0-9+/=]+(?=")')


def page_data(results: Results, archives: Sequence[str] = ()) -> str:
    """Return the JSON text, safe inside a <script> element; the same bytes for the same results and zlib.

    `archives` are what the page finds packed beside it.
    """
    rows = list(zip(rows_of(results), grid_of(results), strict=True))
    evidence = _evidence(rows, len(results.cells), results.runs)
    data = {**_clean(facts(results)), "archives": list(archives), "evidence": evidence}
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
        packed = pack(_row(*rows[index], runs) for index in numbers)
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


def pack(rows: Iterable[dict[str, Any]]) -> str:
    """Return rows of evidence, cleaned and compressed, with each part that occurs more than once written once."""
    pieces = _Pieces()
    plain = pieces.text(pieces.list_of(rows))
    text = f'{{"rows":{plain},"table":[{",".join(pieces.table)}]}}'
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


class _Piece:
    """A value that differs from all others: a leaf as JSON, or a list of pieces, or an object of them under `names`.

    `size` is its length as JSON with a space after each comma and colon. `uses` counts the places that hold it, those
    inside equal values once; `place` is its number in the table, None before it stands there.
    """

    __slots__ = ("entries", "leaf", "names", "place", "size", "uses")

    def __init__(self, leaf: str, size: int, entries: Entries = (), names: Names | None = None) -> None:
        self.leaf = leaf
        self.size = size
        self.entries = entries
        self.names = names
        self.uses = 0
        self.place: int | None = None


class _Pieces:
    """All pieces of some data, cleaned; equal values are one piece, so a composite is known by those it is made of."""

    def __init__(self) -> None:
        self._strings: dict[str, _Piece] = {}
        self._leaves: dict[str, _Piece] = {}
        self._lists: dict[Entries, _Piece] = {}
        self._objects: dict[tuple[Names, Entries], _Piece] = {}
        self.table: list[str] = []

    def of(self, value: Any) -> _Piece:  # noqa: ANN401
        """Return the piece that a value is."""
        if isinstance(value, str):
            return self._strings.get(value) or self._string(value)
        if isinstance(value, list | tuple):
            return self.list_of(value)
        if isinstance(value, dict):
            names, entries = tuple(value), tuple([self.of(entry) for entry in value.values()])
            return self._objects.get((names, entries)) or self._object(names, entries)
        return self._leaf(_encode(_clean(value)))

    def list_of(self, values: Iterable[Any]) -> _Piece:
        """Return the piece that a list of values is; of an iterator, one value at a time is held in memory."""
        entries = tuple([self.of(value) for value in values])
        return self._lists.get(entries) or self._list(entries)

    def _string(self, value: str) -> _Piece:
        self._strings[value] = piece = self._leaf(_encode(visible(value)))
        return piece

    def _leaf(self, text: str) -> _Piece:
        return self._leaves.get(text) or self._leaves.setdefault(text, _Piece(text, len(text)))

    def _list(self, entries: Entries) -> _Piece:
        self._lists[entries] = piece = _Piece("", len("[]") + _used(entries), entries)
        return piece

    def _object(self, names: Names, entries: Entries) -> _Piece:
        keys = tuple(map(_encode, names))
        size = len("{}") + sum(map(len, keys)) + len(": ") * len(keys) + _used(entries)
        self._objects[names, entries] = piece = _Piece("", size, entries, keys)
        return piece

    def text(self, piece: _Piece) -> str:
        """Return a piece as JSON text, with references for the repeated pieces inside it, which go into `table`."""
        if piece.leaf:
            return piece.leaf
        entries = [self._refer(entry) for entry in piece.entries]
        if piece.names is None:
            return f"[{','.join(entries)}]"
        return "{" + ",".join(map("{}:{}".format, piece.names, entries)) + "}"

    def _refer(self, piece: _Piece) -> str:
        if piece.uses == 1 or piece.size < _WORTH_SHARING:
            return self.text(piece)
        if piece.place is None:
            text = self.text(piece)
            piece.place = len(self.table)
            self.table.append(text)
        return f'{{"$":{piece.place}}}'


def _used(entries: Entries) -> int:
    """Count one use more of each entry; return their length as JSON, with what separates them."""
    for entry in entries:
        entry.uses += 1
    return sum([entry.size for entry in entries]) + len(", ") * max(0, len(entries) - 1)
