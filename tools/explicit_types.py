"""Make cases/explicit.json of records: `python -m tools.explicit_types ARCHIVE...`, which TensorRT 10.6.0 measured."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import onnx

from harness.case import Recipe, Typing, Variant, effective_name
from harness.case.explicit import NodeTypes, explicit
from harness.case.graph_reader import sorted_nodes
from harness.case.registry import load_declared
from harness.case.twins import FILE, write_types
from harness.convert.wishes import Account, as_it_ran, read_scales
from harness.layers.operators import quantises
from harness.record.outcome import Outcome
from harness.share.submission import read
from harness.words import Precision

CASES = Path("cases")
NAMED = ("mish", "conv_silu", "instance_norm", "depthwise_qdq", "fp16_group_conv", "attention")


def _of_a_builder(recipe: Recipe) -> bool:
    """Tell whether flags or a right calibrator let the builder choose."""
    return bool(recipe.flags) and not (recipe.calibrator and recipe.calibrator.fault)


def _types(variant: Variant, record: Outcome, log: str) -> NodeTypes | None:
    """Return the types of a variant, if all are told and they are not those that its graph has already."""
    model = onnx.load_model_from_string(variant.model_bytes())
    if any(quantises(node.op_type) for node in model.graph.node):
        return None
    wishes = as_it_ran(model, Account(record.layers, read_scales(log)))
    if Precision.UNKNOWN in wishes.ran.values():
        return None
    made = explicit(model, wishes.types)
    old = [(effective_name(node), list(node.input)) for node in sorted_nodes(model.graph.node)]
    new = [(effective_name(node), list(node.input)) for node in made.model.graph.node]
    return None if old == new and variant.recipe.typing is not Typing.WEAK else wishes.types


def _found(archives: list[str]) -> Iterator[tuple[str, str, NodeTypes]]:
    variants = {(case.name, each.name): each for case in load_declared(CASES) for each in case}
    for path in archives:
        archive = read(Path(path))
        for record in archive.records:
            variant = variants.get((record.case, record.variant))
            if record.target != "trt106" or record.case not in NAMED or variant is None or not record.layers:
                continue
            if _of_a_builder(variant.recipe) and not variant.name.endswith("-explicit"):
                types = _types(variant, record, archive.log(str(record.log_sha256)))
                if types:
                    yield record.case, record.variant, types


def main() -> None:
    """Write the file, a line a variant."""
    cases: dict[str, dict[str, str]] = {}
    for case, variant, types in sorted(_found(sys.argv[1:]), key=lambda found: found[:2]):
        cases.setdefault(case, {})[variant] = json.dumps(write_types(types))
    blocks = (
        f' "{case}": {{\n' + ",\n".join(f'  "{name}": {entry}' for name, entry in variants.items()) + "\n }"
        for case, variants in cases.items()
    )
    (CASES / FILE).write_text('{"cases": {\n' + ",\n".join(blocks) + "\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
