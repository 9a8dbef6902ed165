"""`convert`: a model with the types that an older engine ran in, for engines that take them from the graph alone."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import onnx
from packaging.version import Version

from harness.bounded import read_bytes
from harness.case.explicit import Explicit, explicit
from harness.case.model import serialise
from harness.cli.options import (
    EXIT_INFRA,
    EXIT_OK,
    EXIT_REGRESSION,
    add_json,
    add_where,
    print_json,
    writable_file,
    write_file,
)
from harness.cli.project import load_targets
from harness.cli.terminal import Doing
from harness.convert.proof import Rebuilt, TypedNode, own, rebuilt, rows
from harness.convert.wishes import (
    Account,
    Wishes,
    as_it_ran,
    by_rules,
    kept_in_fp32,
    read_account,
    read_scales,
)
from harness.errors import HandledError
from harness.layers.asked import asked
from harness.matrix import Target
from harness.models.answers import deciding
from harness.models.reading import bounded, read_beside
from harness.record.outcome import Outcome
from harness.record.store import Store
from harness.share.submission import SUFFIX, read
from harness.words import Precision

_REMEDY = "give the path of an .onnx file"
#: Bytes of a log that is read, and lines of the table without a summary.
_MOST_BYTES, _MOST_LINES = 512 << 20, 60


def add_convert(command: argparse.ArgumentParser) -> None:
    """Add the model, what it is to be typed by, and the engines that are to show it."""
    command.description = (
        "Write a model whose graph carries its types: those that an older engine ran in, by its verbose build log, the "
        "inspector's JSON, or a record; or a narrow float by rule. Casts stand at borders alone, Q/DQ has "
        "the scales of the calibration cache. It is then built and run by the strongly typed engines that are here. "
        "The exit code is 1 where a node runs coarser than it is typed, or numbers are off."
    )
    command.add_argument(
        "model", type=Path, metavar="MODEL", help="the .onnx file that the old engine was built of"
    )
    types = command.add_mutually_exclusive_group(required=True)
    types.add_argument(
        "--as",
        dest="account",
        metavar="ACCOUNT",
        help="a verbose build log, layers as JSON, or a cell's id in --reports, a folder or an archive of records",
    )
    types.add_argument(
        "--fp16",
        dest="rules",
        action="store_const",
        const=Precision.FP16,
        help="FP16, but norms, softmax, reductions, powers and roots in FP32",
    )
    types.add_argument(
        "--bf16", dest="rules", action="store_const", const=Precision.BF16, help="BF16 in the same way"
    )
    command.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="write the model there"
    )
    command.add_argument(
        "--calibration-cache",
        type=Path,
        metavar="FILE",
        help="TensorRT's, with the scales of what ran in INT8",
    )
    command.add_argument("--keep-fp32", metavar="PATTERN", help="nodes whose name holds it stay in FP32")
    command.add_argument("--shapes", default="", metavar="SPEC", help="of dynamic inputs: images:1x3x640x640")
    command.add_argument(
        "--inputs", type=Path, metavar="FILE", help="an .npz with an array for each network input"
    )
    command.add_argument(
        "--on",
        action="append",
        default=[],
        metavar="TARGET",
        help="build and run it there (repeatable), or none (default: the newest of each engine that is here)",
    )
    add_json(command, "object")
    add_where(command)


def do_convert(options: argparse.Namespace) -> int:
    """Write the converted model, and print what it promises and what engines make of it."""
    writable_file(options.output, "-o", [options.model])
    if options.calibration_cache and not options.account:
        raise HandledError(
            "--calibration-cache goes with --as: it has the scales of what an engine ran in INT8"
        )
    targets = _targets(options)
    made, table = _converted(options)
    write_file(options.output, serialise(made.model))
    found = list(_rebuilt(options, made, targets))
    if options.json:
        print_json(_as_json(table, made, found))
    else:
        print("\n".join((*_lines(table), *_sums(table, made), *map(_with_coarser, found))))
    if any(each.broken for each in found) or any(row.missed for row in table):
        return EXIT_REGRESSION
    return EXIT_OK if all(each.tried for each in found) else EXIT_INFRA


def _converted(options: argparse.Namespace) -> tuple[Explicit, tuple[TypedNode, ...]]:
    """Return the typed model and its table, made in a bounded child: a stranger's model may loop or crash libraries."""
    path = options.model
    asked_for = argparse.Namespace(**{name: getattr(options, name) for name in _OF_THE_CHILD})
    size = path.stat().st_size if path.is_file() else 0
    every, failed = bounded(_typed, Path.cwd(), asked_for, size=size)
    if not every:
        raise HandledError(f"{path}: cannot be converted: the process that types it {failed}")
    (found,) = every
    if isinstance(found, str):
        raise HandledError(found)
    data, typed, why, table = found
    return Explicit(onnx.load_model_from_string(data), typed, why), table


_OF_THE_CHILD = ("model", "output", "account", "rules", "calibration_cache", "keep_fp32", "reports")
_Typed = tuple[bytes, dict[str, Precision], dict[str, str], tuple[TypedNode, ...]]


def _typed(folder: Path, options: argparse.Namespace) -> Iterator[_Typed | str]:
    """Yield the typed model, or a sentence on why there is none."""
    # The process that children are forked from has a folder of its own.
    os.chdir(folder)
    try:
        model = _read(options.model, options.output)
        wishes = _wishes(options, model)
        made = explicit(model, wishes.types)
        yield serialise(made.model), dict(made.typed), dict(made.why), rows(model, wishes, made)
    except HandledError as error:
        yield str(error)


def _read(path: Path, output: Path) -> onnx.ModelProto:
    """Return the model to convert; raises HandledError if its weights would not lie beside the result."""
    model, weights = read_beside(path, _REMEDY)
    if weights is not None and output.resolve().parent != path.resolve().parent:
        raise HandledError(f"-o {output}: its weights stay in files beside {path}; write it there too")
    return model


def _wishes(options: argparse.Namespace, model: onnx.ModelProto) -> Wishes:
    if options.rules:
        wishes = by_rules(model, options.rules)
    else:
        account = _account(options, model)
        if options.calibration_cache:
            scales = read_scales(_text(options.calibration_cache))
            if not scales:
                raise HandledError(f"{options.calibration_cache}: is no calibration cache of TensorRT")
            account = replace(account, scales=scales)
        wishes = as_it_ran(model, account)
    return kept_in_fp32(wishes, options.keep_fp32) if options.keep_fp32 else wishes


def _account(options: argparse.Namespace, model: onnx.ModelProto) -> Account:
    name, folder = options.account, options.reports
    if Path(name).is_file():
        return read_account(_text(Path(name)), asked(model), name)
    source = read(folder) if str(folder).endswith(SUFFIX) else Store(folder)
    found: list[Outcome] = [each for each in source.outcomes() if each.cell == name and each.layers]
    if not found:
        raise HandledError(
            f"--as {name}: is no file, and {folder} has no record of such a cell with an engine's layers"
        )
    log = found[-1].log_sha256
    return Account(found[-1].layers, read_scales(source.log(log)) if log else {})


def _text(path: Path) -> str:
    try:
        return read_bytes(path, _MOST_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise HandledError(f"{path}: cannot be read ({error.strerror}); give another file") from error


def _rebuilt(options: argparse.Namespace, made: Explicit, targets: Sequence[Target]) -> Iterator[Rebuilt]:
    """Yield the answers of the engines that are to show it, of those that nobody named only if they are here."""
    if not targets:
        return
    old, given = own(options.model, options.shapes, options.inputs)
    with Doing() as doing:
        for each in rebuilt(old, made, targets, given, options.via):
            doing.now(f"{each.judged.cell.target.name} is done")
            if each.tried or options.on:
                yield each


def _targets(options: argparse.Namespace) -> list[Target]:
    """Return the named targets, else the newest of each engine; of TensorRT only strongly typed ones."""
    if options.on == ["none"]:
        return []
    matrix = load_targets(options)
    found = list(matrix.only(options.on or deciding(matrix)))
    for each in found:
        if Version(each.version) < Version(each.traits.strong_from):
            raise HandledError(
                f"--on {each.name}: {each.label} has no strongly typed networks; name a later one"
            )
    return found


def _lines(table: Sequence[TypedNode]) -> Iterator[str]:
    """Yield the table, of a large model only the nodes that differ."""
    told = [row for row in table if row.ran or row.why]
    shown = told if len(told) <= _MOST_LINES else [row for row in told if row.missed]
    wide = max((len(row.node) for row in shown), default=4)
    for row in shown:
        ran = f"ran {row.ran:<8} " if row.ran else ""
        yield f"{row.node:<{wide}}  {row.operator:<16} {ran}now {row.typed:<5}  {row.why}".rstrip()


def _sums(table: Sequence[TypedNode], made: Explicit) -> Iterator[str]:
    sums = Counter((row.ran, row.typed) for row in table if row.typed)
    for (ran, typed), count in sorted(sums.items()):
        yield f"{count} nodes {f'ran in {ran}, ' if ran else ''}are typed {typed}"
    if missed := sum(row.missed for row in table):
        yield f"{missed} nodes that ran in a narrow type are not typed so"
    yield f"{made.count('Cast')} Casts and {made.count('QuantizeLinear')} QuantizeLinear are in the graph"
    if Precision.TF32 in {row.ran for row in table}:
        yield "TF32 is FP32 in the graph: leave the builder's TF32 on, which is its default"


def _with_coarser(found: Rebuilt) -> str:
    """Return an engine's answer, with a line for each node that it runs coarser."""
    lines = (
        f"  {node} is typed {found.typed[node]} and runs in {ran}" for node, ran in found.coarser.items()
    )
    return "\n".join((str(found), *lines))


def _as_json(table: Sequence[TypedNode], made: Explicit, found: Sequence[Rebuilt]) -> dict[str, object]:
    return {
        "nodes": [asdict(row) | {"missed": row.missed} for row in table],
        "casts": made.count("Cast"),
        "quantisers": made.count("QuantizeLinear"),
        "targets": {
            each.judged.cell.target.name: {
                "class": each.judged.classification.cls,
                "broken": each.broken,
                "line": str(each),
                "nodes": each.ran,
                "median_ms": each.median_ms,
                "accuracy": [asdict(output) for output in each.judged.outcome.accuracy],
            }
            for each in found
        },
    }
