"""What cells were measured to end as: `measured.yaml` beside the case modules, written by `trt-compat accept`.

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
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from packaging.version import InvalidVersion, Version

from harness.case.claims import Expectation
from harness.case.model import Case
from harness.document import Document, Form, Place, Problem, checked
from harness.errors import HandledError
from harness.suggest import did_you_mean
from harness.words import UNJUDGED, Class, Engine, Grade

FILE = "measured.yaml"
FORM = Form(Path(__file__).with_name("measured.schema.json"))
_SCHEMA = 1
_MEASURABLE = tuple(str(word) for word in Class if word not in UNJUDGED)
_HEAD = (
    "# What each cell was measured to end as, and the diagnosis where it failed. Written by\n"
    "# `trt-compat accept`; review its diff as you would code: a changed line is a changed claim.\n"
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
    """Return what a file holds, nothing where there is none; raises HandledError with the line that is wrong."""
    if not path.exists():
        return ()
    data = checked(path, FORM, _problems).data
    return tuple(
        Measured(
            target=name,
            engine=Engine(entry["engine"]),
            version=entry["version"],
            measured=entry["measured"],
            cells={row: _claim(text) for row, text in entry["cells"].items()},
        )
        for name, entry in data.items()
        if name != "schema"
    )


def _problems(document: Document) -> Iterator[Problem]:
    for name, entry in document.data.items():
        if name == "schema":
            continue
        place: Place = (name, "version")
        try:
            Version(entry["version"])
        except InvalidVersion:
            yield Problem(document.line(place), place, f"{entry['version']!r} is no version; correct it")
        for row, text in entry["cells"].items():
            word = text.split(" ")[0]
            if word not in _MEASURABLE:
                place = (name, "cells", row)
                sentence = f"{word!r} is nothing that can be measured; {did_you_mean(word, _MEASURABLE)}"
                yield Problem(document.line(place), place, sentence)


def _claim(text: str) -> tuple[Class, str | None]:
    cls, _, signature = text.partition(" ")
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
