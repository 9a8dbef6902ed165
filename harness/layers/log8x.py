"""The lines under "Engine Layer Information:" of a TensorRT 8.x verbose log.

`Layer(<type>): <name>, Tactic: <hex or signed decimal>, <inputs> -> <outputs>`. A tensor is
`x[Float(1,3,8,8)]` or `x (Float[1,3,8,8])`; a dimension may be dynamic (negative) and a layer may have no
inputs. Nothing is escaped and a name may hold any of these signs, so that the parts are looked for one after the
other, each from where the last one ended: one pattern for a whole line takes the cube of the line's length.
"""

from __future__ import annotations

import re

from harness.layers.tensor import tensor_use
from harness.record.outcome import Layer, TensorUse

_HEADER = re.compile(r"\bLayer\((?P<type>\w*)\): ")
_TACTIC = re.compile(r", Tactic: (?P<tactic>0x[0-9a-fA-F]+|-?\d+), ")
_SHAPE = r"[-\d,:*]*"
_SIZE = re.compile(r"-?\d{1,18}")
#: What follows a tensor's name.
_TYPE = rf"(?:\[(?P<type>\w+)\((?P<dims>{_SHAPE})\)\]| \((?P<type2>\w+)\[(?P<dims2>{_SHAPE})\]\))"
_TYPED = re.compile(rf"{_TYPE}(?:, |$)")
#: A name may hold an arrow too; the one in the middle follows a tensor, or nothing.
_ARROW = re.compile(rf"(?P<last>\A|{_TYPE}) ?-> ")


def read(text: str) -> tuple[list[Layer], int]:
    """Return the layers and how many lines were not understood; text without a line counts as one."""
    lines = [line.strip() for line in text.splitlines() if "Layer(" in line]
    layers = [_layer(line) for line in lines]
    nothing = 1 if text.strip() and not lines else 0
    return [layer for layer in layers if layer], sum(layer is None for layer in layers) + nothing


def _layer(line: str) -> Layer | None:
    header = _HEADER.search(line)
    tactic = _TACTIC.search(line, header.end()) if header else None
    if header is None or tactic is None:
        return None
    rest = line[tactic.end() :]
    arrow = _ARROW.search(rest)
    if arrow is None:
        return None
    inputs, outputs = _tensors(rest[: arrow.end("last")]), _tensors(rest[arrow.end() :])
    if inputs is None or outputs is None:
        return None
    return Layer(
        name=line[header.end() : tactic.start()],
        type=header["type"],
        precision="",
        inputs=inputs,
        outputs=outputs,
        tactic=tactic["tactic"],
    )


def _tensors(text: str) -> tuple[TensorUse, ...] | None:
    """Return the tensors of one side; None when the text is not wholly tensors."""
    tensors: list[TensorUse] = []
    position = 0
    for found in _TYPED.finditer(text):
        if found.start() == position:  # without a name before it: part of one
            continue
        datatype, shape = found["type"] or found["type2"], found["dims"] or found["dims2"] or ""
        # "64,1:8,.." is a layout rather than a shape.
        parts = [size for size in shape.split(",") if size]
        sizes = tuple(map(int, parts)) if all(map(_SIZE.fullmatch, parts)) else ()
        tensors.append(tensor_use(text[position : found.start()], sizes, datatype, ""))
        position = found.end()
    return tuple(tensors) if position == len(text) else None
