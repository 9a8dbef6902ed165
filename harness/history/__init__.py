"""The runs of the past: one compact record a run under `reports/history/`, and what they say of each cell."""

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
