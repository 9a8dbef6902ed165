"""Writes a model as a case: a module, and the model beside it, byte for byte."""

from __future__ import annotations

import json
import re
import textwrap
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path

import onnx

import harness.case
from harness.case import Case, Data, Link, Recipe, Variant
from harness.case.model import serialise
from harness.errors import HandledError
from harness.words import Typing

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


@dataclass(frozen=True)
class About:
    """A case to write: its name, title, summary, and the address of the report, "" for none.

    `data` say how far outputs may be off, where that does not go by their precision.
    """

    name: str
    title: str
    summary: str
    issue: str = ""
    data: Data | None = None


def case_text(about: About, recipe: Recipe) -> str:
    """Return a case module of one variant, `reported`, whose model lies beside it.

    Raises HandledError for an address that no link can have.
    """
    try:
        links = (Link(about.issue, "the report"),) if about.issue else ()
    except ValueError as error:
        raise HandledError(str(error)) from error
    variant = Variant("reported", about.title, _model, recipe, data=about.data)
    case = _call(Case(about.name, about.title, about.summary, links, (variant,)), "")
    title, summary = (
        textwrap.fill(" ".join(text.replace("\\", "/").replace('"', "'").split()), _WIDEST)
        for text in (f"{about.title}.", about.summary)
    )
    words = sorted(set(re.findall(r"\b[A-Z]\w+(?=[(.])", case)) & set(harness.case.__all__))
    return _MODULE.format(title=title, summary=summary, words=", ".join(words), case=case)


def _model() -> onnx.ModelProto:
    """Stand for the function of this name in the module."""
    raise NotImplementedError


def _call(found: object, indent: str) -> str:
    """Return the expression that makes a frozen value again, without the fields that have their defaults."""
    inner = f"{indent}    "
    if isinstance(found, Typing):
        return f"Typing.{found.name}"
    if isinstance(found, tuple):
        parts = [_call(each, inner) for each in found]
    elif is_dataclass(found):
        given = ((each, getattr(found, each.name)) for each in fields(found))
        parts = [f"{each.name}={_call(value, inner)}" for each, value in given if value != each.default]
    elif callable(found):
        return "_model"
    else:
        return json.dumps(found, ensure_ascii=False) if isinstance(found, str) else repr(found)
    name = "" if isinstance(found, tuple) else type(found).__name__
    line = f"{name}({', '.join(parts)}{',' if not name and len(parts) == 1 else ''})"
    if not parts or ("\n" not in line and len(indent + line) <= _WIDEST - 20):
        return line
    return "\n".join([f"{name}(", *(f"{inner}{part}," for part in parts), f"{indent})"])


def add_case(path: Path, model: onnx.ModelProto, text: str) -> None:
    """Write a case module where none is yet, and its model; raises HandledError where that cannot be."""
    beside, data = path.with_suffix(".onnx"), serialise(model)
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


def case_name(path: Path) -> str:
    """Return the name of the case that a path is to hold; raises HandledError for one that no case can have."""
    if path.suffix != ".py" or not re.fullmatch(r"[a-z][a-z0-9_]*", path.stem):
        raise HandledError(
            f"{path}: is no name of a case; use lower-case letters, digits and '_', and end it in .py"
        )
    if path.exists():
        raise HandledError(f"{path}: is there already; give another place, or delete it")
    return path.stem
