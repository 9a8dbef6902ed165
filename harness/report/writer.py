"""Writes the report's three files; each appears whole or not at all."""

from __future__ import annotations

import json
import math
import os
import tempfile
from typing import TYPE_CHECKING, Any

from harness.errors import HandledError
from harness.report.html import render
from harness.report.markdown import summary
from harness.report.pagedata import unpacked
from harness.report.results import from_store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.case import Case
    from harness.matrix import Matrix
    from harness.report.model import Results
    from harness.store import Store


def build_report(matrix: Matrix, cases: Sequence[Case], store: Store, folder: Path) -> Results:
    """Write the report on what a store holds into a folder; return what it was made from."""
    results = from_store(matrix, cases, store)
    write_report(results, folder)
    return results


def verify_report(matrix: Matrix, cases: Sequence[Case], store: Store, folder: Path) -> list[str]:
    """Return a sentence for every log that is damaged and every file that does not follow from the records.

    Raises HandledError for a record that cannot be read.
    """
    faults = []
    for outcome in store.outcomes():
        if outcome.log_sha256:
            try:
                store.log(outcome.log_sha256)
            except HandledError as error:
                faults.append(f"{outcome.cell}: {error}")
    for name, text in _texts(from_store(matrix, cases, store)).items():
        path = folder / name
        if not path.is_file():
            faults.append(f"{path}: missing; write it with `python -m harness report`")
        elif not _same(path, text):
            faults.append(f"{path}: does not follow from the records; run `python -m harness report`")
    return faults


def _same(path: Path, text: str) -> bool:
    found = path.read_bytes()
    if found == text.encode():
        return True
    return path.suffix == ".html" and unpacked(found.decode("utf-8", "replace")) == unpacked(text)


def write_report(results: Results, folder: Path) -> tuple[Path, ...]:
    """Write results.json, summary.md and index.html into a folder, made if missing; return their paths.

    Raises HandledError where the folder cannot be written.
    """
    texts = _texts(results)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return tuple(_replace(folder / name, text) for name, text in texts.items())
    except OSError as error:
        raise HandledError(
            f"{folder}: the report cannot be written ({error.strerror}); give another folder"
        ) from error


def _texts(results: Results) -> dict[str, str]:
    return {
        "results.json": results_json(results),
        "summary.md": summary(results),
        "index.html": render(results),
    }


def results_json(results: Results) -> str:
    """Return results.json: sorted keys, and a target, case, change or cell a line, so that a diff tells.

    ASCII only. A figure that is not finite becomes null, for JSON has no such number.
    """
    data = _finite(results.to_json())
    schema = data.pop("schema")
    parts = [f'"schema": {json.dumps(schema)}']
    for key in sorted(data):
        lines = ",\n".join(json.dumps(entry, sort_keys=True, allow_nan=False) for entry in data[key])
        parts.append(f'"{key}": [\n{lines}\n]' if lines else f'"{key}": []')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _finite(value: Any) -> Any:  # noqa: ANN401  (walks JSON)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return value


def _replace(path: Path, text: str) -> Path:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.chmod(temporary, 0o644)  # noqa: PTH101  (mkstemp gives 0600, and a web server reads these)
        os.replace(temporary, path)  # noqa: PTH105
    except BaseException:
        os.unlink(temporary)  # noqa: PTH108
        raise
    return path
