"""The submissions that no longer count: `submissions/revoked.yaml` beside the records, ids with a reason each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.document.reader import read_document
from harness.errors import HandledError

if TYPE_CHECKING:
    from pathlib import Path

SUBMISSIONS = "submissions"
FILE = "revoked.yaml"


def revoked(folder: Path) -> dict[str, str]:
    """Return the reason by id of each submission that is revoked in a folder of submissions.

    Raises HandledError for a file that says something else: a guess could let something count that was taken back.
    """
    path = folder / FILE
    if not path.exists():
        return {}
    found = read_document(path, start="the ids of submissions, each with a reason: `0123456789ab: why`")
    if isinstance(found.data, dict):
        wrong = [key for key, why in found.data.items() if not (isinstance(why, str) and why.strip())]
        if not wrong and not found.problems:
            return dict(found.data)
    raise HandledError(f"{path}: is no list of ids, each with a reason; write lines like `0123456789ab: why`")
