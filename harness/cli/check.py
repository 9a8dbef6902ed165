"""`check MODEL...`: builds and runs own models on each target, and parts and rewrites of them, without a case file."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import onnx

from harness.case import load_cases
from harness.cli.check_lines import head, row, static_lines, told, without_effect
from harness.cli.options import (
    EXIT_INFRA,
    EXIT_OK,
    EXIT_REGRESSION,
    EXIT_USAGE,
    add_building,
    add_targets,
    add_where,
    positive,
    writable,
    writable_file,
    write_file,
)
from harness.cli.project import load_targets
from harness.cli.terminal import Doing
from harness.errors import HandledError
from harness.models.check import Trouble, ran, static_troubles, step_troubles, troubles
from harness.models.further import Asking, Further, Questions, as_json, latest
from harness.models.graphs import outside
from harness.models.own.data import Given, OwnPrepared, built_with, fitted, read_libraries
from harness.models.own.model import Wanted, load_own, of_made_up_sizes, own_case
from harness.models.own.shapes import Shapes, parse_shapes
from harness.models.static import State, patterns, static_answers
from harness.models.trying import BuiltOrRun, Tries, run_models
from harness.plan import all_cells
from harness.record.store import Store
from harness.report.further import Row, further_rows
from harness.report.writer import build_report, write_further
from harness.run.commands import published_lines
from harness.run.local import How
from harness.run.numbers.given import read_npz
from harness.run.provision.requirements import refuse_unconfined
from harness.scratch import Scratch
from harness.text import did_you_mean, visible
from harness.words import Typing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.case import Case
    from harness.judge.cell import Judged
    from harness.matrix import Matrix
    from harness.models.own.model import OwnModel
    from harness.models.static import Static

    Answers = Mapping[tuple[str, str], Static]
    Doubted = Mapping[tuple[str, str], str]

#: results.json of a check lies in its report.
_RESULTS = "results.json"
_SHAPES = ("minShapes", "optShapes", "maxShapes")


def add_check(command: argparse.ArgumentParser) -> None:
    """Add the options of `check`."""
    command.description = (
        "Build own models on each target, run them where that can be, and say what becomes of them: one line a target, "
        "then what is lost from one to the other, then advice. The exit code is 1 where something in --fail-on gets "
        "worse from A to B or, without --from, occurs anywhere."
    )
    command.add_argument("models", nargs="+", type=Path, metavar="MODEL", help="an .onnx file")
    add_targets(command, "only this target (repeatable)")
    command.add_argument("--from", dest="before", metavar="A", help="the target that is used today")
    command.add_argument("--to", dest="after", metavar="B", help="the target that is to be used")
    _add_data(command)
    command.add_argument(
        "--fail-on",
        type=_fail_on,
        default=frozenset({Trouble.BUILD, Trouble.INT8_LOSS}),
        metavar="WHAT",
        help="build, int8-loss and numbers, with commas between, or none (default: build,int8-loss)",
    )
    command.add_argument(
        "--json", type=Path, metavar="FILE", help="write what was found, as results.json has it"
    )
    command.add_argument(
        "--html", type=Path, metavar="FOLDER", help="write the report page, with records and logs"
    )
    add_where(command)
    command.add_argument("--pull", action="store_true", help="pull large images too")
    command.add_argument(
        "-j", "--jobs", type=positive, metavar="N", help="targets at the same time (default: one a processor)"
    )
    _add_further(command)


def _add_data(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--shapes", default="", metavar="SHAPES", help="of dynamic inputs: x:1x3x640x640,mask:1x640"
    )
    for option in _SHAPES:
        command.add_argument(f"--{option}", default="", metavar="SHAPES", help="as trtexec has it")
    command.add_argument(
        "--inputs", type=Path, metavar="FILE", help="an .npz with an array for each network input"
    )
    command.add_argument(
        "--expected",
        type=Path,
        metavar="FILE",
        help="an .npz with what outputs are to be (default: ONNX's reference)",
    )
    command.add_argument(
        "--calibration",
        type=Path,
        metavar="FILE",
        help="an .npz with batches of each network input for an INT8 calibrator, along the first axis",
    )
    command.add_argument(
        "--plugin",
        dest="plugins",
        type=Path,
        action="append",
        default=[],
        metavar="LIBRARY",
        help="a compiled library of plugins, loaded before the model is parsed (repeatable)",
    )
    add_building(command)
    command.add_argument(
        "--want",
        default="auto",
        metavar="auto|none|PATTERN",
        help="which nodes are to keep the precision that the graph asks of them (default: all)",
    )


def do_check(options: argparse.Namespace) -> int:
    """Check the models and print the results; returns the exit code."""
    with Doing() as doing:
        judged, answers, doubted = _check(options, doing)
    code = _code(judged, _blocked(judged, answers), doubted, options)
    some_refused = len({each.cell.variant.name for each in judged}) < len(options.models)
    return EXIT_USAGE if some_refused and code != EXIT_REGRESSION else code


def _check(options: argparse.Namespace, doing: Doing) -> tuple[list[Judged], Answers, Doubted]:
    whole = load_targets(options)
    matrix = _chosen(whole, options)
    # A folder that was named is refused before anything runs; one that was only found costs the hints, no more.
    known_cases = options.cases if "cases" in options.unsaid else load_cases(options.cases)
    models = _models(options, doing)
    _check_usage(options, models)
    _refuse_unwritable(options)
    given = _given(options, models)
    models = [built_with(model, given.get(model.variant.name, Given())) for model in models]
    case = own_case(models)
    prepared = OwnPrepared(given)
    for model in models:
        for line in head(model):
            doing.say(line)
    with contextlib.ExitStack() as stack:
        scratch = options.html or Path(stack.enter_context(Scratch("check-")))
        store = stack.enter_context(Store(scratch, run=uuid.uuid4().hex[:12]))
        found: tuple[Further, ...] = ()
        answers: Answers = {}
        try:
            judged = _run(matrix, case, prepared, store, options, doing)
            known, unread = patterns(known_cases, whole)
            answers, doubted = static_answers(models, judged, known), _doubted(models, judged)
            for line in itertools.chain(
                told(judged, _steps(judged, options), _blocked(judged, answers), doubted),
                without_effect(judged, options.flags),
                static_lines(models, judged, answers),
                filter(None, [unread]),
            ):
                doing.say(line)
            found = _further(models, judged, options, given, doing)
        finally:
            if (options.html or options.json) and (answers or store.holds_records):
                doing.now("writing the report")
                write_further(scratch, [as_json(each) for each in found])
                build_report(matrix, (case,), store, scratch, published_lines(matrix))
                if options.json:
                    _write_json(scratch / _RESULTS, options.json, answers)
    if options.html:
        doing.say(f"report: {options.html / 'index.html'}")
    return judged, answers, doubted


def _models(options: argparse.Namespace, doing: Doing) -> list[OwnModel]:
    """Return the models; of several, one that cannot be read costs its own line alone."""
    wanted = _wanted(options)
    models, refused = [], []
    for path in options.models:
        doing.now(f"reading {path}")
        try:
            models.append(load_own(path, wanted))
        except HandledError as error:
            refused.append(error)
    if not models:
        raise HandledError("; ".join(map(str, refused)))
    for each in refused:
        doing.say(f"not checked: {each}")
    return models


def _doubted(models: list[OwnModel], judged: list[Judged]) -> Doubted:
    """Return variant and target of the failures that may come of made-up sizes, with these."""
    return {
        (own.variant.name, failed.cell.target.name): own.made_up
        for own in models
        for failed in of_made_up_sizes(
            own, [each for each in judged if each.cell.variant.name == own.variant.name]
        )
    }


def _blocked(judged: list[Judged], answers: Answers) -> frozenset[tuple[str, str]]:
    """Return variant and target of each model that did not run and cannot be built by NVIDIA's tables."""
    keys = ((each.cell.variant.name, each.cell.target.name) for each in judged if not ran(each))
    return frozenset(key for key in keys if answers[key].state is State.BLOCKED)


def _refuse_unwritable(options: argparse.Namespace) -> None:
    if options.html:
        writable(options.html, "--html")
    for option in ("json", "write"):
        if getattr(options, option):
            writable_file(getattr(options, option), f"--{option}")


def _chosen(matrix: Matrix, options: argparse.Namespace) -> Matrix:
    """Return the matrix of the targets that are asked for; all where none is."""
    if (options.before is None) != (options.after is None):
        given, other = ("--from", "--to") if options.after is None else ("--to", "--from")
        raise HandledError(f"{given} names one side; name the other with {other}")
    names = [*filter(None, (options.before, options.after)), *options.targets]
    if options.before is not None and options.before == options.after:
        raise HandledError(f"--from and --to are both {options.before}; name two targets")
    chosen = matrix.only(names)
    refuse_unconfined(chosen, options.via)
    return chosen


def _wanted(options: argparse.Namespace) -> Wanted:
    least, usual, most = (parse_shapes(getattr(options, name), f"--{name}") for name in _SHAPES)
    shapes = Shapes(least, usual or parse_shapes(options.shapes, "--shapes"), most)
    how = Wanted(Typing(options.typing), tuple(options.flags), options.want, shapes)
    return replace(how, max_rel=options.max_rel, cosine=options.cosine)


def _given(options: argparse.Namespace, models: list[OwnModel]) -> dict[str, Given]:
    libraries = read_libraries(options.plugins)
    files = {name: getattr(options, name) for name in ("inputs", "expected", "calibration")}
    if any(files.values()) and len(options.models) > 1:
        raise HandledError(
            "--inputs, --expected and --calibration are of one model, and several are named; check them one by one"
        )
    arrays = {name: read_npz(path, f"--{name}") for name, path in files.items() if path}
    return {
        each.variant.name: fitted(each, Given(**arrays, libraries=libraries, weights=each.weights))
        for each in models
    }


def _run(  # noqa: PLR0913, PLR0917
    matrix: Matrix,
    case: Case,
    prepared: OwnPrepared,
    store: Store,
    options: argparse.Namespace,
    doing: Doing,
) -> list[Judged]:
    """Run every model on every target and print each line as it comes; return the results in the matrix's order."""
    cells = all_cells(matrix, (case,))
    width = max((len(cell.target.name) for cell in cells), default=0)
    left = [cell.target.name for cell in cells]
    doing.now(f"0 of {len(cells)} done; {_some(left)} to come")

    def tell(judged: Judged) -> None:
        left.remove(judged.cell.target.name)
        doing.now(f"{len(cells) - len(left)} of {len(cells)} done; {_some(left)} to come")
        if ran(judged):
            doing.say(row(judged, width, several=len(case.variants) > 1))

    how = How(options.via, options.jobs, options.pull)
    return run_models(cells, prepared, how, sink=store, tell=tell)


def _some(names: list[str]) -> str:
    return ", ".join(dict.fromkeys(names)) or "nothing"


def _steps(judged: list[Judged], options: argparse.Namespace) -> Iterator[tuple[Judged, Judged]]:
    """Yield both sides of each model, where two are named."""
    if options.before is not None:
        by_cell = {(each.cell.variant.name, each.cell.target.name): each for each in judged}
        for name in dict.fromkeys(each.cell.variant.name for each in judged):
            yield by_cell[name, options.before], by_cell[name, options.after]


def _code(
    judged: list[Judged], blocked: frozenset[tuple[str, str]], doubted: Doubted, options: argparse.Namespace
) -> int:
    """Return the exit code; a failure that may come of made-up sizes counts as not run."""

    def doubtful(each: Judged) -> bool:
        return (each.cell.variant.name, each.cell.target.name) in doubted

    steps = list(_steps(judged, options))
    asked = [each for step in steps for each in step] or judged
    if not any(map(ran, asked)):
        print("nothing that was asked ran")
    found = (
        [step_troubles(*step, blocked) for step in steps if not any(map(doubtful, step))]
        if steps
        else [troubles(each) or static_troubles(each, blocked) for each in judged if not doubtful(each)]
    )
    if any(options.fail_on & each for each in found):
        return EXIT_REGRESSION
    unknown = [each for each in asked if not ran(each) and (steps or each.outcome.state == "infra_error")]
    unknown += [each for each in asked if doubtful(each) and options.fail_on & troubles(each)]
    return EXIT_INFRA if unknown or not any(map(ran, asked)) else EXIT_OK


def _fail_on(text: str) -> frozenset[Trouble]:
    words = [each.strip() for each in text.split(",") if each.strip() not in ("", "none")]
    known = [str(each) for each in Trouble]
    for each in words:
        if each not in known:
            raise argparse.ArgumentTypeError(f"{each!r} is nothing to fail on; {did_you_mean(each, known)}")
    return frozenset(map(Trouble, words))


def _write_json(source: Path, goal: Path, answers: Answers) -> None:
    """Write results.json with the static answers, of an interrupted check without; raises HandledError."""
    data = json.loads(source.read_bytes())
    for cell in data["cells"] if answers else ():
        cell["static"] = answers[cell["variant"], cell["target"]].to_json()
    write_file(goal, (json.dumps(data, indent=1, sort_keys=True) + "\n").encode(), "give --json another")


def _add_further(command: argparse.ArgumentParser) -> None:
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


def _check_usage(options: argparse.Namespace, models: Sequence[OwnModel]) -> None:
    """Raise HandledError where --leave-float names no nodes, or --write does not say which model is meant."""
    for model in models:
        _questions(options).named(model)
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


def _questions(options: argparse.Namespace) -> Questions:
    """Return the questions to ask beyond the models as they are."""
    return Questions(options.blockers, options.leave_float, options.try_workarounds)


def _further(
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
            asking = Asking(model, mine, _questions(options), tries, tuple(options.flags), prepared.given)
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
