"""`diff`: what an upgrade breaks, fixes, loses and slows, in the terminal."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from harness.cli.common import EXIT_OK, EXIT_REGRESSION
from harness.compare import KINDS, Comparison, column, compare
from harness.errors import HandledError
from harness.report.model import RESULTS_SCHEMA
from harness.report.text import clip, visible
from harness.suggest import did_you_mean

_FILE = "results.json"
_LONGEST = 240


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the two sides."""
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


def diff(options: argparse.Namespace) -> int:
    """Print what changes from A to B; returns 1 where something breaks."""
    found = _comparisons(options)
    for comparison in found:
        _print(comparison)
    return EXIT_REGRESSION if any(comparison.of("broken") for comparison in found) else EXIT_OK


def _comparisons(options: argparse.Namespace) -> list[Comparison]:
    sides = [_file(options.before), _file(options.after)]
    if sides[0] and sides[1]:
        return _of_two_reports(_load(sides[0]), _load(sides[1]), options)
    if sides[0] or sides[1]:
        report, other = (options.before, options.after) if sides[0] else (options.after, options.before)
        raise HandledError(f"{report} is a report and {other} is none; give two targets or two reports")
    if options.targets:
        raise HandledError("--target is for two reports; two targets are named without it")
    results = _load(options.reports / _FILE)
    names = [target["id"] for target in results["targets"]]
    for name in (options.before, options.after):
        if name not in names:
            raise HandledError(
                f"{options.reports / _FILE} has no target {name!r}, and no file or folder is called so; "
                f"{did_you_mean(name, names)}"
            )
    return [compare(column(results, options.before), column(results, options.after))]


def _of_two_reports(old: Any, new: Any, options: argparse.Namespace) -> list[Comparison]:  # noqa: ANN401  (JSON)
    both = [
        target["id"] for target in new["targets"] if target["id"] in {old["id"] for old in old["targets"]}
    ]
    for name in options.targets:
        if name not in both:
            raise HandledError(
                f"the two reports do not both have a target {name!r}; {did_you_mean(name, both)}"
            )
    made = [
        compare(
            column(old, name, f"{name} in {options.before}"), column(new, name, f"{name} in {options.after}")
        )
        for name in options.targets or both
    ]
    told = [comparison for comparison in made if comparison.compared or comparison.differences]
    if not told:
        raise HandledError("the two reports share no target that was measured in either")
    return told


def _file(name: str) -> Path | None:
    path = Path(name)
    if path.is_dir():
        return path / _FILE
    return path if path.is_file() or path.suffix == ".json" else None


def _load(path: Path) -> Any:  # noqa: ANN401  (JSON)
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
        schema = results["schema"]
    except OSError as error:
        raise HandledError(
            f"{path}: cannot be read ({error.strerror}); `python -m harness run` makes one"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise HandledError(
            f"{path}: not a results.json ({error}); write it with `python -m harness report`"
        ) from error
    if schema != RESULTS_SCHEMA or "cells" not in results:
        raise HandledError(f"{path}: has schema {schema!r}, this harness reads {RESULTS_SCHEMA}")
    return results


def _print(comparison: Comparison) -> None:
    print(f"{comparison.before} -> {comparison.after}: {comparison.compared} variants measured on both")
    print("  " + "  ".join(f"{name} {len(comparison.of(kind))}" for kind, name in KINDS.items()))
    if comparison.other_stack:
        print(f"  latency not compared in {comparison.other_stack}: another device, driver or clock")
    if not comparison.compared:
        print("  nothing can be said: no variant was measured on both")
    for kind, name in KINDS.items():
        found = comparison.of(kind)
        if found:
            print(f"{name}: {len(found)}")
        for difference in found:
            print(f"  {difference.case}[{difference.variant}]: {_line(difference.text)}")
            if difference.advice:
                print(f"    {_line(difference.advice)}")


def _line(text: str) -> str:
    return clip(" ".join(visible(text).split()), _LONGEST)
