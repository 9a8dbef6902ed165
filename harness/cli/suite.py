"""`run --suite NAME`: the models of a suite on the targets, and a report of their own."""

from __future__ import annotations

import argparse
import uuid
from collections.abc import Sequence

from harness.cli.options import EXIT_INFRA, EXIT_OK, EXIT_REGRESSION, writable
from harness.cli.project import built, how_of, load_project, load_targets, required, write_report
from harness.cli.run import run_shown
from harness.errors import HandledError
from harness.judge.cell import is_news
from harness.plan import select
from harness.record.store import Store
from harness.run.local import Here, Runners
from harness.run.provision.requirements import refuse_unconfined
from harness.suites.items import find_suite
from harness.suites.report import build_suite
from harness.suites.running import About, SuitePrepared, SuiteStore
from harness.text import one_line


def run_suite(options: argparse.Namespace) -> int:
    """Run the selected models on the selected targets and write their report; returns the exit code."""
    matrix = load_targets(options)
    refuse_unconfined(matrix, options.via)
    suite = find_suite(options.suite)
    targets = matrix.only(options.targets)
    items = tuple(suite.items())
    about = About.of(suite, items)
    cells = select(about.cells(targets, {item.id: item.model for item in items}), options.expression)
    if not cells:
        raise HandledError(
            f"-k {options.expression!r} matches no model of {suite.name}; leave it out to run all"
        )
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
    for line in report.lines(frozenset(target.name for target in targets)):
        print(line)
    print(f"report: {report.page}")
    if (cases := Store(options.reports)).holds_records:
        # Its page links to those of the suites.
        write_report(built(load_project(options), options), cases)
    if any(cell.stamps == run_id for cell in report.regressed):
        return EXIT_REGRESSION
    return _trouble(store, sorted(needed), {cell.target.name for cell in cells})


def _trouble(store: SuiteStore, required: Sequence[str], ran: set[str]) -> int:
    """Tell which targets and models could not be judged; returns the exit code."""
    missed = [name for name in required if name in store.refused]
    if missed:
        print(f"required and not run: {', '.join(missed)}")
    if store.unjudged:
        print(f"{store.unjudged} models could not be judged: the machinery failed")
    trouble = any(outcome.state == "infra_error" for outcome in store.refused.values())
    return EXIT_INFRA if missed or trouble or store.unjudged or ran <= store.refused.keys() else EXIT_OK
