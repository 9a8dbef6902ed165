"""An engine's own account, or rules -> the type that each node of a model is to have.

The account is a verbose log, the inspector's JSON, or a record of a cell. The tensors that enter a layer of INT8, and
those that leave one that does not multiply, get Q/DQ with the scales of the calibration cache. Rules decide where
an account is silent, inside a compiled region, if the engine had a narrow float at all: norms, softmax, reductions,
powers and roots stay in FP32, much as torch.autocast has it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import onnx

from harness.case.explicit import FLOATS, NodeTypes, of_data
from harness.case.graph_reader import GraphReader, inferred, reads, sorted_nodes
from harness.case.model import effective_name
from harness.errors import HandledError
from harness.layers.asked import asked
from harness.layers.operators import MOVING
from harness.layers.parse import Names, parse_layers
from harness.layers.precision import is_compute, layer_precision, node_precision
from harness.layers.tensorrt import tensor_use
from harness.record.outcome import Layer, Node
from harness.words import Precision

#: A log's own words before the layers of the inspector, and before a calibration cache, in a record's log.
_INSPECTOR = re.compile(r"^\[inspector\] (?=\{)", re.MULTILINE)
_CACHE = re.compile(r"^TRT-\d+-\w*Calibration\w*\n(?P<lines>(?:.*: [0-9a-f]{1,8}\n?)*)", re.MULTILINE)
#: A layer in a verbose log before 10: `Layer(CaskConvolution): a, Tactic: 0x1, b (Int8[1,3:32,8,8]) -> c (Half[1,8])`.
_LISTED = re.compile(
    r"^(?:\[.*\] )?Layer\((?P<type>\w+)\): (?P<name>.*), Tactic: \w+, (?P<reads>.*) -> (?P<makes>.*)$",
    re.MULTILINE,
)
_EDGE = re.compile(r"(?P<name>[^ ](?:.(?!\), ))*?) \((?P<type>[A-Za-z0-9]+)\[[^\]]*\]\)(?:, |$)")
_SCALE = re.compile(r"(?P<name>.*): (?P<bits>[0-9a-f]{1,8})")
#: By rule these stay in FP32 beside a narrow float.
_KEPT = re.compile(
    r"(?:Layer|Instance|Group|RMS|Lp|MeanVariance|SimplifiedLayer|SkipLayer)Normalization|(?:Log)?Softmax"
    r"|Reduce(?!Max|Min)\w+|GlobalLpPool|Pow|Exp|Log|Sqrt|CumSum|LogSumExp|LRN"
)
#: The largest value of FP16.
_LARGEST = 65504
_BY_RULE = "by rule: {}"
_NARROW = (Precision.FP16, Precision.BF16)
_TAKEN = (*_NARROW, Precision.INT8)


@dataclass(frozen=True)
class Account:
    """The layers of an engine, and the scale of each tensor by its calibration cache."""

    layers: tuple[Layer, ...]
    scales: Mapping[str, float]

    def narrow(self) -> Precision | None:
        """Return the narrow float that the engine had, if it had one."""
        edges = [use.precision for each in self.layers for use in (*each.inputs, *each.outputs)]
        return next((each for each in _NARROW if str(each) in edges), None)


@dataclass(frozen=True)
class Wishes:
    """The types that nodes are to have, the words of the account on each, and why one differs from it."""

    types: NodeTypes
    ran: Mapping[str, Precision]
    notes: Mapping[str, str]


def read_account(text: str, nodes: Sequence[Node], label: str) -> Account:
    """Return the account in a log or in the inspector's JSON; raises HandledError, naming it, if it holds none."""
    inside = _INSPECTOR.search(text)
    if inside or text.lstrip().startswith("{"):
        body = text[inside.end() :] if inside else text
        # More of the log may follow the object.
        body = body.partition("\n[")[0] if inside else body
        report = parse_layers("inspector", body, nodes=nodes)
    else:
        report = parse_layers("verbose_log", text, nodes=nodes)
    layers = report.layers or tuple(_listed(text, nodes))
    if not layers:
        raise HandledError(
            f"{label}: lists no layers of an engine; give a verbose build log (trtexec --verbose "
            "--profilingVerbosity=detailed), the JSON of --exportLayerInfo, or a record"
        )
    if not any(each.type or each.inputs for each in layers):
        raise HandledError(
            f"{label}: lists the names of layers without their types; build with --profilingVerbosity=detailed"
        )
    return Account(layers, read_scales(text))


def _listed(text: str, nodes: Sequence[Node]) -> Iterator[Layer]:
    """Yield the layers as a verbose log before 10 lists them, a line each."""
    names = Names(nodes)
    for line in _LISTED.finditer(text):
        sides = [
            tuple(tensor_use(each["name"], (), each["type"], "") for each in _EDGE.finditer(line[side]))
            for side in ("reads", "makes")
        ]
        layer = Layer(line["name"], line["type"], "", inputs=sides[0], outputs=sides[1])
        yield replace(layer, precision=str(layer_precision(layer)), onnx_nodes=names.map(layer.name))


def read_scales(text: str) -> dict[str, float]:
    """Return the scales of a calibration cache of TensorRT, which may stand in a log."""
    found = _CACHE.search(text)
    lines = (_SCALE.fullmatch(line) for line in (found["lines"].splitlines() if found else ()))
    return {
        each["name"]: struct.unpack(">f", bytes.fromhex(each["bits"].zfill(8)))[0] for each in lines if each
    }


def as_it_ran(model: onnx.ModelProto, account: Account) -> Wishes:
    """Return the types that an engine ran the nodes of a model in; raises HandledError if it is of another model."""
    nodes = asked(model)
    graph = GraphReader(inferred(model))
    whole = {effective_name(node) for node in graph.nodes if _has_no_float(graph, node)}
    told = node_precision(nodes, account.layers)
    # A kernel in a narrow float may hold nodes of integers too.
    ran = {name: each for name, each in told.items() if name not in whole}
    if not told:
        raise HandledError("the account names no node of the model; give that of an engine of this model")
    narrow = account.narrow()
    ruled = {} if narrow is None else by_rules(model, narrow).types.nodes
    wanted: dict[str, Precision] = {}
    notes: dict[str, str] = {}
    for node in nodes:
        known = ran.get(node.name)
        if known is Precision.UNKNOWN:
            wanted[node.name] = ruled.get(node.name, Precision.FP32)
            notes[node.name] = _BY_RULE.format("the account does not tell")
        elif known in _TAKEN or (known in FLOATS and node.op not in MOVING):
            wanted[node.name] = known
    scales = _scaled(graph, _in_int8(graph, account.layers), account.scales)
    return Wishes(NodeTypes(wanted, scales), ran, notes)


def _has_no_float(graph: GraphReader, node: onnx.NodeProto) -> bool:
    """Tell whether all tensors of a node are known to be of integers and booleans."""
    kinds = {graph.types.get(name) for name in (*node.input, *node.output) if name}
    return None not in kinds and kinds.isdisjoint(number for number, _ in FLOATS.values())


def _in_int8(graph: GraphReader, layers: Iterable[Layer]) -> Iterator[str]:
    """Yield the tensors that enter a layer in INT8, and that leave one in INT8 that does not multiply."""
    by_name = {effective_name(node): node for node in graph.nodes}
    for layer in layers:
        if layer.precision == Precision.INT8:
            yield from _at_edges(
                graph, layer, [by_name[name] for name in layer.onnx_nodes if name in by_name]
            )


def _at_edges(graph: GraphReader, layer: Layer, group: Sequence[onnx.NodeProto]) -> Iterator[str]:
    made = {name for node in group for name in node.output}
    yield from {name for node in group for name in reads(node)} - made
    if Precision.INT8 in {use.precision for use in layer.outputs} and not is_compute(layer):
        yield from (name for name in made if _leaves(graph, name, group))


def _leaves(graph: GraphReader, tensor: str, group: Sequence[onnx.NodeProto]) -> bool:
    """Tell whether a node outside of a group, or the network's user, reads a tensor."""
    return tensor in graph.outputs or any(
        all(reader is not node for node in group) for reader in graph.readers(tensor)
    )


def _scaled(graph: GraphReader, tensors: Iterable[str], scales: Mapping[str, float]) -> dict[str, float]:
    """Return the scale of each tensor; one that only moves another's values has that one's."""
    found = {}
    for tensor in sorted(set(tensors)):
        source, seen = tensor, set[str]()
        while source not in scales and source not in seen:
            seen.add(source)
            maker = graph.producer(source)
            source = (
                maker.input[0] if maker is not None and maker.op_type in MOVING and maker.input else source
            )
        if scales.get(source, 0) > 0 and tensor not in graph.constants:
            found[tensor] = scales[source]
    return found


def by_rules(model: onnx.ModelProto, narrow: Precision) -> Wishes:
    """Return the types by rule: a narrow float, but norms, softmax, reductions, powers and roots in FP32.

    So is a node between such alone, and one whose constants are beyond the range of FP16.
    """
    graph = GraphReader(inferred(model))
    nodes = sorted_nodes(graph.nodes)
    notes = dict(_ruled(graph, nodes, narrow))
    for node in nodes:
        if _stands_between(graph, node, notes):
            notes[effective_name(node)] = _BY_RULE.format("it stands between nodes that stay in FP32")
    types = {name: Precision.FP32 if name in notes else narrow for name in map(effective_name, nodes)}
    return Wishes(NodeTypes(types), {}, notes)


def _ruled(
    graph: GraphReader, nodes: Iterable[onnx.NodeProto], narrow: Precision
) -> Iterator[tuple[str, str]]:
    """Yield the nodes that stay in FP32 for their own sake, each with its rule."""
    data = of_data(graph)
    for node in nodes:
        # A scalar that is made of shapes alone is not summed up over data.
        if _KEPT.fullmatch(node.op_type) and data.intersection(node.output):
            yield effective_name(node), _BY_RULE.format(f"{node.op_type} stays in FP32")
        elif narrow is Precision.FP16 and any(_is_large(graph, each) for each in node.input):
            yield effective_name(node), _BY_RULE.format("a constant of it is beyond FP16")


def _stands_between(graph: GraphReader, node: onnx.NodeProto, kept: Collection[str]) -> bool:
    """Tell whether all nodes before and behind one stay in FP32."""
    before = [graph.producer(name) for name in node.input if name not in graph.constants]
    behind = [reader for name in node.output for reader in graph.readers(name)]
    sides = (before, behind)
    return all(side and all(each and effective_name(each) in kept for each in side) for side in sides)


def _is_large(graph: GraphReader, tensor: str) -> bool:
    values = graph.value(tensor) if graph.types.get(tensor) == FLOATS[Precision.FP32][0] else None
    return values is not None and values.size > 0 and bool(abs(values).max() > _LARGEST)


def kept_in_fp32(wishes: Wishes, pattern: str) -> Wishes:
    """Return wishes with the nodes that a pattern finds in FP32; raises HandledError for one that finds no node."""
    try:
        named = re.compile(pattern)
    except re.error as error:
        raise HandledError(f"--keep-fp32 {pattern!r}: is no pattern: {error}") from error
    found = [name for name in wishes.types.nodes if named.search(name)]
    if not found:
        raise HandledError(f"--keep-fp32 {pattern!r}: names no node that is to be typed")
    types = {**wishes.types.nodes, **dict.fromkeys(found, Precision.FP32)}
    notes = {**wishes.notes, **dict.fromkeys(found, "kept in FP32, as you say")}
    return replace(wishes, types=replace(wishes.types, nodes=types), notes=notes)
