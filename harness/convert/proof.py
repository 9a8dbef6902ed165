"""What a converted model promises, shown: node by node, and by the engines that are here, which build and run it."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import onnx

from harness.case import Recipe
from harness.case.explicit import Explicit
from harness.convert.wishes import Wishes
from harness.judge.cell import Judged
from harness.judge.reasons import RANK
from harness.layers.asked import asked
from harness.layers.datatype import same_precision
from harness.layers.operators import MULTIPLYING
from harness.matrix import Target
from harness.models.own.data import Given, OwnPrepared
from harness.models.own.model import OwnModel, Wanted, load_own
from harness.models.own.shapes import Shapes, parse_shapes
from harness.models.trying import BuiltOrRun, Tries
from harness.run.numbers.given import read_npz
from harness.run.prepared import Refused
from harness.run.provision.model import Via
from harness.words import FINISHED, GOOD, UNJUDGED, Class, Precision, Typing


@dataclass(frozen=True)
class TypedNode:
    """A node: the precision that it ran in, that it is typed in now, and why these differ or who decided."""

    node: str
    operator: str
    ran: str
    typed: str
    why: str

    @property
    def missed(self) -> bool:
        """Tell whether it ran in a narrower type than it is typed in."""
        return _rank(self.ran) > _rank(self.typed)


@dataclass(frozen=True)
class Rebuilt:
    """An engine's answer to the converted model; `unheld` is why its numbers are not held to the old one's."""

    judged: Judged
    typed: Mapping[str, Precision]
    unheld: str = ""

    @property
    def ran(self) -> dict[str, Precision]:
        """Return the precision of the typed nodes, as far as the engine tells it."""
        found = self.judged.precision
        return {name: found[name] for name in self.typed if found.get(name, Precision.UNKNOWN) in RANK}

    @property
    def coarser(self) -> dict[str, Precision]:
        """Return the nodes that run coarser than they are typed; ONNX Runtime is asked for numbers alone.

        Between a Q and a DQ a graph says no more than that values are rounded: a node there that does not multiply may
        run in the float.
        """
        if self.judged.cell.target.traits.baseline:
            return {}
        multiplies = {node.name for node in self.judged.outcome.nodes if node.op in MULTIPLYING}
        return {
            name: each
            for name, each in self.ran.items()
            if _rank(each) < _rank(self.typed[name])
            and (name in multiplies or self.typed[name] is not Precision.INT8)
        }

    @property
    def as_typed(self) -> int:
        """Return how many nodes run as they are typed."""
        return sum(same_precision(self.typed[name], each) for name, each in self.ran.items())

    @property
    def tried(self) -> bool:
        """Tell whether the engine was there."""
        return self.judged.classification.cls not in UNJUDGED

    @property
    def broken(self) -> bool:
        """Tell whether it does not build, gives other numbers, or runs a node coarser than it is typed."""
        cls = self.judged.classification.cls
        built = cls in (*GOOD, Class.PRECISION_LOST) or (cls is Class.INACCURATE and bool(self.unheld))
        return self.tried and (not built or bool(self.coarser))

    @property
    def median_ms(self) -> float | None:
        """Return the median latency, if it was timed."""
        latency = self.judged.outcome.latency
        return statistics.median(latency.samples_ms) if latency and latency.samples_ms else None

    def __str__(self) -> str:
        """Return the answer in a line."""
        found, target = self.judged.classification, self.judged.cell.target
        if not self.tried or found.cls not in FINISHED:
            return f"{target.name}: {found.cls}: {self.judged.outcome.reason or found.reason}"
        parts = [] if target.traits.baseline else [*self._types_said()]
        time = self.median_ms
        parts += [self._numbers_said(), *([] if time is None else [f"{time:.3f} ms"])]
        return f"{target.name}: {'; '.join(parts)}"

    def _types_said(self) -> Iterator[str]:
        ran = self.ran
        narrower = [
            f"{name} in {each}" for name, each in ran.items() if _rank(each) > _rank(self.typed[name])
        ]
        coarser = [f"{name} in {each}" for name, each in self.coarser.items()]
        yield f"{self.as_typed} of {len(ran)} nodes run as typed"
        for nodes, said in ((coarser, "coarser"), (narrower, "narrower")):
            if nodes:
                yield f"{len(nodes)} {said} ({nodes[0]}{' ...' if len(nodes) > 1 else ''})"
        if len(self.typed) > len(ran):
            yield f"{len(self.typed) - len(ran)} not told"

    def _numbers_said(self) -> str:
        accuracy = self.judged.outcome.accuracy
        if self.unheld or not accuracy:
            why = self.unheld or self.judged.outcome.uncompared or "built without a GPU to run on"
            return f"numbers not compared: {why}"
        rel, cosine = max(each.max_rel for each in accuracy), min(each.cosine for each in accuracy)
        within = "beyond" if self.judged.classification.cls is Class.INACCURATE else "within"
        return f"off the old model by {rel:.1e} of its magnitude, cosine {cosine:.5f}, {within} the tolerance"


def _rank(word: str) -> float:
    return RANK.get(Precision(word), 0.0) if word else 0.0


def rows(model: onnx.ModelProto, wishes: Wishes, made: Explicit) -> tuple[TypedNode, ...]:
    """Return the table, node by node in the order of the old model."""
    # What was there already counts too: Q/DQ, and tensors in narrow types.
    asks = {node.name: node.precision for node in asked(made.model)}
    found = []
    for node in asked(model):
        typed = str(made.typed.get(node.name, ""))
        if typed != Precision.INT8:
            typed = asks.get(node.name) or typed
        why = made.why.get(node.name) or wishes.notes.get(node.name, "")
        found.append(
            TypedNode(node.name, node.op, str(wishes.ran.get(node.name, "")), typed, why if typed else "")
        )
    return tuple(found)


def own(model: Path, shapes: str, inputs: Path | None) -> tuple[OwnModel, Given]:
    """Return the old model as the user has it, and the data for it; `shapes` and `inputs` are as check takes them."""
    arrays = read_npz(inputs, "--inputs") if inputs else {}
    sizes = Shapes(optimum=parse_shapes(shapes, "--shapes"))
    found = load_own(
        model, Wanted(Typing.STRONG, shapes=sizes, arrays={name: each.shape for name, each in arrays.items()})
    )
    return found, Given(inputs=arrays, weights=found.weights)


def rebuilt(
    old: OwnModel, made: Explicit, targets: Sequence[Target], given: Given, via: Via = "auto"
) -> Iterator[Rebuilt]:
    """Yield the answer of each target to the converted model, whose numbers are held to the old one's reference."""
    ready = OwnPrepared({old.variant.name: given}).make(old.variant, lambda: True)
    if isinstance(ready, Refused):
        unheld = ready.reason
    else:
        unheld = "" if ready.reference.outputs else ready.reference.reason or ready.unfed
        given = replace(given, inputs=ready.inputs, expected=ready.reference.outputs or {})
    profiles = old.variant.recipe.profiles
    with Tries(via=via, prepared=BuiltOrRun(given, runs=True, timed=True)) as tries:
        for target in targets:
            typing = Typing.GRAPH if target.traits.graph_alone else Typing.STRONG
            recipe = Recipe(typing=typing, profiles=profiles)
            judged = tries.judged(made.model.SerializeToString(), target, recipe)
            yield Rebuilt(judged, made.typed, unheld)
