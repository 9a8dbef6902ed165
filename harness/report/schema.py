"""The JSON Schema of results.json, made of the dataclasses that it is written from."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.compare.kinds import Kind
from harness.compare.versions import Change
from harness.known.model import CaseView, Known, TargetView
from harness.report.errors import ErrorEntry
from harness.report.further import further_schema
from harness.report.model import ALWAYS, NAMES, RESULTS_SCHEMA, Reported, RunView, SentIn

_ROOTS = (Known, CaseView, TargetView, Change, RunView, SentIn, Reported, ErrorEntry)
_TEXT, _NUMBER = {"type": "string"}, {"type": "integer", "minimum": 0}


def results_schema() -> dict[str, Any]:
    """Return the JSON Schema of results.json."""
    _, made = msgspec.json.schema_components(_ROOTS, ref_template="#/$defs/{name}")
    parts: dict[str, Any] = {**made, **further_schema()["$defs"]}
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
        # Each field is written, but for those of a cell that say nothing.
        if "properties" in part and part is not parts["Known"] and "required" in part:
            part["required"] = sorted(part["properties"])
            part["additionalProperties"] = False
    parts["Known"]["additionalProperties"] = False
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "results.json",
        "description": "Every cell of the matrix, measured, reported or not known; see docs/results.md.",
        "type": "object",
        "properties": _top(),
        "required": sorted(_top().keys() - {"further"}),
        "additionalProperties": False,
        "$defs": parts,
    }


def _top() -> dict[str, Any]:
    kinds = [_NUMBER, _NUMBER, {"enum": [str(kind) for kind in Kind]}, _NUMBER]
    row = {
        "known": {"type": "array", "items": _NUMBER},
        "kinds": {"type": "array", "items": {"type": "array", "prefixItems": kinds, "items": False}},
        "open": {
            "type": "array",
            "items": {"type": "array", "prefixItems": [_NUMBER, _NUMBER], "items": False},
        },
    }
    rows = {"type": "object", "properties": row, "required": sorted(row), "additionalProperties": False}
    steps = {"details": {"type": "array", "items": _TEXT}, "variants": {"type": "array", "items": rows}}
    return {
        "schema": {"const": RESULTS_SCHEMA},
        "matrix_sha256": _TEXT,
        "targets": _many("TargetView"),
        "cases": _many("CaseView"),
        "changes": _many("Change"),
        "runs": _many("RunView"),
        "submissions": _many("SentIn"),
        "steps": {
            "type": "object",
            "properties": steps,
            "required": sorted(steps),
            "additionalProperties": False,
        },
        "cells": _many("Known"),
        "further": _many("further"),
        "signatures": {"type": "object", "additionalProperties": {"$ref": "#/$defs/ErrorEntry"}},
    }


def _many(name: str) -> dict[str, Any]:
    return {"type": "array", "items": {"$ref": f"#/$defs/{name}"}}


def _add(part: dict[str, Any], **properties: dict[str, Any]) -> None:
    part["properties"] |= properties
