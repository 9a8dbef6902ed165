"""What all campaigns have tried and found, a target each: tests/fuzz/ledger.json, of which docs/fuzzing.md is made."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.fuzz.targets import TARGETS

FILE = Path(__file__).resolve().parents[2] / "tests" / "fuzz" / "ledger.json"
#: Inputs that all targets together are to have been given.
GOAL = 10_000_000
#: Seconds of fuzzing without a new edge after which a target is done, over all its processes.
QUIET = 1800.0


@dataclass(frozen=True)
class Entry:
    """What became of a target: `quiet_s` is how long it has been fuzzed since the last new edge, on `last_new_edge`.

    `findings` are the days on which each was found and the sentence on it, by its name.
    """

    inputs: int = 0
    seconds: float = 0.0
    quiet_s: float = 0.0
    edges: int = 0
    features: int = 0
    last_new_edge: str = ""
    findings: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        """Tell whether nothing new is to be expected of more of the same."""
        return self.quiet_s >= QUIET

    def and_then(self, later: Entry) -> Entry:
        """Return what both campaigns together come to."""
        news = bool(later.last_new_edge)
        return Entry(
            inputs=self.inputs + later.inputs,
            seconds=round(self.seconds + later.seconds, 1),
            quiet_s=round(later.quiet_s if news else self.quiet_s + later.quiet_s, 1),
            # The code may have changed since: what the last campaign saw is what there is.
            edges=later.edges or self.edges,
            features=later.features or self.features,
            last_new_edge=max(self.last_new_edge, later.last_new_edge),
            findings={**later.findings, **self.findings},
        )


Ledger = dict[str, Entry]


def read(path: Path | None = None) -> Ledger:
    """Return a ledger; of a target that it does not know, an empty entry."""
    path = path or FILE
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {name: _entry(found.get(name, {})) for name in TARGETS}


def _entry(data: dict[str, Any]) -> Entry:
    entry = Entry(**data)
    return replace(entry, findings={name: (day, what) for name, (day, what) in entry.findings.items()})


def write(ledger: Ledger, path: Path | None = None) -> None:
    """Write a ledger."""
    path = path or FILE
    data = {name: asdict(entry) for name, entry in sorted(ledger.items())}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def together(first: Ledger, later: Ledger) -> Ledger:
    """Return what two ledgers say together, the later campaign last."""
    return {name: first.get(name, Entry()).and_then(later.get(name, Entry())) for name in TARGETS}
