"""`run --cached`, `--fresh` and `--resume`: which cells of a run have an outcome already."""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import uuid
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.common import Project, built, selected
from harness.errors import HandledError
from harness.history import FOLDER
from harness.record.archive import PACKED
from harness.record.revoked import SUBMISSIONS
from harness.record.runs import LastRun, Planned, keep_last, read_last, stopped
from harness.record.store import RECORDS
from harness.record.suites import SUITES
from harness.report import build_report, renew_report
from harness.run.commands import published_lines
from harness.run.kept_models import Hashes, keep_models, known_models, made_of
from harness.run.key import hash_of_files
from harness.run.reuse import answering, keys_of, recorded_by

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from harness.plan import Cell
    from harness.record.outcome import Outcome
    from harness.record.store import Store

#: Options of a run that go on with it.
_GOES_ON = ("expression", "targets", "via", "ignore_needs", "pull", "require", "executor", "reuse")
#: Folders of a report whose files it is made of.
_SOURCES = (RECORDS, FOLDER, SUBMISSIONS, SUITES)
_HARNESS = Path(__file__).resolve().parents[1]
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
            "--resume goes on with the cells of the run that was stopped; leave out -k, --target, --suite"
        )
    planned = stopped(options.reports)
    vars(options).update({name: planned.options[name] for name in _GOES_ON if name in planned.options})
    return planned


def plan_of(cells: tuple[Cell, ...], options: argparse.Namespace) -> Planned:
    """Return what a run sets out to do."""
    when = dt.datetime.now(dt.timezone.utc).isoformat(timespec="milliseconds")
    kept = {name: getattr(options, name) for name in _GOES_ON}
    return Planned(uuid.uuid4().hex[:12], when, tuple(cell.id for cell in cells), kept)


def cells_of(project: Project, options: argparse.Namespace, planned: Planned | None) -> tuple[Cell, ...]:
    """Return the cells of a run; of one to go on with those that there still are."""
    if planned is None:
        return selected(project, options)
    wanted = set(planned.cells)
    found = tuple(cell for cell in project.cells if cell.id in wanted)
    if not found:
        raise HandledError(f"run {planned.run} cannot be gone on with: none of its cells is there any more")
    return found


@dataclass
class Work:
    """A run's cells, parted: `reused` have the outcome of an earlier run, `done` one of this run from before its stop.

    The models of `project` are built where a cell is left `todo`, and once `build` was called.
    """

    project: Project
    cells: tuple[Cell, ...]
    options: argparse.Namespace
    reused: dict[str, Outcome] = field(default_factory=dict)
    done: dict[str, Outcome] = field(default_factory=dict)
    models: Hashes | None = None
    is_built: bool = False

    @property
    def todo(self) -> tuple[Cell, ...]:
        """Return the cells that are to be run."""
        return tuple(cell for cell in self.cells if cell.id not in self.found)

    @property
    def found(self) -> dict[str, Outcome]:
        """Return the outcomes that there are already, by cell id."""
        return self.reused | self.done

    def build(self) -> None:
        """Build the models of all cases, once."""
        if not self.is_built:
            self.is_built = True
            self.project = built(self.project, self.options)
            known = {cell.id: cell for cell in self.project.cells}
            self.cells = tuple(known[cell.id] for cell in self.cells if cell.id in known)
            self.models = keep_models(self.options.cases, self.project.cases)

    def look_up(self, store: Store, planned: Planned | None) -> None:
        """Find the outcomes that there are already, and build the models where cells are left to run."""
        options = self.options
        outcomes = tuple(store.outcomes()) if planned or options.reuse == _CACHED else ()
        if outcomes:
            self.models = known_models(options.cases)
            if self.models is None:
                self.build()
            models = self.models or {}
            # A node of a cluster is another machine.
            here = options.executor == "local"
            keys = keys_of(self.cells, models, options.via, ignore_needs=options.ignore_needs) if here else {}
            if options.reuse == _CACHED:
                self.reused = answering(self.cells, outcomes, models, keys)
            if planned:
                self.done = recorded_by(planned.run, self.cells, outcomes, models, keys)
                self.reused = {key: each for key, each in self.reused.items() if key not in self.done}

    def lines(self) -> Iterator[str]:
        """Yield what is told of outcomes that were there already."""
        if self.done:
            yield f"{len(self.done)} of {len(self.cells)} cells were recorded before the run was stopped"
        if self.reused:
            yield f"{len(self.reused)} of {len(self.cells)} cells taken from earlier runs; --fresh runs all"

    def report(self, store: Store, planned: Planned) -> None:
        """Write the report of a run that has come to its end, or let it say what is new where no outcome is."""
        last = LastRun(planned.run, planned.when, len(self.cells), len(self.reused))
        options, before = self.options, read_last(self.options.reports)
        made_of = _made_of(options)
        if before and made_of and before.made_of == made_of:
            keep_last(options.reports, replace(last, made_of=made_of))
            with contextlib.suppress(HandledError):
                renew_report(options.reports)
                return
        self.build()
        keep_last(options.reports, last)
        matrix = self.project.matrix
        build_report(matrix, self.project.cases, store, options.reports, published_lines(matrix))
        keep_last(options.reports, replace(last, made_of=_made_of(options)))


def _made_of(options: argparse.Namespace) -> str:
    """Return a hash of all that a report is made of, and of which of its files are there."""
    told = [options.matrix, *options.cases.glob("*.yaml")]
    files = (path for path in _HARNESS.rglob("*") if path.is_file() and path.suffix != ".pyc")
    words = [made_of(options.cases), hash_of_files(_HARNESS, files), *map(_content, told)]
    beside = sorted(options.reports.iterdir())
    words += (_content(path) if path.name.endswith(PACKED) else path.name for path in beside)
    for name in _SOURCES:
        for path in sorted((options.reports / name).rglob("*")):
            found = path.stat()
            words.append(f"{path} {found.st_size} {found.st_mtime_ns}")
    return hashlib.sha256("\n".join(words).encode("utf-8", "surrogateescape")).hexdigest()


def _content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
