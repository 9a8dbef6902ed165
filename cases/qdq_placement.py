"""Where Q/DQ stands between INT8 convolutions: at a residual Add, at a Concat, round poolings, behind activations.

Users ask for the rules (issues 3861, 3542 and 4401) and get them in pieces; NVIDIA's guide says to quantise the
residual of an Add and to try layers that are not weighted between two Q/DQ pairs. Each graph here is one or two
quantised convolutions, the place in question and a quantised convolution behind it. All convolutions are wished in
INT8, and an operator between two Q/DQ pairs is too, as its Q/DQ asks.

Left out, because in a survey of TensorRT for RTX they did not differ from a neighbour: behind convolutions Clip, ELU,
GELU in three forms, Softplus, Tanh and Sigmoid (SiLU is the case conv_silu, Mish the case mish), the same behind
depthwise ones, and between Q/DQ pairs GlobalAveragePool, Transpose, Slice, Split, Pad, ReduceMean, Softmax and norms.

No claim is made here. Issue 3861 shows no graph and no verdict; issue 4401 has a U-Net whose INT8 is slower with Q/DQ
than by a calibrator, with graphs as pictures; issue 2597 has logs in which the Q behind a Concat moves in front of
it. A maintainer advises Q/DQ before a residual Add (issue 3243), of attention.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from harness.case import (
    Case,
    Graph,
    Precision,
    Recipe,
    Role,
    Variant,
    links,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnx

RULES = links.issue(3861, "rules for Q/DQ with Add and Concat")
CONCAT = links.issue(4401, "Q/DQ round Concat and Conv of a U-Net")
CLONED = links.issue(2597, "Q behind a Concat is cloned into its convolutions")
RESIDUAL = links.issue(3243)

CHANNELS, SIZE = 16, 8
#: The harness's inputs are uniform in [-1, 1]; the layers behind them keep about that magnitude.
INPUT_SCALE, INNER_SCALE = 0.01, 0.02
FIRST, SECOND, LAST = "/first/Conv", "/second/Conv", "/last/Conv"
BETWEEN = "/between"
INT8 = Precision.INT8


def _conv(  # noqa: PLR0913  (what the convolutions differ in)
    g: Graph, x: str, name: str, *, channels: int = CHANNELS, scale: float = INNER_SCALE, kernel: int = 3
) -> str:
    """Add a convolution with Q/DQ on its weights and, unless a `scale` of 0 says that x has it, on its data."""
    module = name.removesuffix("/Conv")
    if scale:
        x = g.qdq(x, name=f"{module}/_input_quantizer", scale=scale)
    weight = g.weight(f"{module[1:]}.weight", (CHANNELS, channels, kernel, kernel))
    return g.conv(x, g.weight_qdq(weight, name=f"{module}/_weight_quantizer"), name=name, kernel=kernel)


def _finish(g: Graph, x: str, *, channels: int = CHANNELS, scale: float = INNER_SCALE) -> onnx.ModelProto:
    """End a graph with one more convolution, of one pixel, so that its size does not matter."""
    x = _conv(g, x, LAST, channels=channels, scale=scale, kernel=1)
    g.node("Identity", [x], name="/output", output="output")
    g.output("output", [1, CHANNELS, "height", "width"])
    return g.model()


def _residual(*, quantised: bool) -> onnx.ModelProto:
    """Build a convolution and the Add of its own input, then ReLU."""
    g = Graph("residual")
    x = g.input("input", [1, CHANNELS, SIZE, SIZE])
    y = _conv(g, x, FIRST, scale=INPUT_SCALE)
    residual = g.qdq(x, name="/_residual_quantizer", scale=INPUT_SCALE) if quantised else x
    x = g.node("Add", [y, residual], name="/Add")
    return _finish(g, g.node("Relu", [x], name="/Relu"))


def _concat(scales: tuple[float, float] | None, *, after: bool) -> onnx.ModelProto:
    """Build two convolutions, Q/DQ on each with its own scale or on neither, their Concat, and Q/DQ `after` it."""
    g = Graph("concat")
    x = g.input("input", [1, CHANNELS, SIZE, SIZE])
    x = g.qdq(x, name="/_input_quantizer", scale=INPUT_SCALE)
    branches = [_conv(g, x, name, scale=0) for name in (FIRST, SECOND)]
    if scales:
        names = ("/first", "/second")
        branches = [
            g.qdq(branch, name=f"{name}/_output_quantizer", scale=scale)
            for branch, name, scale in zip(branches, names, scales, strict=True)
        ]
    x = g.node("Concat", branches, name="/Concat", axis=1)
    return _finish(g, x, channels=2 * CHANNELS, scale=INNER_SCALE if after else 0)


def _follow(activation: Callable[[Graph, str], str]) -> onnx.ModelProto:
    """Build a convolution, an activation and the next convolution."""
    g = Graph("activation", opset=14)
    x = g.input("input", [1, CHANNELS, SIZE, SIZE])
    return _finish(g, activation(g, _conv(g, x, FIRST, scale=INPUT_SCALE)))


def _between(operator: Callable[[Graph, str], str], *, convolutions: bool = True) -> onnx.ModelProto:
    """Build an operator between two Q/DQ pairs, with or without convolutions round these."""
    g = Graph("between")
    x = g.input("input", [1, CHANNELS, SIZE, SIZE])
    if convolutions:
        x = _conv(g, x, FIRST, scale=INPUT_SCALE)
    x = operator(g, g.qdq(x, name=f"{BETWEEN}/_input_quantizer", scale=INNER_SCALE))
    if convolutions:
        return _finish(g, x)
    x = g.qdq(x, name=f"{BETWEEN}/_output_quantizer", scale=INNER_SCALE)
    g.node("Identity", [x], name="/output", output="output")
    g.output("output", [1, CHANNELS, "height", "width"])
    return g.model()


def _op(operator: str, **attributes: Any) -> Callable[[Graph, str], str]:  # noqa: ANN401  (as Graph.node)
    """Return a function that adds one operator with these attributes."""
    return lambda g, x: g.node(operator, [x], name=BETWEEN, **attributes)


def _resize(g: Graph, x: str) -> str:
    return g.node("Resize", [x, "", g.constant("scales", [1, 1, 2, 2], [4])], name=BETWEEN, mode="nearest")


def _prelu(g: Graph, x: str) -> str:
    return g.node("PRelu", [x, g.weight("slope", (CHANNELS, 1, 1), centre=0.1, spread=0.05)], name=BETWEEN)


_variant = partial(Variant, recipe=Recipe(flags=("INT8",)))
ENDS = ((FIRST, INT8), (LAST, INT8))
ALL = ((FIRST, INT8), (SECOND, INT8), (LAST, INT8))

RESIDUALS = (
    _variant(
        name="residual-float",
        title="A residual that is not quantised, added to an INT8 convolution",
        build=partial(_residual, quantised=False),
        precision=ENDS,
    ),
    _variant(
        name="residual-qdq",
        title="Q/DQ on the residual too, as NVIDIA advises",
        build=partial(_residual, quantised=True),
        role=Role.WORKAROUND,
        counterpart="residual-float",
        precision=ENDS,
    ),
)
_concats = partial(_variant, precision=ALL, counterpart="concat-two-scales")
CONCATS = (
    _concats(
        name="concat-two-scales",
        title="Q/DQ with a scale of its own on each input of Concat",
        build=partial(_concat, (0.02, 0.03), after=False),
        counterpart=None,
    ),
    _concats(
        name="concat-one-scale",
        title="Q/DQ with one and the same scale on each input of Concat",
        build=partial(_concat, (0.03, 0.03), after=False),
        role=Role.WORKAROUND,
    ),
    _concats(
        name="concat-after",
        title="Q/DQ behind the Concat in place of its inputs",
        build=partial(_concat, None, after=True),
        role=Role.WORKAROUND,
    ),
    _concats(
        name="concat-none",
        title="No Q/DQ at the Concat, and so none on the data of the convolution behind it",
        build=partial(_concat, None, after=False),
        role=Role.CONTROL,
        precision=None,
    ),
)

#: (name, what stands in the title, builder): one more activation is one more line.
ACTIVATIONS: tuple[tuple[str, str, Callable[[Graph, str], str]], ...] = (
    ("hardswish", "HardSwish", _op("HardSwish")),
    ("prelu", "PRelu", _prelu),
)
#: (name, what stands in the title, builder): one more operator is one more line.
OPERATORS: tuple[tuple[str, str, Callable[[Graph, str], str]], ...] = (
    ("maxpool", "MaxPool", _op("MaxPool", kernel_shape=[2, 2], strides=[2, 2])),
    ("avgpool", "AveragePool", _op("AveragePool", kernel_shape=[2, 2], strides=[2, 2])),
    ("resize", "Resize to the nearest", _resize),
)


def _activated(name: str, title: str, activation: Callable[[Graph, str], str]) -> Variant:
    return _variant(
        name=f"conv-{name}",
        title=f"An INT8 convolution, {title} and the next one",
        build=partial(_follow, activation),
        role=Role.CONTROL,
        counterpart="residual-float",
        precision=ENDS,
    )


def _surrounded(name: str, title: str, operator: Callable[[Graph, str], str]) -> Variant:
    return _variant(
        name=f"between-{name}",
        title=f"{title} between two Q/DQ pairs and two convolutions",
        build=partial(_between, operator),
        precision=(*ENDS, (BETWEEN, INT8)),
    )


def _alone(name: str, title: str, operator: Callable[[Graph, str], str]) -> Variant:
    return _variant(
        name=f"alone-{name}",
        title=f"{title} between two Q/DQ pairs, without convolutions",
        build=partial(_between, operator, convolutions=False),
        role=Role.CONTROL,
        counterpart=f"between-{name}",
        precision=((BETWEEN, INT8),),
    )


CASE = Case(
    name="qdq_placement",
    title="Where Q/DQ stands round Add, Concat, poolings and activations",
    summary=(
        "The rules for Q/DQ between convolutions are asked for again and again. On TensorRT for RTX the answer hangs "
        "on the version: no INT8 convolution at all up to 1.6, and a Concat whose inputs have Q/DQ of different scales "
        "is worse than none. Q/DQ behind the Concat is the way round it. On Hopper so on 8.6.1 and "
        "10.6.0: the convolution behind a Concat keeps INT8 with Q/DQ behind the Concat alone, not with one scale on "
        "both inputs, which is enough on TensorRT for RTX 1.7."
    ),
    links=(RULES, CONCAT, CLONED, RESIDUAL, links.QUANTISED_TYPES),
    variants=(
        *RESIDUALS,
        *CONCATS,
        *(_activated(*row) for row in ACTIVATIONS),
        *(_surrounded(*row) for row in OPERATORS),
        *(_alone(*row) for row in OPERATORS[1:2]),
    ),
)
