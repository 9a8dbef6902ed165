"""The form of a cell's log: entries `[kind] text`, of which a reader can tell where each begins; pure.

A line that continues an entry and would look like the beginning of another has one blank before it, so that what an
engine prints can neither be taken for what the harness noted nor get lost. The first entry, `stamps`, says of what the
log is, and the last, `seen`, what the harness made of the bytes that a log does not hold. `left out` tells of texts for
which neither log nor record has room.
"""

from __future__ import annotations

import dataclasses
import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.record.outcome import Outcome

STAMPS, SEEN, LEFT_OUT = "stamps", "seen", "left out"
#: What binds a log to its record.
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
_WRITTEN_WITH_A_BLANK = re.compile(r"\n (?= *\[)")
_NEXT = re.compile(r"\n(?=\[)")
_ENTRY = re.compile(r"\[([^\]\n]+)\] ?(.*)", re.DOTALL)
_BLANK = "\n "


def entry(kind: str, text: str) -> str:
    """Return an entry as it stands in a log."""
    blank = "" if text.startswith("\n") else " "
    return f"[{kind}]{blank}{_LOOKS_LIKE_AN_ENTRY.sub(_BLANK, text)}"


def entries(log: str) -> Iterator[tuple[str, str]]:
    """Yield the kind and text of each entry; raises ValueError for a log that does not begin with one."""
    for part in _NEXT.split(log):
        found = _ENTRY.fullmatch(part)
        if found is None:
            raise ValueError(f"no entry begins with {part[:60]!r}")
        yield found[1], _WRITTEN_WITH_A_BLANK.sub("\n", found[2])


def whole_log(outcome: Outcome, lines: Sequence[str]) -> str:
    """Return a cell's log: what was noted while it ran, between its stamps and what was made of its bytes."""
    first = entry(STAMPS, json.dumps(stamped(outcome), sort_keys=True))
    last = entry(SEEN, json.dumps(seen(outcome), sort_keys=True))
    return "\n".join([first, *lines, last])


def stamped(outcome: Outcome) -> dict[str, str]:
    """Return the stamps that a record's log repeats."""
    stamps = outcome.stamps
    facts = {name: stamps.environment.get(name, "") for name in _FACTS}
    return {"cell": outcome.cell, **{name: str(getattr(stamps, name)) for name in _STAMPED}, **facts}


def seen(outcome: Outcome) -> dict[str, object]:
    """Return what was made of the plan and the outputs, which are not in the log."""
    return {
        "ran": outcome.ran,
        "engine_bytes": outcome.engine_bytes,
        "uncompared": outcome.uncompared,
        "accuracy": [dataclasses.asdict(figures) for figures in outcome.accuracy],
    }
