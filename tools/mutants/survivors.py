"""The kept file of mutants that survive for a reason."""

from __future__ import annotations

from pathlib import Path

import yaml

Key = tuple[str, str, str]

FILE = "tools/mutants_survivors.yaml"
_FIELDS = ("module", "function", "mutation", "reason")


class Trouble(Exception):
    """The tool cannot say anything: a sentence why."""


def read_reasons(path: Path) -> dict[Key, str]:
    """Return the reasons by module, function and mutation; none where there is no file."""
    if not path.exists():
        return {}
    reasons: dict[Key, str] = {}
    for entry in yaml.safe_load(path.read_text(encoding="utf-8")) or []:
        if not isinstance(entry, dict) or [*entry] != [*_FIELDS] or not all(entry.values()):
            raise Trouble(f"{FILE}: an entry is {', '.join(_FIELDS)}, in this order, not {entry}")
        module, function, mutation, reason = map(str, entry.values())
        if (module, function, mutation) in reasons:
            raise Trouble(f"{FILE}: {module}, {function}, {mutation}: stands there twice")
        reasons[module, function, mutation] = reason
    return reasons
