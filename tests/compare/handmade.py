"""Variants and knowns made by hand: parts of a comparison, without a matrix, a case or an outcome."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness.compare.kinds import Pair
from harness.known.model import GraphView, Known, Layers, NodeView, TargetView, VariantView
from harness.words import Basis, Class, Precision, Role, Verdict

INT8, FP16, FP32 = Precision.INT8, Precision.FP16, Precision.FP32
#: The nodes of a variant, in the order in which `nodes` gives their precisions.
_NODES = ("a", "b")


def target(name: str = "new", version: str = "1.0", **fields: Any) -> TargetView:
    """Return a column whose version is short already."""
    plain = TargetView(name, name, "", "RTX", "tensorrt_rtx", version, version, "", "", "")
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
        graph=GraphView(nodes),
    )


def known(
    cls: Class | None = Class.BUILT,
    nodes: tuple[str, ...] = (),
    other: dict[str, str] | None = None,
    **fields: Any,
) -> Known:
    """Return a measured or an unknown cell; `nodes` are the precisions of "a" and "b", "" for unknown."""
    plain = Known("c.v-new", "c", "v", "new", cls or Class.NOT_RUN, Verdict.NEW, text=str(cls))
    ran = {name: Precision(kind) for name, kind in zip(_NODES, nodes, strict=False) if kind}
    rest = {name: Precision(kind) for name, kind in (other or {}).items()}
    layers = Layers("", 1) if nodes or rest else None
    found = {"stands": cls, "basis": Basis.MEASURED if cls else None, "precision": ran, "other": rest}
    return replace(plain, **{**found, "layers": layers, **fields})


def pair(old: Known, new: Known, *, of: VariantView | None = None, altered: bool = False) -> Pair:
    """Return both sides of a variant, each of them measured or not known."""
    return Pair((of or variant()).wanted, old, new, altered=altered)
