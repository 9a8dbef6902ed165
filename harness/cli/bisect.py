"""`bisect MODEL`: between which two versions something changed."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from packaging.version import Version

from harness.case import effective_name
from harness.cli.options import EXIT_INFRA, EXIT_OK, EXIT_REGRESSION, of_fields
from harness.cli.project import load_targets
from harness.cli.reduce import add_recipe
from harness.cli.terminal import Doing
from harness.errors import InfraError
from harness.judge.cell import Judged
from harness.matrix import Target
from harness.models.answers import sizes_doubted
from harness.models.bisect import Edge, Reply, Symptom, Told, bisect, check_node, parse_symptom, row_of
from harness.models.checking import Building
from harness.models.further import graph_of
from harness.models.own.data import Given
from harness.models.own.model import OwnModel, load_own, of_made_up_sizes
from harness.models.trying import BuiltOrRun, Tries
from harness.run.provision.requirements import refuse_unconfined
from harness.text import one_line
from harness.words import UNJUDGED, Class

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
        "--symptom", default="class", metavar="WHAT", help="class (default), signature, numbers, or int8:NODE"
    )
    add_recipe(command)


def do_bisect(options: argparse.Namespace) -> int:
    """Find the change and tell it; returns the exit code."""
    matrix, symptom = load_targets(options), parse_symptom(options.symptom)
    row = row_of(matrix, matrix.target(options.good), matrix.target(options.bad))
    refuse_unconfined(row, options.via)
    with Doing() as doing:
        doing.now(f"reading {options.model}")
        own = load_own(options.model, of_fields(Building, options).wanted, name="own")
        check_node(symptom, [effective_name(node) for node in graph_of(own).graph.node], str(options.model))
        prepared = BuiltOrRun(Given(weights=own.weights), runs=True)
        with Tries(via=options.via, prepared=prepared, told=doing.tried) as tries:
            search = _Search(tries, own, symptom, doing, row)
            code = search.run()
            return EXIT_INFRA if code == EXIT_REGRESSION and search.doubted else code


class _Search:
    """A search in a row of targets: the model is looked at once on each."""

    def __init__(
        self, tries: Tries, own: OwnModel, symptom: Symptom, doing: Doing, row: Sequence[Target]
    ) -> None:
        self._tries, self._own, self._symptom, self._doing = tries, own, symptom, doing
        self._targets = {target.name: target for target in row}
        self._good, self._bad = row[0].name, row[-1].name
        self._seen: dict[str, Judged] = {}
        self.doubted = False

    def run(self) -> int:
        """Try both ends, then the targets between; print the change and return the exit code."""
        good, bad = self._good, self._bad
        for name, expected in ((good, Reply.GOOD), (bad, Reply.BAD)):
            told = self._told(name)
            if told.reply is Reply.SKIP:
                print(f"{name} says neither good nor bad; name another end")
                return EXIT_INFRA
            if told.reply is not expected:
                same = f"{good} and {bad} give the same ({told.why}): there is nothing to find between them"
                why = same if expected is Reply.BAD else f"{good} is no good end ({told.why})"
                print(f"{why}; name another end")
                return EXIT_REGRESSION
        print(*_lines(bisect([*self._targets], lambda name: self._told(name).reply), self._targets), sep="\n")
        return EXIT_OK

    def _told(self, name: str) -> Told:
        """Print and return whether a target is good or bad; raises InfraError if an end cannot be tried."""
        for end in dict.fromkeys((self._good, self._bad, name)):
            found = self._result(end).classification
            if found.cls in UNJUDGED or found.cls is Class.NEEDS_GPU_TO_BUILD:
                why = f"cannot be tried here: {found.reason}"
                if end in (self._good, self._bad):
                    raise InfraError(f"{end} {why}")
                return self._said(name, Told(Reply.SKIP, why))
        return self._said(name, self._symptom.told(*map(self._result, (name, self._good, self._bad))))

    def _said(self, name: str, told: Told) -> Told:
        width, version = max(map(len, self._targets)), self._targets[name].version
        self._doing.say(f"{name:<{width}} {version:<12} {told.reply:<5} {one_line(told.why, _WIDEST)}")
        self._doing.now("")
        return told

    def _result(self, name: str) -> Judged:
        if name not in self._seen:
            own, variant, target = self._own, self._own.variant, self._targets[name]
            judged = self._tries.judged(variant.model_bytes(), target, variant.recipe, allowed=variant.data)
            self._seen[name] = judged
            if not self.doubted and of_made_up_sizes(own, [judged]):
                self.doubted = True
                self._doing.say(sizes_doubted([name], own.made_up))
        return self._seen[name]


def _lines(edge: Edge, targets: Mapping[str, Target]) -> tuple[str, str]:
    """Return the change: a sentence, and the same for programs."""
    worsens = Version(targets[edge.good].version) <= Version(targets[edge.bad].version)
    good, bad = (f"{name} ({targets[name].version})" for name in (edge.good, edge.bad))
    told = f"first bad: {bad}, last good: {good}" if worsens else f"first good: {good}, last bad: {bad}"
    told += f"; {len(edge.skipped)} skipped" if edge.skipped else ""
    if edge.between:
        told += f", of which {', '.join(edge.between)} may be the first as well"
    keys = ("first_bad", "last_good") if worsens else ("last_bad", "first_good")
    return told, json.dumps({keys[0]: edge.bad, keys[1]: edge.good, "skipped": list(edge.skipped)})
