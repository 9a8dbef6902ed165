"""What a version does not have yet, by the signature of the refusal, the graph and NVIDIA's tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.known.cell import not_yet
from harness.known.listed import Objection, State
from harness.known.model import GraphView, NodeView
from harness.words import Basis, Class
from tests.compare.handmade import known, target, variant

pytestmark = pytest.mark.unit

API, PARSE, BUILD = Class.API_REMOVED, Class.PARSE_FAILED, Class.BUILD_FAILED


@pytest.mark.parametrize(
    ("cls", "signature", "version", "told"),
    [
        (API, "strong-typing-missing", "8.6.1", "strongly typed networks, from 9.0 on"),
        (API, "strong-typing-missing", "10.0", None),
        (API, "parser-flag-missing", "8.5.2", "flags of the parser, from 8.6 on"),
        # It went, and did not come.
        (API, "implicit-int8-removed", "11.0", None),
        (PARSE, "no-bf16-yet", "8.6.1", "BF16, from 9.0 on"),
        # The graph has FP8 and INT4: the later of the two is what it waits for.
        (PARSE, "initializer-refused", "8.6.1", "INT4, from 10.0 on"),
        (PARSE, "initializer-of-later-type", "9.2.0", "INT4, from 10.0 on"),
        (PARSE, "initializer-refused", "10.6.0", None),
        (PARSE, "no-importer", "8.6.1", "Mish, from 10.0 on"),
        (PARSE, "no-importer", "10.1.0", None),
        (PARSE, None, "8.6.1", "Mish, from 10.0 on"),
        (PARSE, "negative-scale", "8.6.1", None),
        # It was read: another cause than a missing importer, whatever the table lacks.
        (BUILD, None, "8.6.1", None),
        (Class.OK, "no-bf16-yet", "8.6.1", None),
    ],
)
def test_what_came_later_is_named_with_the_first_release(
    cls: Class, signature: str | None, version: str, told: str | None
) -> None:
    graph = GraphView(
        (NodeView("a", "Conv", (), ()), NodeView("b", "Mish", (), ())),
        types={"x": "float32 1x3", "w": "float8e4m3fn 3x3", "v": "int4 3x3"},
    )
    row = replace(variant(), graph=graph)
    column = target(version=version, engine="tensorrt")
    found = not_yet(known(cls, signature=signature), row, column)
    assert (found and str(found)) == told
    # Nobody publishes what the parser of another engine takes.
    assert not_yet(known(cls, signature=signature), row, target(version=version)) is None


def test_a_graph_that_a_table_blocks_waits_for_the_operator_alone() -> None:
    column, row = target(version="8.6.1", engine="tensorrt"), variant()
    blocked = Objection(State.BLOCKED, "a", "Mish", "no importer", "10.0")
    for finding, told in (
        (blocked, "Mish, from 10.0 on"),
        (replace(blocked, restriction="antialias must be 0"), "None"),
    ):
        cell = known(PARSE, basis=Basis.LISTED, static=finding)
        assert str(not_yet(cell, row, column)) == told
