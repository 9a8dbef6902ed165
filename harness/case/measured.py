"""Measured classes of cells: `measured.yaml` beside the case modules, written by `trt-compat accept`.

Reported claims are written by hand beside their variant; measured ones are some hundreds, and a new
version brings as many again, so those are a file that a command writes and a person reviews as a diff. On the same
target, version and GPU a later measurement that differs is a regression or a fix. A measurement without a GPU is
about every GPU; one on a GPU is about its compute capability alone.

    schema: 1
    rtx17:
      engine: tensorrt_rtx
      version: 1.7.1.116
      measured: 2026-11-20
      cells:
        conv_silu:
          int8-entropy: api_removed implicit-int8-removed
        mish:
          qdq: built
          fp16-graph: [precision_lost, /SandGlass1/SandGlass1.0/Conv]
      gpus:
        '8.9':
          NVIDIA L4:
            version: 1.7.1.116
            driver: '580'
            libraries: TensorRT 1.7.1 from NVIDIA's tarball, CUDA 13.0
            measured: '2026-11-21'
            cells:
              mish:
                qdq: ok
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from packaging.version import InvalidVersion, Version

from harness.case.claims import Expectation
from harness.case.model import Case, Variant
from harness.document import Document, Form, Place, Problem, checked
from harness.text import did_you_mean
from harness.words import UNJUDGED, Basis, Class, Engine

FILE = "measured.yaml"
FORM = Form(Path(__file__).with_name("measured.schema.json"))
_SCHEMA = 1
_MEASURABLE = tuple(str(word) for word in Class if word not in UNJUDGED)
_HEAD = (
    "# What each cell was measured to end as, and the diagnosis where it failed. Written by\n"
    "# `trt-compat accept`; review its diff as you would code: a changed line is a changed claim.\n"
)


class Result(NamedTuple):
    """The end of a cell: its class, the diagnosis where it failed, and the nodes that are to blame, as far as known."""

    cls: Class
    signature: str | None = None
    nodes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Measured:
    """The measurements of one target on one GPU, or without: the result by case and variant.

    `measured` is the day of the latest, `driver` the branch of the driver then; with a GPU,
    `compute_capability` and `product` are as the file names it.
    """

    target: str
    engine: Engine
    version: str
    measured: str
    cells: Mapping[tuple[str, str], Result]
    compute_capability: str = ""
    product: str = ""
    driver: str = ""
    libraries: str = ""

    @property
    def place(self) -> tuple[str, str, str]:
        """Return its place in the file: target, compute capability and product."""
        return self.target, self.compute_capability, self.product

    @cached_property
    def _claims(self) -> Mapping[Result, Expectation]:
        """Return the claim of each result; hundreds of variants share one."""
        driver = f", driver {self.driver}" if self.driver else ""
        where = f"{self.version}; {self.product}{driver}" if self.product else self.version
        where = "; ".join(filter(None, (where, self.libraries)))
        return {
            result: Expectation(
                outcome=result.cls,
                versions=f"=={self.version}",
                source=None,
                basis=Basis.MEASURED,
                note=f"measured {self.measured} on {self.target} ({where})",
                engine=self.engine,
                targets=(self.target,),
                signature=result.signature,
                nodes=result.nodes,
                compute_capability=self.compute_capability or None,
                product=self.product,
            )
            for result in set(self.cells.values())
        }

    def expectation(self, case: str, variant: str) -> Expectation | None:
        """Return the measurement of a variant, if any, as an expectation for this target and version alone."""
        result = self.cells.get((case, variant))
        return self._claims[result] if result else None


def read(path: Path) -> tuple[Measured, ...]:
    """Return the entries of a file, if there is one; raises HandledError with the line that is wrong."""
    if not path.exists():
        return ()
    data = checked(path, FORM, _problems).data
    return tuple(
        Measured(
            target=name,
            engine=Engine(data[name]["engine"]),
            version=entry["version"],
            measured=entry["measured"],
            cells={
                (case, variant): _result(held)
                for case, of_case in entry["cells"].items()
                for variant, held in of_case.items()
            },
            compute_capability=capability,
            product=product,
            driver=entry.get("driver", ""),
            libraries=entry.get("libraries", ""),
        )
        for (name, capability, product), _, entry in _entries(data)
    )


def _entries(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str, str], Place, dict[str, Any]]]:
    """Yield the measurements on each GPU, and without: target, compute capability and product, place, fields."""
    for name, target in data.items():
        if name == "schema":
            continue
        if "cells" in target:
            yield (name, "", ""), (name,), target
        for capability, products in target.get("gpus", {}).items():
            for product, entry in products.items():
                yield (name, capability, product), (name, "gpus", capability, product), entry


def _problems(document: Document) -> Iterator[Problem]:
    for _, whole, entry in _entries(document.data):
        place: Place = (*whole, "version")
        try:
            Version(entry["version"])
        except InvalidVersion:
            yield Problem(document.line(place), place, f"{entry['version']!r} is no version; correct it")
        for case, of_case in entry["cells"].items():
            for variant, held in of_case.items():
                word = _ends(held).split(" ")[0]
                if word not in _MEASURABLE:
                    place = (*whole, "cells", case, variant)
                    sentence = f"{word!r} is nothing that can be measured; {did_you_mean(word, _MEASURABLE)}"
                    yield Problem(document.line(place), place, sentence)


def _ends(held: str | Sequence[str]) -> str:
    return held if isinstance(held, str) else held[0]


def _result(held: str | Sequence[str]) -> Result:
    cls, _, signature = _ends(held).partition(" ")
    return Result(Class(cls), signature.strip() or None, () if isinstance(held, str) else tuple(held[1:]))


def _held(result: Result) -> str | _OneLine:
    ends = " ".join(filter(None, (result.cls, result.signature)))
    return _OneLine((ends, *result.nodes)) if result.nodes else ends


class _OneLine(tuple[str, ...]):
    """A list that stands on one line."""

    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    """Writes nodes on the line of their cell."""


_Dumper.add_representer(
    _OneLine, lambda dumper, held: dumper.represent_sequence("tag:yaml.org,2002:seq", held, flow_style=True)
)


def text_of(targets: Iterable[Measured]) -> str:
    """Return the file's text, the same for the same measurements."""
    data: dict[str, Any] = {"schema": _SCHEMA}
    every = list(targets)
    for name in dict.fromkeys(each.target for each in every):
        mine = sorted((each for each in every if each.target == name), key=_order)
        data[name] = {"engine": str(mine[0].engine)}
        for each in mine:
            fields = {"version": each.version, "driver": each.driver, "measured": each.measured}
            fields |= {"libraries": each.libraries} if each.libraries else {}
            cells: dict[str, dict[str, str | _OneLine]] = {}
            for (case, variant), result in sorted(each.cells.items()):
                cells.setdefault(case, {})[variant] = _held(result)
            entry = {**fields, "cells": cells}
            if each.product:
                gpus = data[name].setdefault("gpus", {})
                gpus.setdefault(each.compute_capability, {})[each.product] = entry
            else:
                del entry["driver"]
                data[name].update(entry)
    return _HEAD + yaml.dump(data, Dumper=_Dumper, sort_keys=False, width=110)


def _order(measured: Measured) -> tuple[list[int], str]:
    capability = measured.compute_capability
    return [int(part) for part in capability.split(".")] if capability else [], measured.product


def with_measured(cases: Iterable[Case], measured: Iterable[Measured]) -> tuple[Case, ...]:
    """Return the cases with each variant's measurements added to its expectations."""
    every = tuple(measured)
    return tuple(
        dataclasses.replace(case, variants=tuple(_measured(case.name, variant, every) for variant in case))
        for case in cases
    )


def _measured(case: str, variant: Variant, every: Iterable[Measured]) -> Variant:
    found = (claim for each in every if (claim := each.expectation(case, variant.name)))
    return dataclasses.replace(variant, expectations=(*variant.expectations, *found))
