"""Counts rooms, arrows and levels of the imports in harness/: `python -m tools.rooms [TREE]`.

A room is a module or folder directly in harness/, an arrow an import from one into another. A level is the longest way
down by arrows; where rooms import one another in a circle there is none: the circle is named, and the exit code is 1.
`--table` prints, by room, what it imports.
"""

from __future__ import annotations

import argparse
import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

#: Imported from everywhere; drawing these arrows would say nothing.
EVERYWHERE = frozenset({"bounded", "scratch", "text", "words", "errors", "suggest", "__init__", "__main__"})


def imports(path: Path) -> set[str]:
    """Return the dotted names that a module imports anywhere in it, for type checkers too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), filename=str(path))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def arrows(package: Path) -> dict[str, set[str]]:
    """Return, by room of a package, the rooms that it imports."""
    rooms = {path.stem if path.suffix == ".py" else path.name for path in package.iterdir() if _is_room(path)}
    found: dict[str, set[str]] = {room: set() for room in sorted(rooms - EVERYWHERE)}
    for path in sorted(package.rglob("*.py")):
        room = path.relative_to(package).parts[0].removesuffix(".py")
        if room in found:
            parts = [name.split(".") for name in imports(path) if name.startswith(f"{package.name}.")]
            found[room] |= {part[1] for part in parts} & found.keys() - {room}
    return found


def levels(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the rooms by level, the one that everything stands on first; ValueError names a circle."""
    sorter = TopologicalSorter(graph)
    try:
        sorter.prepare()
    except CycleError as error:
        raise ValueError(f"the rooms {' -> '.join(error.args[1])} import one another in a circle") from error
    found = []
    while ready := sorted(sorter.get_ready()):
        found.append(ready)
        sorter.done(*ready)
    return found


def _is_room(path: Path) -> bool:
    return path.suffix == ".py" or (path.is_dir() and (path / "__init__.py").is_file())


def main() -> None:
    """Print the counts, and the rooms by level."""
    parser = argparse.ArgumentParser(prog="python -m tools.rooms", description=__doc__.partition("\n")[0])
    top = Path(__file__).resolve().parents[1]
    parser.add_argument("tree", nargs="?", type=Path, default=top, help="a checkout (default: this one)")
    parser.add_argument("--table", action="store_true", help="print what each room imports")
    options = parser.parse_args()
    package = options.tree / "harness"
    graph = arrows(package)
    try:
        found = levels(graph)
    except ValueError as error:
        parser.exit(1, f"{error}\n")
    modules = sum(1 for _ in package.rglob("*.py"))
    count = sum(map(len, graph.values()))
    print(f"{len(graph)} rooms, {count} arrows, {len(found)} levels, no circle, {modules} modules")
    for number, rooms in enumerate(found, 1):
        print(f"{number:3}  {', '.join(rooms)}")
    if options.table:
        for room, others in graph.items():
            print(f"{room}: {', '.join(sorted(others))}")


if __name__ == "__main__":
    main()
