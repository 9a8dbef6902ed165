"""Targets that are none: what becomes of a model there is made up by a function of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import onnx

from harness.judge.cell import Judged, judge_cell
from harness.layers.asked import asked
from harness.models.own.model import Wanted, own_case, own_model
from harness.plan import Cell
from harness.record.outcome import End, Layer, Outcome, ParserError, Stamps
from tests.report.factory import target

#: An engine's answer to a model: fields of its record.
Engine = Callable[[onnx.ModelProto], dict[str, object]]


def judged(model: onnx.ModelProto, **fields: object) -> Judged:
    """Return what became of a model that was built, each node in what its graph asks; `fields` are the record's."""
    case = own_case([own_model(model, "m.onnx", Wanted(), name="m")])
    cell = Cell("model.m-new", case, case.variants[0], target("new", "1.7"))
    nodes = asked(model)
    layers = tuple(
        Layer(name=node.name, type=node.op, precision=node.precision or "fp32", onnx_nodes=(node.name,))
        for node in nodes
    )
    made = Outcome(
        cell=cell.id, case=case.name, variant="m", target="new", state="done", end=End("finished"),
        nodes=nodes, layers=layers, engine_bytes=1, stamps=Stamps(),
    )  # fmt: skip
    return judge_cell(cell, replace(made, **fields))  # type: ignore[arg-type]


def refused(*errors: tuple[str, str, str]) -> dict[str, object]:
    """Return the fields of a model that does not parse; each error is node, operator and text."""
    entries = tuple(ParserError(text, node=node, operator=operator) for node, operator, text in errors)
    return {"failed_phase": "parse", "parser_errors": entries, "layers": (), "engine_bytes": None}


def unbuilt(text: str) -> dict[str, object]:
    """Return the fields of a model that parses and does not build."""
    return {"failed_phase": "build", "error": text, "layers": (), "engine_bytes": None}
