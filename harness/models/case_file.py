"""Writes a model as a case: a module, and the model beside it, byte for byte."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path

import harness.case
from harness.case import Case, Link, Variant
from harness.errors import HandledError
from harness.words import Precision, Typing

_WIDEST = 100
_MODULE = '''\
"""{title}

{summary}
"""

from __future__ import annotations

from pathlib import Path

import onnx

from harness.case import {words}


def _model() -> onnx.ModelProto:
    return onnx.load(Path(__file__).with_suffix(".onnx"))


CASE = {case}
'''


def add_case(path: Path, variant: Variant, summary: str, issue: str = "") -> None:
    """Write a case of one variant and its model, neither over a file; `issue` is the address of a report.

    Raises HandledError for an address that no link can have, and for a place that cannot be written.
    """
    beside, data, text = (
        path.with_suffix(".onnx"),
        variant.model_bytes(),
        _text(path, variant, summary, issue),
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not beside.exists() or beside.read_bytes() != data:
            with beside.open("xb") as file:
                file.write(data)
        with path.open("x", encoding="utf-8") as module:
            module.write(text)
    except OSError as error:
        raise HandledError(
            f"{error.filename}: cannot be written ({error.strerror}); give another place"
        ) from error


def _text(path: Path, variant: Variant, summary: str, issue: str) -> str:
    try:
        links = (Link(issue, "the report"),) if issue else ()
    except ValueError as error:
        raise HandledError(str(error)) from error
    case = _call(Case(path.stem, variant.title, summary, links, (variant,)), "")
    title, text = (
        textwrap.fill(" ".join(text.replace("\\", "/").replace('"', "'").split()), _WIDEST)
        for text in (f"{variant.title}.", summary)
    )
    words = sorted(set(re.findall(r"\b[A-Z]\w+(?=[(.])", case)) & set(harness.case.__all__))
    return _MODULE.format(title=title, summary=text, words=", ".join(words), case=case)


def _call(found: object, indent: str) -> str:
    """Return the expression that makes a frozen value again, without the fields that have their defaults."""
    inner, name = f"{indent}    ", type(found).__name__
    match found:
        case Typing() | Precision():
            return f"{name}.{found.name}"
        case str():
            return json.dumps(found, ensure_ascii=False)
        case tuple():
            name, parts = "", [_call(each, inner) for each in found]
        case _ if callable(found):
            return "_model"
        case _ if is_dataclass(found):
            parts = [f"{field}={_call(value, inner)}" for field, value in _told(found)]
        case _:
            return repr(found)
    line = f"{name}({', '.join(parts)}{',' * (not name and len(parts) == 1)})"
    if "\n" not in line and len(indent + line) <= _WIDEST - 20:
        return line
    return "\n".join([f"{name}(", *(f"{inner}{part}," for part in parts), f"{indent})"])


def _told(found: object) -> Iterator[tuple[str, object]]:
    for each in fields(found):  # type: ignore[arg-type]
        if getattr(found, each.name) != each.default:
            yield each.name, getattr(found, each.name)


def case_name(path: Path) -> str:
    """Return the name of the case that a path is to hold; raises HandledError for one that no case can have."""
    if path.suffix != ".py" or not re.fullmatch(r"[a-z][a-z0-9_]*", path.stem):
        raise HandledError(
            f"{path}: is no name of a case; use lower-case letters, digits and '_', and end it in .py"
        )
    if path.exists():
        raise HandledError(f"{path}: is there already; give another place, or delete it")
    return path.stem
