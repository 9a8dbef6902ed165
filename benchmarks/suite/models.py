"""The models of the cells that a run builds, as files, and how fast programs get through them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.suite.figures import evenly
from benchmarks.suite.running import ROOT
from harness.case import load_cases
from harness.matrix import load_matrix
from harness.plan import all_cells, inapplicable_because

if TYPE_CHECKING:
    from benchmarks.suite.running import Setting
    from harness.matrix import Target

#: A process a model takes the same time for each, however many there are: so many show it.
_SAMPLE = 120


@dataclass(frozen=True)
class Model:
    """One model as a file, and the target that it is to be built by."""

    file: Path
    target: Target


@dataclass(frozen=True)
class Pace:
    """How fast models were got through, and of how many an engine came."""

    a_second: float
    built: int
    count: int


def sampled(setting: Setting) -> tuple[Model, ...]:
    """Return models of the cells that a run of the setting builds, spread evenly over all, each written to a file."""
    wanted = set(setting.targets)
    cells = all_cells(load_matrix(ROOT / "matrix.yaml"), load_cases(ROOT / "cases"))
    known = {
        cell.id: cell for cell in cells if cell.target.name in wanted and inapplicable_because(cell) is None
    }
    folder = setting.folder()
    made = []
    for name in evenly(tuple(known), 4 if setting.small else _SAMPLE):
        cell = known[name]
        file = folder / f"{cell.case.name}-{cell.variant.name}.onnx"
        file.write_bytes(cell.variant.model_bytes())
        made.append(Model(file, cell.target))
    return tuple(made)


def pace(models: Sequence[Model], cores: int, build: Callable[[Model], bool]) -> Pace:
    """Build each model, as many at a time as there are cores."""
    start = time.monotonic()
    with ThreadPoolExecutor(cores) as pool:
        built = sum(pool.map(build, models))
    return Pace(len(models) / (time.monotonic() - start), built, len(models))
