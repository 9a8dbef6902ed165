"""Explicit twins: the variants whose types a builder chose, again, with those types written into the graph.

`explicit.json` beside the case modules holds what TensorRT 10.6.0 chose for each: the nodes by precision, and the
scales of its calibration cache. `tools/explicit_types.py` makes it of records.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import onnx

from harness.bounded import parse_json, read_bytes
from harness.case.explicit import NodeTypes, explicit
from harness.case.model import Case, Recipe, Variant
from harness.errors import HandledError
from harness.words import Precision, Role, Typing

FILE = "explicit.json"
_MOST_BYTES = 4 << 20


def with_twins(case: Case, file: Path) -> Case:
    """Return a case with the explicit twins that a file has for its variants; raises HandledError if it is damaged."""
    known = _read(file).get(case.name, {})
    return replace(case, variants=(*case.variants, *_twins(case, known))) if known else case


def _read(file: Path) -> Mapping[str, Mapping[str, NodeTypes]]:
    if not file.is_file():
        return {}
    try:
        cases = parse_json(read_bytes(file, _MOST_BYTES).decode())["cases"]
        return {
            case: {name: read_types(entry) for name, entry in variants.items()}
            for case, variants in cases.items()
        }
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise HandledError(f"{file}: is no file of types ({error}); make it anew, or remove it") from error


def read_types(entry: Mapping[str, Any]) -> NodeTypes:
    """Return the types of an entry; raises ValueError, TypeError or LookupError if it is damaged."""
    nodes = {node: Precision(word) for word, names in entry["nodes"].items() for node in names}
    scales = {name: struct.unpack(">f", bytes.fromhex(bits))[0] for name, bits in entry["scales"].items()}
    return NodeTypes(nodes, scales)


def write_types(types: NodeTypes) -> dict[str, Any]:
    """Return the entry of types: names by precision, and scales as a calibration cache has them."""
    by_word: dict[str, list[str]] = {}
    for node, precision in types.nodes.items():
        by_word.setdefault(str(precision), []).append(node)
    return {
        "nodes": by_word,
        "scales": {name: struct.pack(">f", scale).hex() for name, scale in types.scales.items()},
    }


def _twins(case: Case, known: Mapping[str, NodeTypes]) -> Iterator[Variant]:
    for variant in case.variants:
        if variant.name in known:
            recipe = variant.recipe
            yield Variant(
                name=f"{variant.name}-explicit",
                title=f"The graph of {variant.name}, with the types in it that TensorRT 10.6.0 ran it in",
                build=partial(_explicit, variant.build, known[variant.name]),
                recipe=Recipe(
                    Typing.STRONG,
                    parser_flags=recipe.parser_flags,
                    mark_outputs=recipe.mark_outputs,
                    profiles=recipe.profiles,
                ),
                role=Role.TWIN,
                counterpart=variant.name,
            )


def _explicit(build: Callable[[], onnx.ModelProto], types: NodeTypes) -> onnx.ModelProto:
    return explicit(build(), types).model
