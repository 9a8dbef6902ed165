"""`run`: cells -> records -> report."""

from __future__ import annotations

import argparse
import os
import uuid
from collections import Counter
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from harness.cli.common import (
    EXIT_INFRA,
    EXIT_OK,
    EXIT_REGRESSION,
    add_selection,
    load_project,
    selected,
)
from harness.errors import HandledError
from harness.executor import TargetRunner, run_cells
from harness.judged import Judged, judge_cell
from harness.provision import plan_environment
from harness.report import build_report
from harness.store import Store
from harness.words import GOOD, Class, Verdict

if TYPE_CHECKING:
    from harness.outcome import Outcome
    from harness.plan import Cell
    from harness.provision import Via

#: Lines of a list in the closing summary; the report has them all.
_MOST_LISTED = 15


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of `run`."""
    add_selection(command)
    command.add_argument(
        "--via", choices=("auto", "docker", "venv"), default="auto", help="where engines run"
    )
    command.add_argument(
        "-j",
        "--jobs",
        type=_positive,
        default=os.cpu_count() or 1,
        metavar="N",
        help="targets run at the same time",
    )
    command.add_argument(
        "--require",
        action="append",
        default=[],
        metavar="TARGET",
        help="a target that must run here: else exit 3",
    )
    command.add_argument("--dry-run", action="store_true", help="print what would run, and where, and stop")


def run(options: argparse.Namespace) -> int:
    """Run the selected cells and write the report; returns the exit code."""
    project = load_project(options)
    required = {project.matrix.target(name).name for name in options.require}
    cells = selected(project, options)
    if not cells:
        raise HandledError("the selection matches no cell; `python -m harness list` shows them all")
    if options.dry_run:
        return _dry_run(cells, options.via)
    run_id = uuid.uuid4().hex[:12]
    with Store(options.reports, run=run_id) as store:
        judged = _run(cells, store, run_id, options)
        build_report(project.matrix, project.cases, store, options.reports)
    return _close(judged, required, options)


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of workers; give 1 or more")
    return int(text)


def _run(cells: tuple[Cell, ...], store: Store, run_id: str, options: argparse.Namespace) -> list[Judged]:
    judged: list[Judged] = []
    console = Console(stderr=True)
    noted: set[str] = set()
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task("cells", total=len(cells))

        def report(cell: Cell, outcome: Outcome, note: str) -> None:
            result = judge_cell(cell, outcome)
            judged.append(result)
            if note and cell.target.name not in noted:
                noted.add(cell.target.name)
                console.print(note, highlight=False, markup=False, soft_wrap=True)
            if result.judgement.verdict in (Verdict.REGRESSED, Verdict.FIXED):
                text = f"{result.judgement.verdict}: {cell.id}: {result.judgement.sentence}"
                console.print(text, highlight=False, markup=False, soft_wrap=True)
            progress.update(task, advance=1, description=cell.target.name)
            if not console.is_terminal and len(judged) % 100 == 0:
                console.print(
                    f"{len(judged)} of {len(cells)} cells", highlight=False, markup=False, soft_wrap=True
                )

        run_cells(
            cells,
            make_runner=lambda cell: TargetRunner(cell.target, via=options.via, run_id=run_id),
            store=store,
            workers=options.jobs,
            report=report,
        )
    return judged


def _dry_run(cells: tuple[Cell, ...], via: Via) -> int:
    targets = {cell.target.name: cell.target for cell in cells}
    for name, target in targets.items():
        mine = [cell for cell in cells if cell.target.name == name]
        print(f"{name} ({target.label}): {len(mine)} cells")
        for line in plan_environment(target, via):
            print(f"  {line}")
        for cell in mine:
            print(f"    {cell.id}")
    return EXIT_OK


def _close(judged: list[Judged], required: set[str], options: argparse.Namespace) -> int:
    classes = Counter(result.classification.cls for result in judged)
    verdicts = Counter(result.judgement.verdict for result in judged)
    print("  ".join(f"{cls} {classes[cls]}" for cls in Class if classes[cls]))
    for verdict in (Verdict.REGRESSED, Verdict.FIXED, Verdict.NEW):
        _list(str(verdict), [r for r in judged if r.judgement.verdict is verdict and _worth_a_line(r)])
    infra = [result for result in judged if result.judgement.verdict is Verdict.INFRA]
    _list("infrastructure", infra)
    missed = [r for r in judged if r.cell.target.name in required and r.outcome.state == "not_run"]
    _list("required and not run", missed)
    print(f"report: {options.reports / 'index.html'}")
    if verdicts[Verdict.REGRESSED]:
        return EXIT_REGRESSION
    return EXIT_INFRA if infra or missed else EXIT_OK


def _worth_a_line(result: Judged) -> bool:
    return result.judgement.verdict is not Verdict.NEW or result.classification.cls not in GOOD


def _list(title: str, results: list[Judged]) -> None:
    if not results:
        return
    print(f"{title}: {len(results)}")
    for result in results[:_MOST_LISTED]:
        print(f"  {result.cell.id}: {result.judgement.sentence[:200]}")
    if len(results) > _MOST_LISTED:
        print(f"  and {len(results) - _MOST_LISTED} more in the report")
