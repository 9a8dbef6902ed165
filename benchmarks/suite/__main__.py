"""Measures what the harness costs beside what it drives, and prints a table: `python -m benchmarks.suite`.

docs/benchmarks.md says what each letter measures.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.suite import (
    collecting,
    containers,
    environments,
    machine,
    memory,
    one_cell,
    polygraphy,
    report_alone,
    second_run,
    whole_run,
)
from benchmarks.suite.figures import Section
from benchmarks.suite.profiled import profile
from benchmarks.suite.running import Setting
from benchmarks.suite.table import MARKER, NoMarker, markdown, with_section
from harness.errors import HandledError, InfraError
from harness.run.provision import Unavailable

MEASUREMENTS: dict[str, tuple[str, Callable[[Setting], Section]]] = {
    "a": (whole_run.TITLE, whole_run.measure),
    "one": (one_cell.TITLE, one_cell.measure),
    "b": (polygraphy.TITLE, polygraphy.measure),
    "c": (containers.FRESH, containers.measure_fresh),
    "d": (containers.WARM, containers.measure_warm),
    "e": (collecting.TITLE, collecting.measure),
    "f": (memory.TITLE, memory.measure),
    "g": (environments.TITLE, environments.measure),
    "h": (second_run.TITLE, second_run.measure),
    "i": (report_alone.TITLE, report_alone.measure),
    "all": (whole_run.ALL, whole_run.measure_all),
}


def main() -> int:
    """Measure what is asked for; returns 1 where a median misses its limit, 2 for a mistake, 3 for trouble."""
    try:
        return _run(_options())
    except HandledError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except InfraError as error:
        print(f"infrastructure: {error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _run(options: argparse.Namespace) -> int:
    found: list[Section] = []
    here = machine.look()
    with tempfile.TemporaryDirectory(prefix="trt-compat-bench-") as scratch:
        setting = Setting(options.times, options.small, here.cores, Path(scratch))
        for letter in options.only:
            found.append(_measured(letter, setting))
            if options.json:
                options.json.write_text(_as_json(here, found), encoding="utf-8")
        profiled = profile(setting) if options.profile else ""
    text = "\n".join([f"{here.line()} {_how(options)}", "", markdown(found, judged=not options.small)])
    text += f"\n#### Where the host's time goes in (a)\n\n{profiled}" if profiled else ""
    print(text, flush=True)
    if options.write:
        page = options.write.read_text(encoding="utf-8")
        options.write.write_text(with_section(page, here.when, text), encoding="utf-8")
    if any(section.failed for section in found):
        return 3
    missed = any(figure.passed is False for section in found for figure in section.figures)
    return 1 if missed and not options.small else 0


def _measured(letter: str, setting: Setting) -> Section:
    """Return what a measurement found; what the machine lacks, or trouble, is said in its place and costs no other."""
    title, measure = MEASUREMENTS[letter]
    try:
        return measure(setting)
    except Unavailable as refusal:
        return Section(letter, title, skipped=f"it {refusal}")
    except InfraError as error:
        print(f"{letter}: {error}", file=sys.stderr)
        return Section(letter, title, skipped=str(error), failed=True)


def _how(options: argparse.Namespace) -> str:
    rounds = "Of one round each" if options.times == 1 else f"Medians of {options.times} rounds"
    return f"{rounds}{', at a small size that proves nothing but that it runs' if options.small else ''}."


def _as_json(here: machine.Machine, found: list[Section]) -> str:
    whole = {"machine": dataclasses.asdict(here), "sections": [dataclasses.asdict(each) for each in found]}
    return json.dumps(whole, indent=1) + "\n"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.suite", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--times", type=_positive, default=5, metavar="N", help="rounds (default: 5)")
    parser.add_argument(
        "--only",
        type=_letters,
        default=list(MEASUREMENTS),
        metavar="LETTERS",
        help="these, with commas between them: "
        + "; ".join(f"{letter}: {title}" for letter, (title, _) in MEASUREMENTS.items()),
    )
    parser.add_argument(
        "--small", action="store_true", help="a few cells, to see that each measurement works"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write every sample, after each measurement"
    )
    parser.add_argument(
        "--write", type=Path, metavar="PAGE", help="add the figures to a page, as its last section"
    )
    parser.add_argument(
        "--profile", action="store_true", help="also say where the host's CPU time goes in (a)"
    )
    options = parser.parse_args()
    if options.write:
        _refuse_page(options)
    return options


def _refuse_page(options: argparse.Namespace) -> None:
    """Say before anything is measured that there is no place for figures."""
    if options.small:
        raise HandledError("--write with --small: figures of a small size are none to keep; leave one out")
    try:
        with_section(options.write.read_text(encoding="utf-8"), "", "")
    except (OSError, NoMarker) as error:
        why = error.strerror if isinstance(error, OSError) else f"no line is {MARKER}"
        raise HandledError(f"--write {options.write}: {why}") from error
    if not os.access(options.write, os.W_OK):
        raise HandledError(f"--write {options.write}: cannot be written")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rounds; give 1 or more")
    return int(text)


def _letters(text: str) -> list[str]:
    letters = [letter.strip() for letter in text.split(",")]
    for letter in letters:
        if letter not in MEASUREMENTS:
            raise argparse.ArgumentTypeError(f"{letter!r} is none of {', '.join(MEASUREMENTS)}")
    return letters


if __name__ == "__main__":
    sys.exit(main())
