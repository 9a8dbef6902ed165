"""Which cells are tried again at the end of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from harness.case.model import Unbuildable
from harness.plan import Cell, all_cells
from harness.record.outcome import Outcome
from harness.run import local
from tests.report import factory


@pytest.mark.unit
def test_a_model_that_cannot_be_built_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    fine, other = all_cells(factory.matrix(), (factory.case(),))[:2]
    odd = replace(other, variant=replace(other.variant, build=Unbuildable("no such file")))
    ran: list[list[str]] = []

    def run_cells(cells: Sequence[Cell], report: Any, **_: object) -> None:
        ran.append([cell.id for cell in cells])
        for cell in cells:
            report(cell, Outcome.blank(cell, "infra_error", "no luck"), "")

    monkeypatch.setattr(local, "run_cells", run_cells)
    every: dict[str, Any] = dict.fromkeys(("make_runner", "store"))
    nothing: dict[str, Any] = dict.fromkeys(("report", "say", "before"), lambda *_: None)
    local.run_with_retries((fine, odd), workers=1, pauses=(0.0, 0.0), **every, **nothing)
    assert ran == [[fine.id, odd.id], [fine.id], [fine.id]]
