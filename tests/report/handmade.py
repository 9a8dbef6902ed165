"""Columns, rows and cells made by hand: one of what a comparison looks at, without a matrix, a case or an outcome."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from harness.record.outcome import Layer, Stamps
from harness.report.compare.pairs import Column, Known, Pair, Step
from harness.report.compare.sides import Side
from harness.report.graph import GraphView, NodeView
from harness.report.model import CaseView, CellView, Results, TargetView, VariantView
from harness.words import Class, Grade, Precision, Role, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

INT8, FP16, FP32 = Precision.INT8, Precision.FP16, Precision.FP32
STAMPS = Stamps(engine_version="1", environment={"cpu": "x"})
_NOTHING: Mapping[Any, Any] = MappingProxyType({})


def target(name: str = "new", version: str = "1.0", **fields: Any) -> TargetView:
    """Return a column whose version is short already."""
    plain = TargetView(name, name, "", "RTX", "tensorrt_rtx", version, version, "", "", "", stamps=STAMPS)
    return replace(plain, **fields)


def variant(name: str = "v", **wanted: Precision) -> VariantView:
    """Return a row of the case "c" that wants nodes in precisions, each node a Conv."""
    nodes = tuple(NodeView(node, "Conv", (), ()) for node in wanted)
    return VariantView(
        "c",
        name,
        "",
        Role.REPRODUCER,
        None,
        tuple(wanted.items()),
        {},
        "",
        "",
        "",
        (),
        (),
        (),
        graph=GraphView(nodes),
    )


def cell(cls: Class = Class.BUILT, **fields: Any) -> CellView:
    """Return a cell of the variant "v" on the target "new"."""
    return replace(CellView("", "c", "v", "new", cls, Verdict.NEW, "", ""), **fields)


def layer(precision: str, *nodes: str, name: str = "l") -> Layer:
    """Return a layer made of ONNX nodes."""
    return Layer(name, "convolution", precision, onnx_nodes=nodes)


def side(cls: Class | None = Class.BUILT, **fields: Any) -> Side:
    """Return a side that was measured, or that nothing is known of."""
    graded = (Grade.MEASURED, "measured") if cls else (None, "")
    return replace(Side(cls, *graded), **fields)


def pair(old: Side, new: Side, *, of: VariantView | None = None, altered: bool = False) -> Pair:
    """Return both sides of a variant."""
    return Pair(of or variant(), old, new, altered)


def column(view: TargetView, called: str = "") -> Known:
    """Return a column that is known by its target alone."""
    return Known(Column(Results((view,), (), ()), view.id, called), view, _NOTHING, _NOTHING, _NOTHING)


def step(*pairs: Pair, old: TargetView | None = None, new: TargetView | None = None) -> Step:
    """Return a step from the column "old" to "new", both of which were run."""
    return Step(column(old or target("old")), column(new or target("new")), pairs)


def results(targets: tuple[TargetView, ...], variants: tuple[VariantView, ...], *cells: CellView) -> Results:
    """Return a report of one case."""
    return Results(targets, (CaseView("c", "", "", (), variants),), cells)
