"""`diff`: the step from one target or report to another, in the terminal, as the page draws it."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.cli.options import EXIT_OK, EXIT_REGRESSION, add_fail_on, add_targets
from harness.cli.project import results_path
from harness.cli.terminal import wrapped
from harness.compare.kinds import Kind
from harness.compare.step import Step, StepRow, step
from harness.errors import HandledError
from harness.judge.names import Removed
from harness.report.labels import KINDS
from harness.report.model import Results, load_results, results_file
from harness.report.summary import quiet, told
from harness.text import did_you_mean, grouped, one_line, some, visible

#: Characters of one part of a row, and rows of one kind.
_LONGEST = 600
_MOST_ROWS = 100


def add_diff(command: argparse.ArgumentParser) -> None:
    """Add the two sides."""
    command.description = (
        "Say what changes from one target or report to another. The exit code is 1 where a part in --fail-on gets "
        "worse of something that was measured on both sides; what is only reported changes nothing in it."
    )
    command.add_argument("before", metavar="A", help="a target, or a results.json or reports folder")
    command.add_argument("after", metavar="B", help="the same of the other side")
    add_targets(command, "of two reports, compare only this target (repeatable)")
    add_fail_on(command, "class,precision")
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print a JSON list with an entry a target")
    form.add_argument(
        "--markdown",
        action="store_true",
        help="print what fits a comment on a pull request: a table, and a fold",
    )


def do_diff(options: argparse.Namespace) -> int:
    """Print the changes from A to B; returns 1 if a measured cell breaks or loses its precision."""
    steps = _steps(options)
    if options.json:
        print(json.dumps([_as_json(one) for _, one in steps], indent=1))
    elif options.markdown:
        print(told(steps), end="")
    else:
        print(*_all_lines(steps), sep="\n")
    return EXIT_REGRESSION if any(one.worse & options.fail_on for _, one in steps) else EXIT_OK


def _all_lines(steps: Sequence[tuple[str, Step]]) -> Iterator[str]:
    """Yield the lines on steps, each under the name of its target if there are two reports; the unchanged ones last."""
    silent = [name for name, one in steps if name and quiet(one)]
    parts = [list(_lines(one, f"{name}: " if name else "")) for name, one in steps if name not in silent]
    if silent:
        parts.append(_wrapped(f"unchanged: {', '.join(silent)}", "", longest=None))
    for at, part in enumerate(parts):
        yield from [""] if at else []
        yield from part


def _as_json(found: Step) -> dict[str, object]:
    return {
        **dataclasses.asdict(found),
        "rows": [row._asdict() for row in found.rows],
        "alone": [one._asdict() for one in found.alone],
        "troubles": [one._asdict() for one in found.troubles],
        "headline": found.headline,
        "phenomena": {str(kind): len(found.phenomena(kind)) for kind in Kind},
        "counts": {str(kind): found.counts[kind] for kind in Kind},
    }


def _steps(options: argparse.Namespace) -> list[tuple[str, Step]]:
    """Return the steps that are asked for, each with the name of its target, "" between two targets."""
    sides = [_file(options.before), _file(options.after)]
    if sides[0] and sides[1]:
        return _of_two_reports(load_results(sides[0]), load_results(sides[1]), options)
    if sides[0] or sides[1]:
        report, other = (options.before, options.after) if sides[0] else (options.after, options.before)
        raise HandledError(f"{report} is a report and {other} is none; give two targets or two reports")
    if options.targets:
        raise HandledError("--target is for two reports; two targets are named without it")
    path = results_path(options)
    results = load_results(path)
    names = [target.id for target in results.targets]
    for name in (options.before, options.after):
        if name not in names:
            raise HandledError(
                f"{path} has no target {name!r}, and no file or folder is called so; {did_you_mean(name, names)}"
            )
    return [("", results.step(options.before, options.after))]


def _of_two_reports(old: Results, new: Results, options: argparse.Namespace) -> list[tuple[str, Step]]:
    """Return the step of each target that both reports have; unless named, of those measured in either."""
    olds = {target.id: target.stamps for target in old.targets}
    both = {target.id: target.stamps or olds[target.id] for target in new.targets if target.id in olds}
    for name in options.targets:
        if name not in both:
            raise HandledError(
                f"the two reports do not both have a target {name!r}; {did_you_mean(name, both)}"
            )
    chosen = options.targets or [name for name, measured in both.items() if measured]
    if not chosen:
        raise HandledError("the two reports share no target that was measured in either")
    before, after = (f" in {side}" for side in (options.before, options.after))
    return [(name, step(old.column(name, name + before), new.column(name, name + after))) for name in chosen]


def _file(name: str) -> Path | None:
    path = Path(name)
    if path.is_dir():
        return results_file(path)
    return path if path.is_file() or path.suffix == ".json" else None


def _lines(found: Step, of: str = "") -> Iterator[str]:
    """Yield the lines on one step: the headline, then the rows by kind and cause, the worst first."""
    yield from _wrapped(f"{of}{found.headline}", "")
    if unknown := found.variants - found.known:
        count = f"{unknown} of {found.variants} variants {'is' if unknown == 1 else 'are'}"
        yield from _wrapped(f"{count} not known on both.", "")
    for kind in Kind:
        name, meaning = KINDS[kind]
        phenomena = found.phenomena(kind)
        if phenomena:
            models = found.counts[kind]
            of = f", in {models} models" if models != len(phenomena) else ""
            yield ""
            yield from _wrapped(f"{name}: {len(phenomena)}{of} ({meaning})", "")
        shown = 0
        for rows in phenomena[:_MOST_ROWS]:
            # One of each is named, however many an earlier one has.
            some_of = rows[: max(1, _MOST_ROWS - shown)]
            yield from _told(some_of)
            shown += len(some_of)
        if shown < found.counts[kind]:
            yield f"  and {found.counts[kind] - shown} more, which --json has"
        if kind is Kind.BROKEN:
            yield from _unheralded(found)
            yield from _removed(found.removed)


def _unheralded(found: Step) -> Iterator[str]:
    """Yield failures after that were unknown before: variants, then signatures that no variant shows.

    Those of names that went are left to the list of names.
    """
    named = {each.signature for each in found.removed}
    troubles = [each for each in found.troubles if each.signature not in named]
    if found.alone or troubles:
        count = len(found.alone) + len(troubles)
        yield ""
        yield from _wrapped(f"Fails on {found.after}, nothing known of {found.before}: {count}", "")
    alike = grouped(((one.text, one.basis), _line(one.variant)) for one in found.alone)
    for (text, basis), names in alike.items():
        yield from _wrapped(f"{', '.join(names)}: {text}, {basis}", "  ", longest=None)
    for one in troubles:
        yield from _wrapped(f"{one.title}, {one.seen}", "  ")
        yield from _wrapped(one.advice, "    ", longest=None)


def _removed(gone: Sequence[Removed]) -> Iterator[str]:
    """Yield the names that the Python interface loses, those with one remedy together."""
    if gone:
        names = f"{len(gone)} names (`trt-compat scan` finds their uses in code)"
        yield ""
        yield from _wrapped(f"Gone from TensorRT's Python: {names}", "")
    for now, each in grouped((one.now, one.name) for one in gone).items():
        yield from _wrapped(f"{', '.join(each)}{f'; instead: {now}' if now else ''}", "  ", longest=None)


def _told(rows: Sequence[StepRow]) -> Iterator[str]:
    """Yield the lines on one phenomenon: its cause, or else what became of it; behind it the variants."""
    title = rows[0].cause or rows[0].text
    yield from _wrapped(title, "  ")
    for (text, sure), names in grouped(((row.text, row.sure), _line(row.variant)) for row in rows).items():
        told = "" if text == title else f"{_line(text)}: "
        yield from _wrapped(f"{told}{', '.join(names)} ({_line(sure)})", "    ", longest=None)
    ways = grouped((row.tried, way) for row in rows for way in row.instead)
    for tried, instead in ways.items():
        where = f" ({tried})" if tried else ""
        yield from _wrapped(f"meanwhile: {some(list(dict.fromkeys(instead)))}{where}", "    ")


def _wrapped(text: str, indent: str, *, longest: int | None = _LONGEST) -> list[str]:
    """Return a text in lines; names and numbers stay in one piece, however long."""
    return wrapped(_line(text) if longest else visible(text), indent, f"{indent}  " if indent else "")


def _line(text: str) -> str:
    return one_line(text, _LONGEST)
