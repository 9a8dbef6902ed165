"""Runs cells of the project's own matrix on real engines and judges them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.case import load_cases
from harness.judge.cell import Judged, judge_cell
from harness.matrix import load_matrix
from harness.plan import Cell, all_cells
from harness.record.store import Store
from harness.run.local import How, Runners, run_cells
from harness.run.provision.model import Via

ROOT = Path(__file__).resolve().parents[2]


def project_cells() -> tuple[Cell, ...]:
    """Return every cell of the project."""
    return all_cells(load_matrix(ROOT / "matrix.yaml"), load_cases(ROOT / "cases"))


@dataclass(frozen=True)
class Result:
    """A judged cell and its whole log."""

    judged: Judged
    log: str

    @property
    def cls(self) -> str:
        """Return the class as a word."""
        return str(self.judged.classification.cls)

    @property
    def claim(self) -> str:
        """Return class and signature as cases/measured.yaml writes them."""
        return " ".join(filter(None, (self.cls, self.judged.signature)))


def run(cells: Iterable[Cell], via: Via, folder: Path) -> dict[str, Result]:
    """Run cells, two targets at a time, and return what came of each, read back from the store."""
    chosen = list(cells)
    by_id = {cell.id: cell for cell in chosen}
    with Store(folder) as store:
        runners = Runners(How(via, jobs=2), lambda *_: False, "integration")
        run_cells(chosen, runners, store=store, report=lambda *_: None)
        return {
            each.cell: Result(
                judge_cell(by_id[each.cell], each), store.log(each.log_sha256) if each.log_sha256 else ""
            )
            for each in store.outcomes()
        }
