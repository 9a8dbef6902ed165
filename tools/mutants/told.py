"""Results of mutants -> the table by area and the list of survivors; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tools.mutants.areas import FLOOR, Area
from tools.mutants.campaign import Result
from tools.mutants.survivors import FILE, Key

_HEAD = ("area", "mutants", "killed", "of these by time", "survived", "percent killed")


def summary(
    results: Sequence[Result], reasons: Mapping[Key, str], areas: Sequence[Area], *, whole: bool
) -> tuple[str, float]:
    """Return what to print, and the share that was killed; `whole` says that no mutant of the areas was left out."""
    alive = sorted(
        (result for result in results if not result.killed),
        key=lambda each: (each.mutant.module.file, each.mutant.line),
    )
    unexplained = [result for result in alive if result.mutant.key not in reasons]
    parts = [_survivor(result, reasons) for result in alive]
    rows = [_row(area.name, [each for each in results if each.area == area.name]) for area in areas]
    parts.append(_table([_HEAD, *rows, _row("all", results)]))
    if unexplained:
        parts.append(f"{len(unexplained)} of {len(alive)} survivors have no reason in {FILE}")
    parts += _gone(results, reasons, whole=whole)
    share = _share(results)
    if share < FLOOR:
        parts.append(f"{share:.1%} were killed, and {FLOOR:.0%} are to be")
    return "\n\n".join(parts), share


def _survivor(result: Result, reasons: Mapping[Key, str]) -> str:
    mutant = result.mutant
    why = reasons.get(mutant.key, "no reason is given")
    how = f" ({result.how})" if result.how else ""
    head = f"{mutant.id}  {mutant.module.file}:{mutant.line} in {mutant.scope}{how}: {why}"
    return f"{head}\n  mutation: {mutant.key[2]}\n{mutant.diff()}"


def _gone(results: Sequence[Result], reasons: Mapping[Key, str], *, whole: bool) -> list[str]:
    """Say which entries are of no survivor any more; only what was tried can be judged."""
    tried = {result.mutant.key: result.killed for result in results}
    modules = {module for module, _, _ in tried}
    said = []
    for key in reasons:
        if tried.get(key):
            said.append(f"{FILE}: {', '.join(key)}: is killed now; drop the entry")
        elif whole and key[0] in modules and key not in tried:
            said.append(f"{FILE}: {', '.join(key)}: there is no such mutant any more; drop the entry")
    return said


def _row(name: str, results: Sequence[Result]) -> tuple[str, ...]:
    killed = sum(result.killed for result in results)
    late = sum(result.timed_out for result in results)
    percent = f"{100 * _share(results):.1f}" if results else "-"
    return name, str(len(results)), str(killed), str(late), str(len(results) - killed), percent


def _share(results: Sequence[Result]) -> float:
    return sum(result.killed for result in results) / len(results) if results else 1.0


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows
    )
