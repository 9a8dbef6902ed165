"""Models of others as cells: ONNX's own node tests, built one after the other by one warm agent a target."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

import onnx
from onnx.backend.test.loader import load_model_tests

from harness.case import Case, Link, Variant, effective_name, model_sha256
from harness.plan import Cell
from harness.record.outcome import Node
from harness.run.numbers import Reference
from harness.run.prepare_in_child import PreparedVariants
from harness.run.prepared import Prepared

if TYPE_CHECKING:
    from harness.matrix import Target

NODE_TESTS = "onnx_node"


@functools.cache
def node_tests() -> Case:
    """Return the models that `onnx.backend.test.case.node` generates, a variant each."""
    with warnings.catch_warnings():
        # They compute what is expected of each operator, overflows and all.
        warnings.simplefilter("ignore")
        tests = load_model_tests(kind="node")
    return Case(
        name=NODE_TESTS,
        title="ONNX's own node tests",
        summary="Every operator as the ONNX project tests it, built without inputs.",
        links=(Link("https://github.com/onnx/onnx/tree/main/onnx/backend/test/case/node"),),
        variants=tuple(_variant(test.name, test.model) for test in tests if test.model is not None),
    )


def _variant(name: str, model: onnx.ModelProto) -> Variant:
    return Variant(name=name.removeprefix("test_").lower(), title=name, build=lambda: model)


def cells_of(case: Case, target: Target) -> tuple[Cell, ...]:
    """Return a cell of the target for each variant."""
    return tuple(
        Cell(f"{case.name}[{variant.name}]-{target.name}", case, variant, target) for variant in case
    )


class Unfed(PreparedVariants):
    """PreparedVariants for builds alone: the model and its nodes, no inputs and no reference."""

    def of(self, variant: Variant, wanted: Callable[[], bool] = lambda: True) -> Prepared:  # noqa: ARG002
        """Return a variant's subject, made in this process: nothing of the model is evaluated."""
        data = variant.model_bytes()
        model = onnx.load_model_from_string(data)
        return Prepared(
            model=data,
            sha256=model_sha256(data),
            nodes=tuple(Node(effective_name(node), node.op_type) for node in model.graph.node),
            inputs={},
            reference=Reference(None, "only built"),
        )
