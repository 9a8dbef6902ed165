"""`bisect MODEL`: between which two versions something changed."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from harness.case import effective_name
from harness.cli.options import EXIT_INFRA, EXIT_OK, EXIT_REGRESSION
from harness.cli.project import load_targets
from harness.cli.reduce import add_recipe, wanted
from harness.cli.terminal import Doing
from harness.errors import HandledError, InfraError
from harness.models.bisect import (
    Answer,
    Edge,
    Symptom,
    Told,
    agreed,
    bisect,
    check_node,
    is_upward,
    parse_symptom,
    row_of,
)
from harness.models.check import median_ms, ran, sizes_doubted
from harness.models.further import graph_of
from harness.models.own import Given, load_own
from harness.models.own.model import of_made_up_sizes
from harness.models.trying import BuiltOrRun, Tries
from harness.run.provision import Unavailable, prepare
from harness.run.provision.requirements import refuse_unconfined
from harness.text import clip, visible
from harness.words import Class

if TYPE_CHECKING:
    from harness.judge.cell import Judged
    from harness.matrix import Target
    from harness.models.own import OwnModel

#: A script's code for "this one says nothing", and the last that says "bad", as `git bisect run` has them.
_SKIP, _LAST_BAD = 125, 127
#: How often a model is timed on a target: where the runs do not agree it says nothing.
_TIMED = 3
_WIDEST = 200


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of `bisect`."""
    command.description = (
        "Say between which two versions something changed: tried are targets of one series of matrix.yaml between A "
        "and B, by version, half of them ruled out by each. What cannot run here is skipped. The exit code is 0 where "
        "it was found, 1 where the ends are not as they are said to be, and 3 where an end cannot be tried. "
        "A script is started as SCRIPT TARGET MODEL PYTHON, the last the Python of the target's virtual environment, "
        "and finds the same in TRT_COMPAT_TARGET, TRT_COMPAT_MODEL and TRT_COMPAT_PYTHON, and the version in "
        "TRT_COMPAT_VERSION. Its code: 0 good, 125 skip, any other up to 127 bad."
    )
    command.add_argument("model", type=Path, metavar="MODEL", help="an .onnx file")
    command.add_argument("--good", required=True, metavar="A", help="a target where all is well")
    command.add_argument("--bad", required=True, metavar="B", help="a target where it is not, older or newer")
    command.add_argument(
        "--symptom",
        metavar="WHAT",
        help="class (default), signature, int8:NODE, numbers, or slower:5%%",
    )
    command.add_argument("--run", type=Path, metavar="SCRIPT", help="let a program say what is good")
    add_recipe(command)


def bisect_versions(options: argparse.Namespace) -> int:
    """Find the change and tell it; returns the exit code."""
    with Doing() as doing:
        return _bisected(options, doing)


def _bisected(options: argparse.Namespace, doing: Doing) -> int:
    if options.run and options.symptom:
        raise HandledError("--run and --symptom both say what is good; give one of them")
    matrix = load_targets(options)
    row = row_of(matrix, matrix.target(options.good), matrix.target(options.bad))
    refuse_unconfined(row, options.via)
    doing.now(f"reading {options.model}")
    own = load_own(options.model, wanted(options), name="own")
    doing.now("")
    targets = {target.name: target for target in row}
    width = max(map(len, targets))

    def said(name: str, told: Told) -> Told:
        words = clip(" ".join(visible(told.why).split()), _WIDEST)
        doing.say(f"{name:<{width}} {targets[name].version:<12} {told.answer:<5} {words}")
        doing.now("")
        return told

    if options.run:
        return _by(row, _Script(options).told, said)
    symptom = parse_symptom(options.symptom or "class")
    check_node(symptom, [effective_name(node) for node in graph_of(own).graph.node], str(options.model))
    prepared = BuiltOrRun(Given(weights=own.weights), runs=True, timed=symptom.timed)

    def tried(target: str, count: int) -> None:
        doing.now(f"try {count}, on {target}")

    with Tries(via=options.via, prepared=prepared, told=tried) as tries:
        looking = _Looking(tries, own, symptom, doing)
        code = _by(row, looking.between(row), said, timed=symptom.timed)
        return EXIT_INFRA if code == EXIT_REGRESSION and looking.doubted else code


def _by(
    row: tuple[Target, ...],
    ask: Callable[[Target], Told],
    said: Callable[[str, Told], Told],
    *,
    timed: bool = False,
) -> int:
    """Try both ends, then the targets between; print the change and return the exit code."""
    targets = {target.name: target for target in row}
    for target, expected in ((row[0], Answer.GOOD), (row[-1], Answer.BAD)):
        told = said(target.name, ask(target))
        if told.answer is Answer.SKIP:
            quieter = ", or look on a quieter machine or for a larger share" if timed else ""
            print(f"{target.name} says neither good nor bad; name another end{quieter}")
            return EXIT_INFRA
        if told.answer is not expected:
            good, bad = row[0].name, row[-1].name
            if target is row[0] and said(bad, ask(row[-1])).answer is Answer.GOOD:
                print(f"{good} is bad and {bad} is good; try --good {bad} --bad {good}")
            else:
                print(
                    f"{target.name} is {told.answer}, not {expected}: there is nothing to find between these two"
                )
            return EXIT_REGRESSION
    edge = bisect([target.name for target in row], lambda name: said(name, ask(targets[name])).answer)
    for line in _lines(edge, targets):
        print(line)
    return EXIT_OK


def _lines(edge: Edge, targets: dict[str, Target]) -> tuple[str, ...]:
    """Return the change: a sentence, and the same for programs."""
    worsens = is_upward(tuple(targets.values()))
    good, bad = (f"{name} ({targets[name].version})" for name in (edge.good, edge.bad))
    told = f"first bad: {bad}, last good: {good}" if worsens else f"first good: {good}, last bad: {bad}"
    told += f"; {len(edge.skipped)} skipped" if edge.skipped else ""
    if edge.between:
        told += f", of which {', '.join(edge.between)} may be the first as well"
    keys = ("first_bad", "last_good") if worsens else ("last_bad", "first_good")
    return told, json.dumps({keys[0]: edge.bad, keys[1]: edge.good, "skipped": list(edge.skipped)})


class _Looking:
    """Looks at the model on targets, each once, or several times where it is timed."""

    def __init__(self, tries: Tries, own: OwnModel, symptom: Symptom, doing: Doing) -> None:
        self._tries, self._variant, self._symptom = tries, own.variant, symptom
        self._doing, self._own, self.doubted = doing, own, False
        self._seen: dict[str, list[Judged]] = {}

    def between(self, row: tuple[Target, ...]) -> Callable[[Target], Told]:
        """Return a function that tells good from bad on a row's targets; the ends must answer."""

        def told(target: Target) -> Told:
            ends = [self._of(end) for end in (row[0], row[-1])]
            for seen in ends:
                if not _answers(seen[0]):
                    name, reason = seen[0].cell.target.name, seen[0].classification.reason
                    raise InfraError(f"{name} cannot be tried here: {reason}")
            seen = self._of(target)
            if not _answers(seen[0]):
                return Told(Answer.SKIP, f"cannot be tried here: {seen[0].classification.reason}")
            good, bad = (end[len(end) // 2] for end in ends)
            return agreed([self._symptom.told(each, good, bad) for each in seen])

        return told

    def _of(self, target: Target) -> list[Judged]:
        """Return the results on a target, the quickest first."""
        if target.name not in self._seen:
            times = _TIMED if self._symptom.timed else 1
            own, variant, model = self._own, self._variant, self._variant.model_bytes()
            judged = [
                self._tries.judged(model, target, variant.recipe, allowed=variant.data) for _ in range(times)
            ]
            self._seen[target.name] = sorted(judged, key=lambda each: median_ms(each) or 0.0)
            if not self.doubted and of_made_up_sizes(own, judged):
                self.doubted = True
                self._doing.say(sizes_doubted([target.name], own.made_up))
        return self._seen[target.name]


def _answers(judged: Judged) -> bool:
    """Tell whether a target says anything of the model; one that asks for a GPU first does not."""
    return ran(judged) and judged.classification.cls is not Class.NEEDS_GPU_TO_BUILD


class _Script:
    """A program of the user's that tells good from bad."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._script, self._model = options.run.absolute(), options.model.absolute()
        if not os.access(self._script, os.X_OK) or self._script.is_dir():
            raise HandledError(f"--run {options.run}: is no program that can be started; make it executable")

    def told(self, target: Target) -> Told:
        """Return the program's answer on a target; raises InfraError for an unknown exit code."""
        try:
            environment = prepare(target, "venv")
        except Unavailable as refusal:
            return Told(Answer.SKIP, f"cannot be tried here: {refusal}")
        code = self._code(target, environment.python)
        if code is None:
            return Told(Answer.SKIP, f"did not end in {target.timeout_s:g} s")
        if not 0 <= code <= _LAST_BAD:
            raise InfraError(f"--run {self._script}: ended with {code} on {target.name}, which is no answer")
        answer = {0: Answer.GOOD, _SKIP: Answer.SKIP}.get(code, Answer.BAD)
        return Told(answer, f"code {code}")

    def _code(self, target: Target, python: str) -> int | None:
        """Run the program and return its exit code, None where it took too long; its output is printed."""
        words = [str(self._script), target.name, str(self._model), python]
        names = ("TRT_COMPAT_TARGET", "TRT_COMPAT_MODEL", "TRT_COMPAT_PYTHON", "TRT_COMPAT_VERSION")
        given = dict(zip(names, [*words[1:], target.version], strict=True))
        try:
            process = subprocess.Popen(words, env={**os.environ, **given}, start_new_session=True)
        except OSError as error:
            raise HandledError(f"--run {self._script}: cannot be started ({error.strerror})") from error
        try:
            return process.wait(target.timeout_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
