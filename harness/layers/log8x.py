"""The lines under "Engine Layer Information:" of a TensorRT 8.x verbose log.

`Layer(<type>): <name>, Tactic: <hex or signed decimal>, <inputs> -> <outputs>`. A tensor is
`x[Float(1,3,8,8)]` or `x (Float[1,3,8,8])`; a dimension may be dynamic (negative) and a layer may have no
inputs.
"""

from __future__ import annotations

import re

from harness.layers.tensor import tensor_use
from harness.record.outcome import Layer, TensorUse

_LINE = re.compile(
    r"\bLayer\((?P<type>\w*)\): (?P<name>.*?), Tactic: (?P<tactic>0x[0-9a-fA-F]+|-?\d+), "
    r"(?P<inputs>.*?) ?-> (?P<outputs>.*)"
)
_SHAPE = r"[-\d,:*]*"
_SIZE = re.compile(r"-?\d{1,18}")
_TENSOR = re.compile(
    rf"(?P<name>.+?)(?:\[(?P<type>\w+)\((?P<dims>{_SHAPE})\)\]"
    rf"| \((?P<type2>\w+)\[(?P<dims2>{_SHAPE})\]\))(?:, |$)"
)


def read(text: str) -> tuple[list[Layer], int]:
    """Return the layers and how many lines were not understood; text without a line counts as one."""
    lines = [line.strip() for line in text.splitlines() if "Layer(" in line]
    layers = [_layer(line) for line in lines]
    nothing = 1 if text.strip() and not lines else 0
    return [layer for layer in layers if layer], sum(layer is None for layer in layers) + nothing


def _layer(line: str) -> Layer | None:
    for found in _readings(line):
        inputs, outputs = _tensors(found["inputs"]), _tensors(found["outputs"])
        if inputs is not None and outputs is not None:
            return Layer(
                name=found["name"],
                type=found["type"],
                precision="",
                inputs=inputs,
                outputs=outputs,
                tactic=found["tactic"],
            )
    return None


def _readings(line: str) -> list[dict[str, str]]:
    """Return the ways to read a line: a name may hold an arrow, so each is tried as the one in the middle."""
    found = _LINE.search(line)
    if found is None:
        return []
    parts = found.groupdict()
    lists = f"{parts['inputs']} -> {parts['outputs']}"
    return [
        {**parts, "inputs": lists[: arrow.start()], "outputs": lists[arrow.end() :]}
        for arrow in re.finditer(" -> ", lists)
    ]


def _tensors(text: str) -> tuple[TensorUse, ...] | None:
    """Return the tensors of one side; None when the text is not wholly tensors."""
    tensors: list[TensorUse] = []
    position = 0
    while position < len(text):
        found = _TENSOR.match(text, position)
        if found is None:
            return None
        datatype, shape = found["type"] or found["type2"], found["dims"] or found["dims2"] or ""
        # "64,1:8,.." is a layout rather than a shape.
        parts = [size for size in shape.split(",") if size]
        sizes = tuple(map(int, parts)) if all(map(_SIZE.fullmatch, parts)) else ()
        tensors.append(tensor_use(found["name"], sizes, datatype, ""))
        position = found.end()
    return tuple(tensors)
