"""Whether a node keeps the restrictions that NVIDIA's operator tables name, as far as its graph decides that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx
from onnx.inliner import inline_local_functions

from harness.case.graph_reader import Extents, GraphReader, attribute, inferred, name_at, subgraphs

#: A tensor's dimensions; None for a dimension that is not fixed.
Shape = tuple[int | None, ...]
_RESIZED = {
    "mode": ("nearest", "linear"),
    "coordinate_transformation_mode": (
        "half_pixel",
        "pytorch_half_pixel",
        "tf_half_pixel_for_nn",
        "asymmetric",
        "align_corners",
    ),
    "nearest_mode": ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil"),
}
_MOST_K = 3840


@dataclass(frozen=True)
class Use:
    """A node in its graph: `operator` by the table's name, `name` by the engine's."""

    node: onnx.NodeProto
    scope: GraphReader
    operator: str
    name: str

    def attribute(self, name: str, default: object = None) -> object:
        """Return an attribute's value; text as str."""
        return attribute(self.node, name, default)

    def listed(self, name: str) -> list[object]:
        """Return an attribute that is a list; () if it is left out."""
        value = self.attribute(name)
        return list(value) if isinstance(value, list | tuple) else []

    def given(self, index: int) -> str:
        """Return the name of an input; "" if it is left out."""
        return name_at(self.node.input, index)

    def shape(self, index: int = 0) -> Shape | None:
        """Return the dimensions of an input, None if the rank is unknown."""
        return _fixed(self.scope.shapes.get(self.given(index)))

    def rank(self, index: int, *wanted: int) -> bool | None:
        """Tell whether an input has one of these numbers of dimensions."""
        shape = self.shape(index)
        return None if shape is None else len(shape) in wanted

    def constant(self, index: int) -> bool | None:
        """Return True if an input is a constant or left out; None if nodes compute it from other tensors."""
        name = self.given(index)
        if not name or name in self.scope.constants:
            return True
        return False if name in self.scope.inputs else None

    def values(self, index: int) -> np.ndarray | None:
        """Return a constant input's values, None if they are not in the graph."""
        return self.scope.value(self.given(index))


def _fixed(found: Extents | None) -> Shape | None:
    if found is None:
        return None
    return tuple(each if isinstance(each, int) and each >= 0 else None for each in found)


def _all(*answers: bool | None) -> bool | None:
    return False if False in answers else None if None in answers else True


def _zero(use: Use) -> bool | None:
    """Tell whether the third input is zero throughout, or left out."""
    values = use.values(2)
    return not use.given(2) or (None if values is None else not np.any(values.astype(np.float32)))


def _einsum(use: Use) -> bool | None:
    terms = str(use.attribute("equation", "")).partition("->")[0].replace(" ", "").split(",")
    if any("." in term or max(Counter(term).values(), default=0) > 1 for term in terms):
        return False
    sizes: dict[str, set[int | None]] = {}
    for at, term in enumerate(terms):
        for letter, size in zip(term, use.shape(at) or (None,) * len(term), strict=False):
            sizes.setdefault(letter, set()).add(size)
    known = [size - {None} for size in sizes.values() if len(size) > 1]
    return False if any(len(size) > 1 for size in known) else None if known else True


def _halves(found: list[object]) -> bool:
    """Tell whether both halves of a list are the same."""
    return found[: len(found) // 2] == found[len(found) // 2 :]


def _branches(use: Use, *, broadcast: bool) -> bool | None:
    named = use.attribute("then_branch"), use.attribute("else_branch")
    graphs = [graph for graph in named if isinstance(graph, onnx.GraphProto)]
    if len(graphs) < len(named):
        return None
    answers: list[bool | None] = []
    scopes = [GraphReader(graph, use.scope) for graph in graphs]
    for one, two in zip(*(graph.output for graph in graphs), strict=False):
        shapes = _fixed(scopes[0].shapes.get(one.name)), _fixed(scopes[1].shapes.get(two.name))
        answers.append(one.name != two.name)
        answers.append(_alike(*shapes, broadcast=broadcast))
    return _all(*answers)


def _alike(one: Shape | None, two: Shape | None, *, broadcast: bool) -> bool | None:
    if one is None or two is None:
        return None
    if not broadcast:
        return len(one) == len(two)
    pairs = list(zip(reversed(one), reversed(two), strict=False))
    if any(None not in pair and 1 not in pair and pair[0] != pair[1] for pair in pairs):
        return False
    return None if any(None in pair and pair[0] != pair[1] for pair in pairs) else True


def _resize_axes(use: Use) -> bool | None:
    axes, shape = use.attribute("axes"), use.shape()
    if not isinstance(axes, list) or not use.given(2):
        return True
    return None if shape is None else axes == list(range(len(shape)))


def _limit(use: Use) -> bool | None:
    # Before opset 10 K is an attribute.
    k = use.attribute("k") if use.attribute("k") is not None else use.values(1)
    # The tables say "less than"; 8.6.1, 10.6.0 and TensorRT for RTX were measured to take the limit itself.
    return None if k is None else bool(np.all(np.asarray(k) <= _MOST_K))


def _static_axis(use: Use) -> bool | None:
    axis, shape = use.attribute("axis", -1), use.shape()
    if shape is None or not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
        return None
    return True if shape[axis] is not None else None


def _real(use: Use) -> bool | None:
    shape = use.shape()
    return None if not shape or shape[-1] is None else len(shape) < 3 or shape[-1] == 1  # noqa: PLR2004


def _static(use: Use) -> bool | None:
    shape = use.shape()
    return True if shape is not None and None not in shape else None


def _modes(use: Use) -> bool:
    """Tell whether each mode that counts is one of the table's; a rounding counts for the nearest alone."""
    wanted = dict(_RESIZED)
    if use.attribute("mode", "nearest") != "nearest":
        del wanted["nearest_mode"]
    return all(use.attribute(name, names[0]) in names for name, names in wanted.items())


def _position(use: Use) -> bool | None:
    kind = use.scope.types.get(use.given(3)) if use.given(3) else onnx.TensorProto.INT64
    return None if kind is None else kind == onnx.TensorProto.INT64


#: By name in operators.tsv: whether a use keeps a restriction, None if the graph does not decide.
KEPT: Mapping[str, Callable[[Use], bool | None]] = {
    "attention-attributes": lambda use: (
        not (use.attribute("qk_matmul_output_mode", 0) or use.attribute("softcap", 0.0))
    ),
    "attention-outputs": lambda use: not any(use.node.output[1:]),
    "attention-rank": lambda use: _all(*(use.rank(at, 4) for at in range(4) if use.given(at))),
    "branches-broadcast": lambda use: _branches(use, broadcast=True),
    "branches-rank": lambda use: _branches(use, broadcast=False),
    "cache-axis": lambda use: use.attribute("axis", -2) == -2,  # noqa: PLR2004
    "cache-rank": lambda use: _all(use.rank(0, 4), use.rank(1, 4)),
    # Slice and Pad take the axes as the fourth input, others as the second.
    "constant-axes": lambda use: use.constant(3 if use.operator in {"Slice", "Pad"} else 1),
    "constant-axis": lambda use: use.constant(1),
    "constant-depth": lambda use: use.constant(1),
    "constant-frames": lambda use: _all(use.constant(1), use.constant(2)),
    "constant-k": lambda use: use.constant(1),
    "constant-scale": lambda use: _all(use.constant(1), use.constant(2)),
    "dilations-ones": lambda use: set(use.listed("dilations")) <= {1},
    "directions-alike": lambda use: (
        use.attribute("direction", "forward") != "bidirectional" or _halves(use.listed("activations"))
    ),
    "einsum-plain": _einsum,
    "first-output": lambda use: not any(use.node.output[1:]),
    "k-limit": _limit,
    "layout-zero": lambda use: not use.attribute("layout", 0),
    "loop-shapes": lambda use: None,  # noqa: ARG005
    "no-antialias": lambda use: not use.attribute("antialias", 0),
    "no-cache": lambda use: not any(use.node.input[4:]),
    "no-indices": lambda use: not any(use.node.output[1:2]),
    "no-input-forget": lambda use: not use.attribute("input_forget", 0),
    "no-reduction": lambda use: use.attribute("reduction", "none") == "none",
    "no-training": lambda use: False if use.constant(2) is False else _zero(use),
    "pads-alike": lambda use: _halves(use.listed("pads")),
    "plain-value": lambda use: (
        not {"sparse_value", "value_string", "value_strings"} & {item.name for item in use.node.attribute}
    ),
    "pool-rank": lambda use: use.rank(0, 3, 4, 5),
    "position-int64": _position,
    "rank-3-to-4": lambda use: use.rank(0, 3, 4),
    "rank-3-to-5": lambda use: use.rank(0, 3, 4, 5),
    "rank-4": lambda use: use.rank(0, 4),
    "real-input": _real,
    "resize-axes": _resize_axes,
    "resize-modes": _modes,
    "resize-policy": lambda use: use.attribute("keep_aspect_ratio_policy", "stretch") == "stretch",
    "seed-ignored": lambda use: None if use.attribute("seed") is not None else True,
    "sorted": lambda use: use.attribute("sorted", 1) == 1,
    "static-axis": _static_axis,
    # Importer of 8.5 and 8.6: the values of an FP16 scale are read as FP32.
    "scale-fp32": lambda use: use.scope.types.get(use.given(1)) != onnx.TensorProto.FLOAT16,
    "static-shape": _static,
    "zero-point-zero": _zero,
}


def uses(model: onnx.ModelProto, name_of: Callable[[onnx.NodeProto], str]) -> Iterator[Use]:
    """Yield every node of a model that its graph runs, those of branches, loops and local functions too."""
    functions = {(each.domain, each.name) for each in model.functions}
    for node in model.graph.node:
        if (node.domain, node.op_type) in functions:
            yield Use(node, GraphReader(onnx.GraphProto()), "local function", name_of(node))
    whole = inline_local_functions(model) if functions else model
    yield from _uses(GraphReader(inferred(whole)), name_of)


def _uses(scope: GraphReader, name_of: Callable[[onnx.NodeProto], str]) -> Iterator[Use]:
    for node in scope.nodes:
        yield Use(node, scope, node.op_type, name_of(node))
        for graph in subgraphs(node):
            yield from _uses(GraphReader(graph, scope), name_of)
