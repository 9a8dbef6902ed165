"""A graph under construction: inputs, outputs, nodes, initialisers, and the model that comes of them."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import onnx
from onnx import TensorProto, helper

from harness.case.graph.elements import FIRST_IR, as_float32, pack

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The newest ONNX IR that the parser of the oldest target (TensorRT 8.5) reads: that of a model that needs none newer.
OLDEST_IR = 8


class Base:
    """Every method that makes a tensor returns the tensor's name.

    Node names are given in full, because an error message names them: pass `name=""` for a node that the
    reported model left unnamed. `opset` is the default domain's; the model's IR is the oldest, from 8 on, that has
    the opset and all types.
    """

    def __init__(self, name: str, *, opset: int = 13) -> None:
        self._name = name
        self._opset = opset
        self._domains = {"": opset}
        self._nodes: list[onnx.NodeProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._initializers: dict[str, TensorProto] = {}
        self._weights: dict[str, tuple[tuple[int, ...], list[float]]] = {}

    def input(self, name: str, shape: Sequence[int | str], dtype: int = TensorProto.FLOAT) -> str:
        """Add a network input; a string in the shape is a dynamic dimension."""
        self._inputs.append(helper.make_tensor_value_info(name, dtype, list(shape)))
        return name

    def output(self, name: str, shape: Sequence[int | str], dtype: int = TensorProto.FLOAT) -> str:
        """Declare an existing tensor a network output."""
        self._outputs.append(helper.make_tensor_value_info(name, dtype, list(shape)))
        return name

    def node(
        self,
        op: str,
        inputs: Sequence[str],
        *,
        name: str,
        output: str | None = None,
        domain: str = "",
        **attributes: Any,  # noqa: ANN401  (whatever onnx.helper.make_attribute takes)
    ) -> str:
        """Add a node with one output, called `<name>_output_0` unless `output` names it.

        An attribute may be a subgraph: the `body()` of another graph.
        """
        if output is None:
            if not name:
                raise ValueError(f"{op}: a node without a name needs its output named")
            output = f"{name}_output_0"
        return self.node_of_several(op, inputs, [output], name=name, domain=domain, **attributes)[0]

    def node_of_several(
        self,
        op: str,
        inputs: Sequence[str],
        outputs: int | Sequence[str],
        *,
        name: str,
        domain: str = "",
        **attributes: Any,  # noqa: ANN401  (whatever onnx.helper.make_attribute takes)
    ) -> list[str]:
        """Add a node with the outputs that are named, "" for one left out; or with so many `<name>_output_<index>`."""
        names = (
            [f"{name}_output_{index}" for index in range(outputs)] if isinstance(outputs, int) else outputs
        )
        if domain:
            self._domains.setdefault(domain, 1)
        node = helper.make_node(op, list(inputs), list(names), name=name or None, domain=domain, **attributes)
        self._nodes.append(node)
        return list(names)

    def constant(
        self, name: str, values: Sequence[float], shape: Sequence[int], dtype: int = TensorProto.FLOAT
    ) -> str:
        """Add an initialiser with given values; a name that is there already keeps its first values."""
        if name not in self._initializers:
            packed = pack(values, dtype)
            self._initializers[name] = helper.make_tensor(name, dtype, list(shape), packed, raw=True)
        return name

    def weight(
        self,
        name: str,
        shape: Sequence[int],
        *,
        centre: float = 0.0,
        spread: float | None = None,
        dtype: int = TensorProto.FLOAT,
    ) -> str:
        """Add an initialiser of pseudo-random values fixed by its name.

        Uniform in `centre` +- `spread`; the spread defaults to a fan-in scaling that keeps activations near one.
        """
        return self.constant(name, self._values(name, shape, centre, spread), shape, dtype)

    def body(self) -> onnx.GraphProto:
        """Return what there is so far as a subgraph, unchecked: it may use tensors of the graph around it."""
        initializers = list(self._initializers.values())
        return helper.make_graph(self._nodes, self._name, self._inputs, self._outputs, initializers)

    def model(self) -> onnx.ModelProto:
        """Return the finished model after `onnx.checker` with full shape inference.

        Nodes of custom domains are not inferred.
        """
        opsets = [helper.make_opsetid(domain, version) for domain, version in self._domains.items()]
        model = helper.make_model(self.body(), opset_imports=opsets, ir_version=self._ir(), producer_name="")
        onnx.checker.check_model(model, full_check=True)
        return model

    def _ir(self) -> int:
        values = [*self._inputs, *self._outputs]
        types = {value.type.tensor_type.elem_type for value in values}
        types |= {tensor.data_type for tensor in self._initializers.values()}
        of_opset = helper.find_min_ir_version_for([helper.make_opsetid("", self._opset)])
        return max(OLDEST_IR, of_opset, *(FIRST_IR.get(dtype, OLDEST_IR) for dtype in types))

    def _values(
        self, name: str, shape: Sequence[int], centre: float = 0.0, spread: float | None = None
    ) -> list[float]:
        """Return the values of a weight, and remember them for its scale."""
        count = math.prod(shape)
        if spread is None:
            spread = math.sqrt(3.0 / max(1, count // shape[0]))
        generator = random.Random(f"{name}{tuple(shape)}")  # noqa: S311  (data, not secrets)
        draw = generator.random
        values = as_float32([centre + spread * (2.0 * draw() - 1.0) for _ in range(count)])
        self._weights[name] = (tuple(shape), values)
        return values
