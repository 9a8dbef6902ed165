"""`diff`: what a step from one target or report to another does, in the terminal, as the page says it."""

from __future__ import annotations

import argparse
import json
import shutil
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from harness.cli.common import EXIT_OK, EXIT_REGRESSION
from harness.errors import HandledError
from harness.report.compare.choices import HEADS, NOBODY, choice, later
from harness.report.compare.kinds import Kind
from harness.report.compare.pairs import Column
from harness.report.compare.rows import Row
from harness.report.compare.upgrade import Upgrade, upgrade
from harness.report.labels import KINDS
from harness.report.loading import load_results, results_file
from harness.report.model import Results
from harness.suggest import did_you_mean
from harness.text import clip, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

#: Characters of one part of a row, and rows of one kind.
_LONGEST = 600
_MOST_ROWS = 100
#: Characters of a line, whatever the terminal has.
_NARROWEST, _WIDEST = 60, 120
#: The colours of a kind's heading; the words say the same.
_STYLES = {
    Kind.BROKEN: "bold red",
    Kind.PRECISION_LOST: "bold red",
    Kind.BUILDS_WITHOUT: "bold yellow",
    Kind.FIXED: "bold green",
}


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the two sides."""
    command.description = (
        "Say what changes from one target or report to another. The exit code is 1 where something that was measured "
        "on both sides breaks or loses its precision; what is reported, and latency, change nothing in it."
    )
    command.add_argument("before", metavar="A", help="a target, or a results.json or reports folder")
    command.add_argument(
        "after",
        metavar="B",
        nargs="?",
        help="the same of the other side; without one a table of the steps from target A to each later version",
    )
    command.add_argument(
        "--target",
        dest="targets",
        action="append",
        default=[],
        metavar="NAME",
        help="of two reports, compare only this target (repeatable)",
    )
    command.add_argument("--json", action="store_true", help="print a JSON list with an entry a target")


def diff(options: argparse.Namespace) -> int:
    """Print what changes from A to B; returns 1 where something measured breaks or loses its precision."""
    if options.after is None:
        return _choose(options)
    steps = [upgrade(*columns) for columns in _columns(options)]
    if options.json:
        print(json.dumps([step.to_json() for step in steps], indent=1))
    else:
        width = max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size((80, 24)).columns))
        console = Console(highlight=False, soft_wrap=True)
        for at, step in enumerate(steps):
            for line in [*([Text()] if at else []), *_told(step, width)]:
                console.print(line)
    return EXIT_REGRESSION if any(step.breaks for step in steps) else EXIT_OK


def _choose(options: argparse.Namespace) -> int:
    """Print what is known of the step from a target to each later version of its series, a line each."""
    if options.targets or options.json:
        raise HandledError("--target and --json are about a step; name its other side, B, too")
    if _file(options.before):
        raise HandledError(f"{options.before} is a report; name the one to compare it with, too")
    path = results_file(options.reports)
    results = load_results(path)
    _known_target(options.before, results, path)
    found = later(results, options.before)
    if not found:
        raise HandledError(f"{options.before} is the newest version of its series here; name another target")
    lines = [("to", *(head.lower() for head in HEADS))]
    for name in found:
        told = choice(upgrade(Column(results, options.before), Column(results, name)))
        lines.append((name, *(told or (NOBODY,))))
    widths = [max(len(line[at]) for line in lines if len(line) > at) for at in range(len(lines[0]))]
    for line in lines:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=False)).rstrip())
    variants = sum(len(case.variants) for case in results.cases)
    print(f"Of {variants} variants; what is known of few of them is no all-clear.")
    return EXIT_OK


def _known_target(name: str, results: Results, path: Path) -> None:
    names = [target.id for target in results.targets]
    if name not in names:
        raise HandledError(
            f"{path} has no target {name!r}, and no file or folder is called so; {did_you_mean(name, names)}"
        )


def _columns(options: argparse.Namespace) -> list[tuple[Column, Column]]:
    """Return the columns to compare, pair by pair."""
    sides = [_file(options.before), _file(options.after)]
    if sides[0] and sides[1]:
        return _of_two_reports(load_results(sides[0]), load_results(sides[1]), options)
    if sides[0] or sides[1]:
        report, other = (options.before, options.after) if sides[0] else (options.after, options.before)
        raise HandledError(f"{report} is a report and {other} is none; give two targets or two reports")
    if options.targets:
        raise HandledError("--target is for two reports; two targets are named without it")
    path = results_file(options.reports)
    results = load_results(path)
    for name in (options.before, options.after):
        _known_target(name, results, path)
    return [(Column(results, options.before), Column(results, options.after))]


def _of_two_reports(old: Results, new: Results, options: argparse.Namespace) -> list[tuple[Column, Column]]:
    """Return each target that both reports have, beside itself; unless named, those measured in either."""
    olds = {target.id: target for target in old.targets}
    both = [target.id for target in new.targets if target.id in olds]
    for name in options.targets:
        if name not in both:
            raise HandledError(
                f"the two reports do not both have a target {name!r}; {did_you_mean(name, both)}"
            )
    measured = [target.id for target in new.targets if target.stamps]
    measured += [target.id for target in old.targets if target.stamps]
    told = options.targets or [name for name in both if name in measured]
    if not told:
        raise HandledError("the two reports share no target that was measured in either")
    return [
        (
            Column(old, name, f"{name} in {options.before}"),
            Column(new, name, f"{name} in {options.after}"),
        )
        for name in told
    ]


def _file(name: str) -> Path | None:
    path = Path(name)
    if path.is_dir():
        return results_file(path)
    return path if path.is_file() or path.suffix == ".json" else None


def _told(step: Upgrade, width: int) -> Iterator[Text]:
    """Yield the lines on one step: the answer, what it rests on, the counts, and the rows by kind and cause."""
    met = (f"reported of {step.after}: {one.title}. {one.seen}. {one.advice}" for one in step.troubles)
    said = (step.headline, step.basis, *met, _counts(step), f"{step.rest} {step.coverage}", step.timing)
    for at, text in enumerate(filter(None, said)):
        yield from _wrapped(text, width, "", "" if at else "bold")
    if step.alone:
        yield Text()
        head = (
            f"Fail or lose precision on {step.after}, with nothing known of {step.before}: {len(step.alone)}"
        )
        yield from _wrapped(head, width, "", _STYLES[Kind.BROKEN])
        for ends in dict.fromkeys(one.said for one in step.alone):
            names = ", ".join(_line(f"{one.case}.{one.variant}") for one in step.alone if one.said == ends)
            yield from _wrapped(f"{ends}: {names}", width, "  ", longest=None)
    for kind, (name, meaning) in KINDS.items():
        found = [row for row in step.rows if row.kind == kind]
        if found:
            yield Text()
            yield from _wrapped(
                f"{name}: {len(found)} ({meaning})", width, "", _STYLES.get(Kind(kind), "bold")
            )
        for cause, rows in _by(found[:_MOST_ROWS], lambda row: (row.cause,)):
            yield from _caused(cause[0], rows, width)
        if len(found) > _MOST_ROWS:
            yield Text(f"  and {len(found) - _MOST_ROWS} more, which --json has")


def _counts(step: Upgrade) -> str:
    """Count the rows of each kind; latencies that were not compared have no number."""
    untimed = () if step.timed else (Kind.SLOWER, Kind.FASTER)
    return ", ".join(
        f"{KINDS[kind][0].lower()} {'not compared' if kind in untimed else step.count(kind)}" for kind in Kind
    )


def _by(
    rows: Sequence[Row], key: Callable[[Row], tuple[str, ...]]
) -> list[tuple[tuple[str, ...], list[Row]]]:
    """Return the rows by key, in the order in which each key comes first."""
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return list(found.items())


def _caused(cause: str, rows: Sequence[Row], width: int) -> Iterator[Text]:
    """Yield the rows of one cause: those alike in all else together, by their names, and the cause once."""
    for (sure, text, instead), alike in _by(rows, lambda row: (row.sure, row.text, row.instead)):
        names = ", ".join(_line(f"{row.case}.{row.variant}") for row in alike)
        yield from _wrapped(f"{names} ({_line(sure)})", width, "  ", "bold", longest=None)
        for said in filter(None, (text, instead and f"meanwhile: {instead}")):
            yield from _wrapped(said, width, "    ")
    if cause:
        many = f"cause of these {len(rows)}" if len(rows) > 1 else "cause"
        yield from _wrapped(f"{many}: {cause}", width, "    ")


def _wrapped(
    text: str, width: int, indent: str, style: str = "", longest: int | None = _LONGEST
) -> list[Text]:
    """Return a text in lines; names and numbers stay in one piece, however long."""
    more = indent if not indent else f"{indent}  "
    lines = textwrap.wrap(
        _line(text) if longest else visible(text),
        width,
        initial_indent=indent,
        subsequent_indent=more,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [Text(line, style) for line in lines]


def _line(text: str) -> str:
    return clip(" ".join(visible(text).split()), _LONGEST)
