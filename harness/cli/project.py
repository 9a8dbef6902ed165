"""The matrix, the cases and the cells that a command is about."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness import __version__
from harness.case import Case, load_cases
from harness.cli.options import REPORTS, places
from harness.cli.options import own as is_own
from harness.errors import HandledError
from harness.matrix import Matrix, load_matrix
from harness.plan import Cell, all_cells, emptied_by, select, taken_along
from harness.record.outcome import Outcome
from harness.record.speaking import is_stale, todays
from harness.record.store import Store
from harness.run.commands import published_lines
from harness.run.local import How
from harness.run.prepared import with_models
from harness.shipped import published, shipped

if TYPE_CHECKING:
    from harness.report.model import Results


#: What is told where the published results stand in for those of a run.
PUBLISHED = f"no {REPORTS} here: taking the published results that come with trt-compat {__version__}"


@dataclass(frozen=True)
class Project:
    """The matrix, the cases and every cell of the two."""

    matrix: Matrix
    cases: tuple[Case, ...]
    cells: tuple[Cell, ...]


def how_of(options: argparse.Namespace) -> How:
    """Return the way in which the engines of a run are started."""
    return How(options.via, options.jobs, options.pull, options.process_per_cell)


def load_targets(options: argparse.Namespace) -> Matrix:
    """Load the matrix that `--matrix` names, its targets as trusted as the options say."""
    matrix = load_matrix(options.matrix)
    said: bool | None = getattr(options, "untrusted", None)
    if said is None:
        return matrix
    return replace(matrix, targets=tuple(replace(target, untrusted=said) for target in matrix))


def load_project(options: argparse.Namespace) -> Project:
    """Load the matrix and cases that `--matrix` and `--cases` name."""
    matrix = load_targets(options)
    cases = load_cases(options.cases)
    return Project(matrix, cases, all_cells(matrix, cases))


def built(
    project: Project,
    options: argparse.Namespace,
    names: Collection[str] | None = None,
) -> Project:
    """Return a project whose models are built, those that can be, by `with_models`; of some cases alone, by name."""
    chosen = [case for case in project.cases if names is None or case.name in names]
    made = {case.name: case for case in with_models(chosen, options.cases)}
    cases = tuple(made.get(case.name, case) for case in project.cases)
    return Project(project.matrix, cases, all_cells(project.matrix, cases))


def selected(project: Project, options: argparse.Namespace) -> tuple[Cell, ...]:
    """Return the cells that the options select, of which more than one may expect are named on stderr.

    Raises HandledError for an empty selection.
    """
    names = {target.name for target in project.matrix.only(options.targets)}
    cells = [cell for cell in project.cells if cell.target.name in names]
    chosen = select(cells, options.expression)
    if not chosen:
        on = f" on {', '.join(sorted(names))}" if options.targets else ""
        why = emptied_by(cells, options.expression)
        told = f": {why}" if why else ""
        raise HandledError(
            f"-k {options.expression!r} matches no cell{on}{told}; `trt-compat list` shows them all"
        )
    if note := taken_along(chosen, options.expression):
        print(note, file=sys.stderr)
    return chosen


def current(cells: Iterable[Cell], store: Store) -> Iterator[tuple[Cell, Outcome]]:
    """Yield the records of a store that speak for cells as they are today."""
    today = todays(cells := tuple(cells))
    found = store.speaking(lambda outcome: is_stale(outcome, today))
    yield from (
        (cell, each) for cell in cells for each in found.get(cell.id, ()) if not is_stale(each, today)
    )


def required(matrix: Matrix, cells: Iterable[Cell], options: argparse.Namespace) -> set[str]:
    """Return the targets of `--require`; raises HandledError for one of which no cell is selected."""
    wanted = {matrix.target(name).name for name in options.require}
    absent = wanted - {cell.target.name for cell in cells}
    if absent:
        raise HandledError(
            f"--require {min(absent)}: the selection holds no cell of that target, so it would not run"
        )
    return wanted


def results_path(options: argparse.Namespace) -> Path:
    """Return the results.json of the reports folder, else the published one, told on stderr.

    That stands in where neither a folder nor cases are one's own.
    """
    from harness.report.model import results_file  # noqa: PLC0415  (takes its time)

    own = results_file(options.reports)
    if own.is_file() or options.reports != Path(REPORTS) or _has_cases(options):
        return own
    print(PUBLISHED, file=sys.stderr)
    return results_file(published())


def _has_cases(options: argparse.Namespace) -> bool:
    known = shipped("cases").resolve()
    # `explain` asks for no cases.
    return (
        hasattr(options, "cases")
        and is_own(options, "cases")
        and options.cases.is_dir()
        and options.cases.resolve() != known
    )


def write_report(project: Project, store: Store, folder: Path | None = None) -> Results:
    """Write the report on all that a store holds, beside its records or into another folder; return its results."""
    from harness.report.writer import build_report  # noqa: PLC0415  (takes its time, and comes after the answer)

    lines = published_lines(project.matrix)
    return build_report(project.matrix, project.cases, store, folder or store.path, lines)


def command_line(verb: str, options: argparse.Namespace) -> str:
    """Return a command line for another verb on the same selection and the same places, to paste."""
    words = ["trt-compat", verb]
    if options.expression:
        words += ["-k", options.expression]
    for name in options.targets:
        words += ["--target", name]
    return shlex.join([*words, *places(options)])
