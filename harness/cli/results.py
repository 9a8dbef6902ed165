"""`report`, `accept` and `verify`: work on records; no engine, no Docker, no GPU."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.case import measured
from harness.cli.options import EXIT_INFRA, EXIT_OK, add_selection, own
from harness.cli.project import built, current, load_project, results_path, selected, write_report
from harness.errors import HandledError
from harness.judge.cell import Judged, judge_cell
from harness.judge.verdict import accepted_ms, asked_of
from harness.record.speaking import took_part
from harness.record.store import Store, write_files
from harness.report.model import load_results, results_file
from harness.report.verify import verify_published, verify_report
from harness.report.writer import write_report as write_report_of
from harness.run.commands import published_lines
from harness.suites.report import build_suites, is_suite, suite_folders
from harness.text import grouped
from harness.words import UNJUDGED


def add_report(command: argparse.ArgumentParser) -> None:
    """Add the description alone."""
    command.description = (
        "Write the report from what is recorded: one interactive page with the data beside it, in the --reports "
        "folder."
    )


def do_report(options: argparse.Namespace) -> int:
    """Write the report from the records."""
    store = Store(options.reports)
    if not (store.holds_records or suite_folders(options.reports) or own(options, "cases")):
        return _report_published(options)
    project = built(load_project(options), options)
    _need_records(options.reports)
    # First: the report's page links to those of the suites.
    for suite in build_suites(project.matrix, options.reports):
        print(f"report: {suite.page}")
    if store.holds_records:
        write_report(project, store, options.reports)
        print(f"report: {options.reports / 'index.html'}")
    return EXIT_OK


def _report_published(options: argparse.Namespace) -> int:
    """Write the published results as a report where nothing ran and no cases are here."""
    path = results_path(options)
    if not path.is_file():
        _need_records(options.reports)
    written = write_report_of(load_results(path), options.reports)
    print(f"report of the published results: {written[-1]}")
    return EXIT_OK


def add_accept(command: argparse.ArgumentParser) -> None:
    """Add the selection."""
    add_selection(command)


def do_accept(options: argparse.Namespace) -> int:
    """Write the latest measured classes of the selected cells to the cases' measured.yaml.

    Other lines stay, but for measurements of the same target and GPU at another engine version.
    """
    project = built(load_project(options), options)
    _need_records(options.reports)
    found = current(selected(project, options), Store(options.reports))
    judged = [judge_cell(cell, outcome) for cell, outcome in found]
    fresh = [result for result in judged if result.classification.cls not in UNJUDGED]
    if not fresh:
        raise HandledError("nothing measured is recorded for this selection; run it first")
    path = options.cases / measured.FILE
    baseline = measured.read(path)
    known = {each.place: each for each in baseline.measured}
    for place, mine in grouped((_place(result), result) for result in fresh).items():
        known[place] = _merged(place, known.get(place), mine)
    # Targets of another matrix file keep their place behind those of this one.
    order = list(dict.fromkeys([*(target.name for target in project.matrix), *(name for name, *_ in known)]))
    every = tuple(sorted(known.values(), key=lambda each: order.index(each.target)))
    asked = {**baseline.asked, **{_key(result): asked_of(result.outcome, result.wished) for result in fresh}}
    write_files(path.parent, {path.name: measured.text_of(measured.Baseline(every, asked)).encode()})
    print(f"{len({result.cell.id for result in fresh})} cells accepted into {path}; review the diff")
    return EXIT_OK


def _key(result: Judged) -> tuple[str, str]:
    return result.cell.case.name, result.cell.variant.name


def _place(result: Judged) -> tuple[str, str, str]:
    """Return the place of a result in measured.yaml: a T4's result does not speak for an L4."""
    gpu = took_part(result.outcome)
    return result.cell.target.name, *((gpu.compute_capability, gpu.product) if gpu else ("", ""))


def _merged(
    place: tuple[str, str, str], old: measured.Measured | None, results: list[Judged]
) -> measured.Measured:
    name, capability, product = place
    target = results[0].cell.target
    cells = dict(old.cells) if old and old.version == target.version else {}
    for result in results:
        cells[_key(result)] = _result(result)
    latest = max((result.outcome for result in results), key=lambda outcome: outcome.stamps.when)
    gpu = took_part(latest)
    return measured.Measured(
        target=name,
        engine=target.engine,
        version=target.version,
        measured=latest.stamps.when[: len("2026-01-01")],
        cells=cells,
        compute_capability=capability,
        product=product,
        driver=gpu.driver if gpu else "",
        libraries=old.libraries if old and old.version == target.version else "",
    )


def _result(judged: Judged) -> measured.Result:
    """Return the end of a cell with the nodes to blame: those that lost their precision, or the one that fails."""
    lost = tuple(each.node for each in judged.classification.lost)
    blamed = judged.diagnosis.node if judged.diagnosis else ""
    return measured.Result(
        cls=judged.classification.cls,
        signature=judged.signature,
        nodes=lost or ((blamed,) if blamed else ()),
        untold=judged.classification.unverified,
        ms=(ms := accepted_ms(judged.classification.cls, judged.outcome)),
        graph=bool(ms and judged.outcome.latency and judged.outcome.latency.clock == "cuda_graph"),
    )


def do_verify(options: argparse.Namespace) -> int:
    """Check that every record reads, every log is whole and the report follows from the records.

    Without records: that results.json is whole and the summary follows from it. Returns 3 for a fault: a damaged folder
    shows no regression.
    """
    project = built(load_project(options), options)
    # A line that is no record is among the faults.
    store = Store(options.reports, tell=lambda _: None)
    alone = not store.holds_records
    if is_suite(options.reports) or (alone and not results_file(options.reports).is_file()):
        raise _no_cases(options.reports)
    if alone:
        faults = verify_published(project.matrix, project.cases, options.reports)
    else:
        lines = published_lines(project.matrix)
        faults = verify_report(project.matrix, project.cases, store, options.reports, lines)
    for fault in faults:
        print(fault)
    whole = f"consistent{'; without records the page is not checked' if alone else ''}"
    print(f"{options.reports}: {f'{len(faults)} faults' if faults else whole}")
    return EXIT_INFRA if faults else EXIT_OK


def _need_records(folder: Path) -> None:
    if is_suite(folder) or not (Store(folder).holds_records or suite_folders(folder)):
        raise _no_cases(folder)


def _no_cases(folder: Path) -> HandledError:
    what = "a suite, and no records of cases" if is_suite(folder) else "no records of cases"
    return HandledError(f"{folder}: holds {what}; `trt-compat run` makes some, or give --reports")
