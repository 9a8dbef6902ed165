"""Writes a model as a case module: in the words of `harness.case` where they can say it, else as ONNX's own text."""

from __future__ import annotations

import json
import keyword
import math
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

import harness.case
from harness.case import Data, Recipe, Variant, load_cases
from harness.case.model import Built
from harness.errors import HandledError
from harness.models.graphs import extents
from harness.scratch import Scratch
from harness.words import Typing

#: Types that `Graph.constant` packs.
_PACKED = frozenset(
    number
    for name, number in TensorProto.DataType.items()
    if name in {"FLOAT", "FLOAT16", "BFLOAT16", "INT8", "UINT8", "INT32", "INT64", "BOOL", "INT4", "UINT4"}
    or name in {"FLOAT8E4M3FN", "FLOAT4E2M1"}
)
_FLOATS = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16})
#: Values that are written out one by one; of more only the shape is, and made-up ones take their place.
_MOST_VALUES = 16
_WIDEST = 100
#: What `Graph.node` calls otherwise.
_TAKEN = frozenset({"op", "inputs", "name", "output", "outputs", "domain"})


@dataclass(frozen=True)
class About:
    """A case to write: its name, title, summary, and the address of the report, "" for none.

    `data` say how far outputs may be off, where that does not go by their precision.
    """

    name: str
    title: str
    summary: str
    issue: str = ""
    data: Data | None = None


class _Unsayable(Exception):
    """The words of `harness.case` have nothing for this."""


def case_text(model: onnx.ModelProto, about: About, recipe: Recipe, *, exact: bool = False) -> str:
    """Return a case module of one variant, `reported`.

    Constants of many values that differ become made-up ones of the same shape and type, unless `exact` or one of them
    is infinite or no number. Raises HandledError for a model that cannot be written.
    """
    try:
        made = _in_words(model, about.name, exact=exact)
    except _Unsayable:
        made = _in_text(model, about.name)
    body = "\n".join([*made, "", "", *_case(about, recipe), ""])
    words = sorted(set(re.findall(r"\b[A-Z]\w+(?=[(.])", body)) & set(harness.case.__all__))
    from_onnx = [word for word in ("TensorProto", "parser") if f"{word}." in body]
    head = [*_docstring(f"{about.title}.", about.summary), "", "from __future__ import annotations", ""]
    head += ["from typing import TYPE_CHECKING", ""]
    head += [f"from onnx import {', '.join(from_onnx)}", ""] if from_onnx else []
    head += [
        f"from harness.case import {', '.join(words)}",
        "",
        "if TYPE_CHECKING:",
        "    import onnx",
        "",
        "",
    ]
    return "\n".join([*head, body])


def _docstring(title: str, summary: str) -> Iterator[str]:
    clean = [" ".join(text.replace("\\", "/").replace('"', "'").split()) for text in (title, summary)]
    yield f'"""{textwrap.fill(clean[0], _WIDEST)}'
    yield from ("", textwrap.fill(clean[1], _WIDEST), '"""')


def _case(about: About, recipe: Recipe) -> Iterator[str]:
    title = _literal(about.title)
    yield "CASE = Case("
    yield f"    name={_literal(about.name)},"
    yield f"    title={title},"
    yield f"    summary={_literal(about.summary)},"
    yield f'    links=(Link({_literal(about.issue)}, "the report"),),' if about.issue else "    links=(),"
    yield "    variants=("
    yield "        Variant("
    yield '            name="reported",'
    yield f"            title={title},"
    yield "            build=_model,"
    yield f"            recipe={_instance(recipe)},"
    if about.data:
        yield f"            data={_instance(about.data)},"
    yield from ("        ),", "    ),", ")")


def _instance(found: object) -> str:
    """Return the call that makes a frozen value again, without the fields that have their defaults."""
    if isinstance(found, Typing):
        return f"Typing.{found.name}"
    if isinstance(found, tuple):
        return f"({', '.join(map(_instance, found))}{',' if len(found) == 1 else ''})"
    if not is_dataclass(found):
        return _literal(found)
    words: list[str] = []
    for at, each in enumerate(fields(found)):
        value = getattr(found, each.name)
        if value != each.default:
            words.append(f"{'' if len(words) == at else f'{each.name}='}{_instance(value)}")
    return f"{type(found).__name__}({', '.join(words)})"


def _in_words(model: onnx.ModelProto, name: str, *, exact: bool) -> list[str]:
    """Return the function that builds the graph with `Graph`; raises _Unsayable where it lacks a word."""
    graph = model.graph
    opsets = {each.domain: each.version for each in model.opset_import}
    constants = {tensor.name for tensor in graph.initializer}
    odd = model.functions or graph.sparse_initializer or any(each.name in constants for each in graph.input)
    if odd or any(version != 1 for domain, version in opsets.items() if domain):
        raise _Unsayable
    lines = [
        "def _model() -> onnx.ModelProto:",
        f"    g = Graph({_literal(name)}, opset={opsets.get('', 1)})",
    ]
    lines += [line for each in graph.input for line in _call("input", _value(each))]
    lines += [line for each in graph.initializer for line in _constant(each, exact=exact)]
    lines += [line for node in graph.node for line in _node(node)]
    lines += [line for each in graph.output for line in _call("output", _value(each))]
    return [*lines, "    return g.model()"]


def _call(word: str, parts: Sequence[str]) -> list[str]:
    """Return the lines of a call of `g`: one, or one for each part, and several for a long list."""
    line = f"    g.{word}({', '.join(parts)})"
    if len(line) <= _WIDEST:
        return [line]
    inner = [
        line
        for part in parts
        for line in ([f"{part},"] if '"' in part else textwrap.wrap(f"{part},", _WIDEST - 8))
    ]
    return [f"    g.{word}(", *(f"        {each}" for each in inner), "    )"]


def _value(value: onnx.ValueInfoProto) -> list[str]:
    tensor = value.type.tensor_type
    if value.type.WhichOneof("value") != "tensor_type" or not tensor.HasField("shape"):
        raise _Unsayable
    shape = [each or f"{value.name}_{axis}" for axis, each in enumerate(extents(value))]
    return [_literal(value.name), _literal(shape), *_dtype(tensor.elem_type)]


def _dtype(number: int) -> list[str]:
    return [] if number == TensorProto.FLOAT else [f"TensorProto.{TensorProto.DataType.Name(number)}"]


def _constant(tensor: onnx.TensorProto, *, exact: bool) -> list[str]:
    if tensor.data_type not in _PACKED:
        raise _Unsayable
    shape, count = list(tensor.dims), math.prod(tensor.dims)
    values = list(map(_number, numpy_helper.to_array(tensor).flatten()))
    name, kind = _literal(tensor.name), _dtype(tensor.data_type)
    if count > 1 and len(set(values)) == 1:
        made = f"{_literal(values[:1])} * {count}"
    elif count <= _MOST_VALUES or exact or not all(map(math.isfinite, values)):
        made = _literal(values)
    else:
        low, high = min(values), max(values)
        if tensor.data_type in _FLOATS:
            middle, half = (low + high) / 2, (high - low) / 2
            spread = [f"centre={middle:.3g}", f"spread={half:.3g}", *(f"dtype={each}" for each in kind)]
            return _call("weight", [name, str(shape), *spread])
        made = f"[{low} + index * 7919 % {high - low + 1} for index in range({count})]"
    return _call("constant", [name, made, str(shape), *kind])


def _literal(value: object) -> str:
    """Return a value as this project writes it."""
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return repr(value) if not isinstance(value, float) or math.isfinite(value) else f'float("{value}")'


def _number(value: np.generic) -> float | int:
    """Return a number in as few digits as tell it from its neighbours."""
    if value.dtype.kind in "iub" or "int" in value.dtype.name:
        return int(value)
    return float(str(np.float32(value)))


def _node(node: onnx.NodeProto) -> list[str]:
    outputs = list(node.output)
    one = len(outputs) == 1
    parts = [_literal(node.op_type), _literal(list(node.input)), *([] if one else [_literal(outputs)])]
    parts += [f"name={_literal(node.name)}", *([f"output={_literal(outputs[0])}"] if one else [])]
    parts += [f"domain={_literal(node.domain)}"] if node.domain else []
    parts += [f"{each.name}={_literal(_attribute(each))}" for each in node.attribute]
    return _call("node" if one else "node_of_several", parts)


def _attribute(item: AttributeProto) -> object:
    """Return the value of an attribute; raises _Unsayable for one that `Graph.node` cannot take."""
    if item.name in _TAKEN or not item.name.isidentifier() or keyword.iskeyword(item.name):
        raise _Unsayable
    value = helper.get_attribute_value(item)
    read = _READ.get(item.type)
    if read is None or value == []:
        raise _Unsayable
    return list(map(read, value)) if isinstance(value, list) else read(value)


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise _Unsayable from error


def _float(value: float) -> float | int:
    return _number(np.float32(value))


_READ: dict[int, Callable[[Any], object]] = {
    AttributeProto.INT: int,
    AttributeProto.FLOAT: _float,
    AttributeProto.STRING: _text,
    AttributeProto.INTS: int,
    AttributeProto.FLOATS: _float,
    AttributeProto.STRINGS: _text,
}


def _in_text(model: onnx.ModelProto, name: str) -> list[str]:
    """Return the function that builds the graph from ONNX's text; raises HandledError where that is not understood."""
    text = onnx.printer.to_text(model)
    try:
        onnx.checker.check_model(onnx.parser.parse_model(text))
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise HandledError(
            f"the model cannot be written as case {name!r}: {reason}; keep the file"
        ) from error
    quoted = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    made = ["def _model() -> onnx.ModelProto:", "    return parser.parse_model(TEXT)"]
    return [f'TEXT = """{quoted}"""', "", "", *made]


def loaded(text: str, name: str) -> Variant:
    """Return the variant of a case module's text, as a run would load it."""
    with Scratch("case-") as folder:
        Path(folder, f"{name}.py").write_text(text, encoding="utf-8")
        ((variant,),) = load_cases(Path(folder))
        # The module is gone with the folder.
        return replace(variant, build=Built(variant.model_bytes()))


def add_case(path: Path, text: str) -> None:
    """Write a case module where none is yet; raises HandledError where that cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise HandledError(f"{path}: cannot be written ({error.strerror}); give another place") from error


def case_name(path: Path) -> str:
    """Return the name of the case that a path is to hold; raises HandledError for one that no case can have."""
    if path.suffix != ".py" or not re.fullmatch(r"[a-z][a-z0-9_]*", path.stem):
        raise HandledError(
            f"{path}: is no name of a case; use lower-case letters, digits and '_', and end it in .py"
        )
    if path.exists():
        raise HandledError(f"{path}: is there already; give another place, or delete it")
    return path.stem
