"""What cells were measured to end as: `measured.yaml` beside the case modules, written by `python -m harness accept`.

Documented claims are written by hand beside their variant; there are some hundreds of measured ones, and a new
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

from harness.case.model import Case, Expectation
from harness.errors import HandledError
from harness.words import Certainty, Class, Engine

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
            certainty=Certainty.MEASURED,
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
        if data.pop("schema") != _SCHEMA:
            raise HandledError(f"{path}: schema: this harness reads {_SCHEMA}; write it anew with `accept`")
        return tuple(_target(path, name, entry) for name, entry in data.items())
    except (yaml.YAMLError, UnicodeDecodeError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise HandledError(f"{path}: not as `python -m harness accept` writes it: {error}") from error


def _target(path: Path, name: str, entry: dict[str, Any]) -> Measured:
    cells = {}
    for row, text in entry["cells"].items():
        cls, _, signature = text.partition(" ")
        if cls not in set(Class):
            raise HandledError(
                f"{path}: {name}.cells.{row}: {cls!r} is no class; write it anew with `accept`"
            )
        cells[row] = (Class(cls), signature or None)
    return Measured(name, Engine(entry["engine"]), str(entry["version"]), str(entry["measured"]), cells)


def write(path: Path, targets: Iterable[Measured]) -> None:
    """Write the file, the same bytes for the same measurements."""
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
    path.write_text(_HEAD + yaml.safe_dump(data, sort_keys=False, width=110), encoding="utf-8")


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
