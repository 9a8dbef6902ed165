"""Reads a model file, with the weights that lie beside it."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError

from harness.bounded import LARGE, check_file
from harness.case.graph_reader import STANDARD, opsets, subgraphs
from harness.errors import HandledError
from harness.models.graphs import copied, is_quantiser, outside
from harness.run.child import ChildFailed, stream
from harness.run.numbers.wire import length_of
from harness.run.prepared import SECONDS, Weights, memory_for

#: Bytes of a model above which no reference is computed: the evaluator would take minutes and many times the memory.
MOST_EVALUATED = 512 << 20
#: Bytes of a tensor that is read with the model in any case, and of a file of weights.
_SMALL, _MOST = 64 << 10, 1 << 40


def bounded(
    function: Callable[..., Iterator[Any]],
    *arguments: Any,  # noqa: ANN401  (those of the function)
    size: int,
    seconds: float = SECONDS,
) -> tuple[list[Any], str]:
    """Return the items of a generator function from a child that reads a model of this size, and how it failed.

    The libraries that read a stranger's model may loop or crash.
    """
    found: list[Any] = []
    try:
        found.extend(stream(function, *arguments, seconds=seconds, memory_mib=memory_for(size)))
    except ChildFailed as error:
        return found, str(error)
    return found, ""


def read_model(file: Path, remedy: str) -> onnx.ModelProto:
    """Return a model with its weights, wherever they are stored; an agent is sent the model alone.

    Raises HandledError, ending with `remedy`, for a file that is missing, is no model, has no node, whose weights are
    missing, or that is larger than protobuf can hold with them.
    """
    with _refusing(file, remedy):
        return _whole(file, _parsed(file, remedy))


def read_beside(file: Path, remedy: str) -> tuple[onnx.ModelProto, Weights | None]:
    """Return a model, and its weights if they stay beside it, too many to be evaluated.

    The model then holds those alone that say how others are to be read: scales, and whatever is small. Raises as
    `read_model` does, and if a place of weights is no file in the model's folder, or ends before they do.
    """
    with _refusing(file, remedy):
        model = _parsed(file, remedy)
        beside = outside(model)
        if sum(map(_length, beside)) <= MOST_EVALUATED:
            return _whole(file, model), None
        weights = _weights(file.parent.resolve(), beside)
        scaled = (node for node in model.graph.node if is_quantiser(node.op_type))
        named = {name for node in scaled for name in node.input[1:]}
        _take_in([each for each in beside if each.name in named or _length(each) <= _SMALL], file.parent)
    return model, weights


def held(model: onnx.ModelProto, weights: Weights | None) -> onnx.ModelProto | None:
    """Return a model with all its weights in it, unless they are in it, or too many to be evaluated.

    Raises HandledError if they cannot be read any more.
    """
    if weights is None or not 0 < sum(map(_length, outside(model))) <= MOST_EVALUATED:
        return None
    made = copied(model)
    with _refusing(weights.folder, "leave them there until this has ended"):
        _take_in(outside(made), weights.folder)
    return made


def opsets_used(model: onnx.ModelProto) -> str:
    """Return ONNX's own opset of a model and that of each other domain of its nodes: "21, ai.onnx.ml 5"."""
    versions = opsets(model)
    nodes = (*model.graph.node, *inner_nodes(model.graph))
    used = {"" if node.domain in STANDARD else node.domain for node in nodes} | ({""} & versions.keys())
    own = {each.domain for each in model.functions}
    told = [" ".join(filter(None, (each, str(versions.get(each, "?"))))) for each in sorted(used - own)]
    return ", ".join(told) or str(versions.get("", "?"))


def inner_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Yield the nodes of the branches and loops of a graph, at any depth."""
    for node in graph.node:
        for inner in subgraphs(node):
            yield from inner.node
            yield from inner_nodes(inner)


def invalid(model: onnx.ModelProto) -> Iterator[str]:
    """Yield a sentence on the first node that ONNX's own schemas do not allow, and on the first unlike types.

    A model of an opset that the installed onnx does not know is not held to any.
    """
    versions = opsets(model)
    if versions.get("", 0) > onnx.defs.onnx_opset_version():
        return
    context = onnx.checker.C.CheckerContext()
    context.ir_version, context.opset_imports = model.ir_version, versions
    for node in model.graph.node:
        if node.domain in STANDARD and not any(subgraphs(node)):
            try:
                onnx.checker.check_node(node, context)
            except onnx.checker.ValidationError as error:
                where = f"{node.op_type} {node.name!r}"
                yield f"no valid ONNX at opset {versions.get('', '?')}: {where}: {_first_line(error)}"
                break
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True)
    except onnx.shape_inference.InferenceError as error:
        yield f"no valid ONNX, which promotes no types: {_first_line(error).removeprefix('[ShapeInferenceError] ')}"
    except Exception:  # noqa: BLE001  (of a large or unknown model it raises anything)
        return


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def count_quantisers(model: onnx.ModelProto) -> int:
    """Return the number of Q/DQ nodes of a model, those of branches and loops among them."""
    # DynamicQuantizeLinear does not count: it feeds integer operators.
    names = (node.op_type for node in (*model.graph.node, *inner_nodes(model.graph)))
    return sum(is_quantiser(name) for name in names if name != "DynamicQuantizeLinear")


@contextlib.contextmanager
def _refusing(file: Path, remedy: str) -> Iterator[None]:
    try:
        yield
    except DecodeError as error:
        found = _instead(file) or f"it is cut off, or damaged: {error}"
        raise HandledError(f"{file}: is no ONNX model ({found}); {remedy}") from error
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        reason = str(error)
        if isinstance(error, OSError) and error.strerror:
            # It may be about a file beside it.
            other = f"{error.filename}: " if error.filename and Path(error.filename) != file else ""
            reason = f"{other}{error.strerror}"
        raise HandledError(f"{file}: cannot be read ({reason}); {remedy}") from error


def _parsed(file: Path, remedy: str) -> onnx.ModelProto:
    check_file(file, LARGE)
    model = onnx.load(file, load_external_data=False)
    if not model.graph.node:
        found = _instead(file) or "has no node in its graph"
        raise HandledError(f"{file}: {found}; {remedy}")
    return model


#: Files that are often given in place of a model, by the bytes that they begin with.
_OTHERS: Mapping[bytes, str] = {
    b"PK\x03\x04": "it is a ZIP archive, as PyTorch saves its models in one too",
    b"\x1f\x8b": "it is packed by gzip",
    b"ftrt": "it is a plan of TensorRT, an engine that is built already",
    b"version https://git-lfs": "it is a pointer of Git LFS; fetch the file with `git lfs pull`",
}
_LOOKED_AT = 4096


def _instead(file: Path) -> str:
    """Return what a file is that is no model, in words; "" if unknown."""
    with file.open("rb") as stream:
        start = stream.read(_LOOKED_AT)
        if not start:
            return "it is empty"
        for magic, said in _OTHERS.items():
            if start.startswith(magic):
                return said
        # A character may be cut in two at the end.
        text = start.decode("utf-8", "ignore")
        if len(text.encode()) > len(start) - 4 and all(each.isprintable() or each.isspace() for each in text):
            return f"it is text, which begins {text[:40].strip()!r}"
    return ""


def _location(tensor: onnx.TensorProto) -> str:
    return next((entry.value for entry in tensor.external_data if entry.key == "location"), "")


def _whole(file: Path, model: onnx.ModelProto) -> onnx.ModelProto:
    """Read the weights beside a model into it; raises HandledError, before that, if they do not fit into one."""
    size = sum(map(_length, outside(model)))
    if size > LARGE:
        raise HandledError(
            f"{file}: has {size / 2**30:.1f} GiB of weights, and a model with its weights may have 2; "
            "cut it into parts, or give a smaller one of the same layers"
        )
    for name in dict.fromkeys(map(_location, outside(model))):
        if name and not (file.parent / name).exists():
            raise HandledError(
                f"{file}: its weights are to lie in {name!r}, and no such file is there; put it beside the model"
            )
    onnx.load_external_data_for_model(model, str(file.parent))
    return model


def _take_in(tensors: Iterable[onnx.TensorProto], folder: Path) -> None:
    """Read tensors from their files into their model."""
    for tensor in tensors:
        onnx.external_data_helper.load_external_data_for_tensor(tensor, str(folder))
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]


def _weights(folder: Path, tensors: list[onnx.TensorProto]) -> Weights:
    """Return the files that tensors lie in; raises OSError for a place outside the folder, or one that is too short."""
    ends: dict[str, int] = {}
    for tensor in tensors:
        said = {entry.key: entry.value for entry in tensor.external_data}
        name = _location(tensor)
        ends[name] = max(ends.get(name, 0), int(said.get("offset") or 0) + _length(tensor))
    for name, end in ends.items():
        path = (folder / name).resolve()
        if not name or not path.is_relative_to(folder):
            raise OSError(errno.EPERM, f"its weights are to lie at {name!r}, which is not beside it")
        check_file(path, _MOST)
        if path.stat().st_size < end:
            raise OSError(errno.EIO, f"{name} has {path.stat().st_size} bytes, and its weights take {end}")
    return Weights(folder, tuple(sorted(ends)), sum((folder / name).stat().st_size for name in ends))


def _length(tensor: onnx.TensorProto) -> int:
    """Return how many bytes a tensor takes, wherever they are."""
    return length_of(tensor.data_type, tensor.dims)
