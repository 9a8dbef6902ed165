"""`run --suite NAME`: the models of a suite on the targets, and a table of their own."""

from __future__ import annotations

import uuid
from collections import Counter
from typing import TYPE_CHECKING

from rich.console import Console

from harness.cli.common import EXIT_INFRA, EXIT_OK, EXIT_REGRESSION, load_targets, writable
from harness.cli.terminal import printer
from harness.errors import HandledError
from harness.models.suites import Sink, SuitePrepared, about, find_suite, suite_cells
from harness.plan import select
from harness.record.suites import SUITES, SuiteStore
from harness.report.suites import build_suite, suite_lines
from harness.run.commands import limits, plan_environment
from harness.run.gpus import Gpus
from harness.run.local import run_cells
from harness.run.provision import Pulling, look_at_host
from harness.run.provision.trust import refuse_unconfined
from harness.run.pull_plan import PullLines, plan_pulls
from harness.run.target import TargetRunner
from harness.text import clip, visible
from harness.words import Class

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from harness.matrix import Target
    from harness.plan import Cell
    from harness.record.outcome import Outcome
    from harness.report.suites import SuiteResults

#: Models between two lines that say how far it is.
_EVERY = 200


def run_suite(options: argparse.Namespace) -> int:
    """Run the selected models on the selected targets and write their page; returns the exit code."""
    matrix = load_targets(options)
    refuse_unconfined(matrix, options.via)
    suite = find_suite(options.suite)
    required = [matrix.target(name).name for name in options.require]
    targets = list(matrix.only(options.targets))
    items = tuple(suite.items())
    cells = select(suite_cells(suite, items, targets), options.expression)
    if not cells:
        raise HandledError(
            f"-k {options.expression!r} matches no model of {suite.name}; leave it out to run all"
        )
    if options.dry_run:
        return _dry_run(cells, options)
    folder = writable(options.reports) / SUITES / suite.name
    run_id = uuid.uuid4().hex[:12]
    with SuiteStore(folder, about(suite, items), run=run_id) as store:
        sink = Sink(store)
        try:
            _run(cells, sink, SuitePrepared(items), run_id, options)
        finally:
            results = build_suite(matrix, options.reports, store) if store.holds_records else None
    for name, outcome in sink.refused.items():
        print(f"{name}: {outcome.state}: {clip(' '.join(visible(outcome.reason).split()), 300)}")
    if results is None:
        print("nothing that was selected ran")
        return EXIT_INFRA
    for line in suite_lines(results, [target.name for target in targets]):
        print(line)
    print(f"report: {options.reports / SUITES / suite.name}.html")
    return _code(results, sink, required, {cell.target.name for cell in cells})


def _dry_run(cells: tuple[Cell, ...], options: argparse.Namespace) -> int:
    host = look_at_host()
    for target in {cell.target.name: cell.target for cell in cells}.values():
        print(
            f"{target.name} ({target.label}): {sum(cell.target.name == target.name for cell in cells)} cells"
        )
        for line in plan_environment(target, options.via, host, ignore_needs=options.ignore_needs):
            print(f"  {line}")
        for line in limits(target, options.via, host):
            print(f"  {line}")
    return EXIT_OK


def _run(
    cells: tuple[Cell, ...], sink: Sink, prepared: SuitePrepared, run_id: str, options: argparse.Namespace
) -> None:
    say = printer(Console(stderr=True))
    totals = Counter(cell.target.name for cell in cells)
    done, noted = Counter[str](), set[str]()

    def report(cell: Cell, _: Outcome, note: str) -> None:
        name = cell.target.name
        done[name] += 1
        if note and name not in noted:
            noted.add(name)
            say(note)
        if note and (done[name] % _EVERY == 0 or done[name] == totals[name]):
            say(f"{name}: {done[name]} of {totals[name]}")

    pulling = _pulling(cells, options, say)
    gpus = Gpus()
    run_cells(
        cells,
        make_runner=lambda cell: TargetRunner(
            cell.target,
            via=options.via,
            run_id=run_id,
            prepared=prepared,
            pulling=pulling,
            ignore_needs=options.ignore_needs,
            gpus=gpus,
        ),
        store=sink,
        workers=options.jobs,
        report=report,
    )


def _pulling(cells: tuple[Cell, ...], options: argparse.Namespace, say: Callable[[str], None]) -> Pulling:
    targets: dict[str, Target] = {cell.target.name: cell.target for cell in cells}
    plan = plan_pulls(targets.values(), options.via, large=options.pull, ignore_needs=options.ignore_needs)
    for line in plan.lines():
        say(line)
    return Pulling(large=options.pull, known=plan.known, tell=PullLines(say))


def _code(results: SuiteResults, sink: Sink, required: list[str], ran: set[str]) -> int:
    if any(target in ran for target, _ in results.regressed()):
        return EXIT_REGRESSION
    missed = [name for name in required if name in sink.refused]
    if missed:
        print(f"required and not run: {', '.join(missed)}")
    trouble = any(outcome.state == "infra_error" for outcome in sink.refused.values())
    unjudged = sum(
        target.counts.get(str(Class.INFRA_ERROR), 0) for target in results.targets if target.id in ran
    )
    if unjudged:
        print(f"{unjudged} models could not be judged: the machinery failed")
    return EXIT_INFRA if missed or trouble or unjudged or ran <= sink.refused.keys() else EXIT_OK
