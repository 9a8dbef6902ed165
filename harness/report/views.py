"""Columns and rows of results.json: targets, and variants with the graph, tags and topics that readers look for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto

from harness.case import Case, Link, Variant, effective_name, model_sha256
from harness.case.graph_reader import Extents, GraphReader, inferred
from harness.judge.cell import describe_recipe
from harness.known.claim import gpus_said
from harness.known.model import GraphView, Known, NodeView, TargetView, VariantView
from harness.layers.asked import asked, wished
from harness.matrix import Matrix, Target
from harness.record.outcome import Stamps
from harness.text import capital
from harness.words import Class, Precision, Typing

#: A graph of more nodes is not listed.
MOST_NODES = 300
_QDQ = frozenset({"QuantizeLinear", "DequantizeLinear"})
_ATTENTION = frozenset({"Attention", "MultiHeadAttention", "Softmax"})


def target_views(
    matrix: Matrix, latest: Mapping[str, Stamps], commands: Mapping[str, Sequence[str]]
) -> tuple[TargetView, ...]:
    """Return a view of each target of a matrix.

    By its name, `latest` are the stamps of its last run, and `commands` the lines that make its container by hand.
    """
    versions: dict[str, set[str]] = {}
    for target in matrix:
        versions.setdefault(_series(target), set()).add(target.version)
    short = {series: short_versions(every) for series, every in versions.items()}
    return tuple(
        replace(
            _target(target, latest.get(target.name)),
            short=short[_series(target)][target.version],
            commands=tuple(commands.get(target.name, ())),
        )
        for target in matrix
    )


def short_versions(versions: Iterable[str]) -> dict[str, str]:
    """Return for each version its shortest prefix, of two parts or more, that no other one shares."""
    every = dict.fromkeys(versions)
    return {version: _shortest(version, every) for version in every}


def _shortest(version: str, every: Collection[str]) -> str:
    parts = version.split(".")
    for length in range(2, len(parts)):
        prefix = parts[:length]
        if sum(other.split(".")[:length] == prefix for other in every) == 1:
            return ".".join(prefix)
    return version


def _target(target: Target, latest: Stamps | None) -> TargetView:
    unsourced = "" if latest else target.unsourced
    return TargetView(
        id=target.name,
        label=target.label,
        family=target.group,
        series=_series(target),
        engine=str(target.engine),
        version=target.version,
        short="",
        platform=target.platform,
        image=target.pull_reference if target.image or target.needs.gpu else " ".join(target.packages),
        needs=_needs(target),
        notes=" ".join(filter(None, (unsourced and f"{capital(unsourced)}.", target.notes))),
        stamps=latest,
        gpus=_gpus(target),
        compute_capability=target.needs.compute_capability,
        driver=target.needs.driver,
        cuda=target.cuda,
        jetpack=target.jetpack,
        released=target.released,
        sources=tuple(Link(source.url, source.says) for source in target.sources),
    )


def _gpus(target: Target) -> str:
    return gpus_said(target.needs.compute_capability, jetson=target.platform == "jetson")


def _series(target: Target) -> str:
    """Name a target's series, of comparable versions: one product on one platform, and one GPU generation if chosen."""
    parts = ["Jetson" if target.platform == "jetson" else target.traits.short]
    if target.platform == "linux/arm64":
        parts.append("arm64")
    if target.compute_capability:
        parts.append(f"SM {target.compute_capability}")
    if target.provider == "cuda":
        parts.append("CUDA")
    return ", ".join(parts)


def _needs(target: Target) -> str:
    needs = target.needs
    jetson = target.platform == "jetson"
    parts: list[str] = [_gpus(target) or "a Jetson" if jetson else needs.architecture]
    if needs.l4t:
        parts.append(f"Jetson Linux {needs.l4t}")
    if needs.gpu and not jetson:
        generation = f" of compute capability {needs.compute_capability}" if needs.compute_capability else ""
        parts.append(f"an NVIDIA GPU{generation}")
        if _gpus(target):
            parts[-1] += f": {_gpus(target)}"
    if needs.driver:
        parts.append(f"driver {needs.driver}")
    return ", ".join(parts)


def variant_view(case: Case, variant: Variant, model: bytes | None, cells: Sequence[Known]) -> VariantView:
    """Return the row of a variant; `model` is serialised, None if it cannot be made."""
    graph = graph_of(model) if model else GraphView()
    tags = _tags(variant, graph)
    return VariantView(
        case=case.name,
        name=variant.name,
        title=variant.title,
        role=variant.role,
        counterpart=variant.counterpart,
        wanted=_wanted(variant, model),
        recipe=variant.recipe.as_dict(),
        recipe_text=describe_recipe(variant.recipe),
        recipe_sha256=variant.recipe_sha256,
        model_sha256=model_sha256(model) if model else "",
        claims=variant.expectations,
        tags=tags,
        topics=_topics(case, tags, graph, cells),
        graph=graph,
    )


def _wanted(variant: Variant, model: bytes | None) -> tuple[tuple[str, Precision], ...]:
    """Return the precisions wanted of nodes: the variant's own, else those that its graph asks for."""
    if variant.precision is not None:
        return variant.precision
    return wished(variant, asked(onnx.load_model_from_string(model))) if model else ()


def _tags(variant: Variant, graph: GraphView) -> tuple[str, ...]:
    """Return a variant's own tags, and those of its recipe and graph."""
    recipe = variant.recipe
    found = {
        "qdq": not _QDQ.isdisjoint(node.op for node in graph.nodes),
        "calibrated": recipe.calibrator is not None,
        "plugin": recipe.plugin is not None,
        "fp16": "FP16" in recipe.flags,
        "strongly-typed": recipe.typing is Typing.STRONG,
    }
    return (*variant.tags, *(tag for tag, true in found.items() if true))


def _topics(case: Case, tags: Sequence[str], graph: GraphView, cells: Sequence[Known]) -> tuple[str, ...]:
    """Return the topics that readers filter rows by."""
    half = any(kind.startswith("float16") for kind in graph.types.values())
    found = {
        "calibrated INT8": "calibrated" in tags,
        "Q/DQ": "qdq" in tags,
        "FP16": half or "fp16" in tags,
        "attention": not _ATTENTION.isdisjoint(node.op for node in graph.nodes),
        **dict.fromkeys(case.topics, True),
        "API": any(cell.stands is Class.API_REMOVED for cell in cells),
    }
    return tuple(topic for topic, true in found.items() if true)


def graph_of(model: bytes) -> GraphView:
    """Return the graph of a serialised model, empty for one of more than `MOST_NODES` nodes."""
    try:
        plain = onnx.load_model_from_string(model)
        if len(plain.graph.node) > MOST_NODES:
            return GraphView()
    except DecodeError:
        return GraphView()
    graph = inferred(plain)
    reader = GraphReader(graph)
    nodes = tuple(
        NodeView(effective_name(node), node.op_type, tuple(node.input), tuple(node.output))
        for node in graph.node
    )
    fed = tuple(info.name for info in graph.input if info.name in reader.inputs)
    used = {name for node in nodes for name in (*node.inputs, *node.outputs)} & reader.types.keys()
    types = {name: _said(reader.types[name], reader.shapes.get(name, ())) for name in sorted(used)}
    return GraphView(nodes, fed, tuple(info.name for info in graph.output), types)


def _said(kind: int, sizes: Extents) -> str:
    name = TensorProto.DataType.Name(kind).lower()
    shape = "x".join("?" if each is None else str(each) for each in sizes)
    return f"{'float32' if name == 'float' else name} {shape or 'scalar'}"
