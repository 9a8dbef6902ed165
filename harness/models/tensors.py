"""What nodes read, and what is known of a model's tensors."""

from __future__ import annotations

from collections.abc import Iterator

import onnx


def reads(node: onnx.NodeProto) -> Iterator[str]:
    """Yield the tensors that a node takes, those that its subgraphs take from around them among them."""
    yield from filter(None, node.input)
    for attribute in node.attribute:
        for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
            own |= {name for inner in graph.node for name in inner.output}
            taken = [name for inner in graph.node for name in reads(inner)]
            taken += [value.name for value in graph.output]
            yield from (name for name in taken if name not in own)


def constants_of(graph: onnx.GraphProto) -> set[str]:
    """Return the tensors that no network input decides."""
    found = {each.name for each in graph.initializer} | {
        each.values.name for each in graph.sparse_initializer
    }
    for node in graph.node:
        if node.op_type == "Constant" or (node.input and found.issuperset(reads(node))):
            found.update(node.output)
    return found


def outside(model: onnx.ModelProto) -> list[onnx.TensorProto]:
    """Return the initialisers whose values are not in the model but in files."""
    return [each for each in model.graph.initializer if not is_stored(each)]


def is_stored(tensor: onnx.TensorProto) -> bool:
    """Tell whether a tensor's values are in the model."""
    return tensor.data_location != onnx.TensorProto.EXTERNAL


def inferred(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model with the types and shapes of its inner tensors, as far as they can be inferred."""
    try:
        return onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception:  # noqa: BLE001  (of a large, invalid or unknown model it raises anything)
        return model


def values_of(graph: onnx.GraphProto) -> dict[str, onnx.ValueInfoProto]:
    """Return what a graph says of its inputs, inner tensors and outputs by name."""
    return {value.name: value for value in (*graph.value_info, *graph.output, *graph.input)}
