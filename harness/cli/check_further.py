"""The further tries of `check`: parts of the model, the model without its Q/DQ, and rewritten."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import onnx

from harness.errors import HandledError
from harness.models.check import ran
from harness.models.further import Asking, Further, Questions, as_json, latest
from harness.models.graphs import outside
from harness.models.own import Given
from harness.models.trying import BuiltOrRun, Tries
from harness.report.further import Row, further_rows
from harness.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.cli.terminal import Doing
    from harness.judge.cell import Judged
    from harness.models.own import OwnModel


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of the further tries."""
    command.add_argument(
        "--no-blockers",
        dest="blockers",
        action="store_false",
        help="of a model that does not build tell the first failure alone, not what else there is",
    )
    command.add_argument(
        "--leave-float",
        default="",
        metavar="auto|NODE,NODE",
        help="try these nodes without Q/DQ; auto looks for the fewest after which the rest keeps its precision",
    )
    command.add_argument(
        "--try-workarounds",
        action="store_true",
        help="try every known way round on the model, and tell which help and what they cost",
    )
    command.add_argument(
        "--write",
        type=Path,
        metavar="FILE",
        help="write the model that --leave-float or --try-workarounds found",
    )


def check_usage(options: argparse.Namespace, models: Sequence[OwnModel]) -> None:
    """Raise HandledError where --leave-float names no nodes, or --write does not say which model is meant."""
    for model in models:
        questions(options).named(model)
    if options.write is None:
        return
    if any(options.write.exists() and options.write.samefile(each) for each in options.models):
        raise HandledError(f"--write {options.write}: is the model itself; give another place")
    if bool(options.leave_float) == options.try_workarounds:
        raise HandledError(
            "--write writes what one of --leave-float and --try-workarounds found; give one of them"
        )
    if len(options.models) > 1:
        raise HandledError("--write is of one model, and several are named; check them one by one")
    if options.after is None and len(options.targets) != 1:
        raise HandledError("--write is of one target; name it with --to or --target")


def questions(options: argparse.Namespace) -> Questions:
    """Return the questions to ask beyond the models as they are."""
    return Questions(options.blockers, options.leave_float, options.try_workarounds)


def further(
    models: Sequence[OwnModel],
    judged: Sequence[Judged],
    options: argparse.Namespace,
    given: Mapping[str, Given],
    doing: Doing,
) -> tuple[Further, ...]:
    """Try more than the models as they are, print each answer as it comes, and return all."""

    def tried(target: str, count: int) -> None:
        doing.now(f"trying what is made of the model: on {target}, try {count}")

    found: list[Further] = []
    prepared = BuiltOrRun()
    with Tries(via=options.via, prepared=prepared, told=tried) as tries:
        for model in models:
            mine = [each for each in judged if each.cell.variant.name == model.variant.name and ran(each)]
            prepared.given = given.get(model.variant.name, Given())
            asking = Asking(model, mine, questions(options), tries, tuple(options.flags), prepared.given)
            answers = []
            for question, answer in asking.answers() if mine else ():
                answers.append((question, answer))
                for line in _lines(model.label, question, answer, options):
                    doing.say(line)
            found += latest(answers)
            for line in _needless(asking, options) if mine else ():
                doing.say(line)
    return tuple(found)


def _lines(label: str, question: str, found: Sequence[Further], options: argparse.Namespace) -> Iterator[str]:
    """Yield the answers to a question, targets that answer alike together, and write the model that is asked for."""
    groups: dict[tuple[Row, ...], list[str]] = {}
    for each in found:
        rows = further_rows([as_json(each)], question)
        groups.setdefault(tuple(row._replace(target="") for row in rows), []).append(each.target)
    for rows, targets in groups.items():
        yield f"{label} on {', '.join(targets)}: {rows[0].question}"
        yield from (visible(f"  {row.about}: {row.answer}") for row in rows)
    for each in found:
        left, tried = each.left, each.workarounds
        if question == "leave_float" and left is not None and left.model is not None:
            yield from _written(each, left.model, " ".join(left.nodes), options)
        if question == "workarounds" and tried is not None and tried.best is not None:
            yield from _written(each, tried.best.model, tried.best.rewrite.name, options)


def _needless(asking: Asking, options: argparse.Namespace) -> Iterator[str]:
    label = asking.model.label
    if asking.troubled:
        return
    if options.leave_float == "auto":
        yield f"{label}: nothing is to be left in floating point: no target that ran loses anything"
    if options.try_workarounds and not asking.untold:
        yield f"{label}: no workaround is needed: no target that ran fails to build it or loses anything"


def _written(found: Further, model: onnx.ModelProto, what: str, options: argparse.Namespace) -> Iterator[str]:
    if options.write is None:
        return
    (wanted,) = (options.after,) if options.after else options.targets
    if found.target != wanted:
        return
    try:
        onnx.save(model, options.write)
    except (OSError, ValueError) as error:
        raise HandledError(f"--write {options.write}: cannot be written ({error})") from error
    yield f"  written: {options.write} ({what})"
    if outside(model) and options.write.parent.resolve() != options.models[0].parent.resolve():
        yield f"  its weights stay in their files: move it to {options.models[0].parent}"
