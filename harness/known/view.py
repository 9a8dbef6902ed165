"""Targets, cases and variants as readers and comparisons know them: plain, frozen data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from harness.case import Expectation, Link
from harness.engines import ENGINES
from harness.record.outcome import Stamps
from harness.words import Engine, Precision, Role


@dataclass(frozen=True)
class TargetView:
    """A column. `family` is the group it stands in; `series` names targets whose versions can be compared.

    `short` is the version as a reader says it ("8.6"); `stamps` are those of the latest run shown, if any; `commands`
    are the lines that make its container by hand; the last one starts it, and takes a command. `gpus` are those that it
    runs on, by product, of the compute capabilities that `compute_capability` takes in; these and what follows are ""
    where nothing says so.
    """

    id: str
    label: str
    family: str
    series: str
    engine: str
    version: str
    short: str
    platform: str
    image: str
    needs: str
    notes: str = ""
    stamps: Stamps | None = None
    commands: tuple[str, ...] = ()
    gpus: str = ""
    compute_capability: str = ""
    driver: str = ""
    cuda: str = ""
    jetpack: str = ""
    released: str = ""
    sources: tuple[Link, ...] = ()

    @property
    def product(self) -> str:
        """Return what it is a version of, and on which platform: "TensorRT on Jetson"."""
        name = ENGINES[Engine(self.engine)].product
        return f"{name} on Jetson" if self.platform == "jetson" else name

    @property
    def name(self) -> str:
        """Return what who has the hardware calls it: the board and its JetPack first, the id last."""
        if self.jetpack:
            board = f"{self.gpus or 'Jetson'}, JetPack {self.jetpack}"
            return f"{board} \N{EN DASH} TensorRT {self.version} ({self.id})"
        chosen = f": {self.gpus}" if ", SM" in self.series and self.gpus else ""
        return f"{self.label}{chosen} ({self.id})"


@dataclass(frozen=True)
class NodeView:
    """A node: the name that engines report it under, operator, and tensors in the operator's order ("" for none)."""

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class GraphView:
    """A model's graph; `types` are "float32 1x3x64x64" by tensor, of initialisers too, where they can be inferred."""

    nodes: tuple[NodeView, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    types: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Span:
    """One sentence on how a variant fares along one series; `claimed` says that nothing in it was run here."""

    series: str
    text: str
    claimed: bool = False


@dataclass(frozen=True)
class VariantView:
    """A row; `reproduced` says where a claimed failure was measured, "" where nobody claims one.

    `wanted` are nodes with the precision that they should run in; `topics` are what readers filter rows by.
    """

    case: str
    name: str
    title: str
    role: Role
    counterpart: str | None
    wanted: tuple[tuple[str, Precision], ...]
    recipe: dict[str, Any]
    recipe_text: str
    recipe_sha256: str
    model_sha256: str
    claims: tuple[Expectation, ...]
    tags: tuple[str, ...]
    topics: tuple[str, ...] = ()
    sentences: tuple[Span, ...] = ()
    reproduced: str = ""
    graph: GraphView = field(default_factory=GraphView)

    @property
    def id(self) -> str:
        """Return `case.variant`."""
        return f"{self.case}.{self.name}"


@dataclass(frozen=True)
class CaseView:
    """A section of rows; `seed` is its place among the problems that the project began with, None for others."""

    name: str
    title: str
    summary: str
    links: tuple[Link, ...]
    variants: tuple[VariantView, ...]
    seed: int | None = None
