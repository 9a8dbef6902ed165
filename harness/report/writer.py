"""Writes the report's files; each appears whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import SHORT_OF, HandledError, InfraError
from harness.history import read_history, update_history
from harness.record.from_json import fields_of
from harness.report.exports.csv_table import table
from harness.report.exports.markdown import summary
from harness.report.further import FURTHER, further_text
from harness.report.page.html import render
from harness.report.page.own_pages import own_pages
from harness.report.results import recorded, results_of, run_records
from harness.report.suite_pages import suites_beside

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.case import Case
    from harness.matrix import Matrix
    from harness.record.store import Store
    from harness.report.model import Results
    from harness.report.results import Commands, Models

#: The folder of the models, beside the page.
MODELS = "models"
#: The published description of results.json, shipped beside it.
SCHEMA_FILE = "results.schema.json"
_STRICT = json.JSONEncoder(sort_keys=True, allow_nan=False, separators=(",", ":"), default=fields_of)


def build_report(
    matrix: Matrix, cases: Sequence[Case], store: Store, folder: Path, commands: Commands | None = None
) -> Results:
    """Write the history of the runs in a store beside it, and the report into a folder; return what it shows.

    `commands` are the lines that make a target's container by hand, by target.
    """
    found = recorded(matrix, cases, store, commands)
    update_history(store.path, run_records(found))
    results = results_of(found, read_history(store.path))
    write_report(results, folder, model_files(found.models))
    return results


def write_report(
    results: Results, folder: Path, models: Mapping[str, bytes] | None = None
) -> tuple[Path, ...]:
    """Write results.json and all that is made of it into a folder, made if missing; return their paths.

    `models` are files by their place in the folder; those of an earlier report go. Raises HandledError where the folder
    cannot be written, InfraError where its disk is full.
    """
    texts = report_texts(results, models, suites_beside(folder))
    written = write_files(folder, {name: text.encode() for name, text in texts.items()} | dict(models or {}))
    for left in set((folder / MODELS).glob("*.onnx")) - set(written):
        # Another process may write the same report.
        left.unlink(missing_ok=True)
    return written


def write_pages(results: Results, folder: Path) -> tuple[Path, ...]:
    """Write a page for each error and each case beside the report in a folder; raises as `write_report`."""
    return write_files(folder, {name: text.encode() for name, text in own_pages(results).items()})


def write_files(folder: Path, files: Mapping[str, bytes]) -> tuple[Path, ...]:
    """Write files by their places in a folder, each whole or not at all; return their paths."""
    try:
        for parent in {(folder / name).parent for name in files}:
            parent.mkdir(parents=True, exist_ok=True)
        return tuple(_replace(folder / name, data) for name, data in files.items())
    except OSError as error:
        kind = InfraError if error.errno in SHORT_OF else HandledError
        raise kind(
            f"{folder}: the report cannot be written ({error.strerror}); give another folder"
        ) from error


def write_further(folder: Path, entries: Sequence[Mapping[str, Any]]) -> None:
    """Write what a check tried further beside its report; that of an earlier check goes. Raises as `write_report`."""
    if entries:
        write_files(folder, {FURTHER: further_text(entries).encode()})
    else:
        (folder / FURTHER).unlink(missing_ok=True)


def model_files(models: Models) -> dict[str, bytes]:
    """Return the model of every variant by its place in the report's folder."""
    return {f"{MODELS}/{case}-{variant}.onnx": data for (case, variant), data in models.items()}


def report_texts(
    results: Results, models: Mapping[str, bytes] | None = None, suites: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the text of every file of the report by its name.

    `models` are files by their place: the page holds the small ones. `suites` are titles of pages by their place.
    """
    return {
        "results.json": results_json(results),
        SCHEMA_FILE: schema_text(),
        "results.csv": table(results),
        "summary.md": summary(results),
        "index.html": render(results, models, suites),
    }


def schema_text() -> str:
    """Return the JSON Schema of results.json."""
    return (Path(__file__).parent / SCHEMA_FILE).read_text(encoding="utf-8")


def results_json(results: Results) -> str:
    """Return results.json: sorted keys, and a target, case, change or cell a line, so that a diff tells.

    ASCII only. A figure that is not finite becomes null, for JSON has no such number.
    """
    data = results.to_json()
    parts = [f'"{key}": {json.dumps(data.pop(key))}' for key in ("schema", "matrix_sha256")]
    for key in sorted(data):
        lines = ",\n".join(map(_line, data[key]))
        parts.append(f'"{key}": [\n{lines}\n]' if lines else f'"{key}": []')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _line(entry: Any) -> str:  # noqa: ANN401  (a dataclass or a dict of them)
    try:
        return _STRICT.encode(entry)
    except ValueError:
        spoilt = json.dumps(entry, default=fields_of)
        return _STRICT.encode(json.loads(spoilt, parse_constant=lambda _: None))


def _replace(path: Path, data: bytes) -> Path:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o644)  # noqa: PTH101  (mkstemp gives 0600, and a web server reads these)
        os.replace(temporary, path)  # noqa: PTH105
    except BaseException:
        os.unlink(temporary)  # noqa: PTH108
        raise
    return path
