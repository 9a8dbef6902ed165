"""What cells were measured to end as: `measured.yaml` beside the case modules, written by `python -m harness accept`.

Reported and guessed claims are written by hand beside their variant; measured ones are some hundreds, and a new
version brings as many again, so those are a file that a command writes and a person reviews as a diff. On the same
target and version a later measurement that differs is a regression or a fix.

    schema: 1
    rtx17:
      engine: tensorrt_rtx
      version: 1.7.1.116
      measured: 2026-11-20
      cells:
        "mish[qdq]": built
        "conv_silu[int8-entropy]": api_removed implicit-int8-removed
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from packaging.version import InvalidVersion, Version

from harness.case.model import Case, Expectation
from harness.errors import HandledError
from harness.suggest import did_you_mean
from harness.words import UNJUDGED, Class, Engine, Grade

FILE = "measured.yaml"
_SCHEMA = 1
_HEAD = (
    "# What each cell was measured to end as, and the diagnosis where it failed. Written by\n"
    "# `python -m harness accept`; review its diff as you would code: a changed line is a changed claim.\n"
)


@dataclasses.dataclass(frozen=True)
class Measured:
    """The measurements of one target: class and signature (or None) by `case[variant]`; `measured` is a date."""

    target: str
    engine: Engine
    version: str
    measured: str
    cells: Mapping[str, tuple[Class, str | None]]

    def expectation(self, row: str) -> Expectation | None:
        """Return what was measured of `case[variant]`, as an expectation for this target and version alone."""
        if row not in self.cells:
            return None
        cls, signature = self.cells[row]
        return Expectation(
            outcome=cls,
            versions=f"=={self.version}",
            source=None,
            grade=Grade.MEASURED,
            note=f"measured {self.measured} on {self.target} ({self.version})",
            engine=self.engine,
            targets=(self.target,),
            signature=signature,
        )


def read(path: Path) -> tuple[Measured, ...]:
    """Return what a file holds, nothing where there is none; raises HandledError naming the entry that is wrong."""
    if not path.exists():
        return ()
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        return _targets(data)
    except _Wrong as error:
        raise HandledError(f"{path}: {error}; {_MEND}") from error
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise HandledError(f"{path}{line}: not YAML: {error.problem}; {_MEND}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise HandledError(f"{path}: not YAML: {error}; {_MEND}") from error
    except OSError as error:
        raise HandledError(f"{path}: cannot be read: {error.strerror}") from error


#: What to do about a file that cannot be read.
_MEND = "mend it, or delete that part and write it anew with `python -m harness accept`"


class _Wrong(Exception):
    """What is wrong with the file, and where in it."""


def _targets(data: Any) -> tuple[Measured, ...]:  # noqa: ANN401  (YAML)
    if not isinstance(data, dict) or data.pop("schema", None) != _SCHEMA:
        raise _Wrong(f"it does not begin with `schema: {_SCHEMA}`")
    return tuple(_target(str(name), entry) for name, entry in data.items())


def _target(name: str, entry: Any) -> Measured:  # noqa: ANN401  (YAML)
    if not isinstance(entry, dict) or not isinstance(entry.get("cells"), dict):
        raise _Wrong(f"{name}: holds no `cells`")
    for field in ("engine", "version", "measured"):
        if field not in entry:
            raise _Wrong(f"{name}: has no `{field}`")
    if entry["engine"] not in set(Engine):
        raise _Wrong(f"{name}.engine: {entry['engine']!r} is none of {', '.join(map(str, Engine))}")
    version = str(entry["version"])
    try:
        Version(version)
    except InvalidVersion as error:
        raise _Wrong(f"{name}.version: {version!r} is no version") from error
    cells = {str(row): _claim(f"{name}.cells.{row}", text) for row, text in entry["cells"].items()}
    return Measured(name, Engine(entry["engine"]), version, str(entry["measured"]), cells)


def _claim(where: str, text: Any) -> tuple[Class, str | None]:  # noqa: ANN401  (YAML)
    cls, _, signature = str(text).partition(" ")
    known = [str(word) for word in Class if word not in UNJUDGED]
    if cls not in known:
        raise _Wrong(f"{where}: {cls!r} is nothing that can be measured; {did_you_mean(cls, known)}")
    return Class(cls), signature.strip() or None


def write(path: Path, targets: Iterable[Measured]) -> None:
    """Write the file, the same bytes for the same measurements; raises HandledError where it cannot be written."""
    data: dict[str, Any] = {"schema": _SCHEMA}
    for target in targets:
        data[target.target] = {
            "engine": str(target.engine),
            "version": target.version,
            "measured": target.measured,
            "cells": {
                row: " ".join(filter(None, map(str, claim))) for row, claim in _strings(target).items()
            },
        }
    text = _HEAD + yaml.safe_dump(data, sort_keys=False, width=110)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise HandledError(f"{path}: cannot be written: {error.strerror}") from error


def _strings(target: Measured) -> dict[str, tuple[str, str]]:
    return {row: (str(cls), signature or "") for row, (cls, signature) in target.cells.items()}


def with_measured(cases: Iterable[Case], measured: Iterable[Measured]) -> tuple[Case, ...]:
    """Return the cases with what was measured of each variant added to its expectations."""
    everything = tuple(measured)
    return tuple(
        dataclasses.replace(
            case,
            variants=tuple(
                dataclasses.replace(
                    variant,
                    expectations=variant.expectations
                    + tuple(
                        claim
                        for target in everything
                        if (claim := target.expectation(f"{case.name}[{variant.name}]")) is not None
                    ),
                )
                for variant in case
            ),
        )
        for case in cases
    )
