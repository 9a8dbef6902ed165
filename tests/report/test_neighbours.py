"""What changed between neighbouring versions: the whole of each change, and what is none."""

from __future__ import annotations

from typing import Any

import pytest

from harness.report.compare.grouped import ChangeGroup, grouped
from harness.report.compare.ranges import changes
from harness.report.model import CellView, Change
from harness.words import Class, Precision
from tests.report.handmade import FP16, FP32, INT8, cell, layer, target, variant

pytestmark = pytest.mark.unit

BUILT, FAILED, NOT_RUN = Class.BUILT, Class.BUILD_FAILED, Class.NOT_RUN
Told = tuple[str, bool | None, str, str]


def changed(*cells: CellView) -> tuple[Change, ...]:
    """Return what changed for a variant that wants two nodes, along 1.0, 1.1 and so on."""
    run = [(target(f"rtx1{minor}", f"1.{minor}"), found) for minor, found in enumerate(cells)]
    return changes(variant(a=INT8, b=FP16), run)


def test_a_change_names_both_versions_and_those_between_them_that_were_not_run() -> None:
    found = changed(cell(), cell(), cell(NOT_RUN), cell(NOT_RUN), cell(FAILED), cell(BUILT, chip="INT8 1/1"))
    assert found == (
        Change(
            "c",
            "v",
            "RTX",
            "rtx11",
            "rtx14",
            "class",
            better=False,
            versions="1.1 to 1.4 (1.2, 1.3 not run)",
            shared="builds before, fails to build after",
        ),
        Change(
            "c",
            "v",
            "RTX",
            "rtx14",
            "rtx15",
            "class",
            better=True,
            versions="1.4 to 1.5",
            shared="fails to build before, builds after",
            detail="INT8 1/1",
        ),
    )


def told(old: CellView, new: CellView) -> Told | None:
    found = changed(old, new)
    return (found[0].what, found[0].better, found[0].shared, found[0].detail) if found else None


@pytest.mark.parametrize(
    ("old", "new", "better"),
    [
        (Class.OK, Class.CRASHED, False),
        (Class.CRASHED, Class.OK, True),
        (Class.OK, BUILT, None),
        (FAILED, Class.CRASHED, None),
        (Class.PRECISION_LOST, FAILED, None),
    ],
)
def test_a_result_is_better_only_where_one_side_works(old: Class, new: Class, *, better: bool | None) -> None:
    found = told(cell(old), cell(new))
    assert found
    assert found[:2] == ("class", better)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"a": INT8}, {"a": FP32}, (False, "a int8 → fp32")),
        ({"a": FP32}, {"a": INT8}, (True, "a fp32 → int8")),
        ({"a": FP32}, {"a": FP16}, (None, "a fp32 → fp16")),
        ({"a": INT8, "b": FP16}, {"a": FP32, "b": FP32}, (False, "a int8 → fp32, b fp16 → fp32")),
        ({"a": INT8, "b": FP32}, {"a": FP32, "b": FP16}, (None, "a int8 → fp32, b fp32 → fp16")),
        ({"a": INT8, "b": FP32}, {"a": FP16, "b": INT8}, (False, "a int8 → fp16, b fp32 → int8")),
        ({"a": INT8}, {"b": FP16}, None),
        ({"a": INT8, "b": FP16}, {"a": INT8}, None),
        ({"a": INT8}, {"a": INT8, "b": FP16}, None),
        ({"x": INT8}, {"x": FP32}, (None, "x int8 → fp32")),
        ({"y": INT8, "x": FP16}, {"x": INT8, "y": FP16}, (None, "y int8 → fp16, x fp16 → int8")),
        ({"x": INT8, "y": FP32}, {"x": FP32, "y": FP16}, (None, "x int8 → fp32")),
        ({"x": INT8}, {"x": Precision.FP8}, None),
        ({"x": FP32}, {"x": FP16}, None),
        ({"x": INT8}, {"y": FP32}, None),
        # A wanted node that moved outweighs those that nobody asked for.
        ({"a": INT8, "x": INT8}, {"a": FP32, "x": FP32}, (False, "a int8 → fp32")),
    ],
)
def test_a_change_of_precision_names_the_nodes(
    old: dict[str, Precision], new: dict[str, Precision], expected: tuple[bool | None, str] | None
) -> None:
    """Better where wanted nodes took their precision, worse where they left it; one of each is neither."""
    assert told(cell(precision=old), cell(precision=new)) == (
        expected and ("precision", expected[0], "", expected[1])
    )


@pytest.mark.parametrize(
    ("old", "new", "detail"),
    [
        (
            ["int8 p q", "fp32 r"],
            ["int8 p", "fp32 q", "fp32 r"],
            "p was fused with q in int8, now alone in int8",
        ),
        (["int8 p q", "fp32 r"], ["int8 p", "fp32 q r"], "p was fused with q in int8, now alone in int8"),
        (["fp32 p"], ["fp16 p q r"], "p was alone in fp32, now fused with q and r in fp16"),
        # The first by name, whatever the engine's order.
        (["int8 q", "int8 p"], ["fp32 q", "fp32 p"], "p was alone in int8, now alone in fp32"),
        (["int8 q", "int8 p"], ["int8 p q"], "p was alone in int8, now fused with q in int8"),
        # A layer that is in both is no example.
        (
            ["int8 p", "int8 p q"],
            ["int8 p", "fp32 p q"],
            "p was fused with q in int8, now fused with q in fp32",
        ),
        (["fp32 p", "fp32 q"], ["fp32 p"], ""),
        (["fp32 p"], ["fp32 p", "fp32"], ""),
        (["fp32 p"], ["fp32 q"], ""),
        (["int8 p q"], ["int8 q p"], None),
        (["int8 p", "fp32 q"], ["fp32 q", "int8 p"], None),
        (["int8 p"], [], None),
        ([], ["int8 p"], None),
        ([], [], None),
    ],
)
def test_a_change_of_layers_counts_them_and_names_one_node(
    old: list[str], new: list[str], detail: str | None
) -> None:
    """Names and the order of layers and of the nodes in them are the engine's own business."""

    def made(layers: list[str]) -> CellView:
        parts = [text.split() for text in layers]
        return cell(
            layers=tuple(layer(kind, *nodes, name=f"{at}") for at, (kind, *nodes) in enumerate(parts))
        )

    count = f"{len(old)} → {len(new)} layers" if len(old) != len(new) else ""
    whole = None if detail is None else ("layers", None, "", "; ".join(filter(None, (count, detail))))
    assert told(made(old), made(new)) == whole


def group(**fields: Any) -> Change:
    plain: dict[str, Any] = {"what": "class", "better": True, "versions": "1.0 to 1.1", "shared": "s"}
    return Change("c", fields.pop("variant", "v"), "RTX", "old", "new", **{**plain, **fields})


def test_groups_stand_in_the_order_in_which_they_matter() -> None:
    """Results, then precisions, then layers, then what a later version tells; worse before better before neither."""
    shuffled = [
        group(what="layers", better=None),
        group(what="news", better=False),
        group(what="precision", better=True),
        group(what="precision", better=False),
        group(what="class", better=None),
        group(what="class", better=True),
        group(what="class", better=False),
        group(what="class", better=True, variant="w"),
        group(what="class", better=True, versions="1.1 to 1.2"),
    ]
    assert [(found.kind, found.head) for found in grouped(shuffled, 9)] == [
        ("result, worse", "RTX 1.0 to 1.1: 1 variant"),
        ("result, better", "RTX 1.0 to 1.1: 2 variants"),
        ("result, better", "RTX 1.1 to 1.2: 1 variant"),
        ("result", "RTX 1.0 to 1.1: 1 variant"),
        ("precision, worse", "RTX 1.0 to 1.1: 1 variant"),
        ("precision, better", "RTX 1.0 to 1.1: 1 variant"),
        ("layers", "RTX 1.0 to 1.1: 1 variant"),
        ("news, worse", "RTX 1.0 to 1.1: 1 variant"),
    ]


def test_a_group_is_what_its_changes_share() -> None:
    first, second = group(detail="INT8 1/1"), group(variant="w")
    assert grouped([first, second], 1) == [
        ChangeGroup("RTX", "1.0 to 1.1", "result", "better", "s", 2, (first,))
    ]
