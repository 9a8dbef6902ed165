"""`bisect MODEL`: between which two versions something changed."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from harness.case import effective_name
from harness.cli.options import EXIT_INFRA, EXIT_OK, EXIT_REGRESSION
from harness.cli.project import load_targets
from harness.cli.reduce import add_recipe, wanted
from harness.cli.terminal import Doing
from harness.errors import InfraError
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
from harness.models.own.data import Given
from harness.models.own.model import load_own, of_made_up_sizes
from harness.models.trying import BuiltOrRun, Tries
from harness.run.provision.requirements import refuse_unconfined
from harness.text import one_line
from harness.words import Class

if TYPE_CHECKING:
    from harness.judge.cell import Judged
    from harness.matrix import Target
    from harness.models.own.model import OwnModel

#: How often a model is timed on a target, whose answer counts only if the runs agree.
_TIMED = 3
_WIDEST = 200


def add_bisect(command: argparse.ArgumentParser) -> None:
    """Add the options of `bisect`."""
    command.description = (
        "Say between which two versions something changed: tried are targets of one series of matrix.yaml between A "
        "and B, by version, half of them ruled out by each. What cannot run here is skipped. The exit code is 0 where "
        "it was found, 1 where the ends are not as they are said to be, and 3 where an end "
        "cannot be tried or may have failed for sizes that were made up."
    )
    command.add_argument("model", type=Path, metavar="MODEL", help="an .onnx file")
    command.add_argument("--good", required=True, metavar="A", help="a target where all is well")
    command.add_argument("--bad", required=True, metavar="B", help="a target where it is not, older or newer")
    command.add_argument(
        "--symptom",
        default="class",
        metavar="WHAT",
        help="class (default), signature, int8:NODE, numbers, or slower:5%%",
    )
    add_recipe(command)


def do_bisect(options: argparse.Namespace) -> int:
    """Find the change and tell it; returns the exit code."""
    with Doing() as doing:
        return _bisected(options, doing)


def _bisected(options: argparse.Namespace, doing: Doing) -> int:
    matrix = load_targets(options)
    row = row_of(matrix, matrix.target(options.good), matrix.target(options.bad))
    refuse_unconfined(row, options.via)
    doing.now(f"reading {options.model}")
    own = load_own(options.model, wanted(options), name="own")
    doing.now("")
    targets = {target.name: target for target in row}
    width = max(map(len, targets))

    def said(name: str, told: Told) -> Told:
        words = one_line(told.why, _WIDEST)
        doing.say(f"{name:<{width}} {targets[name].version:<12} {told.answer:<5} {words}")
        doing.now("")
        return told

    symptom = parse_symptom(options.symptom)
    check_node(symptom, [effective_name(node) for node in graph_of(own).graph.node], str(options.model))
    prepared = BuiltOrRun(Given(weights=own.weights), runs=True, timed=symptom.timed)

    def tried(target: str, count: int) -> None:
        doing.now(f"try {count}, on {target}")

    with Tries(via=options.via, prepared=prepared, told=tried) as tries:
        looking = _Looking(tries, own, symptom, doing, (row[0], row[-1]))
        code = _by(row, looking.told, said, timed=symptom.timed)
        return EXIT_INFRA if code == EXIT_REGRESSION and looking.doubted else code


def _by(
    row: tuple[Target, ...],
    ask: Callable[[Target], Told],
    said: Callable[[str, Told], Told],
    *,
    timed: bool,
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
            elif expected is Answer.BAD:
                print(f"{good} and {bad} give the same ({told.why}): there is nothing to find between them")
            else:
                print(f"{good} is no good end ({told.why}): name another with --good")
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
    """Looks at the model on targets, each once, or several times if it is timed."""

    def __init__(
        self, tries: Tries, own: OwnModel, symptom: Symptom, doing: Doing, ends: tuple[Target, Target]
    ) -> None:
        self._tries, self._variant, self._symptom = tries, own.variant, symptom
        self._doing, self._own, self.doubted, self._ends = doing, own, False, ends
        self._seen: dict[str, list[Judged]] = {}

    def told(self, target: Target) -> Told:
        """Tell whether a target is good or bad; raises InfraError if an end does not answer."""
        ends = [self._of(end) for end in self._ends]
        for seen in ends:
            if not _answers(seen[0]):
                name, reason = seen[0].cell.target.name, seen[0].classification.reason
                raise InfraError(f"{name} cannot be tried here: {reason}")
        seen = self._of(target)
        if not _answers(seen[0]):
            return Told(Answer.SKIP, f"cannot be tried here: {seen[0].classification.reason}")
        good, bad = (end[len(end) // 2] for end in ends)
        return agreed([self._symptom.told(each, good, bad) for each in seen])

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
