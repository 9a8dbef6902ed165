"""`run`: cells -> records -> report; of the cases, of a suite (suite.py), or of a task that Slurm starts."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import uuid
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from harness.cli.options import (
    EXIT_INFRA,
    EXIT_OK,
    EXIT_REGRESSION,
    PARTS,
    add_fail_on,
    add_json,
    add_require,
    add_selection,
    add_where,
    own,
    places,
    positive,
    print_json,
    writable,
)
from harness.cli.project import (
    Project,
    built,
    command_line,
    how_of,
    load_project,
    required,
    selected,
    write_report,
)
from harness.cli.summary import PipedConsole, advice, by_cause, run_shown, summarise, why_nothing_ran
from harness.cli.terminal import printer
from harness.errors import HandledError, described
from harness.judge.cell import Judged, as_json, is_news, judge_cell
from harness.judge.verdict import Judgement
from harness.plan import Cell
from harness.record.outcome import Outcome
from harness.record.speaking import todays
from harness.record.store import Store
from harness.report import is_current
from harness.run import trace
from harness.run.key import answering, keys_of
from harness.run.local import Here, Runners, longest_first
from harness.run.provision.images import LARGE_GB
from harness.run.provision.requirements import refuse_unconfined
from harness.run.slurm import SlurmExecutor, run_task
from harness.scratch import reap_scratch
from harness.words import Class, Verdict


def add_run(command: argparse.ArgumentParser) -> None:
    """Add the options of `run`."""
    add_selection(command)
    command.add_argument(
        "--fresh",
        action="store_true",
        help="run every cell (default: take what this machine has recorded and nothing has changed for)",
    )
    add_fail_on(command, ",".join(PARTS))
    add_json(command, "list with an entry a cell; the summary goes to standard error")
    add_where(command)
    command.add_argument(
        "--process-per-cell",
        action="store_true",
        help="a process for every cell (default: trusted cells of a target share one, and news is run again alone)",
    )
    command.add_argument(
        "-j",
        "--jobs",
        type=positive,
        default=os.cpu_count() or 1,
        metavar="N",
        help="cells run at the same time (default: one a processor)",
    )
    add_require(command)
    command.add_argument(
        "--pull",
        action="store_true",
        help=f"pull large images too: those above {LARGE_GB} GB, or of unknown size",
    )
    command.add_argument(
        "--suite",
        metavar="NAME",
        help="run the models of a suite in place of the cases: onnx-node, or a folder of models with data",
    )
    command.add_argument("--dry-run", action="store_true", help="print what would run, and where, and stop")
    command.add_argument(
        "--executor",
        choices=("local", "slurm"),
        default="local",
        help="who runs the cells: this machine, or the nodes of a Slurm cluster (default: local)",
    )
    # A task of a run, which an executor starts elsewhere; not for people.
    command.add_argument("--task", type=Path, help=argparse.SUPPRESS)


def do_run(options: argparse.Namespace) -> int:
    """Run the selected cells and write the report; returns the exit code."""
    if options.task is not None:
        run_task(options.task, lambda names: _cells_of_task(names, options), lambda run: _here(options, run))
        return EXIT_OK
    if options.suite is not None:
        from harness.cli.suite import run_suite  # noqa: PLC0415  (takes its time)

        return run_suite(options)
    try:
        return _run_cells(options)
    finally:
        # An agent of a killed run may still have lived at the start, and a run that reuses every record starts none.
        reap_scratch()


def _run_cells(options: argparse.Namespace) -> int:
    project = load_project(options)
    cells = selected(project, options)
    needed = required(project.matrix, cells, options)
    run_id = uuid.uuid4().hex[:12]
    if options.executor == "local":
        refuse_unconfined([cell.target for cell in cells], options.via)
    executor = _executor(options, run_id)
    if options.dry_run:
        print(*executor.plan(cells), sep="\n")
        return EXIT_OK
    reports, targets = writable(options.reports), {cell.target.name for cell in cells}
    printer(PipedConsole(stderr=True))(f"run {run_id}: {len(cells)} cell(s) on {len(targets)} target(s)")
    with Store(reports, run=run_id) as store:
        # Before any container is started: the models of a case module that hangs take their time here.
        with trace.span("build the models"):
            project = built(project, options, {cell.case.name for cell in cells})
        known = {cell.id: cell for cell in project.cells}
        project = replace(project, cells=tuple(known[cell.id] for cell in cells))
        code = _run_built(project, needed, executor, store, options)
    print(f"report: {options.reports / 'index.html'}", file=sys.stderr if options.json else sys.stdout)
    return code


def _run_built(
    project: Project,
    needed: set[str],
    executor: Here | SlurmExecutor,
    store: Store,
    options: argparse.Namespace,
) -> int:
    """Run the cells that no record answers, print the results and write the report; returns the exit code."""
    cells = project.cells
    earlier = tuple(store.outcomes())
    judged = _answered(cells, options, earlier)
    reused, left = len(judged), longest_first((cell for cell in cells if cell.id not in judged), earlier)
    if left:
        printer(PipedConsole(stderr=True))(f"{len(left)} of {len(cells)} cells to run")
        try:
            run_shown(left, store, executor, judged)
        except BaseException:
            recorded = f"{len(judged)} of {len(cells)} cells are recorded"
            _report_what_there_is(project, store, options, recorded)
            raise
    try:
        return _answer([judged[cell.id] for cell in cells if cell.id in judged], needed, reused, options)
    finally:
        # After the answer: it covers all cells that were ever run, and takes its time.
        if left or not is_current(store.path, [options.matrix, options.cases]):
            with trace.span("write the report"):
                write_report(built(project, options), store)


def _answered(
    cells: Sequence[Cell], options: argparse.Namespace, earlier: Sequence[Outcome]
) -> dict[str, Judged]:
    """Return by cell id the results of earlier runs that need not be made anew; the models are built."""
    # A node of a cluster is another machine.
    if not earlier or options.fresh or options.executor != "local":
        return {}
    today = todays(cells)
    found = answering(today, earlier, keys_of(cells, today, options.via))
    return {cell.id: judge_cell(cell, found[cell.id]) for cell in cells if cell.id in found}


def _report_what_there_is(project: Project, store: Store, options: argparse.Namespace, recorded: str) -> None:
    """Write the report of a run that did not come to its end; whoever catches the exception reports it."""
    try:
        write_report(built(project, options), store)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  (the run's own trouble is the one to tell)
        again = shlex.join(["trt-compat", "report", *places(options)])
        print(f"{recorded}; no report was written ({described(error)}); {again} shows them", file=sys.stderr)
    else:
        print(f"{recorded}; report: {options.reports / 'index.html'}", file=sys.stderr)


def _here(options: argparse.Namespace, run_id: str) -> Here:
    return Here(Runners(how_of(options), is_news, run_id))


def _executor(options: argparse.Namespace, run_id: str) -> Here | SlurmExecutor:
    """Return the executor of the cells; raises HandledError or InfraError if it needs Slurm and there is none."""
    if options.executor == "local":
        return _here(options, run_id)
    words = ["--via", options.via, "--matrix", str(options.matrix.absolute())]
    words += ["--cases", str(options.cases.absolute())]
    words += ["--pull"] if options.pull else []
    words += ["--process-per-cell"] if options.process_per_cell else []
    words += {True: ["--untrusted"], False: ["--trusted"]}.get(options.untrusted, [])
    made = SlurmExecutor(folder=options.reports / "slurm", run_id=run_id, words=words)
    if not options.dry_run:
        made.check()
    return made


def _answer(judged: Sequence[Judged], required: set[str], reused: int, options: argparse.Namespace) -> int:
    """Print the results of the cells, `reused` of which earlier runs had; return the exit code."""
    not_run = (result for result in judged if result.classification.cls is Class.NOT_RUN)
    missed = [result for result in not_run if result.cell.target.name in required]
    ran = any(result.outcome.state == "done" for result in judged)
    if options.json:
        print_json([as_json(result) for result in judged])
    out = sys.stderr if options.json else sys.stdout
    print(*_lines(judged, missed, reused, options), sep="\n", file=out)
    if not ran:
        print(f"nothing that was selected ran: {why_nothing_ran(judged)}", file=out)
    sys.stdout.flush()
    return _code([result.judgement for result in judged], options.fail_on, lacking=bool(missed) or not ran)


def _lines(
    judged: Sequence[Judged], missed: Sequence[Judged], reused: int, options: argparse.Namespace
) -> Iterator[str]:
    yield from summarise(judged)
    if reused:
        yield f"{reused} of {len(judged)} cells taken from earlier runs; --fresh runs all"
    yield from by_cause("required and not run", missed)
    accept = command_line("accept", options) if own(options, "cases") else ""
    yield from advice(judged, accept, places(options))


def _code(judgements: Sequence[Judgement], fail_on: Collection[str], *, lacking: bool) -> int:
    """Return the exit code of a run; it is `lacking` if something that was to run did not."""
    regressed = {each.part for each in judgements if each.verdict is Verdict.REGRESSED}
    if regressed & {None, *fail_on}:
        return EXIT_REGRESSION
    return EXIT_INFRA if lacking or any(each.verdict is Verdict.INFRA for each in judgements) else EXIT_OK


def _cells_of_task(names: Sequence[str], options: argparse.Namespace) -> list[Cell]:
    """Return cells by their ids, with their models built; those of other cases are not."""
    project = load_project(options)
    project = built(project, options, {cell.case.name for cell in project.cells if cell.id in set(names)})
    known = {cell.id: cell for cell in project.cells}
    if gone := [name for name in names if name not in known]:
        raise HandledError(
            f"there is no cell {gone[0]} any more: matrix or cases have changed since the run began"
        )
    cells = [known[name] for name in names]
    refuse_unconfined([cell.target for cell in cells], options.via)
    return cells
