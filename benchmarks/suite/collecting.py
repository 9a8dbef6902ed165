"""(e) Collecting very many cells and selecting one: pytest's collection, and `list`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from benchmarks.suite.figures import Figure, Limit, Section, ratios
from benchmarks.suite.running import Ran, harness, ran
from benchmarks.suite.synthetic import ONE, write
from harness.errors import InfraError

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.suite.running import Setting

TITLE = "selecting one cell"
#: Of the smaller size: seconds, and MB of memory.
_SECONDS, _MEMORY = Limit(2), Limit(300)


def measure(setting: Setting) -> Section:
    """Select one cell of each size by either program; the larger is held to the smaller's pace."""
    sizes = (1_000, 2_000) if setting.small else (10_000, 100_000)
    folders = {}
    for size in sizes:
        folders[size] = setting.folder()
        write(folders[size], size)
    small, large = sizes
    figures: list[Figure] = []
    for name, words in _programs().items():
        found: dict[int, list[Ran]] = {size: [] for size in sizes}
        for _ in setting.rounds(f"e, {name}"):
            for size in sizes:
                found[size].append(_selected(words, folders[size]))
        figures += _figures(f"{name}, {TITLE}", found)
        growth = ratios([one.seconds for one in found[large]], [one.seconds for one in found[small]])
        what = f"{name}, {TITLE}: {large} cells over {small}"
        figures.append(Figure(what, "x", growth, Limit(large / small)))
    return Section("e", TITLE, tuple(figures))


def _figures(name: str, found: dict[int, list[Ran]]) -> list[Figure]:
    made = []
    for size, rounds in found.items():
        held = size == min(found)
        seconds, memory = (tuple(getattr(one, field) for one in rounds) for field in ("seconds", "peak_mb"))
        made += [
            Figure(f"{name} of {size}", "s", seconds, _SECONDS if held else None),
            Figure(f"{name} of {size}: peak memory", "MB", memory, _MEMORY if held else None),
        ]
    return made


def _programs() -> dict[str, list[str]]:
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-k", ONE]
    return {"pytest": [*collect, "matrix.yaml"], "list": harness("list", "-k", ONE)}


def _selected(words: list[str], folder: Path) -> Ran:
    done = ran(words, cwd=folder)
    found = [line for line in done.said.splitlines() if "case0000[variant07]-t001" in line]
    if len(found) != 1:
        raise InfraError(f"{words[2]} selected {len(found)} cells, not one: {done.said[-300:]}")
    return done
