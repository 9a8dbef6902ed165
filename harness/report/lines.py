"""What does each cell by hand, beside its result; a Python file is kept once for all cells that it is the same for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.plan.by_hand import ByHand, by_hand

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.plan import Cell
    from harness.report.model import CellView
    from harness.report.results import Models

    Scripts = dict[tuple[str, str], list[str]]


def with_lines(
    cells: Sequence[Cell], models: Models, rows: Mapping[str, Sequence[CellView]]
) -> tuple[dict[str, list[CellView]], Scripts]:
    """Return the rows of each cell with what does it by hand, and by variant the Python files that they name."""
    told: dict[str, list[CellView]] = {}
    scripts: Scripts = {}
    for cell in cells:
        name = (cell.case.name, cell.variant.name)
        known = scripts.setdefault(name, [])
        told[cell.id] = [_told(cell, models.get(name), row, known) for row in rows[cell.id]]
    return told, scripts


def _by_hand(cell: Cell, data: bytes, digest: str) -> ByHand:
    try:
        return by_hand(cell, data, digest)
    except Exception:  # noqa: BLE001  (one odd model must not cost the others their report)
        return ByHand()


def _told(cell: Cell, data: bytes | None, row: CellView, known: list[str]) -> CellView:
    digest = row.stamps.image_digest if row.stamps else ""
    hand = _by_hand(cell, data, digest) if data else ByHand()
    if hand.body and hand.body not in known:
        known.append(hand.body)
    return replace(
        row,
        by_hand=hand.lines,
        command=hand.command,
        script=known.index(hand.body) if hand.body else None,
        script_head=hand.head,
    )
