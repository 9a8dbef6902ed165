"""Writes a model as a case module: in the words of `harness.case` where they can say it, else as ONNX's own text."""

from __future__ import annotations

import json
import keyword
import math
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from harness.case import load_cases
from harness.case.model import Built
from harness.errors import HandledError
from harness.scratch import Scratch
from harness.words import Typing

if TYPE_CHECKING:
    from harness.case import Data, Recipe, Variant

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
    """Describes a case: its name, title, summary, and the address of the report, "" for none.

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
        body, words = _in_words(model, about.name, exact=exact), ["Graph"]
    except _Unsayable:
        body, words = _in_text(model, about.name), []
    used = {"Case", "Recipe", "Variant", *words, *_recipe_words(recipe)}
    used |= ({"Link"} if about.issue else set()) | ({"Data"} if about.data else set())
    return "\n".join([*_head(about, body, sorted(used)), *body, "", "", *_case(about, recipe), ""])


def _head(about: About, body: Sequence[str], used: Sequence[str]) -> Iterator[str]:
    yield from _docstring(f"{about.title}.", about.summary)
    yield from ("", "from __future__ import annotations", "", "from typing import TYPE_CHECKING", "")
    from_onnx = [word for word in ("TensorProto", "parser") if any(f"{word}." in line for line in body)]
    if from_onnx:
        yield from (f"from onnx import {', '.join(from_onnx)}", "")
    yield f"from harness.case import {', '.join(used)}"
    yield from ("", "if TYPE_CHECKING:", "    import onnx", "", "")


def _docstring(title: str, summary: str) -> Iterator[str]:
    clean = [" ".join(text.replace("\\", "/").replace('"', "'").split()) for text in (title, summary)]
    yield f'"""{textwrap.fill(clean[0], _WIDEST)}'
    yield from ("", textwrap.fill(clean[1], _WIDEST), '"""')


def _case(about: About, recipe: Recipe) -> Iterator[str]:
    yield "CASE = Case("
    yield f"    name={_quoted(about.name)},"
    yield f"    title={_quoted(about.title)},"
    yield f"    summary={_quoted(about.summary)},"
    yield f'    links=(Link({_quoted(about.issue)}, "the report"),),' if about.issue else "    links=(),"
    yield "    variants=("
    yield "        Variant("
    yield '            name="reported",'
    yield f"            title={_quoted(about.title)},"
    yield "            build=_model,"
    yield f"            recipe={_recipe(recipe)},"
    if about.data:
        yield f"            data={_data(about.data)},"
    yield from ("        ),", "    ),", ")")


def _data(data: Data) -> str:
    figures = (("max_rel", data.max_rel), ("cosine", data.cosine))
    return f"Data({', '.join(f'{name}={figure}' for name, figure in figures if figure is not None)})"


def _recipe_words(recipe: Recipe) -> set[str]:
    return ({"Typing"} if recipe.typing is not Typing.GRAPH else set()) | (
        {"Profile"} if recipe.profiles else set()
    )


def _recipe(recipe: Recipe) -> str:
    parts = [f"Typing.{recipe.typing.name}"] if recipe.typing is not Typing.GRAPH else []
    parts += [f"flags={recipe.flags!r}"] if recipe.flags else []
    if recipe.profiles:
        profiles = (
            f"Profile({each.input!r}, {each.minimum}, {each.optimum}, {each.maximum})"
            for each in recipe.profiles
        )
        parts.append(f"profiles=({', '.join(profiles)},)")
    return f"Recipe({', '.join(parts)})"


def _in_words(model: onnx.ModelProto, name: str, *, exact: bool) -> list[str]:
    """Return the function that builds the graph with `Graph`; raises _Unsayable where it lacks a word."""
    graph = model.graph
    opsets = {each.domain: each.version for each in model.opset_import}
    constants = {tensor.name for tensor in graph.initializer}
    odd = model.functions or graph.sparse_initializer or any(each.name in constants for each in graph.input)
    if odd or any(version != 1 for domain, version in opsets.items() if domain):
        raise _Unsayable
    lines = ["def _model() -> onnx.ModelProto:", f"    g = Graph({_quoted(name)}, opset={opsets.get('', 1)})"]
    lines += [f"    g.input({_value(each)})" for each in graph.input]
    lines += [line for each in graph.initializer for line in _constant(each, exact=exact)]
    lines += [line for node in graph.node for line in _node(node)]
    lines += [f"    g.output({_value(each)})" for each in graph.output]
    return [*lines, "    return g.model()"]


def _value(value: onnx.ValueInfoProto) -> str:
    tensor = value.type.tensor_type
    if value.type.WhichOneof("value") != "tensor_type" or not tensor.HasField("shape"):
        raise _Unsayable
    shape = [
        int(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or f"{value.name}_{axis}"
        for axis, dim in enumerate(tensor.shape.dim)
    ]
    return f"{_quoted(value.name)}, {_listed(shape)}{_dtype(tensor.elem_type)}"


def _dtype(number: int) -> str:
    return "" if number == TensorProto.FLOAT else f", TensorProto.{TensorProto.DataType.Name(number)}"


def _constant(tensor: onnx.TensorProto, *, exact: bool) -> list[str]:
    if tensor.data_type not in _PACKED:
        raise _Unsayable
    shape, count = list(tensor.dims), math.prod(tensor.dims)
    values = list(map(_number, numpy_helper.to_array(tensor).flatten()))
    name, ends = _quoted(tensor.name), f"{shape}{_dtype(tensor.data_type)}"
    if count > 1 and len(set(values)) == 1:
        return [f"    g.constant({name}, {_listed(values[:1])} * {count}, {ends})"]
    if count <= _MOST_VALUES or exact or not all(map(math.isfinite, values)):
        return _wrapped(name, _listed(values), ends)
    low, high = min(values), max(values)
    if tensor.data_type in _FLOATS:
        kind = _dtype(tensor.data_type).replace(", ", ", dtype=")
        middle, half = (low + high) / 2, (high - low) / 2
        return [f"    g.weight({name}, {shape}, centre={middle:.3g}, spread={half:.3g}{kind})"]
    made = f"[{low} + index * 7919 % {high - low + 1} for index in range({count})]"
    return [f"    g.constant({name}, {made}, {ends})"]


def _quoted(text: str) -> str:
    """Return a string as this project writes it."""
    return json.dumps(text, ensure_ascii=False)


def _listed(values: Sequence[object]) -> str:
    return f"[{', '.join(map(_literal, values))}]"


def _literal(value: object) -> str:
    if isinstance(value, str):
        return _quoted(value)
    return repr(value) if not isinstance(value, float) or math.isfinite(value) else f'float("{value}")'


def _number(value: np.generic) -> float | int:
    """Return a number in as few digits as tell it from its neighbours."""
    if value.dtype.kind in "iub" or "int" in value.dtype.name:
        return int(value)
    return float(str(np.float32(value)))


def _node(node: onnx.NodeProto) -> list[str]:
    outputs = list(node.output)
    call, several = ("node", []) if len(outputs) == 1 else ("node_of_several", [_listed(outputs)])
    parts = [_quoted(node.op_type), _listed(node.input), *several, f"name={_quoted(node.name)}"]
    parts += [f"output={_quoted(outputs[0])}"] if len(outputs) == 1 else []
    parts += [f"domain={_quoted(node.domain)}"] if node.domain else []
    parts += [f"{each.name}={_attribute(each)}" for each in node.attribute]
    line = f"    g.{call}({', '.join(parts)})"
    return (
        [line]
        if len(line) <= _WIDEST
        else [f"    g.{call}(", *(f"        {each}," for each in parts), "    )"]
    )


def _attribute(item: AttributeProto) -> str:
    if item.name in _TAKEN or not item.name.isidentifier() or keyword.iskeyword(item.name):
        raise _Unsayable
    value = helper.get_attribute_value(item)
    if item.type == AttributeProto.INT:
        return _literal(int(value))
    if item.type == AttributeProto.FLOAT:
        return _literal(_number(np.float32(value)))
    if item.type == AttributeProto.STRING:
        return _quoted(_text(value))
    values = list(value) if item.type in _LISTS else []
    if not values:
        raise _Unsayable
    return _listed([_LISTS[item.type](each) for each in values])


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise _Unsayable from error


_LISTS: dict[int, Callable[[Any], object]] = {
    AttributeProto.INTS: int,
    AttributeProto.FLOATS: lambda each: _number(np.float32(each)),
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
    return [
        f'TEXT = """{quoted}"""',
        "",
        "",
        "def _model() -> onnx.ModelProto:",
        "    return parser.parse_model(TEXT)",
    ]


def _wrapped(name: str, values: str, ends: str) -> list[str]:
    line = f"    g.constant({name}, {values}, {ends})"
    if len(line) <= _WIDEST:
        return [line]
    inner = textwrap.wrap(values, _WIDEST - 8, break_long_words=False)
    return [
        "    g.constant(",
        *(f"        {each}" for each in (f"{name},", *inner[:-1], f"{inner[-1]},", f"{ends},")),
        "    )",
    ]


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
