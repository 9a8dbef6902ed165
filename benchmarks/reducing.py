"""Measures `reduce`: failing graphs of the cases inside networks of 200 nodes, down to the least that fails.

    python -m benchmarks.reducing [--nodes 200] [NAME ...]

The least number of nodes is known of each, from its case: `known` counts those without which it does not fail so.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from harness.case import load_cases
from harness.cli import main
from harness.models.suites.onnx_node import SUITE

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Failing:
    """A variant that fails on a target, and how few nodes are known to show it."""

    variant: str
    where: tuple[str, ...]
    known: int
    beside: bool = False


FAILING = (
    Failing("exporters[topk-4000]", ("--target", "rtx17"), 1),
    Failing("exporters[resize-antialias]", ("--target", "rtx17"), 1),
    Failing("exporters[nms]", ("--target", "rtx17"), 1),
    Failing("attention[op-softcap]", ("--target", "rtx17"), 1),
    Failing("instance_norm[fp16-fp32-scale]", ("--target", "rtx17"), 1),
    Failing("ort_output[ort-int32-bias]", ("--target", "rtx17"), 1),
    Failing("depthwise_qdq[qdq]", ("--target", "rtx16"), 3),
    Failing("depthwise_qdq[qdq]", ("--differs", "rtx16,rtx17"), 3),
    Failing("qdq_shapes[up-group4]", ("--target", "rtx17"), 3),
    Failing("qdq_shapes[up-dilated]", ("--target", "rtx17"), 1),
    Failing("qdq_placement[concat-two-scales]", ("--target", "rtx14"), 8),
    Failing("exporters[deconv-bf16]", ("--target", "rtx17"), 1),
    Failing("ort_output[ort-uint8]", ("--target", "rtx17"), 1),
    Failing("ort_output[qoperator]", ("--target", "rtx17"), 1),
    Failing("ort_output[dynamic-quantisation]", ("--target", "rtx17"), 1),
    Failing("onnx-node[resize_tf_crop_and_resize]", ("--target", "rtx17"), 1),
    Failing("onnx-node[averagepool_2d_dilations]", ("--target", "rtx17"), 1),
    Failing("onnx-node[layer_normalization_2d_axis0]", ("--target", "rtx17"), 1),
    Failing("onnx-node[attention_4d_attn_mask_4d_causal]", ("--target", "rtx17"), 1),
    Failing("onnx-node[reduce_l1_default_axes_keepdims_example]", ("--target", "rtx17"), 1),
    Failing("onnx-node[rms_normalization_2d_axis0_expanded]", ("--target", "rtx17"), 2),
    Failing("onnx-node[affine_grid_2d_expanded]", ("--target", "rtx17"), 0),
    Failing("quantised_attention[int8-half]", ("--target", "ort117"), 3, beside=True),
)


def embedded(model: onnx.ModelProto, nodes: int, *, beside: bool = False) -> onnx.ModelProto:
    """Return a model inside a chain of others: so many nodes in all, half of the new ones before it, half behind.

    The chain ends in the first network input of a float type, and goes on from the first output of one. One `beside`
    the model takes what the model takes, and leaves it as it is.
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    new = max(0, nodes - len(graph.node))
    core = list(graph.node)
    entry = next((value for value in graph.input if _float(value)), None)
    leaving = next((value for value in graph.output if _float(value)), None)
    if beside and entry is not None:
        graph.output.append(entry)
        after = list(_chain(graph, "beside", graph.output[-1], new))
        graph.node.extend(after)
        onnx.checker.check_model(made)
        return made
    before = list(_chain(graph, "before", entry, new // 2, backwards=True)) if entry is not None else []
    after = list(_chain(graph, "after", leaving, new - len(before))) if leaving is not None else []
    del graph.node[:]
    graph.node.extend([*before, *core, *after])
    onnx.checker.check_model(made)
    return made


def _float(value: onnx.ValueInfoProto) -> bool:
    return value.type.tensor_type.elem_type in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)


def _chain(
    graph: onnx.GraphProto, name: str, value: onnx.ValueInfoProto, count: int, *, backwards: bool = False
) -> Iterator[onnx.NodeProto]:
    """Yield a chain that begins at an output of the graph, or ends in an input, and put the new end in its place."""
    elem, old = value.type.tensor_type.elem_type, value.name
    constant = numpy_helper.from_array(np.array([1.5], np.float32), f"{name}.constant")
    if elem != TensorProto.FLOAT:
        # Weights of the chain are of its own type.
        constant = helper.make_tensor(constant.name, elem, [1], [1.5])
    graph.initializer.append(constant)
    tensors = [f"{name}_{index}" for index in range(count + 1)]
    tensors[-1 if backwards else 0] = old
    value.name = tensors[0] if backwards else tensors[-1]
    for index in range(count):
        source, goal = tensors[index], tensors[index + 1]
        op = ("Add", "Relu", "Mul", "Neg", "Sigmoid", "Sub", "Tanh", "Max")[index % 8]
        second = {"Add": constant.name, "Mul": constant.name, "Sub": constant.name}.get(op)
        if op == "Max":
            # A branch: what was five nodes ago comes in again.
            second = tensors[max(0, index - 5)]
        inputs = [source, second] if second else [source]
        yield helper.make_node(op, inputs, [goal], name=f"/{name}/{op}_{index}")


def _graph(variant: str) -> tuple[onnx.ModelProto, tuple[str, ...]]:
    """Return the model of a variant, or of one of ONNX's node tests, and its builder flags."""
    case, _, name = variant.rstrip("]").partition("[")
    if case == SUITE.name:
        return onnx.load_model_from_string(next(each for each in SUITE.items() if each.id == name).model), ()
    found = next(v for c in load_cases(ROOT / "cases") if c.name == case for v in c if v.name == name)
    return found.build(), found.recipe.flags


def measure(failing: Failing, nodes: int, folder: Path) -> str:
    """Return a line of the table."""
    graph, builder_flags = _graph(failing.variant)
    model, out = folder / "model.onnx", folder / "out.onnx"
    onnx.save(embedded(graph, nodes, beside=failing.beside), model)
    words = [*failing.where, "--via", "venv", "--matrix", str(ROOT / "matrix.yaml"), "-o", str(out)]
    flags = [word for flag in builder_flags for word in ("--flag", flag)]
    said, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
        code = main(["reduce", str(model), *words, *flags])
    found = re.search(r"(\d+) -> (\d+) nodes, (\d+) tries.*?, ([\d.]+) s", said.getvalue())
    if code or not found:
        return f"{failing.variant} {failing.where[1]}: code {code}: {errors.getvalue()[-300:].strip()}"
    small = onnx.load(out)
    ops = " ".join(node.op_type for node in small.graph.node)
    size = out.stat().st_size
    return f"{failing.variant:34} {failing.where[1]:12} {found[1]:>4} -> {found[2]:>2} (known {failing.known}) {found[3]:>4} tries {found[4]:>6} s {size:>8} bytes: {ops}"  # noqa: E501


def run() -> None:
    """Measure what is named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--nodes", type=int, default=200)
    options = parser.parse_args()
    for failing in FAILING:
        if not options.names or failing.variant in options.names:
            with tempfile.TemporaryDirectory() as folder:
                print(measure(failing, options.nodes, Path(folder)), flush=True)


if __name__ == "__main__":
    run()
