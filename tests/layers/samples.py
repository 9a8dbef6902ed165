"""The recorded engine texts in `data/`, each named by the engine that printed it."""

from __future__ import annotations

from pathlib import Path

from harness.layers.parse import LayerReport, parse_layers
from harness.record.outcome import Layer, Node

DATA = Path(__file__).parent / "data"
VERBOSE = tuple(sorted(path.stem for path in DATA.glob("rtx-*.txt")))


def text(name: str) -> str:
    return (DATA / f"{name}.txt").read_bytes().decode()


def verbose(name: str) -> LayerReport:
    return parse_layers("verbose_log", text(name))


def nodes(*pairs: str) -> tuple[Node, ...]:
    """Return nodes from "operator name" pairs."""
    return tuple(Node(name, operator) for operator, name in (pair.split(" ", 1) for pair in pairs))


def named(report: LayerReport, name: str) -> Layer:
    return next(layer for layer in report.layers if layer.name == name)
