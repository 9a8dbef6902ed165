"""`run --cached`, `--fresh` and `--resume`: which cells of a run have an outcome already."""

from __future__ import annotations

import contextlib
import datetime as dt
import gc
import sys
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.project import Project, built, selected
from harness.errors import HandledError
from harness.record.runs import Planned, stopped
from harness.record.speaking import todays
from harness.report import build_report
from harness.run.commands import published_lines
from harness.run.key import answering, keys_of, recorded_by

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from harness.plan import Cell
    from harness.record.outcome import Outcome
    from harness.record.store import Store

#: Options of a run that go on with it.
_GOES_ON = (
    "expression",
    "targets",
    "via",
    "ignore_needs",
    "pull",
    "require",
    "executor",
    "reuse",
    "untrusted",
)
#: Whose cells they are.
_FILES = ("matrix", "cases")
_CACHED, _FRESH, _RESUME = "cached", "fresh", "resume"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add `--cached`, `--fresh` and `--resume`."""
    command.set_defaults(reuse=_CACHED)
    group = command.add_mutually_exclusive_group()
    for word, text in (
        (_CACHED, "take what this machine has recorded and nothing has changed for (the default)"),
        (_FRESH, "run every cell, whatever is recorded"),
        (_RESUME, "go on with the newest run that was stopped, where it was"),
    ):
        group.add_argument(f"--{word}", dest="reuse", action="store_const", const=word, help=text)


def planned_run(options: argparse.Namespace) -> Planned | None:
    """Return the run to go on with, whose options become those of the command; None where one is to begin.

    Raises HandledError where there is none, or where something else is asked for.
    """
    if options.reuse != _RESUME:
        return None
    if options.suite is not None or options.expression or options.targets:
        raise HandledError(
            "--resume goes on with the cells of the run that was stopped; leave out -k, --target and --suite"
        )
    planned = stopped(options.reports)
    vars(options).update({name: planned.options[name] for name in _GOES_ON if name in planned.options})
    for name in _FILES:
        kept = Path(planned.options.get(name, getattr(options, name)))
        if name in options.unsaid and kept.absolute() != getattr(options, name).absolute():
            setattr(options, name, kept)
            options.unsaid.discard(name)
    return planned


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Look for no garbage meanwhile: among as many records as a whole run has that takes a third of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def plan_of(cells: tuple[Cell, ...], options: argparse.Namespace) -> Planned:
    """Return the plan of a run."""
    when = dt.datetime.now(dt.timezone.utc).isoformat(timespec="milliseconds")
    kept = {name: getattr(options, name) for name in _GOES_ON}
    kept |= {name: str(getattr(options, name).absolute()) for name in _FILES}
    return Planned(uuid.uuid4().hex[:12], when, tuple(cell.id for cell in cells), kept)


def cells_of(project: Project, options: argparse.Namespace, planned: Planned | None) -> tuple[Cell, ...]:
    """Return the cells of a run; of one to go on with those that there still are."""
    if planned is None:
        return selected(project, options)
    wanted = set(planned.cells)
    found = tuple(cell for cell in project.cells if cell.id in wanted)
    if not found:
        raise HandledError(f"run {planned.run} cannot be gone on with: none of its cells is there any more")
    if len(found) < len(wanted):
        gone = len(wanted) - len(found)
        print(f"{gone} of the {len(wanted)} cells of run {planned.run} are no longer there", file=sys.stderr)
    return found


@dataclass(frozen=True)
class Work:
    """A run's cells: `reused` have the outcome of an earlier run, `done` one of this run from before its stop.

    The models of `project` are built.
    """

    project: Project
    cells: tuple[Cell, ...]
    options: argparse.Namespace
    reused: dict[str, Outcome] = field(default_factory=dict)
    done: dict[str, Outcome] = field(default_factory=dict)

    @property
    def found(self) -> dict[str, Outcome]:
        """Return the outcomes that there are already, by cell id."""
        return self.reused | self.done

    @property
    def todo(self) -> tuple[Cell, ...]:
        """Return the cells that are to be run."""
        found = self.found
        return tuple(cell for cell in self.cells if cell.id not in found)

    def lines(self) -> Iterator[str]:
        """Yield the lines on outcomes that were there already."""
        if self.done:
            yield f"{len(self.done)} of {len(self.cells)} cells were recorded before the run was stopped"
        if self.reused:
            yield f"{len(self.reused)} of {len(self.cells)} cells taken from earlier runs; --fresh runs all"

    def report(self, store: Store) -> None:
        """Write the report on all that the store holds."""
        matrix = self.project.matrix
        build_report(matrix, self.project.cases, store, self.options.reports, published_lines(matrix))


def work_of(
    project: Project,
    cells: tuple[Cell, ...],
    options: argparse.Namespace,
    store: Store,
    planned: Planned | None,
) -> Work:
    """Build the models of a project; return the cells of a run with the outcomes that there are already."""
    project = built(project, options)
    known = {cell.id: cell for cell in project.cells}
    cells = tuple(known[cell.id] for cell in cells)
    # A node of a cluster is another machine.
    here = options.executor == "local"
    cached = here and options.reuse == _CACHED
    outcomes = tuple(store.outcomes()) if planned or cached else ()
    if not outcomes:
        return Work(project, cells, options)
    today = todays(cells)
    keys = keys_of(cells, today, options.via, ignore_needs=options.ignore_needs) if here else {}
    done = recorded_by(planned.run, today, outcomes, keys) if planned else {}
    reused = answering(today, outcomes, keys) if cached else {}
    reused = {key: each for key, each in reused.items() if key not in done}
    return Work(project, cells, options, reused, done)
