"""(a) A whole run against the engines' own phases of the same cells with one worker, over the cores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.suite.figures import Figure, Limit, Section, ratios
from benchmarks.suite.running import run

if TYPE_CHECKING:
    from benchmarks.suite.running import Run, Setting

TITLE = "whole run over the engines' own phases"
ALL = f"{TITLE}, of the whole matrix"
_LIMIT = Limit(1.15)


def measure(setting: Setting) -> Section:
    """Run the four targets with one worker, then with one a core, in each round."""
    return Section("a", TITLE, _selection(setting, f"{len(setting.targets)} RTX targets", setting.selection))


def measure_all(setting: Setting) -> Section:
    """Do the same with the whole matrix, which takes an hour."""
    options = setting.selection if setting.small else ()
    return Section("all", ALL, _selection(setting, "the whole matrix", options))


def _selection(setting: Setting, name: str, options: tuple[str, ...]) -> tuple[Figure, ...]:
    alone: list[Run] = []
    every: list[Run] = []
    for _ in setting.rounds(f"a, {name}"):
        alone.append(run(setting.folder(), "--via", "venv", "-j", "1", *options))
        every.append(run(setting.folder(), "--via", "venv", "-j", str(setting.cores), *options))
    limits = [one.engine_seconds / setting.cores for one in alone]
    whole = [one.ran.seconds for one in every]
    rows: tuple[tuple[str, str, tuple[float, ...], Limit | None], ...] = (
        ("whole run over the limit", "x", ratios(whole, limits), _LIMIT),
        ("the limit: phases with one worker over the cores", "s", tuple(limits), None),
        ("whole run, a worker a core", "s", tuple(whole), None),
        ("- until the first cell was done", "s", tuple(one.first_record for one in every), None),
        (
            "- from there until the last was: the engines' part",
            "s",
            tuple(one.last_record - one.first_record for one in every),
            None,
        ),
        (
            "- from there to the end: the report's part",
            "s",
            tuple(one.ran.seconds - one.last_record for one in every),
            None,
        ),
        (
            "phases with a worker a core over those with one",
            "x",
            ratios([one.engine_seconds for one in every], [one.engine_seconds for one in alone]),
            None,
        ),
        ("whole run, one worker", "s", tuple(one.ran.seconds for one in alone), None),
        ("cells", "cells", tuple(float(len(one.cells)) for one in every), None),
        (
            "share of the cores in use",
            "%",
            tuple(100 * one.ran.cpu / (one.ran.seconds * setting.cores) for one in every),
            None,
        ),
    )
    return tuple(Figure(f"{name}: {what}", unit, samples, limit) for what, unit, samples, limit in rows)
