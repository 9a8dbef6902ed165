"""The "Layers:" message of a verbose build log, and the inspector's one-line form, which is the same text.

A layer is `Name: n, LayerType: t, Inputs: [ {..}, {..}], .., Metadata: m`; nothing in it is escaped, and ONNX
names may hold commas, braces, brackets, colons and line breaks. So only `Name: ` at the start of a line parts one layer
from the next; within one, each part is matched where the last one ended, and a name ends only where the fixed words
that follow a name begin. No part is looked for beyond its layer: a search to the end of the text from each of many
broken layers takes the square of its length.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from harness.layers.compute import DECLARED_WEIGHTS
from harness.layers.tensor import onnx_nodes, plain_layer, tensor_use
from harness.record.outcome import Layer, TensorUse

_HEADER = re.compile(r"Name: (?P<name>.*?), LayerType: (?P<type>[\w ]*), (?=Inputs: \[)", re.DOTALL)
_TENSOR = re.compile(
    r" ?\{ Name: (?P<name>.*?),(?: Location: \w+,)? Dimensions: \[(?P<dims>[-\d, ]*)\], "
    r"(?=(?:Strides|StrideOrder|Datatype|Format/Datatype|Location|Format)\b)",
    re.DOTALL,
)
_LIST = re.compile(r"(?:, )?(?P<key>Inputs|Constants|Outputs): \[")
_SIZE = re.compile(r"-?\d{1,18}")
_LIST_END = re.compile(r" ?\]")
_METADATA = re.compile(r", Metadata: ")
_NEXT = "\nName: "
_SPACE = re.compile(r"\s*")
_COMMA = re.compile(",")
_DATATYPE = re.compile(r"(?:^|, )(?:Format/)?Datatype: (?P<text>[^,]*)")
_FORMAT = re.compile(r"(?:^|, )Format(?:/Datatype)?: (?P<text>.*)", re.DOTALL)
_WEIGHTS = re.compile(r', Weights: \{"Type": "(?P<type>\w+)"')
_TACTIC = re.compile(r", TacticName: (?P<name>[^,\n]*)")
_START = re.compile(r"(?:^|\s)Layers:\s*\n")
_BEYOND = re.compile(r"(?:I/O Tensors|Bindings):")
_BEYOND_LINE = re.compile(rf"\n(?={_BEYOND.pattern})")


@dataclass
class _Cursor:
    """A place in the text of one layer, which ends at `end`."""

    text: str
    position: int
    end: int
    lists: dict[str, tuple[TensorUse, ...]] = field(default_factory=dict)

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.position, self.end)
        if match:
            self.position = match.end()
        return match


class _NotALayerError(Exception):
    """The text at the cursor is not what a layer must be."""


def read(text: str) -> tuple[list[Layer], int]:
    """Return the layers and how many records were not understood."""
    start = _START.search(text)
    if start is None:
        return [], 1 if text.strip() else 0
    if "LayerType: " not in text:
        return _names_only(text[start.end() :])
    layers: list[Layer] = []
    unparsed, begin, length = 0, _skip_space(text, start.end()), len(text.rstrip())
    while begin < length and not _BEYOND.match(text, begin):
        following = text.find(_NEXT, begin)
        cursor = _Cursor(text, begin, following if following >= 0 else length)
        try:
            layers.append(_layer(cursor))
        except _NotALayerError:
            unparsed += 1
            cursor.position = begin
        if _BEYOND_LINE.search(text, cursor.position, cursor.end):
            break
        begin = _skip_space(text, cursor.end)
    return layers, unparsed


def _skip_space(text: str, position: int) -> int:
    space = _SPACE.match(text, position)
    return space.end() if space else position


def _names_only(body: str) -> tuple[list[Layer], int]:
    end = _BEYOND.search(body)
    lines = body[: end.start() if end else None].splitlines()
    return [plain_layer(line) for line in lines if line.strip()], 0


def _layer(cursor: _Cursor) -> Layer:
    header = cursor.take(_HEADER)
    if header is None:
        raise _NotALayerError
    cursor.lists = {}
    while found := cursor.take(_LIST):
        cursor.lists[found["key"]] = _tensors(cursor)
    if "Outputs" not in cursor.lists:
        raise _NotALayerError
    rest, nodes = _attributes(cursor)
    tactic, declared = _TACTIC.search(rest), _WEIGHTS.search(rest)
    weights = cursor.lists.get("Constants", ())
    if declared:
        weights = (tensor_use(DECLARED_WEIGHTS, (), declared["type"], ""), *weights)
    return Layer(
        name=header["name"],
        type=header["type"],
        precision="",
        inputs=cursor.lists.get("Inputs", ()),
        weights=weights,
        outputs=cursor.lists.get("Outputs", ()),
        tactic=tactic["name"] if tactic else "",
        onnx_nodes=nodes,
    )


def _tensors(cursor: _Cursor) -> tuple[TensorUse, ...]:
    tensors: list[TensorUse] = []
    while not cursor.take(_LIST_END):
        if tensors and not cursor.take(_COMMA):
            raise _NotALayerError
        found = cursor.take(_TENSOR)
        close = cursor.text.find("}", cursor.position, cursor.end)
        if found is None or close < 0:
            raise _NotALayerError
        tensors.append(_tensor(found, cursor.text[cursor.position : close].removesuffix(" ")))
        cursor.position = close + 1
    return tuple(tensors)


def _tensor(found: re.Match[str], fields: str) -> TensorUse:
    datatype, layout = _DATATYPE.search(fields), _FORMAT.search(fields)
    sizes = [size for size in found["dims"].replace(" ", "").split(",") if size]
    if datatype is None or not all(map(_SIZE.fullmatch, sizes)):
        raise _NotALayerError
    dimensions = tuple(map(int, sizes))
    return tensor_use(found["name"], dimensions, datatype["text"], layout["text"] if layout else "")


def _attributes(cursor: _Cursor) -> tuple[str, tuple[str, ...]]:
    """Take what follows the tensor lists; return the attributes' text and the ONNX nodes in the metadata."""
    beyond = _BEYOND_LINE.search(cursor.text, cursor.position, cursor.end)
    text = cursor.text[cursor.position : beyond.start() if beyond else cursor.end]
    marker = _METADATA.search(text)
    if marker is None:
        return text, ()
    return text[: marker.start()], onnx_nodes(text[marker.end() :])
