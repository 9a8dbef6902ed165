"""Holds tables/engine.yaml against the public headers: each method of its rows has to stand in one of them.

python -m tools.headers 8.6.1=FOLDER/include 11.1=FOLDER/include ...
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from harness.document import read_document
from harness.judge.tables import FOLDER

_CLASS = re.compile(r"^class (\w+)[^;{]*\{", re.MULTILINE)
_METHOD = re.compile(r"\b([a-z]\w+)\(")
#: Of versions before those that are given.
_OLDER = frozenset(("buildEngine", "createNetwork"))


def main(arguments: list[str]) -> int:
    """Print the methods that no header has, and those that some versions lack."""
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    versions = {
        name: methods(Path(folder)) for name, _, folder in (each.partition("=") for each in arguments)
    }
    rows = read_document(FOLDER / "engine.yaml", start="").data["methods"]
    missing = 0
    for name in (each for row in rows for each in row["methods"]):
        having = [version for version, known in versions.items() if name in known]
        if not having:
            missing += name not in _OLDER
            print(f"{name}: in none of these headers")
        elif len(having) < len(versions):
            print(f"{name}: {', '.join(having)}")
    return int(missing > 0)


def methods(folder: Path) -> set[str]:
    """Return the names of all functions in a folder's headers, alone and with their class before them."""
    found: set[str] = set()
    for path in folder.glob("*.h"):
        text = re.sub(r"//.*|/\*[\s\S]*?\*/", "", path.read_text(encoding="utf-8", errors="replace"))
        classes = [(match.start(), match[1]) for match in _CLASS.finditer(text)]
        for match in _METHOD.finditer(text):
            owner = next((name for at, name in reversed(classes) if at < match.start()), "")
            found |= {match[1], f"{owner}.{match[1]}"}
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
