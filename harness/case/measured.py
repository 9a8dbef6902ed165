"""Measured classes of cells: `measured.yaml` beside the case modules, written by `trt-compat accept`.

Reported claims are written by hand beside their variant; measured ones are some hundreds, and a new
version brings as many again, so those are a file that a command writes and a person reviews as a diff. On the same
target, version and GPU a later measurement that differs is a regression or a fix. A measurement without a GPU is
about every GPU; one on a GPU is about its compute capability alone.

What a variant asks of its nodes is the same on every target, and stands once, by precision and operator. A result names
the nodes that lost it, those that the engine tells nothing of, and the latency on its GPU: the median, and the interval
that holds it.

    schema: 1
    asked:
      mish:
        qdq: {int8 Conv: [/a, /b]}
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
                qdq: [ok, {ms: [0.0312, 0.0309, 0.0315]}]
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import yaml

from harness.case.claims import Expectation
from harness.case.floor import Asked
from harness.case.model import Case, Variant
from harness.document import Form, checked_data
from harness.text import grouped
from harness.words import Basis, Class, Engine, Precision

FILE = "measured.yaml"
FORM = Form(Path(__file__).with_name("measured.schema.json"))
_SCHEMA = 1
_ASKED = "asked"
_HEAD = (
    "# What each cell was measured to end as, and the diagnosis where it failed. Written by\n"
    "# `trt-compat accept`; review its diff as you would code: a changed line is a changed claim.\n"
)


class Result(NamedTuple):
    """The end of a cell: its class, the diagnosis where it failed, and the nodes that are to blame, as far as known.

    untold: nodes of which the engine does not tell the precision.
    ms: the latency's median, and the least and the most of the interval that holds it; () without one to compare with.
    graph: the latency is that of a CUDA graph.
    """

    cls: Class
    signature: str | None = None
    nodes: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
    ms: tuple[float, ...] = ()
    graph: bool = False


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
                untold=result.untold,
                ms=result.ms,
                graph=result.graph,
                compute_capability=self.compute_capability or None,
                product=self.product,
            )
            for result in set(self.cells.values())
        }

    def expectation(self, case: str, variant: str) -> Expectation | None:
        """Return the measurement of a variant, if any, as an expectation for this target and version alone."""
        result = self.cells.get((case, variant))
        return self._claims[result] if result else None


#: The nodes that a variant asks a precision of, by case and variant.
OfVariants = Mapping[tuple[str, str], tuple[Asked, ...]]


class Baseline(NamedTuple):
    """What was accepted: the measurements, and what each variant asked for; both are empty without a file."""

    measured: tuple[Measured, ...] = ()
    asked: OfVariants = MappingProxyType({})


def read(path: Path) -> Baseline:
    """Return what a file holds, if there is one; raises HandledError with the line that is wrong."""
    if not path.exists():
        return Baseline()
    data = checked_data(path, FORM)
    asked = {
        (case, variant): tuple(_asked(kinds))
        for case, of_case in data.get(_ASKED, {}).items()
        for variant, kinds in of_case.items()
    }
    return Baseline(tuple(_measurements(data)), asked)


def _asked(kinds: Mapping[str, Sequence[str]]) -> Iterator[Asked]:
    for kind, nodes in kinds.items():
        precision, _, op = kind.partition(" ")
        yield from (Asked(node, op, Precision(precision)) for node in nodes)


def _measurements(data: Mapping[str, Any]) -> Iterator[Measured]:
    return (
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
        for name, capability, product, entry in _entries(data)
    )


def _entries(data: Mapping[str, Any]) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yield the measurements on each GPU, and without: target, compute capability and product, fields."""
    for name, target in data.items():
        if name in ("schema", _ASKED):
            continue
        if "cells" in target:
            yield name, "", "", target
        for capability, products in target.get("gpus", {}).items():
            for product, entry in products.items():
                yield name, capability, product, entry


def _ends(held: str | Sequence[Any]) -> str:
    return held if isinstance(held, str) else str(held[0])


def _result(held: str | Sequence[Any]) -> Result:
    cls, _, signature = _ends(held).partition(" ")
    rest = () if isinstance(held, str) else held[1:]
    further: dict[str, Any] = {}
    for each in rest:
        further |= each if isinstance(each, dict) else {}
    return Result(
        Class(cls),
        signature.strip() or None,
        tuple(each for each in rest if isinstance(each, str)),
        tuple(further.get("untold", ())),
        tuple(map(float, further.get("ms", ()))),
        further.get("graph", False),
    )


def _held(result: Result) -> str | _OneLine:
    ends = " ".join(filter(None, (result.cls, result.signature)))
    fields = {"untold": list(result.untold), "ms": list(result.ms), "graph": result.graph}
    further = {name: value for name, value in fields.items() if value}
    whole = (ends, *result.nodes, *([further] if further else []))
    return _OneLine(whole) if whole[1:] else ends


class _OneLine(tuple[Any, ...]):
    """A list that stands on one line."""

    __slots__ = ()


class _Kinds(dict[str, list[str]]):
    """A mapping that stands on one line."""


class _Dumper(yaml.SafeDumper):
    """Writes nodes on the line of their cell."""


_Dumper.add_representer(
    _OneLine, lambda dumper, held: dumper.represent_sequence("tag:yaml.org,2002:seq", held, flow_style=True)
)
_Dumper.add_representer(
    _Kinds, lambda dumper, held: dumper.represent_mapping("tag:yaml.org,2002:map", held, flow_style=True)
)


def text_of(baseline: Baseline) -> str:
    """Return the file's text, the same for the same measurements; of variants that were measured, what they ask for."""
    data: dict[str, Any] = {"schema": _SCHEMA}
    measured = {key for each in baseline.measured for key in each.cells}
    if asked := _nested((key, _kinds(nodes)) for key, nodes in baseline.asked.items() if key in measured):
        data[_ASKED] = asked
    for name, mine in grouped((each.target, each) for each in baseline.measured).items():
        data[name] = {"engine": str(mine[0].engine)}
        for each in sorted(mine, key=_order):
            if each.product:
                gpus = data[name].setdefault("gpus", {})
                gpus.setdefault(each.compute_capability, {})[each.product] = _entry(each)
            else:
                data[name].update(_entry(each))
    return _HEAD + yaml.dump(data, Dumper=_Dumper, sort_keys=False, width=110)


def _entry(each: Measured) -> dict[str, Any]:
    driver = {"driver": each.driver} if each.product else {}
    libraries = {"libraries": each.libraries} if each.libraries else {}
    cells = _nested((key, _held(result)) for key, result in each.cells.items())
    return {"version": each.version, **driver, "measured": each.measured, **libraries, "cells": cells}


def _kinds(nodes: Iterable[Asked]) -> _Kinds:
    return _Kinds(grouped((f"{node.precision} {node.op}", node.node) for node in nodes))


def _nested(pairs: Iterable[tuple[tuple[str, str], Any]]) -> dict[str, dict[str, Any]]:
    """Return values by case and variant, in order."""
    every = grouped(
        (case, (variant, value)) for (case, variant), value in sorted(pairs, key=lambda pair: pair[0])
    )
    return {case: dict(variants) for case, variants in every.items()}


def _order(measured: Measured) -> tuple[list[int], str]:
    capability = measured.compute_capability
    return [int(part) for part in capability.split(".")] if capability else [], measured.product


def with_measured(cases: Iterable[Case], baseline: Baseline) -> tuple[Case, ...]:
    """Return the cases with each variant's measurements added to its expectations, and what it asked for then."""
    return tuple(
        dataclasses.replace(case, variants=tuple(_measured(case.name, variant, baseline) for variant in case))
        for case in cases
    )


def _measured(case: str, variant: Variant, baseline: Baseline) -> Variant:
    found = [claim for each in baseline.measured if (claim := each.expectation(case, variant.name))]
    asked = baseline.asked.get((case, variant.name)) if found else None
    return dataclasses.replace(variant, expectations=(*variant.expectations, *found), accepted=asked)
