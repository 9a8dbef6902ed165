"""Whether a finished reports folder is whole: records, logs, stamps, samples, cells, and every file made of them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import jsonschema

from harness.bounded import parse_json, read_bytes
from harness.case import Case
from harness.errors import HandledError
from harness.history import FOLDER, keepable, missing, read_history
from harness.matrix import Matrix
from harness.plan import all_cells
from harness.record.outcome import Outcome
from harness.record.store import Store, inflate
from harness.report.model import content, load_results, results_file
from harness.report.page import unpacked
from harness.report.results import Commands, ReportSources, layer_files, of_outcomes, results_of, run_records
from harness.report.summary import summary
from harness.report.writer import LAYERS, layers_place, model_files, report_texts, schema_text, suites_beside

#: The stamps of every record of a cell that was run.
_STAMPS = ("model_sha256", "recipe_sha256", "engine_version", "via", "harness_version", "when", "run")
#: Faults of one kind that are told; a broken file has thousands.
_MOST_TOLD = 20


def verify_report(
    matrix: Matrix, cases: Sequence[Case], store: Store, folder: Path, commands: Commands | None = None
) -> list[str]:
    """Return a sentence for every fault, without mending it.

    It checks each line of the records; each log against its hash; the stamps and samples of each record; that a run's
    history is kept; and that every file of the report follows from the records (byte for byte, except the packing of
    the page's evidence).
    """
    found = of_outcomes(matrix, cases, tuple(store.outcomes()), commands)
    models = model_files(found.models)
    texts = report_texts(results_of(found, read_history(store.path)), suites_beside(folder), models)
    files = {name: text.encode() for name, text in texts.items()} | models
    return verify_recorded(found, store, folder, files)


def verify_recorded(
    found: ReportSources, store: Store, folder: Path, files: Mapping[str, bytes]
) -> list[str]:
    """Return the faults of records and of the report on them, whose files are to be as given; see `verify_report`."""
    faults = [*store.faults]
    for outcome in found.outcomes:
        faults += [*_log(store, outcome), *record_faults(outcome)]
    faults += [
        f"{store.path / FOLDER / record.file_name}: missing or short; write it with `trt-compat report`"
        for record in missing(store.path, run_records(found))
    ]
    faults += _files(folder, files)
    return [*faults, *_layers(folder / LAYERS, layer_files(found))]


def verify_published(matrix: Matrix, cases: Sequence[Case], folder: Path) -> list[str]:
    """Return a sentence for every fault of a report whose records are elsewhere.

    Looked at are that results.json keeps to its schema and accounts for each cell, and that summary.md follows.
    """
    path, planned = results_file(folder), {cell.id for cell in all_cells(matrix, cases)}
    try:
        data: Any = parse_json(content(path))
    except (OSError, ValueError) as error:
        return [f"{path}: not JSON ({error}); run `trt-compat report`"]
    validator = jsonschema.Draft202012Validator(json.loads(schema_text()))
    faults = [
        f"{path}: {fault.json_path}: {fault.message[:200]}"
        for fault in islice(validator.iter_errors(data), _MOST_TOLD)
    ]
    if faults:
        return faults
    if others := sorted(planned ^ {cell["id"] for cell in data["cells"]}):
        told = ", ".join(others[:3])
        return [f"{path}: is of another matrix by {len(others)} cells: {told}; run `trt-compat report`"]
    return _files(folder, {"summary.md": summary(load_results(path)).encode()}, path.name)


def _files(folder: Path, files: Mapping[str, bytes], source: str = "the records") -> list[str]:
    """Return the faults of the files of a folder, which are to be as given."""
    faults = []
    for name, data in files.items():
        path = folder / name
        if not path.is_file():
            faults.append(f"{path}: missing; write it with `trt-compat report`")
        elif not _same(path, read_bytes(path), data):
            faults.append(f"{path}: does not follow from {source}; run `trt-compat report`")
    return faults


def _layers(folder: Path, files: Mapping[str, bytes]) -> Iterable[str]:
    """Yield the faults of the layers, whose packing may be that of another build of zlib."""
    for digest, data in files.items():
        path = folder / layers_place(digest)
        try:
            if inflate(path) != data:
                yield f"{path}: is not what was recorded; delete it and run `trt-compat report`"
        except OSError as error:
            yield f"{path}: cannot be read ({error}); delete it and run `trt-compat report`"


def _same(path: Path, found: bytes, data: bytes) -> bool:
    if found == data:
        return True
    return path.suffix == ".html" and unpacked(found.decode("utf-8", "replace")) == unpacked(data.decode())


def _log(store: Store, outcome: Outcome) -> Iterable[str]:
    if outcome.log_sha256:
        try:
            store.log(outcome.log_sha256)
        except HandledError as error:
            yield f"{outcome.cell}: {error}"


def record_faults(outcome: Outcome) -> Iterable[str]:
    """Yield a sentence on every stamp and sample that a record lacks or has too much."""
    where = f"{outcome.cell[:120]} of run {outcome.stamps.run[:12] or '?'}"
    if outcome.state != "done":
        if not outcome.reason:
            yield f"{where}: is {outcome.state} and does not say why"
        return
    lacking = [name for name in _STAMPS if not getattr(outcome.stamps, name)]
    if not outcome.stamps.image_digest and not outcome.stamps.packages:
        lacking.append("image_digest or packages")
    if lacking:
        yield f"{where}: has no {', '.join(lacking)} among its stamps; run the cell again"
    elif not keepable(outcome.stamps):
        yield f"{where}: its `run` is no name or its `when` no time, so no history is kept; run the cell again"
    yield from _samples(where, outcome)


def _samples(where: str, outcome: Outcome) -> Iterable[str]:
    timed = "time" in outcome.phases and outcome.failed_phase != "time"
    samples = outcome.latency.samples_ms if outcome.latency else ()
    if timed and not samples:
        yield f"{where}: was timed and has no samples; run the cell again"
    if samples and not timed:
        yield f"{where}: has {len(samples)} samples and was not timed; run the cell again"
    wrong = sum(not (math.isfinite(sample) and sample > 0) for sample in samples)
    if wrong:
        yield f"{where}: {wrong} of {len(samples)} samples are no time; run the cell again"
