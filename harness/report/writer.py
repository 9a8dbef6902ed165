"""Writes the report's files; each appears whole or not at all."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from harness.bounded import parse_json, read_bytes
from harness.case import Case, Expectation
from harness.history import read_history, update_history
from harness.known.claim import says
from harness.known.further import Further
from harness.known.listed import Objection
from harness.known.model import Known, TargetView
from harness.matrix import Matrix
from harness.record.from_json import plain
from harness.record.store import SUITES, Store, write_files
from harness.report import MODELS, SCHEMA_FILE
from harness.report.errors import ErrorEntry, error_entries
from harness.report.further import further_rows
from harness.report.labels import bucket
from harness.report.model import ALWAYS, NAMES, RESULTS_SCHEMA, SELDOM, Reported, Results
from harness.report.page import render
from harness.report.results import Commands, Models, layer_files, of_outcomes, results_of, run_records
from harness.report.summary import summary
from harness.text import visible

#: The folder of the layers of cells, by hash.
LAYERS = "layers"
_STRICT = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


def build_report(  # noqa: PLR0913
    matrix: Matrix,
    cases: Sequence[Case],
    store: Store,
    folder: Path,
    commands: Commands | None = None,
    *,
    listed: Mapping[str, Objection] | None = None,
    further: Iterable[Further] = (),
) -> Results:
    """Write the history of the runs in a store beside it, and the report into a folder; return its results.

    `commands` are the lines that make a target's container by hand, by target. A
    check gives the findings on its cells without a run, and its tries beyond its models.
    """
    found = of_outcomes(matrix, cases, tuple(store.outcomes()), commands)
    found = replace(found, listed=listed, further=tuple(further))
    update_history(store.path, run_records(found, read_history(store.path)))
    results = results_of(found, read_history(store.path))
    # The page links to the layers and the models: one that is there has them.
    write_layers(folder / LAYERS, layer_files(found))
    write_report(results, folder, model_files(found.models))
    return results


def write_layers(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the layers of cells under their hashes, those that are not there yet; others go."""
    there = {path.name.partition(".")[0]: path for path in folder.glob("*/*.json.gz")}
    for digest in there.keys() - files.keys():
        there[digest].unlink(missing_ok=True)
    write_files(
        folder,
        {
            layers_place(digest): gzip.compress(files[digest], mtime=0)
            for digest in files.keys() - there.keys()
        },
    )


def layers_place(digest: str) -> str:
    """Return the place of the layers of a hash in their folder, as the page links them."""
    return f"{digest[:2]}/{digest}.json.gz"


def write_report(
    results: Results, folder: Path, models: Mapping[str, bytes] | None = None
) -> tuple[Path, ...]:
    """Write results.json and all that is made of it into a folder, made if missing; return the paths that were written.

    `models` are files by their place in the folder; of an earlier report the same ones stay, and others go. Raises
    HandledError if the folder cannot be written, InfraError if its disk is full.
    """
    texts = report_texts(results, suites_beside(folder), models)
    models = models or {}
    new = {name: data for name, data in models.items() if not _holds(folder / name, data)}
    written = write_files(folder, {**new, **{name: text.encode() for name, text in texts.items()}})
    for left in {*(folder / MODELS).glob("*.onnx")} - {folder / name for name in models}:
        # Another process may write the same report.
        left.unlink(missing_ok=True)
    return written


def _holds(path: Path, data: bytes) -> bool:
    with contextlib.suppress(OSError):
        return read_bytes(path, len(data)) == data
    return False


def model_files(models: Models) -> dict[str, bytes]:
    """Return the model of every variant by its place in the report's folder."""
    return {f"{MODELS}/{case}-{variant}.onnx": data for (case, variant), data in models.items()}


def report_texts(
    results: Results, suites: Mapping[str, str] | None = None, models: Mapping[str, bytes] | None = None
) -> dict[str, str]:
    """Return every file's text by its name; `suites` are titles of pages by their place, `models` files by theirs."""
    text = results_json(results)
    own = {Path(name).name: data for name, data in (models or {}).items()}
    page = render(json.loads(text), suites or {}, further_rows(results.further), own)
    return {
        "results.json": text,
        SCHEMA_FILE: schema_text(),
        "results.csv": table(results),
        "summary.md": summary(results),
        "index.html": page,
    }


def suites_beside(reports: Path) -> dict[str, str]:
    """Return the titles of the suites that have a page in a reports folder, by the page's place in it.

    A suite whose description cannot be read is called after its folder: the report of the matrix does not hang on it.
    """
    found = {}
    for page in sorted((reports / SUITES).glob("*/index.html")):
        title = page.parent.name
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
            title = str(parse_json(read_bytes(page.with_name("suite.json")))["title"])
        found[f"{SUITES}/{page.parent.name}/{page.name}"] = title
    return found


def schema_text() -> str:
    """Return the JSON Schema of results.json."""
    return json.dumps(results_schema(), indent=1) + "\n"


def results_json(results: Results) -> str:
    """Return results.json: a target, case, change, row of steps or cell a line, so that a diff tells.

    ASCII only. A figure that is not finite becomes null, for JSON has no such number.
    """
    signatures = {entry.id: entry for entry in error_entries(results)}
    data = {**results.to_json(), "signatures": signatures}
    parts = [f'"{key}": {_value(value)}' for key, value in data.items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _value(value: Any) -> str:  # noqa: ANN401  (a value of results.json)
    if isinstance(value, dict):
        entries = (
            f'"{key}": {_value(entry) if isinstance(entry, list) else _line(entry)}'
            for key, entry in value.items()
        )
        return "{" + ",\n".join(entries) + "}"
    if isinstance(value, str | int):
        return json.dumps(value)
    lines = ",\n".join(map(_line, value))
    return f"[\n{lines}\n]" if lines else "[]"


def _line(entry: Any) -> str:  # noqa: ANN401  (a dataclass or a dict of them)
    entry = plain(entry)
    try:
        return _STRICT.encode(entry)
    except ValueError:
        spoilt = json.dumps(entry)
        return _STRICT.encode(json.loads(spoilt, parse_constant=lambda _: None))


COLUMNS = (
    *("cell", "case", "variant", "target", "engine", "version", "platform"),
    *("class", "basis", "verdict", "bucket", "signature", "precision", "flaky", "failed_phase"),
    *("claim", "claim_source", "build_s", "engine_bytes", "median_ms", "p95_ms", "samples"),
    *("gpu", "compute_capability", "run", "when", "reason"),
)
#: Signs that start a formula in spreadsheets; https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def table(results: Results) -> str:
    """Return the table: a header, then the cells in the report's order, lines ended by CR LF as RFC 4180 has it."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    targets = {target.id: target for target in results.targets}
    claims = {(variant.case, variant.name): variant.claims for variant in results.variants}
    for cell in results.cells:
        first = claims[cell.case, cell.variant][cell.claims[0]] if cell.claims else None
        row = _row(cell, targets[cell.target], first)
        writer.writerow([_text_field(value) if isinstance(value, str) else value for value in row])
    return text.getvalue()


def _row(cell: Known, target: TargetView, claim: Expectation | None) -> tuple[object, ...]:
    latency, gpu = cell.latency, cell.gpu or (None, None)
    return (
        *(cell.id, cell.case, cell.variant, cell.target, target.engine, target.version, target.platform),
        *(str(cell.cls), cell.basis and str(cell.basis), str(cell.verdict), bucket(cell), cell.signature),
        *(cell.chip, " ".join(cell.flaky), cell.failed_phase),
        *((says(claim), claim.source.url if claim.source else None) if claim else (None, None)),
        *(cell.phases.get("build"), cell.engine_bytes),
        *((latency.median, latency.p95, latency.n) if latency else (None, None, None)),
        *(gpu[1], gpu[0], cell.stamps, cell.when, cell.reason),
    )


#: Most texts of a row are those of its neighbours.
@lru_cache(maxsize=1024)
def _text_field(value: str) -> str:
    text = visible(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


_ROOTS = (Results, Reported, ErrorEntry)
_TEXT = {"type": "string"}


def results_schema() -> dict[str, Any]:
    """Return the JSON Schema of results.json."""
    _, made = msgspec.json.schema_components(_ROOTS, ref_template="#/$defs/{name}")
    parts: dict[str, Any] = made
    for name in ("Known", "OnGpu"):
        properties = parts[name]["properties"]
        parts[name]["properties"] = {NAMES.get(key, key): part for key, part in properties.items()}
        parts[name]["required"] = [NAMES.get(key, key) for key in parts[name]["required"]]
    parts["Known"]["required"] = sorted(ALWAYS)
    _add(parts["TargetView"], name=_TEXT, product=_TEXT, baseline={"type": "boolean"})
    parts["TargetView"]["properties"]["troubles"] = _many("Reported")
    variant = parts["VariantView"]["properties"]
    del variant["case"]
    parts["VariantView"]["required"].remove("case")
    variant["wanted"] = {"type": "object", "additionalProperties": {"$ref": "#/$defs/Precision"}}
    _add(parts["Expectation"], basis={"enum": ["measured", "reported"]}, stands={"type": "boolean"})
    _add(parts["Expectation"], says=_TEXT, seen=_TEXT, title=_TEXT, where=_TEXT)
    for part in parts.values():
        # Each field is written, except a cell's defaults.
        if "properties" in part and part is not parts["Known"] and "required" in part:
            part["required"] = sorted(part["properties"])
            part["additionalProperties"] = False
    # Records of before lack them.
    parts["Accuracy"]["required"] = sorted({*parts["Accuracy"]["required"]} - {"elements", "differing"})
    parts["Expectation"]["required"] = sorted({*parts["Expectation"]["required"]} - SELDOM)
    parts["Known"]["additionalProperties"] = False
    top = parts.pop("Results")["properties"]
    del top["troubles"]
    top["schema"] = {"const": RESULTS_SCHEMA}
    top["signatures"] = {"type": "object", "additionalProperties": {"$ref": "#/$defs/ErrorEntry"}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "results.json",
        "description": "Every cell of the matrix, measured, reported or not known; see docs/results.md.",
        "type": "object",
        "properties": top,
        "required": sorted(top.keys() - {"further"}),
        "additionalProperties": False,
        "$defs": parts,
    }


def _many(name: str) -> dict[str, Any]:
    return {"type": "array", "items": {"$ref": f"#/$defs/{name}"}}


def _add(part: dict[str, Any], **properties: dict[str, Any]) -> None:
    part["properties"] |= properties
