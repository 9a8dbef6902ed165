"""A variant's names are in its graph, for every case of the project, and for those of others."""

from __future__ import annotations

import functools
from typing import Any

import onnx
import pytest

from harness.case import Graph, Precision, Profile, Recipe, Variant, check_variant
from harness.errors import HandledError

pytestmark = pytest.mark.unit


def model(batch: int | str = 1) -> onnx.ModelProto:
    """Return x -> /conv/Conv -> /act/Relu -> y."""
    g = Graph("g")
    x = g.input("x", [batch, 1, 8, 8])
    x = g.conv(x, g.weight("w", (4, 1, 3, 3)), name="/conv/Conv")
    g.node("Relu", [x], name="/act/Relu", output="y")
    g.output("y", [batch, 4, 8, 8])
    return g.model()


def variant(**fields: Any) -> Variant:
    return Variant("v", "V", fields.pop("build", model), **fields)


def test_what_is_in_the_graph_passes() -> None:
    """Profiles are for inputs, marked outputs tensors that a node makes; a flag of some version is asked for there."""
    recipe = Recipe(
        mark_outputs=("/conv/Conv_output_0",),
        profiles=(Profile("x", (1, 1, 8, 8), (1, 1, 8, 8), (2, 1, 8, 8)),),
    )
    check_variant(variant(recipe=recipe, precision=(("/conv/Conv", Precision.INT8),)), model())
    check_variant(variant(), model())
    check_variant(variant(recipe=Recipe(flags=("STRICT_TYPES", "WEIGHT_STREAMING", "BF16"))), model())


GONE = "is not in its graph (without precision the graph's own types count)"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"precision": (("/conv/Convv", Precision.INT8),)},
            f"precision names the node '/conv/Convv', which {GONE}; did you mean '/conv/Conv'?",
        ),
        (
            {"recipe": Recipe(mark_outputs=("Z",))},
            "mark_outputs names the tensor 'Z', which is not in its graph; known: /conv/Conv_output_0, y",
        ),
        (
            {"recipe": Recipe(mark_outputs=("w",))},
            "mark_outputs names the tensor 'w', which is not in its graph; known: /conv/Conv_output_0, y",
        ),
        (
            {"recipe": Recipe(profiles=(Profile("input", (1,), (1,), (1,)),))},
            "a profile is for the input 'input', which is not in its graph; known: x",
        ),
        (
            {"recipe": Recipe(flags=("INT8", "INT88"))},
            "flags names the builder flag 'INT88', which no version of TensorRT has; did you mean 'INT8'?",
        ),
        (
            {"recipe": Recipe(parser_flags=(("NATIVE_NORM", True),))},
            (
                "parser_flags names the parser flag 'NATIVE_NORM', which no version of TensorRT has; "
                "did you mean 'NATIVE_INSTANCENORM'?"
            ),
        ),
    ],
)
def test_what_is_not_in_the_graph_is_one_sentence(fields: dict[str, Any], said: str) -> None:
    """With the file that the builder is in, through a partial too."""
    for build in (model, functools.partial(model, 1)):
        with pytest.raises(HandledError) as refused:
            check_variant(variant(build=build, **fields), model())
        assert str(refused.value) == f"{__file__}: variant 'v': {said}"
