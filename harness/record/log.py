"""The form of a cell's log: entries `[kind] text`, of which a reader can tell where each begins; pure.

A line that continues an entry and would look like the beginning of another has one blank before it, so that what an
engine prints can neither be taken for what the harness noted nor get lost. The first entry, `stamps`, says of what the
log is. `left out` tells of texts for which neither log nor record has room.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.record.outcome import Outcome

STAMPS, LEFT_OUT = "stamps", "left out"
#: The stamps and facts of a record that its log repeats.
_STAMPED = (
    "model_sha256",
    "recipe_sha256",
    "engine_version",
    "via",
    "image",
    "image_digest",
    "when",
    "run",
    "harness_commit",
)
_FACTS = ("compute_capability", "driver", "gpu")
_LOOKS_LIKE_AN_ENTRY = re.compile(r"\n(?= *\[)")
_BLANK = "\n "


def entry(kind: str, text: str) -> str:
    """Return an entry as it stands in a log."""
    blank = "" if text.startswith("\n") else " "
    return f"[{kind}]{blank}{_LOOKS_LIKE_AN_ENTRY.sub(_BLANK, text)}"


def whole_log(outcome: Outcome, lines: Sequence[str]) -> str:
    """Return a cell's log: what was noted while it ran, behind its stamps."""
    stamps = outcome.stamps
    facts = {name: stamps.environment.get(name, "") for name in _FACTS}
    stamped = {"cell": outcome.cell, **{name: str(getattr(stamps, name)) for name in _STAMPED}, **facts}
    return "\n".join([entry(STAMPS, json.dumps(stamped, sort_keys=True)), *lines])
