"""`reduce MODEL`: the smallest model that still shows the failure; `new NAME --from MODEL`: a case of a model."""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

import onnx

from harness.case import Profile
from harness.case.model import serialise
from harness.cli.options import (
    EXIT_OK,
    add_fields,
    add_where,
    of_fields,
    places,
    positive,
    words_of,
    writable,
    writable_file,
    write_file,
)
from harness.cli.project import load_targets
from harness.cli.terminal import Doing
from harness.errors import HandledError, InfraError
from harness.judge.cell import Judged
from harness.layers.asked import wished
from harness.matrix import Target
from harness.models.answers import ran, sizes_doubted
from harness.models.case_file import add_case, case_name
from harness.models.checking import Building
from harness.models.further import graph_of
from harness.models.graphs import outside
from harness.models.own.data import Given
from harness.models.own.model import OwnModel, Wanted, load_own, of_made_up_sizes, own_model
from harness.models.own.shapes import Shapes, in_words
from harness.models.reading import held
from harness.models.reduce import Search, named, sought
from harness.models.trying import BuiltOrRun, Tries
from harness.run.provision.requirements import refuse_unconfined
from harness.words import GOOD, Class

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
    command.add_argument("--target", required=True, metavar="T", help="where it fails")
    command.add_argument(
        "--keep",
        default="signature",
        choices=("class", "signature"),
        help="what has to stay: how it fails, or its known cause and operator too, else the error's words (default: "
        "signature)",
    )
    command.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="the small model (default: NAME-reduced.onnx here)"
    )
    command.add_argument("--seconds", type=positive, default=600, metavar="N", help="for all (default: 600)")
    command.add_argument("--tries", type=positive, default=100_000, metavar="N", help="at most so many")
    add_recipe(command)


def add_recipe(command: argparse.ArgumentParser) -> None:
    """Add the options of building a model, and of the place to do it."""
    add_fields(command, Building)
    add_where(command)


def do_reduce(options: argparse.Namespace) -> int:
    """Reduce the model and print the result; returns the exit code."""
    out = options.output or Path(f"{options.model.stem}-reduced.onnx")
    target = load_targets(options).target(options.target)
    refuse_unconfined([target], options.via)
    target = replace(target, timeout_s=min(target.timeout_s, max(_LEAST_TRY, options.seconds / _ONE_TRY)))
    with Doing() as doing:
        doing.now(f"reading {options.model}")
        how = of_fields(Building, options).wanted
        own = load_own(options.model, how, name="own")
        usual = {each.input: each.optimum for each in own.variant.recipe.profiles}
        prepared = BuiltOrRun(Given(weights=own.weights))
        with Tries(via=options.via, prepared=prepared, told=doing.tried) as tries:
            how = replace(how, shapes=Shapes(optimum=usual))
            return _Bench(tries, prepared, target, how).reduce(own, options, out, doing)


@dataclass(frozen=True)
class _Bench:
    """The target that a model is tried on while it gets smaller, and how it is built there."""

    tries: Tries
    prepared: BuiltOrRun
    target: Target
    how: Wanted

    def reduce(self, own: OwnModel, options: argparse.Namespace, out: Path, doing: Doing) -> int:
        """Look at the model, search, write and tell."""
        started, model = time.monotonic(), graph_of(own)
        before = len(model.graph.node)
        writable(out.parent, "-o")
        writable_file(out, "-o", [options.model])
        judged = self._first(model)
        if of_made_up_sizes(own, [judged]):
            doing.say(sizes_doubted([self.target.name], own.made_up))
        shown = sought(judged, options.keep)
        doing.say(f"{options.model}: {before} nodes; {shown} on {self.target.name}")
        search = Search(
            model,
            lambda candidate: shown.shown_by(self._look(candidate)),
            near=named(judged),
            seconds=options.seconds - (time.monotonic() - started),
            tries=options.tries,
            keep=lambda better: write(better, out),
            held=lambda found: held(found, own.weights),
        )
        whole = search.run()
        write(search.best, out)
        seconds = time.monotonic() - started
        doing.say(
            f"{out}: {before} -> {len(search.best.graph.node)} nodes, {search.tries} tries, {seconds:.1f} s"
        )
        if outside(search.best):
            doing.say(
                f"its weights are too many to be in it and stay in their files: move it to {options.model.parent}"
            )
        if not whole:
            doing.say("stopped by --seconds or --tries: reduce what it wrote to go on")
        how = replace(self.how, shapes=self.how.shapes.fitted(search.best))
        small = own_model(search.best, "the small model", how, name="reported").variant
        doing.say(f"try it: {shlex.join(_again(out, options, small.recipe.profiles))}")
        return EXIT_OK

    def _first(self, model: onnx.ModelProto) -> Judged:
        """Return the outcome of the whole model; it is only built if building it fails."""
        judged = self._look(model)
        if judged.classification.cls in GOOD:
            self.prepared.runs = True
            judged = self._look(model)
        if not ran(judged):
            _refuse_untried(judged)
        return judged

    def _look(self, model: onnx.ModelProto) -> Judged:
        judged = self.tries.own(model, self.target, self.how)
        # A part of the model may ask for a GPU: it does not show the failure.
        if judged.outcome.state == "not_run" or judged.classification.cls is Class.INFRA_ERROR:
            _refuse_untried(judged)
        return judged


def _again(out: Path, options: argparse.Namespace, profiles: Iterable[Profile]) -> Iterator[str]:
    """Yield the words of a command that checks the small model as it was tried."""
    yield from ("trt-compat", "check", str(out), "--target", options.target)
    yield from words_of(replace(of_fields(Building, options), shapes=in_words(profiles)))
    yield from places(options, reports=False)


def write(model: onnx.ModelProto, path: Path) -> None:
    """Write a model in one step; raises HandledError if that cannot be."""
    scratch = path.with_name(f"{path.name}.part")
    write_file(scratch, serialise(model), "give another place with -o")
    scratch.replace(path)


def _refuse_untried(judged: Judged) -> NoReturn:
    raise InfraError(
        f"nothing can be said of a model on {judged.cell.target.name}: {judged.classification.reason}"
    )


_TITLE = "What fails, in a sentence: to be written"


def add_new(command: argparse.ArgumentParser) -> None:
    """Add the options of `new`."""
    command.description = (
        "Write a case module of a model into the folder of the cases, and the model beside it, with the precision that "
        "the graph asks of its nodes. `reduce` makes the model small first."
    )
    command.add_argument("name", metavar="NAME", help="of the case, and of its file")
    command.add_argument(
        "--from", dest="model", type=Path, required=True, metavar="MODEL", help="an .onnx file"
    )
    command.add_argument("--issue", default="", metavar="URL", help="where it is reported")
    add_recipe(command)


def do_new(options: argparse.Namespace) -> int:
    """Write the case and print the next command; returns the exit code."""
    # Cases that are here stand in for those that come with the harness; with a matrix of one's own that is meant.
    if "cases" in options.unsaid and not (options.matrix.exists() or options.cases.exists()):
        raise HandledError(
            "no matrix.yaml here, and a folder of cases would hide those of trt-compat: begin with `trt-compat init`, "
            "or name a folder with --cases"
        )
    path = options.cases / f"{options.name}.py"
    name = case_name(path)
    own = load_own(options.model, of_fields(Building, options).wanted)
    if own.weights is not None:
        raise HandledError(
            f"{options.model}: has {own.weights} of weights, too many for a case; `trt-compat reduce` makes it small"
        )
    asks = wished(own.variant, own.nodes)
    variant = replace(own.variant, title=_TITLE, precision=asks or None)
    add_case(path, variant, f"A model of {len(own.nodes)} nodes.", options.issue)
    print(f"{path}: {len(own.nodes)} nodes; give it a title, then: trt-compat run -k {name}")
    return EXIT_OK
