"""`diff`: what a step from one target or report to another does, in the terminal, as the page says it."""

from __future__ import annotations

import argparse
import json
import shutil
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.common import EXIT_OK, EXIT_REGRESSION
from harness.errors import HandledError
from harness.report.compare.pairs import Column, Kind
from harness.report.compare.upgrade import Row, Upgrade, upgrade
from harness.report.labels import KINDS
from harness.report.model import Results
from harness.report.packed import content, results_file
from harness.report.text import clip, visible
from harness.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Characters of one part of a row, and rows of one kind.
_LONGEST = 600
_MOST_ROWS = 100
#: Characters of a line, whatever the terminal has.
_NARROWEST, _WIDEST = 60, 120


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the two sides."""
    command.description = (
        "Say what changes from one target or report to another. The exit code is 1 where something that was measured "
        "on both sides breaks or loses its precision; what is reported or guessed, and latency, change nothing in it."
    )
    command.add_argument("before", metavar="A", help="a target, or a results.json or reports folder")
    command.add_argument("after", metavar="B", help="the same of the other side")
    command.add_argument(
        "--target",
        dest="targets",
        action="append",
        default=[],
        metavar="NAME",
        help="of two reports, compare only this target (repeatable)",
    )
    command.add_argument(
        "--guesses",
        action="store_true",
        help="tell what is only guessed as well; it never counts as known",
    )
    command.add_argument("--json", action="store_true", help="print a JSON list with an entry a target")


def diff(options: argparse.Namespace) -> int:
    """Print what changes from A to B; returns 1 where something measured breaks or loses its precision."""
    steps = [upgrade(*columns, guesses=options.guesses) for columns in _columns(options)]
    if options.json:
        print(json.dumps([step.to_json() for step in steps], indent=1))
    else:
        width = max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size((100, 24)).columns))
        print("\n\n".join("\n".join(_told(step, width)) for step in steps))
    return EXIT_REGRESSION if any(step.breaks for step in steps) else EXIT_OK


def _columns(options: argparse.Namespace) -> list[tuple[Column, Column]]:
    """Return the columns to compare, pair by pair."""
    sides = [_file(options.before), _file(options.after)]
    if sides[0] and sides[1]:
        return _of_two_reports(_load(sides[0]), _load(sides[1]), options)
    if sides[0] or sides[1]:
        report, other = (options.before, options.after) if sides[0] else (options.after, options.before)
        raise HandledError(f"{report} is a report and {other} is none; give two targets or two reports")
    if options.targets:
        raise HandledError("--target is for two reports; two targets are named without it")
    path = results_file(options.reports)
    results = _load(path)
    names = [target.id for target in results.targets]
    for name in (options.before, options.after):
        if name not in names:
            raise HandledError(
                f"{path} has no target {name!r}, and no file or folder is called so; "
                f"{did_you_mean(name, names)}"
            )
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


def _load(path: Path) -> Results:
    try:
        return Results.from_json(json.loads(content(path)))
    except OSError as error:
        raise HandledError(
            f"{path}: cannot be read ({error.strerror}); `trt-compat run` makes one"
        ) from error
    except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise HandledError(
            f"{path}: not a results.json that this harness can read ({error}); "
            "write it with `trt-compat report`"
        ) from error


def _told(step: Upgrade, width: int) -> Iterator[str]:
    """Yield the lines on one step: the answer, what it rests on, the counts, and the rows by kind."""
    said = (step.headline, step.basis, _counts(step), f"{step.rest} {step.coverage}", step.timing)
    for text in filter(None, said):
        yield from _wrapped(text, width, "")
    for kind, (name, meaning) in KINDS.items():
        found = [row for row in step.rows if row.kind == kind]
        if found:
            yield ""
            yield from _wrapped(f"{name}: {len(found)} ({meaning})", width, "")
        for row in found[:_MOST_ROWS]:
            yield from _row(row, width)
        if len(found) > _MOST_ROWS:
            yield f"  and {len(found) - _MOST_ROWS} more, which --json has"


def _counts(step: Upgrade) -> str:
    """Count the rows of each kind; latencies that were not compared have no number."""
    untimed = () if step.timed else (Kind.SLOWER, Kind.FASTER)
    return ", ".join(
        f"{KINDS[kind][0].lower()} {'not compared' if kind in untimed else step.count(kind)}" for kind in Kind
    )


def _row(row: Row, width: int) -> Sequence[str]:
    lines = [f"  {_line(f'{row.case}[{row.variant}]')} ({_line(row.sure)})"]
    parts = row.text, row.cause and f"cause: {row.cause}", row.instead and f"meanwhile: {row.instead}"
    for text in filter(None, parts):
        lines += _wrapped(text, width, "    ")
    return lines


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    """Return a text in lines; names and numbers stay in one piece, however long."""
    more = indent if not indent else f"{indent}  "
    return textwrap.wrap(
        _line(text),
        width,
        initial_indent=indent,
        subsequent_indent=more,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _line(text: str) -> str:
    return clip(" ".join(visible(text).split()), _LONGEST)
