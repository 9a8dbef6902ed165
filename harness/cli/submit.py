"""`submit`: measures some cells here, and writes the file to send to the project."""

from __future__ import annotations

import argparse
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.merge import faults_of
from harness.cli.options import EXIT_OK, add_selection, writable, write_file
from harness.cli.project import Project, built, load_project, selected, write_report
from harness.errors import HandledError, InfraError
from harness.judge.cell import is_news, judge_cell
from harness.plan import claims_about, inapplicable_because
from harness.record.store import Store
from harness.run.local import Here, How, Runners
from harness.run.stamps import TOP, harness_commit
from harness.share.submission import SUFFIX, checked_account, read, submission

if TYPE_CHECKING:
    from harness.plan import Cell
    from harness.record.outcome import Outcome

_MINUTES = 10.0


class _TimeSpent(Exception):
    """No further cell is to be started."""


def add_submit(command: argparse.ArgumentParser) -> None:
    """Add the options of `submit`."""
    command.description = (
        "Measure some cells of one target here, for some ten minutes, and write one file to send to the project: "
        "records and logs without what tells whose machine it was."
    )
    add_selection(command)
    command.add_argument(
        "--account", required=True, metavar="NAME", help="your account, that of the pull request"
    )
    command.add_argument(
        "--output", type=Path, metavar="FILE", help="the file to write (default: TARGET-RUN.jsonl.xz)"
    )
    command.add_argument(
        "--minutes",
        type=float,
        default=_MINUTES,
        metavar="N",
        help=f"start no cell later than N minutes after the first has ended (default: {_MINUTES:g})",
    )
    command.add_argument(
        "--via", choices=("auto", "docker", "venv"), default="auto", help="where the engine runs"
    )
    command.add_argument("--pull", action="store_true", help="pull a large image too")


def do_submit(options: argparse.Namespace) -> int:
    """Measure some cells of one target and write the file to send; returns the exit code."""
    account = checked_account(options.account)
    if options.output and not options.output.parent.is_dir():
        raise HandledError(
            f"{options.output}: its folder is not there; make it, or give another with --output"
        )
    _need_own_cases(options)
    _need_clean_checkout()
    project = built(load_project(options), options)
    cells = _cells_of_one_target(project, options)
    measured = _measure(project, cells, options)
    data = submission(measured, account)
    first = measured[0][0]
    output = options.output or Path(f"{first.target}-{first.stamps.run}{SUFFIX}")
    write_file(output, data, "give another with --output")
    # What would be refused is not worth sending.
    archive = read(output, account)
    if fault := next(faults_of(archive), ""):
        raise HandledError(f"{output}: {fault}")
    print(
        f"{output}: {len(data) / 1e3:.0f} kB, {len(archive.records)} of {len(cells)} cells of {first.target}"
    )
    print(
        f"look into it (xz -dc {output} | python3 -m json.tool --json-lines), then open a pull request that adds it "
        "under submissions/"
    )
    return EXIT_OK


def _need_own_cases(options: argparse.Namespace) -> None:
    for name, given in (("cases", options.cases), ("matrix.yaml", options.matrix)):
        if given.resolve() != (TOP / name).resolve():
            raise HandledError(f"{given}: only the project's own {name} can be submitted; run it in {TOP}")


def _need_clean_checkout() -> None:
    commit = harness_commit()
    if not commit:
        raise HandledError(f"{TOP} is no checkout of the project: clone it with Git, and submit from there")
    if commit.endswith("+"):
        raise HandledError(
            f"the checkout {TOP} is changed, and nobody could tell what was measured: commit or stash, "
            "and measure a commit of the project's main branch"
        )


def _cells_of_one_target(project: Project, options: argparse.Namespace) -> list[Cell]:
    """Return the cells to measure, those first of which something is claimed.

    Raises HandledError for those of several targets.
    """
    chosen = [cell for cell in selected(project, options) if inapplicable_because(cell) is None]
    names = dict.fromkeys(cell.target.name for cell in chosen)
    if len(names) != 1:
        raise HandledError(
            f"a submission is of one target, and these are {len(names)}: give one with --target"
            if names
            else "nothing that was selected means anything on its target"
        )
    target = chosen[0].target
    if target.traits.baseline or not target.traits.builds_apart:
        raise HandledError(
            f"{target.name}: the project measures {target.traits.short} itself; submit TensorRT"
        )
    return sorted(chosen, key=lambda cell: not claims_about(cell))


def _measure(project: Project, cells: list[Cell], options: argparse.Namespace) -> list[tuple[Outcome, str]]:
    """Run cells one after the other until all are done or the time is spent; the records are kept here as well."""
    run_id = uuid.uuid4().hex[:12]
    end: float | None = None
    measured: list[Outcome] = []

    def report(cell: Cell, outcome: Outcome, _: str) -> None:
        nonlocal end
        print(f"{cell.id}: {judge_cell(cell, outcome).classification.cls}")
        if not measured and outcome.state != "done":
            # Where the first does not run none will.
            raise InfraError(f"{cell.target.name}: {outcome.reason}")
        measured.append(outcome)
        # Not from the start: an image may take longer to pull than its cells to run.
        end = end or time.monotonic() + options.minutes * 60
        if len(measured) < len(cells) and time.monotonic() >= end:
            raise _TimeSpent

    with Store(writable(options.reports), run=run_id) as store:
        try:
            here = Here(Runners(How(options.via, 1, options.pull), is_news, run_id))
            here.run(cells, store=store, report=report, say=print, live=None)
        except _TimeSpent:
            print(f"the time is spent: {len(cells) - len(measured)} cells were not started")
        finally:
            write_report(project, store)
        return [(each, store.log(each.log_sha256) if each.log_sha256 else "") for each in measured]
