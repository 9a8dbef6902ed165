"""Nodes are found in the names that TensorRT builds from them, and in no others."""

from __future__ import annotations

import pytest

from harness.layers.parse import map_names
from tests.layers.samples import nodes

pytestmark = pytest.mark.unit

MODEL = nodes(
    "Conv a", "Sigmoid b", "Mul c", "Conv a_1", "Relu a + b", "Add /x/Add", "Conv d (e)", "Conv conv"
)


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        ("a", ("a",)),
        ("a + PWN(PWN(b), c)", ("a", "b", "c")),
        ("w + w_quant + conv + PWN(b, c)", ("b", "c", "conv")),
        ("a_1", ("a_1",)),
        ("a_2", ()),
        ("aa", ()),
        ("a + b", ("a + b",)),
        ("a + b + c", ("c", "a + b")),
        ("a || a_1", ("a", "a_1")),
        ("PWN(d (e))", ("d (e)",)),
        ("/x/Add", ("/x/Add",)),
        ("/y/x/Add", ()),
        ("a_myl0_3", ("a",)),
        ("Reformatting CopyNode for Input Tensor 0 to a + b", ()),
        ("Reformatted Input Tensor 0 to a", ()),
        ("{ForeignNode[a...c]}", ("a", "b", "c")),
        ("{ForeignNode[weight.1...c]}", ("c",)),
        ("{ForeignNode[b...(Unnamed Layer* 3) [Shuffle]]}", ("b",)),
        (
            "{ForeignNode[b...a_1 + conv + (Unnamed Layer* 3) [Shuffle]]}",
            tuple(node.name for node in MODEL[1:]),
        ),
        ("{ForeignNode[u...v]}", ()),
        ("{ForeignNode[a]}", ("a",)),
        ("{ForeignNode[b...c]} + conv", ("b", "c", "conv")),
        ("", ()),
    ],
)
def test_a_layer_name_gives_its_nodes_in_the_models_order(layer: str, expected: tuple[str, ...]) -> None:
    assert map_names(layer, MODEL) == expected


def test_no_nodes_give_no_names() -> None:
    assert map_names("a + b", ()) == ()


def test_a_node_without_a_name_never_matches() -> None:
    assert map_names(" + ", nodes("Conv ")) == ()
