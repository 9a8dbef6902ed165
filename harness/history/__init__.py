"""Keep a compact record of each run under `reports/history/`, and read the past of each cell from them."""

from harness.history.changes import CellHistory, histories
from harness.history.runs import FOLDER, RunRecord, read_history, take_history, update_history

__all__ = [
    "FOLDER",
    "CellHistory",
    "RunRecord",
    "histories",
    "read_history",
    "take_history",
    "update_history",
]
