"""`list` and `show`: what there is, and all about one cell."""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING

import onnx

from harness.case import check_variant, effective_name
from harness.cli.common import EXIT_OK, add_selection, load_project, places, selected
from harness.errors import HandledError
from harness.judge.cell import judge_cell
from harness.judge.explain import complaints, describe_recipe, pytest_command
from harness.layers import asked, wished
from harness.plan import claims_about, find, inapplicable_because
from harness.plan.trtexec import docker_line, model_file, trtexec_lines
from harness.record.speaking import took_part
from harness.record.staleness import is_stale, todays
from harness.record.store import Store
from harness.run.commands import command_lines
from harness.words import Grade, said

if TYPE_CHECKING:
    from harness.case import Expectation
    from harness.matrix import Target
    from harness.plan import Cell
    from harness.record.outcome import Outcome


_KINDS = ("cells", "variants", "targets")


def add_list_arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of `list`."""
    add_selection(command)
    command.add_argument(
        "what",
        nargs="?",
        type=_what,
        metavar="WHAT",
        default="cells",
        help="cells (default), variants or targets",
    )


def _what(text: str) -> str:
    if text not in _KINDS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is none of {', '.join(_KINDS)} (and quote a -k expression that holds spaces)"
        )
    return text


def list_cells(options: argparse.Namespace) -> int:
    """Print one line for each selected cell, variant or target."""
    project = load_project(options)
    cells = selected(project, options)
    if options.what == "targets":
        for target in {cell.target.name: cell.target for cell in cells}.values():
            print(f"{target.name:<12} {target.label:<30} {target.platform:<12} {_origin(target)}")
    elif options.what == "variants":
        for cell in {(cell.case.name, cell.variant.name): cell for cell in cells}.values():
            print(f"{cell.case.name + '[' + cell.variant.name + ']':<44} {cell.variant.title}")
    else:
        for cell in cells:
            print(cell.id)
    return EXIT_OK


def _origin(target: Target) -> str:
    if target.build is None:
        return target.pull_reference
    if target.build.kind == "packages":
        return " ".join(target.packages)
    return f"docker/{target.build.kind}.Dockerfile on {target.pull_reference}"


def add_show_arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of `show`."""
    command.add_argument("cell", help="a cell's id, such as 'conv_silu[qdq]-rtx17'")
    command.add_argument("--save", metavar="FILE", help="also write the .onnx there")


def show(options: argparse.Namespace) -> int:
    """Print a cell's graph, recipe, claims, last result and the lines that run it by hand."""
    project = load_project(options)
    # Copied from pytest's output, an id has the file before it.
    cell = find(project.cells, options.cell.rpartition("::")[2])
    data = cell.variant.model_bytes()
    model = onnx.load_model_from_string(data)
    check_variant(cell.variant, model)
    today = todays([cell], {(cell.case.name, cell.variant.name): data})
    now = today[cell.id]
    recorded = Store(options.reports).speaking(lambda outcome: is_stale(outcome, today)).get(cell.id, ())
    if options.save:
        _save(options.save, data)
    print(f"{cell.id}\n  {cell.variant.title}\n  case: {cell.case.title}\n  target: {cell.target.label}")
    _show_graph(model)
    print(f"\nrecipe\n  {describe_recipe(cell.variant.recipe)}")
    print(f"  model  sha256 {now.model_sha256}\n  recipe sha256 {now.recipe_sha256}")
    by_graph = ", by the graph's own types" if cell.variant.precision is None else ""
    for node, precision in wished(cell.variant, asked(model)):
        print(f"  wants  {node} in {said(precision)}{by_graph}")
    reason = inapplicable_because(cell)
    if reason:
        print(f"  not applicable: {reason}")
    _show_claims(cell)
    if not recorded:
        print(f"\nlast result: none is recorded in {options.reports}")
    for outcome in recorded:
        _show_result(cell, outcome, stale=now.stale_because(outcome))
    _show_commands(cell, options)
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
    claims = claims_about(cell)
    print(f"\nknown about this cell{'' if claims else ': nothing'}")
    for claim in claims:
        print(f"  {claim.outcome} on {_range(claim)} ({_graded(claim)})")
        if claim.note:
            print(f"    {claim.note}")
        if claim.source:
            print(f"    {claim.source.url}")
    others = [claim for claim in cell.variant.expectations if claim not in claims]
    if others:
        print("known about other targets")
    for claim in others:
        if claim.grade is not Grade.MEASURED:
            print(f"  {claim.outcome} on {_range(claim)} ({_graded(claim)})")
    measured: dict[str, list[str]] = {}
    for claim in others:
        if claim.grade is Grade.MEASURED:
            gpu = f" ({claim.product})" if claim.product else ""
            measured.setdefault(str(claim.outcome), []).extend(f"{name}{gpu}" for name in claim.targets)
    for outcome, targets in measured.items():
        print(f"  {outcome} on {', '.join(targets)} (measured)")


def _graded(claim: Expectation) -> str:
    return f"{claim.graded}; speaks of: {claim.level}" if claim.level else claim.graded


def _range(claim: Expectation) -> str:
    where = f", {claim.platform}" if claim.platform else ""
    gpu = f", compute capability {claim.compute_capability}" if claim.compute_capability else ""
    return f"{claim.engine} {claim.versions or 'every version'}{where}{gpu}"


def _show_result(cell: Cell, outcome: Outcome, *, stale: str) -> None:
    via = f", {outcome.stamps.via}" if outcome.stamps.via else ""
    gpu = took_part(outcome)
    print(f"\nlast result{f' on {gpu}' if gpu else ''} ({outcome.stamps.when}{via})")
    if stale:
        print(f"  out of date: {stale}; run it again")
        return
    judged = judge_cell(cell, outcome)
    cls, verdict = str(judged.classification.cls), str(judged.judgement.verdict)
    print(f"  {cls if cls == verdict else f'{cls} ({verdict})'}: {judged.judgement.sentence}")
    for line in complaints(judged):
        print(f"  {line}")
    for node, precision in judged.precision.items():
        print(f"  {node} ran in {said(precision)}")


def _show_commands(cell: Cell, options: argparse.Namespace) -> None:
    print("\ncommands, for the project's top folder, after `source .venv/bin/activate`")
    print(f"  # this cell again\n  {shlex.join(pytest_command(cell.id))}")
    print("  # the engine in a container, confined as for a cell: prints its version")
    for line in command_lines(cell.target):
        print(f"  {line}")
    if cell.target.packages:
        print(f"  # the engine in a virtual environment, on a {cell.target.docker_platform} machine")
        for line in command_lines(cell.target, "venv"):
            print(f"  {line}")
    print("  # by hand, as a bug report needs it")
    saved = options.save or model_file(cell)
    save = ["trt-compat", "show", cell.id, "--save", saved, *places(options, reports=False)]
    for line in filter(None, (shlex.join(save), docker_line(cell, saved), *trtexec_lines(cell, saved))):
        print(f"  {line}")


def _save(path: str, data: bytes) -> None:
    try:
        with open(path, "wb") as file:  # noqa: PTH123  (the user's own spelling of the path is what errors name)
            file.write(data)
    except OSError as error:
        raise HandledError(f"{path}: cannot be written: {error.strerror}") from error
