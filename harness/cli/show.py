"""`list`: the cells; `show`: one cell, with the lines that run it; `share`: an archive of it for a maintainer."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import onnx

from harness.case import Expectation, check_variant, effective_name
from harness.cli.options import EXIT_OK, add_json, add_selection, add_trust, places, print_json, write_file
from harness.cli.project import load_project, results_path, selected
from harness.cli.terminal import wrapped
from harness.errors import HandledError
from harness.judge.cell import as_json, complaints, describe_recipe, judge_cell
from harness.known.listed import StaticModel
from harness.known.model import Known
from harness.layers.asked import asked, wished
from harness.matrix import Target
from harness.plan import Cell, claims_about, find
from harness.plan.by_hand import ByHand, by_hand, model_file
from harness.record.outcome import Outcome
from harness.record.speaking import Today, is_stale, todays, took_part
from harness.record.store import Store
from harness.report.model import load_results
from harness.run.commands import command_lines, container_lines, limits
from harness.share.issue import share
from harness.shipped import installed
from harness.words import said

_KINDS = ("cells", "targets")


def add_list(command: argparse.ArgumentParser) -> None:
    """Add the options of `list`."""
    add_selection(command)
    text = "cells (default) or targets"
    command.add_argument("what", nargs="?", type=_what, metavar="WHAT", default="cells", help=text)
    add_json(command, "list with an entry a line")


def _what(text: str) -> str:
    if text not in _KINDS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is none of {', '.join(_KINDS)} (and quote a -k expression that holds spaces)"
        )
    return text


def do_list(options: argparse.Namespace) -> int:
    """Print one line for each selected cell, or each target."""
    project = load_project(options)
    cells = selected(project, options)
    found = _targets(cells) if options.what == "targets" else _cells(cells, _last_results(options))
    if options.json:
        print_json([row for row, _ in found])
    else:
        for _, line in found:
            print(line)
    return EXIT_OK


#: What `list` prints of one thing: by key, and in a line.
_Row = tuple[Mapping[str, object], str]


def _targets(cells: Sequence[Cell]) -> Iterator[_Row]:
    for target in {cell.target.name: cell.target for cell in cells}.values():
        fields = {"id": target.name, "label": target.label, "platform": target.platform}
        row = {**fields, "version": target.version, "jetpack": target.jetpack, "origin": _origin(target)}
        doubt = f" ({target.unsourced})" if target.unsourced else ""
        board = f"JetPack {target.jetpack}; " if target.jetpack else ""
        line = f"{target.name:<12} {target.label:<30} {target.platform:<12} {board}{_origin(target)}{doubt}"
        yield row, line


def _cells(cells: Sequence[Cell], last: Mapping[str, Known]) -> Iterator[_Row]:
    for cell in cells:
        names = {"case": cell.case.name, "variant": cell.variant.name, "target": cell.target.name}
        known = last.get(cell.id)
        found = {"class": known.cls, "verdict": known.verdict} if known else {}
        yield (
            {"id": cell.id, **names, **found},
            f"{cell.id:<52} {known.cls} ({known.verdict})" if known else cell.id,
        )


def _last_results(options: argparse.Namespace) -> dict[str, Known]:
    """Return each cell that ran, by the report if there is one."""
    path = results_path(options)
    cells = load_results(path).cells if path.is_file() else ()
    return {cell.id: cell for cell in cells if cell.measured and not cell.stale}


def _origin(target: Target) -> str:
    if target.build is None:
        return target.pull_reference
    if target.build.kind == "packages":
        return " ".join(target.packages)
    return f"docker/{target.build.kind}.Dockerfile on {target.pull_reference}"


#: Nodes of a graph that is listed; that of a larger one is saved with --output.
_SHORT_GRAPH = 12


def add_show(command: argparse.ArgumentParser) -> None:
    """Add the options of `show`."""
    command.add_argument("cell", help="a cell's id, such as conv_silu.qdq-rtx17")
    command.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="also write the .onnx there, and what the lines need beside it",
    )
    add_json(command, "object")
    add_trust(command)


def do_show(options: argparse.Namespace) -> int:
    """Print a cell's last result, its claims, its recipe, its graph and the lines that run it by hand."""
    project = load_project(options)
    # Copied from pytest's output, an id has the file before it.
    cell = find(project.cells, options.cell.rpartition("::")[2])
    data = cell.variant.model_bytes()
    model = onnx.load_model_from_string(data)
    check_variant(cell.variant, model)
    today = todays([cell], {(cell.case.name, cell.variant.name): data})
    recorded = Store(options.reports).speaking(lambda outcome: is_stale(outcome, today)).get(cell.id, ())
    digests = filter(None, (outcome.stamps.image_digest for outcome in recorded))
    name = Path(options.output).name if options.output else model_file(cell)
    hand = by_hand(cell, data, next(digests, ""), name)
    if options.output:
        _save(options.output, data, hand)
    if options.json:
        results = [as_json(judge_cell(cell, each)) for each in recorded] or _published(cell, options)
        print_json(_shown(cell, results, model, hand))
        return EXIT_OK
    print(cell.id)
    for line in (cell.variant.title, f"case: {cell.case.title}", f"target: {cell.target.label}"):
        _say(line)
    if not recorded:
        told = [
            f"{each['class']} ({each['verdict']}): {each['reason']}" for each in _published(cell, options)
        ]
        print(f"\nlast result: {'as published' if told else f'none is recorded in {options.reports}'}")
        for line in told:
            _say(line)
    for outcome in recorded:
        _show_result(cell, outcome, stale=today[cell.id].stale_because(outcome))
    _show_claims(cell)
    _show_recipe(cell, model, today[cell.id])
    _show_graph(model)
    print("\nin a container")
    for line in limits(cell.target):
        _say(line)
    _show_commands(cell, hand, options)
    return EXIT_OK


def _show_recipe(cell: Cell, model: onnx.ModelProto, today: Today) -> None:
    recipe = cell.variant.recipe
    if listed := StaticModel(model, plugins=bool(recipe.plugin or recipe.libraries)).drawn_on(cell.target):
        _say(f"{listed.state} by NVIDIA's operator tables: {listed.worded()}")
    print("\nrecipe")
    _say(describe_recipe(recipe))
    print(f"  model  sha256 {today.model_sha256}\n  recipe sha256 {today.recipe_sha256}")
    by_graph = ", by the graph's own types" if cell.variant.precision is None else ""
    for node, precision in wished(cell.variant, asked(model)):
        _say(f"wants  {node} in {said(precision)}{by_graph}")
    if reason := cell.inapplicable:
        _say(f"not applicable: {reason}")


def _published(cell: Cell, options: argparse.Namespace) -> list[dict[str, object]]:
    """Return the result that the report has of a cell without a record here."""
    found = _last_results(options).get(cell.id)
    return [{"class": found.cls, "verdict": found.verdict, "reason": found.reason}] if found else []


def _shown(
    cell: Cell, results: Sequence[dict[str, object]], model: onnx.ModelProto, hand: ByHand
) -> dict[str, object]:
    """Return the results of a cell, its claims and its recipe."""
    return {
        "id": cell.id,
        "title": cell.variant.title,
        "target": cell.target.name,
        "results": results,
        "claims": [dataclasses.asdict(claim) for claim in claims_about(cell)],
        "recipe": cell.variant.recipe.as_dict(),
        "wanted": dict(wished(cell.variant, asked(model))),
        "not_applicable": cell.inapplicable,
        "by_hand": hand.lines,
    }


def _say(text: str, indent: str = "  ") -> None:
    """Print a text in lines; a line to paste is never broken."""
    print("\n".join(wrapped(text, indent, f"{indent}  ")))


def _show_graph(model: onnx.ModelProto) -> None:
    opsets = ", ".join(f"{entry.domain or 'ai.onnx'} {entry.version}" for entry in model.opset_import)
    print(f"\ngraph (opset {opsets})")
    for value in model.graph.input:
        print(f"  input   {value.name} {_type(value)}")
    nodes = model.graph.node
    if len(nodes) <= _SHORT_GRAPH:
        for node in nodes:
            print(f"  {node.op_type:<20} {effective_name(node)}")
            _say(f"{', '.join(node.input)} -> {', '.join(node.output)}", " " * 23)
    else:
        counted = Counter(node.op_type for node in nodes)
        each = ", ".join(f"{count} {op}" for op, count in counted.most_common())
        _say(f"{len(nodes)} nodes: {each}")
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
        _say(f"{claim.outcome} on {_range(claim)} ({_provenance(claim)})")
        if claim.note:
            _say(claim.note, "    ")
        if claim.source:
            print(f"    {claim.source.url}")


def _provenance(claim: Expectation) -> str:
    return f"{claim.provenance}; speaks of: {claim.level}" if claim.level else claim.provenance


def _range(claim: Expectation) -> str:
    where = f", {claim.platform}" if claim.platform else ""
    gpu = f", compute capability {claim.compute_capability}" if claim.compute_capability else ""
    return f"{claim.engine} {claim.on_versions}{where}{gpu}"


def _show_result(cell: Cell, outcome: Outcome, *, stale: str) -> None:
    via = f", {outcome.stamps.via}" if outcome.stamps.via else ""
    gpu = took_part(outcome)
    print(f"\nlast result{f' on {gpu}' if gpu else ''} ({outcome.stamps.when}{via})")
    if stale:
        _say(f"out of date: {stale}; run it again")
        return
    judged = judge_cell(cell, outcome)
    _say(f"{judged.classification.cls} ({judged.judgement.verdict}): {judged.judgement.sentence}")
    for line in complaints(judged):
        _say(line.strip(), "    " if line.startswith(" ") else "  ")
    if outcome.uncompared:
        held = "held to ONNX Runtime without optimisations" if outcome.accuracy else "not compared"
        _say(f"numbers {held}: {outcome.uncompared}")
    for node, precision in judged.precision.items():
        print(f"  {node} ran in {said(precision)}")


def _show_commands(cell: Cell, hand: ByHand, options: argparse.Namespace) -> None:
    where = "this folder" if installed() else "the project's top folder, after `source .venv/bin/activate`"
    print(f"\ncommands, for {where}")
    made = command_lines(cell.target)
    target, where_from = cell.target.name, places(options, reports=False)
    again = ["trt-compat", "run", "-k", cell.id, "--target", target, *where_from]
    _block("this cell again", [shlex.join(again)])
    if hand.command:
        saved = options.output or model_file(cell)
        save = shlex.join(["trt-compat", "show", cell.id, "--output", saved, *where_from])
        more = ", repro.py and its recipe" if hand.recipe else ""
        told = f"by hand, as a bug report needs it; the first line saves the model{more}"
        folder = str(Path(saved).parent)
        there = [save, *([shlex.join(["cd", folder])] if folder != "." else [])]
        _block(told, [*there, *hand.lines])
        *image, started = container_lines(cell.target)
        _block("the same in the image that cells run in", [*there, *image, f"{started} {hand.command}"])
        made = made[-1:]
    _block("the engine in that image, confined as for a cell: prints its version", made)
    if cell.target.packages:
        what = f"the engine in a virtual environment, on a {cell.target.docker_platform} machine"
        _block(f"{what}: prints its version", command_lines(cell.target, "venv"))


def _block(what: str, lines: Sequence[str]) -> None:
    print("\n".join([f"  # {what}", *(f"  {line}" for line in lines)]))


def _save(path: str, data: bytes, hand: ByHand) -> None:
    if Path(path).name in hand.files:
        raise HandledError(f"{path}: name the model, such as model.onnx; that file is written beside it")
    write_file(Path(path), data)
    for name, text in hand.files.items():
        write_file(Path(path).with_name(name), text.encode())


def add_share(command: argparse.ArgumentParser) -> None:
    """Add the options of `share`."""
    command.description = (
        "Write what a maintainer asks for of one cell that was run: the text of an issue, the model, the lines and the "
        "file that reproduce it, the log, and versions. Names of this machine and its user are taken out; nothing is "
        "sent."
    )
    command.add_argument("cell", help="a cell's id, such as conv_silu.qdq-rtx17")
    command.add_argument("-o", "--output", type=Path, metavar="FILE", help="the archive (default: CELL.zip)")


def do_share(options: argparse.Namespace) -> int:
    """Write the archive and print its place."""
    project = load_project(options)
    cell = find(project.cells, options.cell.rpartition("::")[2])
    today = todays([cell])
    store = Store(options.reports)
    recorded = store.speaking(lambda outcome: is_stale(outcome, today)).get(cell.id)
    if not recorded:
        raise HandledError(
            f"{cell.id}: no result is recorded in {options.reports}; `trt-compat run -k {cell.case.name}` makes one"
        )
    judged = judge_cell(cell, recorded[0])
    known_by = judged.outcome.log_sha256
    log = store.log(known_by) if known_by else ""
    made = share(judged, log)
    path = options.output or Path(f"{cell.case.name}-{cell.variant.name}-{cell.target.name}.zip")
    write_file(path, made.archive())
    print(f"{path}: {', '.join(made.files)}")
    print(f"title: {made.title}")
    return EXIT_OK
