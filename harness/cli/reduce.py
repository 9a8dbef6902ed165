"""`reduce MODEL`: the smallest model that still shows the failure; `new NAME --from MODEL`: a case of a model."""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import onnx

from harness.case import Recipe, Typing
from harness.case.model import serialise
from harness.cli.options import EXIT_OK, add_building, add_where, places, positive, writable
from harness.cli.project import load_targets
from harness.cli.terminal import Doing
from harness.errors import HandledError, InfraError
from harness.judge.cell import Judged
from harness.matrix import Target
from harness.models.case_file import About, add_case, case_name, case_text
from harness.models.check import ran, sizes_doubted
from harness.models.further import graph_of
from harness.models.graphs import outside
from harness.models.own.data import Given
from harness.models.own.model import OwnModel, Wanted, load_own, of_made_up_sizes, own_model
from harness.models.own.shapes import Shapes, in_words, parse_shapes
from harness.models.reading import held
from harness.models.reduce.search import Limits, Search, Step
from harness.models.reduce.shown import Shown, Side, differing, named, sought
from harness.models.trying import BuiltOrRun, Tries
from harness.run.provision.requirements import refuse_unconfined
from harness.words import GOOD, Class

#: Seconds between two lines of progress.
_TICK = 2.0
#: The share of the whole time that one try may take: a candidate that hangs must not use all of it.
_ONE_TRY = 10
_LEAST_TRY = 10.0


def add_reduce(command: argparse.ArgumentParser) -> None:
    """Add the options of `reduce`."""
    command.description = (
        "Make a failing model as small as it goes while it fails in the same way: fewer nodes, then smaller shapes. "
        "The result is rewritten whenever a smaller model is found."
    )
    command.add_argument("model", type=Path, metavar="MODEL", help="an .onnx file")
    command.add_argument("--target", metavar="T", help="where it fails")
    command.add_argument("--differs", type=_two, metavar="A,B", help="keep in what two targets differ")
    command.add_argument(
        "--keep",
        default="signature",
        metavar="class|signature|TEXT",
        help="what has to stay: how it fails, its known cause and operator (where there is none, the error's words), "
        "or a text that the engine says (default: signature)",
    )
    command.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="the small model (default: NAME-reduced.onnx here)"
    )
    command.add_argument("--case", type=Path, metavar="FILE", help="write a case of it as well")
    command.add_argument("--seconds", type=positive, default=600, metavar="N", help="for all (default: 600)")
    command.add_argument("--tries", type=positive, default=100_000, metavar="N", help="at most so many")
    add_recipe(command)


def add_recipe(command: argparse.ArgumentParser) -> None:
    """Add the options of building a model."""
    command.add_argument("--shapes", default="", metavar="SHAPES", help="of dynamic inputs: x:1x3x640x640")
    add_building(command)
    add_where(command)


def wanted(options: argparse.Namespace) -> Wanted:
    """Return the options of `add_recipe`."""
    shapes = Shapes(optimum=parse_shapes(options.shapes, "--shapes"))
    how = Wanted(Typing(options.typing), tuple(options.flags), shapes=shapes)
    return replace(how, max_rel=options.max_rel, cosine=options.cosine)


def do_reduce(options: argparse.Namespace) -> int:
    """Reduce the model and print the result; returns the exit code."""
    with Doing() as doing:
        return _reduce(options, doing)


def _reduce(options: argparse.Namespace, doing: Doing) -> int:
    names = _names(options)
    matrix = load_targets(options)
    allowed = max(_LEAST_TRY, options.seconds / _ONE_TRY)
    targets = [matrix.target(name) for name in names]
    refuse_unconfined(targets, options.via)
    targets = [replace(each, timeout_s=min(each.timeout_s, allowed)) for each in targets]
    doing.now(f"reading {options.model}")
    how = wanted(options)
    own = load_own(options.model, how, name="own")
    usual = {each.input: each.optimum for each in own.variant.recipe.profiles}
    how = replace(how, shapes=Shapes(optimum=usual))
    prepared = BuiltOrRun(Given(weights=own.weights))

    def tried(target: str, count: int) -> None:
        doing.now(f"try {count}, on {target}")

    with Tries(via=options.via, prepared=prepared, told=tried) as tries:
        bench = _Bench(tries, prepared, targets, how, options, doing)
        return bench.reduce(own)


class _Bench:
    """A model on its way to a smaller one: the targets that it is tried on, and the file that it is written to."""

    def __init__(  # noqa: PLR0913, PLR0917
        self,
        tries: Tries,
        prepared: BuiltOrRun,
        targets: Sequence[Target],
        how: Wanted,
        options: argparse.Namespace,
        doing: Doing,
    ) -> None:
        self._doing = doing
        self._tries, self._prepared = tries, prepared
        self._targets = {target.name: target for target in targets}
        self._how, self._options = how, options
        self._out: Path = options.output or Path(f"{options.model.stem}-reduced.onnx")
        self._started = self._said = time.monotonic()

    def reduce(self, own: OwnModel) -> int:
        """Look at the model, search, write and tell."""
        options, model = self._options, graph_of(own)
        before = len(model.graph.node)
        _refuse_place(options.model, self._out)
        if options.case:
            case_name(options.case)
            writable(options.case.parent, "--case")
        shown, near = self._first(model, own)
        self._doing.say(f"{options.model}: {before} nodes; {shown}")
        search: Search

        def shows(candidate: onnx.ModelProto) -> bool:
            return shown.shown(lambda name: self._look(candidate, name))

        def told(step: Step) -> None:
            if step.better:
                write(search.best, self._out)
            self._progress(step, before)

        search = Search(
            model, shows, near=near, told=told,
            limits=Limits(options.seconds - (time.monotonic() - self._started), options.tries),
            held=lambda found: held(found, own.weights),
        )  # fmt: skip
        whole = search.run()
        write(search.best, self._out)
        self._tell(search, before, shown, whole=whole)
        if options.case and whole:
            self._write_case(search.best, shown, options.case)
        return EXIT_OK

    def _write_case(self, model: onnx.ModelProto, shown: Shown, path: Path) -> None:
        """Write the case of the model that was tried."""
        if outside(model):
            raise HandledError(f"--case {path}: its weights are too many to be in a case; keep {self._out}")
        title = f"{', '.join(dict.fromkeys(node.op_type for node in model.graph.node))} {shown}"
        about = About(path.stem, title, f"Reduced from a model that {shown}.", data=self._how.data)
        add_case(path, model, case_text(about, self._recipe(model)))
        self._doing.say(f"case: {path}")

    def _recipe(self, model: onnx.ModelProto) -> Recipe:
        """Return how the rest of the model is built."""
        how = replace(self._how, shapes=self._how.shapes.fitted(model))
        return own_model(model, str(self._out), how, name="reported").variant.recipe

    def _first(self, model: onnx.ModelProto, own: OwnModel) -> tuple[Shown, tuple[str, ...]]:
        """Return the model's failure, and the nodes that it is about: by building alone if that is enough."""
        for runs in (False, True):
            self._prepared.runs = runs
            judged = [self._look(model, name) for name in self._targets]
            for each in judged:
                if not ran(each):
                    _refuse_untried(each)
            good = [each.classification.cls in GOOD for each in judged]
            if not runs and all(good):
                continue
            if failed := [each.cell.target.name for each in of_made_up_sizes(own, judged)]:
                self._doing.say(sizes_doubted(failed, own.made_up))
            near = tuple(name for each in judged for name in named(each))
            if len(judged) == 1:
                found = Shown((Side(judged[0].cell.target.name, sought(judged[0], self._options.keep)),))
            else:
                found = differing(judged[0], judged[1], self._options.keep)
            return found, near
        raise AssertionError

    def _look(self, model: onnx.ModelProto, name: str) -> Judged:
        judged = self._tries.own(model, self._targets[name], self._how)
        # A part of the model may ask for a GPU, though the whole does not: another failure than the one sought.
        if judged.outcome.state == "not_run" or judged.classification.cls is Class.INFRA_ERROR:
            _refuse_untried(judged)
        return judged

    def _progress(self, step: Step, before: int) -> None:
        now = time.monotonic()
        if now - self._said >= _TICK:
            self._said = now
            far = f"{before} -> {step.nodes} nodes, {step.tries} tries, {now - self._started:.0f} s"
            self._doing.say(f"{step.stage}: {far}", error=True)

    def _tell(self, search: Search, before: int, shown: Shown, *, whole: bool) -> None:
        options, after = self._options, len(search.best.graph.node)
        seconds = time.monotonic() - self._started
        self._doing.say(f"{self._out}: {before} -> {after} nodes, {search.tries} tries, {seconds:.1f} s")
        self._doing.say(f"shows: {shown}")
        if outside(search.best):
            self._doing.say(
                f"its weights are too many to be in it and stay in their files: move it to {options.model.parent}"
            )
        if not whole:
            self._doing.say("stopped by --seconds or --tries: reduce what it wrote to go on")
        words = ["trt-compat", "check", str(self._out)]
        words += [word for name in self._targets for word in ("--target", name)]
        shapes = in_words(self._recipe(search.best).profiles)
        words += ["--shapes", shapes] if shapes else []
        words += ["--typing", options.typing] if self._how.typing is not Typing.GRAPH else []
        words += [word for flag in options.flags for word in ("--flag", flag)]
        self._doing.say(f"try it: {shlex.join([*words, *self._figures(), *places(options, reports=False)])}")

    def _figures(self) -> Iterator[str]:
        """Yield the options that say how far outputs may be off."""
        for word, given in (("--max-rel", self._how.max_rel), ("--cosine", self._how.cosine)):
            yield from () if given is None else (word, str(given))


def write(model: onnx.ModelProto, path: Path) -> None:
    """Write a model in one step; raises HandledError if it cannot be written."""
    scratch = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch.write_bytes(serialise(model))
        scratch.replace(path)
    except OSError as error:
        raise HandledError(
            f"{path}: cannot be written ({error.strerror}); give another place with -o"
        ) from error


def _refuse_untried(judged: Judged) -> NoReturn:
    raise InfraError(
        f"nothing can be said of a model on {judged.cell.target.name}: {judged.classification.reason}"
    )


def _refuse_place(model: Path, out: Path) -> None:
    writable(out.parent, "-o")
    if out.is_dir():
        raise HandledError(f"-o {out}: is a folder; name a file, as in -o {out / 'small.onnx'}")
    if out.exists() and out.samefile(model):
        raise HandledError(f"-o {out}: is the model itself; give another place")


def _names(options: argparse.Namespace) -> list[str]:
    if bool(options.target) == bool(options.differs):
        raise HandledError("name one target with --target T, or two that differ with --differs A,B")
    return [options.target] if options.target else list(options.differs)


def _two(text: str) -> tuple[str, str]:
    parts = [each.strip() for each in text.split(",")]
    if len(set(parts)) != len(parts) or len(parts) != 2 or not all(parts):  # noqa: PLR2004
        raise argparse.ArgumentTypeError(f"{text!r}: name two targets, as in --differs rtx16,rtx17")
    return parts[0], parts[1]


_TITLE = "What fails, in a sentence: to be written"


def add_new(command: argparse.ArgumentParser) -> None:
    """Add the options of `new`."""
    command.description = (
        "Write a case module of a model into the folder of the cases, and the model beside it. "
        "`reduce --case` makes the model small first."
    )
    command.add_argument("name", metavar="NAME", help="of the case, and of its file")
    command.add_argument(
        "--from", dest="model", type=Path, required=True, metavar="MODEL", help="an .onnx file"
    )
    command.add_argument("--issue", default="", metavar="URL", help="where it is reported")
    add_recipe(command)


def do_new(options: argparse.Namespace) -> int:
    """Write the case and print the next command; returns the exit code."""
    path = options.cases / f"{options.name}.py"
    name = case_name(path)
    own = load_own(options.model, wanted(options), name="reported")
    if own.weights is not None:
        raise HandledError(
            f"{options.model}: has {own.weights} of weights, too many for a case; `trt-compat reduce` makes it small"
        )
    about = About(name, _TITLE, f"A model of {len(own.nodes)} nodes.", options.issue, own.variant.data)
    add_case(path, own.variant.build(), case_text(about, own.variant.recipe))
    print(f"{path}: {len(own.nodes)} nodes; give it a title, then: trt-compat run -k {name}")
    return EXIT_OK
