"""`run --suite NAME`: the models of a suite in place of the cases."""

from __future__ import annotations

import argparse
import uuid
from collections.abc import Iterable

from harness.cli.options import EXIT_INFRA, EXIT_OK, writable
from harness.cli.project import built, how_of, load_project, load_targets, required, write_report
from harness.cli.summary import run_shown
from harness.errors import HandledError
from harness.judge.cell import is_news
from harness.matrix import Target
from harness.plan import Cell, select
from harness.record.store import Store
from harness.run.local import Here, Runners
from harness.run.provision.requirements import refuse_unconfined
from harness.suites.items import Item, find_suite
from harness.suites.report import build_suite
from harness.suites.running import About, SuitePrepared, SuiteStore
from harness.text import one_line


def run_suite(options: argparse.Namespace) -> int:
    """Run the selected models on the selected targets and write their report; returns the exit code."""
    if options.json:
        raise HandledError("--json is of the cases; the report of a suite has its results as results.json")
    if options.executor != "local":
        raise HandledError(f"--executor {options.executor} runs the cases alone; leave that or --suite out")
    matrix = load_targets(options)
    refuse_unconfined(matrix, options.via)
    suite = find_suite(options.suite)
    targets = matrix.only(options.targets)
    items = tuple(suite.items())
    about = About.of(suite, items)
    cells = _cells(about, items, targets, options.expression)
    needed = required(matrix, cells, options)
    run_id = uuid.uuid4().hex[:12]
    here = Here(Runners(how_of(options), is_news, run_id, SuitePrepared(items)))
    if options.dry_run:
        # Without the cells, which are thousands.
        print(*(line for line in here.plan(cells) if not line.startswith("    ")), sep="\n")
        return EXIT_OK
    store = SuiteStore(writable(options.reports), about, run=run_id)
    with store:
        try:
            run_shown(cells, store, here, {})
        finally:
            report = build_suite(matrix, store.path) if store.holds_records else None
    for name, outcome in store.refused.items():
        print(f"{name}: {outcome.state}: {one_line(outcome.reason, 300)}")
    if report is None:
        print("nothing that was selected ran")
        return EXIT_INFRA
    print(*report.lines(frozenset(target.name for target in targets)), f"report: {report.page}", sep="\n")
    if (cases := Store(options.reports)).holds_records:
        # Its page links to those of the suites.
        write_report(built(load_project(options), options), cases)
    return _trouble(store, needed, {cell.target.name for cell in cells})


def _cells(
    about: About, items: Iterable[Item], targets: Iterable[Target], expression: str
) -> tuple[Cell, ...]:
    """Return the cells that an expression selects; raises HandledError for an empty selection."""
    cells = select(about.cells(targets, {item.id: item.model for item in items}), expression)
    if not cells:
        raise HandledError(f"-k {expression!r} matches no model of {about.name}; leave it out to run all")
    return cells


def _trouble(store: SuiteStore, required: set[str], ran: set[str]) -> int:
    """Tell which targets and models could not be judged; returns the exit code."""
    missed = sorted(store.refused.keys() & required)
    if missed:
        print(f"required and not run: {', '.join(missed)}")
    if store.unjudged:
        print(f"{store.unjudged} models could not be judged: the machinery failed")
    trouble = any(outcome.state == "infra_error" for outcome in store.refused.values())
    return EXIT_INFRA if missed or trouble or store.unjudged or not ran - store.refused.keys() else EXIT_OK
