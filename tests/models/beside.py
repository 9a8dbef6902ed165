"""A chain of matrix products whose weights lie in a file beside the model; the same bytes each time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper


def write_chain(folder: Path, layers: int, width: int, *, quantised: bool = False) -> Path:
    """Write `model.onnx` and `weights.bin` of layers x width x width floats; return the model's path.

    `quantised` puts Q/DQ before each product, on both sides.
    """
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.Generator(np.random.PCG64(7))
    nodes, tensors, length = [], [], 4 * width * width
    with (folder / "weights.bin").open("wb") as file:
        for at in range(layers):
            file.write(
                (generator.standard_normal((width, width), np.float32) / np.float32(width**0.5)).tobytes()
            )
            tensor = TensorProto(name=f"w{at}", data_type=TensorProto.FLOAT, dims=[width, width])
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in (("location", "weights.bin"), ("offset", at * length), ("length", length)):
                tensor.external_data.add(key=key, value=str(value))
            tensors.append(tensor)
            sides = [f"w{at}", f"r{at}"]
            for number, side in enumerate(sides if quantised else ()):
                for operator, end in (("QuantizeLinear", "q"), ("DequantizeLinear", "dq")):
                    inputs = [sides[number], "scale", "zero"]
                    sides[number] = f"{side}/{end}"
                    nodes.append(helper.make_node(operator, inputs, [sides[number]], name=f"/{side}/{end}"))
            nodes.append(helper.make_node("MatMul", sides[::-1], [f"m{at}"], name=f"/m{at}"))
            nodes.append(helper.make_node("Relu", [f"m{at}"], [f"r{at + 1}"], name=f"/r{at}"))
    shape = [1, width]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("r0", f"r{layers}")]
    if quantised:
        tensors.append(numpy_helper.from_array(np.float32(0.1), "scale"))
        tensors.append(numpy_helper.from_array(np.int8(0), "zero"))
    graph = helper.make_graph(nodes, "chain", values[:1], values[1:], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return folder / "model.onnx"
