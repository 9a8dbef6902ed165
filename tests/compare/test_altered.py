"""A model that was changed between two reports is held to what it asked for and kept, node by node."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.compare.kinds import Kind
from harness.compare.step import Column, Step, step
from harness.known.model import GraphView, Layers, NodeView
from harness.words import Class, Precision
from tests.compare.handmade import FP16, INT8, known, variant

pytestmark = pytest.mark.unit

#: Nodes by name: the precision wanted, None for none, and the one that each ran in.
Ran = dict[str, tuple[Precision | None, str]]
OK, LOST = Class.BUILT, Class.PRECISION_LOST
KEPT, GONE, FLOAT = (INT8, "int8"), (INT8, "fp16"), (None, "fp16")


def column(name: str, ran: Ran, cls: Class, *, demanded: bool = True, listed: bool = True) -> Column:
    wanted = {node: want for node, (want, _) in ran.items() if want}
    nodes = tuple(NodeView(node, "Conv", (), ()) for node in ran) if listed else ()
    row = replace(variant(**wanted), model_sha256=name, graph=GraphView(nodes))
    cell = known(cls, demanded=demanded)
    told = {node: Precision(got) for node, (want, got) in ran.items() if want and got}
    cell = replace(cell, precision=told, layers=Layers("", 1))
    return Column(name, {"c.v": row}, {"c.v": cell})


def altered(old: Ran, new: Ran, cls: tuple[Class, Class] = (OK, OK), **sides: bool) -> Step:
    return step(column("before", old, cls[0], **sides), column("after", new, cls[1], **sides))


@pytest.mark.parametrize(
    ("old", "new", "cls", "kind", "said"),
    [
        ({"a": KEPT}, {"a": KEPT}, (OK, OK), None, ""),
        ({"a": KEPT}, {"a": FLOAT}, (OK, OK), Kind.PRECISION_LOST, "no longer asks for int8 of a (Conv)"),
        (
            {"a": KEPT, "b": KEPT, "c": GONE},
            {"a": KEPT, "b": KEPT, "c": GONE, "d": GONE},
            (LOST, LOST),
            Kind.PRECISION_LOST,
            "loses more than before: int8 of d (Conv)",
        ),
        (
            {"a": KEPT, "b": GONE},
            {"a": KEPT},
            (LOST, OK),
            Kind.PRECISION_LOST,
            "no longer asks for int8 of b",
        ),
        ({"a": KEPT}, {"x": KEPT}, (OK, OK), None, ""),
        ({"a": KEPT, "b": KEPT}, {"x": KEPT}, (OK, OK), Kind.PRECISION_LOST, "no longer asks for int8 of b"),
        ({"a": FLOAT}, {"a": KEPT}, (OK, OK), Kind.PRECISION_GAINED, ""),
        ({"a": KEPT}, {"a": KEPT, "b": KEPT}, (OK, OK), Kind.PRECISION_GAINED, ""),
        ({"a": KEPT}, {"a": (FP16, "fp16")}, (OK, OK), Kind.PRECISION_LOST, "no longer asks for int8 of a"),
        # It builds now, for it no longer asks for that which did not build.
        ({"a": (INT8, "")}, {"a": FLOAT}, (Class.BUILD_FAILED, OK), Kind.PRECISION_LOST, "no longer asks"),
        ({"a": KEPT}, {"a": FLOAT}, (OK, Class.BUILD_FAILED), Kind.BROKEN, ""),
    ],
)
def test_what_a_changed_model_no_longer_asks_for_or_keeps_is_lost(
    old: Ran, new: Ran, cls: tuple[Class, Class], kind: Kind | None, said: str
) -> None:
    found = altered(old, new, cls)
    assert [row.kind for row in found.rows] == ([kind] if kind else [])
    assert all(said in row.text and "model or recipe changed" in row.sure for row in found.rows)
    parts = {Kind.PRECISION_LOST: {"precision"}, Kind.BROKEN: {"class"}}
    assert found.worse == (parts.get(kind, set()) if kind else set())


def test_the_baseline_need_not_keep_a_precision() -> None:
    assert not altered({"a": KEPT}, {"a": FLOAT}, demanded=False).rows


def test_a_graph_too_large_to_be_listed_is_compared_by_its_wanted_nodes() -> None:
    (row,) = altered({"a": KEPT, "b": KEPT}, {"b": KEPT}, listed=False).rows
    assert row.kind is Kind.PRECISION_LOST
