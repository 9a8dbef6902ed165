"""How much the cases tell apart: in how many ways variants behave over some targets, and with how many causes.

python -m tools.ways reports/results.json rtx14 rtx15 rtx16 rtx17 rtx17-sm75
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any


def ways(results: dict[str, Any], targets: list[str]) -> tuple[Counter[tuple[str, ...]], Counter[str]]:
    """Return how many variants behave in each way, and how many measured cells have each known cause.

    A way is class and cause on each target in turn; a variant that was not measured on one of them is left out.
    """
    rows: dict[tuple[str, str], dict[str, str]] = {}
    causes: Counter[str] = Counter()
    for cell in results["cells"]:
        if cell["target"] not in targets or not cell.get("stamps"):
            continue
        cause = (cell.get("diagnosis") or {}).get("id", "")
        rows.setdefault((cell["case"], cell["variant"]), {})[cell["target"]] = (
            f"{cell['class']} {cause}".strip()
        )
        causes.update([cause] if cause else [])
    whole = (row for row in rows.values() if len(row) == len(targets))
    return Counter(tuple(row[target] for target in targets) for row in whole), causes


def main(path: str, *targets: str) -> None:
    """Print both, the commonest way first."""
    found, causes = ways(json.loads(Path(path).read_text(encoding="utf-8")), list(targets))
    print(
        f"{found.total()} variants behave in {len(found)} ways over {', '.join(targets)}; {len(causes)} causes"
    )
    for way, number in found.most_common():
        print(f"{number:4}  {' | '.join(way)}")
    for cause, number in causes.most_common():
        print(f"{number:4}  {cause}")


if __name__ == "__main__":
    main(*sys.argv[1:])
