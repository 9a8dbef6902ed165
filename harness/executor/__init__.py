"""Who runs which cell where: `cell` observes one, `target` keeps one target's agent alive, `local` runs many here."""

from harness.executor.local import reap_orphans, run_cells
from harness.executor.target import TargetRunner

__all__ = ["TargetRunner", "reap_orphans", "run_cells"]
