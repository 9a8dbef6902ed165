"""TensorRT's two accounts of its layers -> `Layer`: the inspector's JSON and a verbose log.

Nothing in the logs is escaped, and ONNX names may hold commas, braces, brackets, colons, arrows and line breaks. So
each part is matched at the end of the last one, and never searched beyond its layer: one pattern for a whole line takes
the cube of its length, a search to the end of the text from each of many broken layers the square.

- The inspector's JSON (`IEngineInspector.get_engine_information`) has the schema of 8.5 .. 10, or that of 11.
- A layer of the verbose log's "Layers:" message, and of the inspector's one-line form, is
  `Name: n, LayerType: t, Inputs: [ {..}, {..}], .., Metadata: m`. Only `Name: ` at the start of a line begins the next
  one, and a name ends only before the fixed words that follow a name.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from harness.layers.datatype import precision_of
from harness.layers.precision import DECLARED_WEIGHTS
from harness.record.outcome import Layer, TensorUse

_SEPARATOR = re.compile("[\x1e\x1f]")
_ENTRY = re.compile(r"\[ONNX Layer: (?P<name>.*)\]", re.DOTALL)


def tensor_use(name: str, dimensions: tuple[int, ...], datatype: str, layout: str) -> TensorUse:
    """Return a tensor; `datatype` is any of the engine's texts, `layout` the text shown as its format."""
    return TensorUse(name=name, precision=str(precision_of(datatype)), dimensions=dimensions, format=layout)


def onnx_nodes(metadata: str) -> tuple[str, ...]:
    """Return the node names in a layer's metadata, each once, in the order given.

    Some logs lose the separators; entries are then told apart by their brackets.
    """
    if not _SEPARATOR.search(metadata):
        metadata = metadata.replace("][ONNX Layer: ", "]\x1f[ONNX Layer: ")
    entries = (_ENTRY.fullmatch(entry.strip()) for entry in _SEPARATOR.split(metadata))
    return tuple(dict.fromkeys(entry["name"] for entry in entries if entry))


def plain_layer(name: str) -> Layer:
    """Return the layer of an engine that was built to tell names alone."""
    return Layer(name=name, type="", precision="")


#: The bound of a dimension, as in TensorRT: products of longer numbers take the square of the text's length.
_LARGEST = 2**63


def read_inspector(text: str) -> tuple[list[Layer], int]:
    """Return the layers and how many entries were not understood; text of another kind counts as one."""
    if not text.strip():
        return [], 0
    try:
        # Names are written unescaped by some versions: control characters are let through.
        document = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return [], 1
    entries = document.get("Layers") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        return [], 1
    layers = [_inspected(entry) for entry in entries]
    return [layer for layer in layers if layer], sum(layer is None for layer in layers)


def _inspected(entry: object) -> Layer | None:
    if isinstance(entry, str):
        return plain_layer(entry)
    if not isinstance(entry, dict) or "Name" not in entry:
        return None
    try:
        return Layer(
            name=str(entry["Name"]),
            type=str(entry.get("LayerType", "")),
            precision="",
            inputs=_inspected_tensors(entry.get("Inputs")),
            weights=(*_declared(entry), *_inspected_tensors(entry.get("Constants"))),
            outputs=_inspected_tensors(entry.get("Outputs")),
            tactic=str(entry.get("TacticName", "")),
            onnx_nodes=onnx_nodes(str(entry.get("Metadata", ""))),
        )
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):  # of no known version
        return None


def _inspected_tensors(entries: Any) -> tuple[TensorUse, ...]:  # noqa: ANN401  (JSON)
    return tuple(_inspected_tensor(entry) for entry in entries or ())


def _inspected_tensor(entry: dict[str, Any]) -> TensorUse:
    layout = str(entry.get("Format/Datatype") or entry.get("Format") or "")
    datatype = str(entry.get("Datatype") or entry.get("DataType") or layout)
    sizes = tuple(int(size) for size in entry.get("Dimensions", ()))
    if any(abs(size) > _LARGEST for size in sizes):
        raise ValueError(sizes)
    return tensor_use(str(entry["Name"]), sizes, datatype, layout)


def _declared(entry: dict[str, Any]) -> tuple[TensorUse, ...]:
    """Return the kinds of constants that 8.5 .. 10 declare by type and count."""
    kinds = ((DECLARED_WEIGHTS, entry.get("Weights")), ("Bias", entry.get("Bias")))
    return tuple(
        tensor_use(name, (), str(value["Type"]), "")
        for name, value in kinds
        if isinstance(value, dict) and value.get("Count", 1)
    )


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
    """The text at the cursor is no layer."""


def read_verbose(text: str) -> tuple[list[Layer], int]:
    """Return the layers and how many records were not understood."""
    start = _START.search(text)
    if start is None:
        return [], 1 if text.strip() else 0
    if "LayerType: " not in text:
        end = _BEYOND.search(text, start.end())
        lines = text[start.end() : end.start() if end else None].splitlines()
        return [plain_layer(line) for line in lines if line.strip()], 0
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
    """Take the rest after the tensor lists; return the attributes' text and the ONNX nodes in the metadata."""
    beyond = _BEYOND_LINE.search(cursor.text, cursor.position, cursor.end)
    text = cursor.text[cursor.position : beyond.start() if beyond else cursor.end]
    marker = _METADATA.search(text)
    if marker is None:
        return text, ()
    return text[: marker.start()], onnx_nodes(text[marker.end() :])
