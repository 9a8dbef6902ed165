"""The "Layers:" message of a verbose build log, and the inspector's one-line form, which is the same text.

A layer is `Name: n, LayerType: t, Inputs: [ {..}, {..}], .., Metadata: m`; nothing in it is escaped, and ONNX
names may hold commas, braces, brackets, colons and line breaks. So the text is not split: each part is
matched where the last one ended, and a name ends only where the fixed words that follow a name begin.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from harness.layers.compute import DECLARED_WEIGHTS
from harness.layers.tensor import onnx_nodes, plain_layer, tensor_use
from harness.record.outcome import Layer, TensorUse

#: A name: anything, short of what begins the next layer.
_ANY = r"(?:(?!\nName: ).)*?"
_HEADER = re.compile(rf"Name: (?P<name>{_ANY}), LayerType: (?P<type>[\w ]*), (?=Inputs: \[)", re.DOTALL)
_TENSOR = re.compile(
    rf" ?\{{ Name: (?P<name>{_ANY}),(?: Location: \w+,)? Dimensions: \[(?P<dims>[-\d, ]*)\], "
    r"(?P<fields>(?:Strides|StrideOrder|Datatype|Format/Datatype|Location|Format)\b[^}]*?) ?\}",
    re.DOTALL,
)
_LIST = re.compile(r"(?:, )?(?P<key>Inputs|Constants|Outputs): \[")
_SIZE = re.compile(r"-?\d{1,18}")
_LIST_END = re.compile(r" ?\]")
_METADATA = re.compile(r", Metadata: ")
_RECORD_END = re.compile(r"\n+(?=Name: )|\n+(?=(?:I/O Tensors|Bindings):)|\s*\Z")
_DATATYPE = re.compile(r"(?:^|, )(?:Format/)?Datatype: (?P<text>[^,]*)")
_FORMAT = re.compile(r"(?:^|, )Format(?:/Datatype)?: (?P<text>.*)", re.DOTALL)
_WEIGHTS = re.compile(r', Weights: \{"Type": "(?P<type>\w+)"')
_TACTIC = re.compile(r", TacticName: (?P<name>[^,\n]*)")
_START = re.compile(r"(?:^|\s)Layers:\s*\n")
_BEYOND = re.compile(r"(?:I/O Tensors|Bindings):")


@dataclass
class _Cursor:
    text: str
    position: int = 0
    lists: dict[str, tuple[TensorUse, ...]] = field(default_factory=dict)

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.position)
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
    cursor, layers, unparsed = _Cursor(text, start.end()), [], 0
    while _skip_to_record(cursor):
        begin = cursor.position
        try:
            layers.append(_layer(cursor))
        except _NotALayerError:
            unparsed += 1
            following = _RECORD_END.search(text, begin + 1)
            cursor.position = following.end() if following else len(text)
    return layers, unparsed


def _names_only(body: str) -> tuple[list[Layer], int]:
    end = _BEYOND.search(body)
    lines = body[: end.start() if end else None].splitlines()
    return [plain_layer(line) for line in lines if line.strip()], 0


def _skip_to_record(cursor: _Cursor) -> bool:
    """Move over white space; False at the end of the list of layers."""
    while cursor.position < len(cursor.text) and cursor.text[cursor.position].isspace():
        cursor.position += 1
    return cursor.position < len(cursor.text) and not _BEYOND.match(cursor.text, cursor.position)


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
        if tensors and not cursor.take(re.compile(",")):
            raise _NotALayerError
        found = cursor.take(_TENSOR)
        if found is None:
            raise _NotALayerError
        tensors.append(_tensor(found))
    return tuple(tensors)


def _tensor(found: re.Match[str]) -> TensorUse:
    datatype, layout = _DATATYPE.search(found["fields"]), _FORMAT.search(found["fields"])
    sizes = [size for size in found["dims"].replace(" ", "").split(",") if size]
    if datatype is None or not all(map(_SIZE.fullmatch, sizes)):
        raise _NotALayerError
    dimensions = tuple(map(int, sizes))
    return tensor_use(found["name"], dimensions, datatype["text"], layout["text"] if layout else "")


def _attributes(cursor: _Cursor) -> tuple[str, tuple[str, ...]]:
    """Take what follows the tensor lists; return the attributes' text and the ONNX nodes in the metadata."""
    begin = cursor.position
    following = _RECORD_END.search(cursor.text, begin)
    end = following.start() if following else len(cursor.text)
    cursor.position = end
    text = cursor.text[begin:end]
    marker = _METADATA.search(text)
    if marker is None:
        return text, ()
    return text[: marker.start()], onnx_nodes(text[marker.end() :])
