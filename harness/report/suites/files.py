"""The files of suites in a reports folder: written, held against the records, taken in from elsewhere."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from harness.bounded import read_bytes
from harness.errors import HandledError
from harness.history.suites import keep_suite_runs, suite_history, take_suite_history
from harness.record.from_json import fields_of
from harness.record.suites import SUITES, SuiteStore
from harness.report.suites.page import render_suite
from harness.report.suites.results import suite_results, suite_runs
from harness.report.suites.summary import suite_markdown
from harness.report.writer import write_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.matrix import Matrix
    from harness.report.suites.model import SuiteResults

#: What a record of a model that was run is stamped with.
_STAMPS = ("engine_version", "via", "harness_version", "when", "run", "model_sha256")


def suite_stores(reports: Path) -> Iterator[SuiteStore]:
    """Yield the store of each suite that a reports folder has records of, by name."""
    for folder in sorted((reports / SUITES).glob("*/")):
        store = SuiteStore(folder)
        if store.holds_records:
            yield store


def build_suites(matrix: Matrix, reports: Path) -> tuple[SuiteResults, ...]:
    """Write the page, the JSON and the history of each suite; return what they show."""
    found = (build_suite(matrix, reports, store) for store in suite_stores(reports))
    return tuple(results for results in found if results is not None)


def build_suite(matrix: Matrix, reports: Path, store: SuiteStore) -> SuiteResults | None:
    """Write the page, the JSON and the history of one suite; return what they show, None where that is nothing."""
    kept = tuple(store.kept())
    history = suite_history(reports, store.path.name)
    results = suite_results(matrix, kept, history)
    if results is not None:
        keep_suite_runs(reports, store.path.name, suite_runs(results))
        write_files(reports / SUITES, _texts(store.path.name, results))
    return results


def absorb_suites(reports: Path, other: Path) -> Iterator[str]:
    """Take in records, logs and history of the suites of another reports folder; say of each what that was."""
    for theirs in suite_stores(other):
        name = theirs.path.name
        taken = SuiteStore(reports / SUITES / name).absorb(theirs)
        past = take_suite_history(reports, other, name)
        yield f"{other}: {taken} records of the suite {name} and {past} of its runs of the past taken in"


def verify_suites(matrix: Matrix, reports: Path) -> list[str]:
    """Return a sentence for every fault: no record, a log that is missing, a stamp, a file that does not follow."""
    faults: list[str] = []
    for store in suite_stores(reports):
        kept = tuple(store.kept())
        faults += store.faults
        for each in kept:
            outcome = each.outcome
            if outcome.log_sha256:
                try:
                    store.log(outcome)
                except HandledError as error:
                    faults.append(str(error))
            lacking = [name for name in _STAMPS if not getattr(outcome.stamps, name)]
            if outcome.state == "done" and lacking:
                faults.append(f"{outcome.cell}: has no {', '.join(lacking)} among its stamps; run it again")
        name = store.path.name
        results = suite_results(matrix, kept, suite_history(reports, name))
        for place, data in _texts(name, results).items() if results else ():
            path = reports / SUITES / place
            if not path.is_file():
                faults.append(f"{path}: missing; write it with `trt-compat report`")
            elif read_bytes(path) != data:
                faults.append(f"{path}: does not follow from the records; run `trt-compat report`")
    return faults


def _texts(name: str, results: SuiteResults) -> dict[str, bytes]:
    """Return what readers are shown of a suite by place."""
    texts = {
        f"{name}.json": _json(results),
        f"{name}.html": render_suite(results, name),
        f"{name}.md": suite_markdown(results),
    }
    return {place: text.encode() for place, text in texts.items()}


def _json(results: SuiteResults) -> str:
    """Return the JSON: sorted keys, and a target, model or ending a line, so that a diff tells."""
    data = results.to_json()
    parts = []
    for key in sorted(data):
        value = data[key]
        if isinstance(value, tuple):
            lines = ",\n".join(json.dumps(each, sort_keys=True, default=fields_of) for each in value)
            parts.append(f'"{key}": [\n{lines}\n]' if lines else f'"{key}": []')
        else:
            parts.append(f'"{key}": {json.dumps(value, sort_keys=True, default=fields_of)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"
