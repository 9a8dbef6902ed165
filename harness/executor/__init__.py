"""Who runs which cell where: `cell` observes one, `target` keeps one target's agent alive, `local` runs many here."""

from harness.executor.local import run_cells
from harness.executor.target import TargetRunner

__all__ = ["TargetRunner", "run_cells"]
