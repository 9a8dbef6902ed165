"""`list` and `show`: what there is, and all about one cell."""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING

import onnx

from harness.case import effective_name, model_sha256
from harness.cli.common import EXIT_OK, add_selection, load_project, selected
from harness.errors import HandledError
from harness.explain import describe_recipe, pytest_command
from harness.judged import judge_cell
from harness.plan import applicability, documented, find
from harness.provision import command_lines
from harness.store import Store
from harness.trtexec import trtexec_lines

if TYPE_CHECKING:
    from pathlib import Path

    from harness.case import Expectation
    from harness.plan import Cell


def add_list_arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of `list`."""
    add_selection(command)
    command.add_argument(
        "what", nargs="?", choices=("cells", "variants", "targets"), default="cells", help="default: cells"
    )


def list_cells(options: argparse.Namespace) -> int:
    """Print one line for each selected cell, variant or target."""
    project = load_project(options)
    cells = selected(project, options)
    if not cells:
        raise HandledError("the selection matches no cell; `python -m harness list` shows them all")
    if options.what == "targets":
        for target in {cell.target.name: cell.target for cell in cells}.values():
            where = target.pull_reference if target.image else " ".join(target.packages)
            print(f"{target.name:<12} {target.label:<36} {target.platform:<12} {where}")
    elif options.what == "variants":
        for cell in {(cell.case.name, cell.variant.name): cell for cell in cells}.values():
            print(f"{cell.case.name + '[' + cell.variant.name + ']':<44} {cell.variant.title}")
    else:
        for cell in cells:
            print(cell.id)
    return EXIT_OK


def add_show_arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of `show`."""
    command.add_argument("cell", help="a cell's id, such as 'conv_silu[qdq]-rtx17'")
    command.add_argument("--save", metavar="FILE", help="also write the .onnx there")


def show(options: argparse.Namespace) -> int:
    """Print a cell's graph, recipe, documented claims, last result and the lines that run it by hand."""
    project = load_project(options)
    cell = find(project.cells, options.cell)
    data = cell.variant.model_bytes()
    print(f"{cell.id}\n  {cell.variant.title}\n  {cell.case.title}")
    _show_graph(onnx.load_model_from_string(data))
    print(f"\nrecipe\n  {describe_recipe(cell.variant.recipe)}")
    print(f"  model  sha256 {model_sha256(data)}\n  recipe sha256 {cell.variant.recipe.sha256()}")
    for node, precision in cell.variant.precision:
        print(f"  wants  {node} in {precision}")
    reason = applicability(cell)
    if reason:
        print(f"  not applicable: {reason}")
    _show_claims(cell)
    _show_result(cell, options.reports)
    _show_commands(cell, options.save)
    if options.save:
        _save(options.save, data)
    return EXIT_OK


def _show_graph(model: onnx.ModelProto) -> None:
    opsets = ", ".join(f"{entry.domain or 'ai.onnx'} {entry.version}" for entry in model.opset_import)
    print(f"\ngraph (opset {opsets})")
    for value in model.graph.input:
        print(f"  input   {value.name} {_type(value)}")
    for node in model.graph.node:
        print(
            f"  {node.op_type:<20} {effective_name(node)}\n{'':<22} {', '.join(node.input)} -> {', '.join(node.output)}"
        )
    for value in model.graph.output:
        print(f"  output  {value.name} {_type(value)}")


def _type(value: onnx.ValueInfoProto) -> str:
    tensor = value.type.tensor_type
    shape = [str(dim.dim_param or dim.dim_value) for dim in tensor.shape.dim]
    return f"{onnx.TensorProto.DataType.Name(tensor.elem_type).lower()}[{','.join(shape)}]"


def _show_claims(cell: Cell) -> None:
    claims = documented(cell)
    print(f"\nknown about this cell{'' if claims else ': nothing'}")
    for claim in claims:
        print(
            f"  {claim.outcome} on {cell.target.engine} {claim.versions or 'every version'} ({claim.certainty})"
        )
        _show_note(claim)
    others = [claim for claim in cell.variant.expectations if claim not in claims]
    if others:
        print("known about other targets")
    for claim in others:
        where = f", {claim.platform}" if claim.platform else ""
        print(
            f"  {claim.outcome} on {claim.engine} {claim.versions or 'every version'}{where} ({claim.certainty})"
        )


def _show_note(claim: Expectation) -> None:
    if claim.note:
        print(f"    {claim.note}")
    if claim.source:
        print(f"    {claim.source.url}")


def _show_result(cell: Cell, reports: Path) -> None:
    outcome = Store(reports).latest().get(cell.id) if reports.is_dir() else None
    if outcome is None:
        print("\nlast result: none is recorded")
        return
    judged = judge_cell(cell, outcome)
    print(f"\nlast result ({outcome.stamps.when}, {outcome.stamps.via or 'nowhere'})")
    print(f"  {judged.classification.cls} ({judged.judgement.verdict}): {judged.judgement.sentence}")
    if judged.diagnosis:
        print(f"  {judged.diagnosis.id}: {judged.diagnosis.title}\n  advice: {judged.diagnosis.advice}")
    for node, precision in judged.precision.items():
        print(f"  {node} ran in {precision}")


def _show_commands(cell: Cell, saved: str | None) -> None:
    print("\ncommands")
    print(f"  {shlex.join(pytest_command(cell.id))}")
    for line in command_lines(cell.target):
        print(f"  {line}")
    for line in trtexec_lines(cell, saved or f"{cell.case.name}-{cell.variant.name}.onnx"):
        print(f"  {line}")


def _save(path: str, data: bytes) -> None:
    try:
        with open(path, "wb") as file:  # noqa: PTH123  (the user's own spelling of the path is what errors name)
            file.write(data)
    except OSError as error:
        raise HandledError(f"{path}: cannot be written: {error.strerror}") from error
