"""What `check` tries beyond the model as it is: parts of it, without its Q/DQ, and rewritten."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import onnx

from harness.cli.check_further_lines import blocker_lines, ladder_lines, left_lines, workaround_lines
from harness.errors import HandledError
from harness.models.bench import Bench, works
from harness.models.blockers import OF_A_NODE, Blockers, blockers
from harness.models.check import ran, troubles
from harness.models.ladder import ladder
from harness.models.leave_float import LeftFloat, leave_float, quantised_nodes
from harness.models.rewrites import unquantised
from harness.models.tries import OnlyBuilt, Tries
from harness.models.workarounds import workarounds
from harness.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from harness.judge.cell import Judged
    from harness.models.own import Given, OwnModel

_AUTO = "auto"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of what is tried further."""
    command.add_argument(
        "--no-blockers",
        dest="blockers",
        action="store_false",
        help="of a model that does not build tell the first failure alone, not what else there is",
    )
    command.add_argument(
        "--ladder",
        action="store_true",
        help="tell whether quantisation is at fault: try the model without its Q/DQ, and in FP16",
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
    if options.leave_float not in ("", _AUTO):
        for model in models:
            _named(options.leave_float, _graph(model), model.label)
    if options.write is None:
        return
    if bool(options.leave_float) == options.try_workarounds:
        raise HandledError(
            "--write writes what one of --leave-float and --try-workarounds found; give one of them"
        )
    if len(options.models) > 1:
        raise HandledError("--write is of one model, and several are named; check them one by one")
    if options.after is None and len(options.targets) != 1:
        raise HandledError("--write is of one target; name it with --to or --target")


def further(
    models: Sequence[OwnModel],
    judged: Sequence[Judged],
    options: argparse.Namespace,
    given: Mapping[str, Given],
) -> Iterator[str]:
    """Yield what is found by trying more than the models as they are."""
    told = {each.diagnosis.id for each in judged if each.diagnosis}
    with Tries(via=options.via, prepared=OnlyBuilt()) as tries:
        for model in models:
            mine = [each for each in judged if each.cell.variant.name == model.variant.name and ran(each)]
            if mine:
                yield from _Further(model, mine, tries, options, given.get(model.variant.name), told).lines()


@dataclass
class _Further:
    """One model on the targets that it ran on; `told` are the causes that were told already."""

    model: OwnModel
    judged: list[Judged]
    tries: Tries
    options: argparse.Namespace
    given: Given | None
    told: set[str]

    def lines(self) -> Iterator[str]:
        graph = _graph(self.model)
        refused: dict[str, Blockers] = {}
        if self.options.blockers:
            failed = [each for each in self.judged if each.classification.cls in OF_A_NODE]
            refused = {each.cell.target.name: blockers(graph, each, self._bench(each)) for each in failed}
            yield from blocker_lines(self.model.label, refused, self.told)
        if self.options.ladder:
            rungs = [(each.cell.target.name, ladder(graph, each, self._bench(each))) for each in self.judged]
            yield from ladder_lines(self.model.label, rungs)
        troubled = [each for each in self.judged if troubles(each) and not works(each)]
        if self.options.leave_float:
            yield from self._left(graph, troubled)
        if self.options.try_workarounds:
            yield from self._worked_round(graph, troubled, refused)

    def _left(self, graph: onnx.ModelProto, troubled: list[Judged]) -> Iterator[str]:
        named = _named(self.options.leave_float, graph, self.model.label)
        for each in self.judged if named else troubled:
            bench = self._bench(each)
            found = _left_as_named(graph, named, bench) if named else leave_float(graph, each, bench)
            yield from left_lines(self.model.label, each, found, named=bool(named))
            if found.model is not None:
                yield from self._written(each, found.model, " ".join(found.nodes))
        if not named and not troubled:
            yield f"{self.model.label}: nothing is to be left in floating point: no target that ran loses anything"

    def _worked_round(
        self, graph: onnx.ModelProto, troubled: list[Judged], refused: Mapping[str, Blockers]
    ) -> Iterator[str]:
        for each in troubled:
            known = refused.get(each.cell.target.name)
            also = [node for blocker in known.found for node in blocker.nodes] if known else []
            inputs = self.given.inputs if self.given else None
            found = workarounds(graph, each, self._bench(each), also=also, inputs=inputs)
            yield from workaround_lines(self.model.label, each, found)
            if found.best is not None:
                yield from self._written(each, found.best.model, found.best.rewrite.name)
        if not troubled:
            yield f"{self.model.label}: no workaround is needed: no target that ran fails to build it or loses anything"

    def _bench(self, judged: Judged) -> Callable[..., Judged]:
        variant = self.model.variant
        flags = tuple(self.options.flags)
        return Bench(self.tries, judged.cell.target, variant.recipe, flags, variant.precision)

    def _written(self, judged: Judged, model: onnx.ModelProto, what: str) -> Iterator[str]:
        if self.options.write is None:
            return
        (wanted,) = (self.options.after,) if self.options.after else self.options.targets
        if judged.cell.target.name != wanted:
            return
        try:
            onnx.save(model, self.options.write)
        except (OSError, ValueError) as error:
            raise HandledError(f"--write {self.options.write}: cannot be written ({error})") from error
        yield f"  written: {self.options.write} ({what})"


def _graph(model: OwnModel) -> onnx.ModelProto:
    return onnx.load_model_from_string(model.variant.model_bytes())


def _named(words: str, graph: onnx.ModelProto, label: str) -> tuple[str, ...]:
    """Return the nodes that --leave-float names; none for auto."""
    if words == _AUTO:
        return ()
    named = tuple(filter(None, (each.strip() for each in words.split(","))))
    known = quantised_nodes(graph)
    for name in named:
        if name not in known:
            what = did_you_mean(name, known) if known else "none of its nodes is quantised"
            raise HandledError(f"--leave-float {name!r}: is no quantised node of {label}; {what}")
    return named


def _left_as_named(graph: onnx.ModelProto, named: tuple[str, ...], bench: Callable[..., Judged]) -> LeftFloat:
    left = unquantised(graph, named)
    judged = None if left is None else bench(left)
    return LeftFloat(named, quantised_nodes(graph), left, judged, least=False, tries=1, seconds=0.0)
