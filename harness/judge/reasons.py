"""Why a node did not run in the precision that it was to run in, from the tactics that the builder tried; pure.

The builder minimises the time of the whole path, kernels and conversions between formats together. So the fastest
kernel of a precision alone is no reason. Two ways of a layer are compared by their sums: the kernel's time, then the
conversions from the formats that its inputs come in and to those that its outputs are read in. A Cast, Q or DQ beside
it is taken by its own price into each format, and costs nothing into its own; other neighbours are left as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from harness.case import Recipe
from harness.judge.complaints import NO_IMPLEMENTATION, ended
from harness.layers.datatype import WEIGHTS, precision_of, same_precision
from harness.layers.names import is_compiled, is_region
from harness.layers.operators import MULTIPLYING
from harness.record.outcome import Combination, Conversion, Layer, Outcome, Tactics
from harness.words import Precision, Typing, Word, said

#: Of kernels below 20 us 95 of 100 times differed by less between two builds (8.6.1 and 10.6.0, a busy H200).
TOSS_UP = 0.1
RANK = {
    Precision.FP32: 0,
    Precision.TF32: 0,
    Precision.FP16: 1,
    Precision.BF16: 1,
    Precision.FP8: 2,
    Precision.INT8: 2,
    Precision.UINT8: 2,
    Precision.FP4: 3,
    Precision.INT4: 3,
    # Data in a float, weights stored narrow: finer than the float alone.
    **dict.fromkeys(WEIGHTS.values(), 1.5),
}
_SHOWN = 4


class Why(Word):
    """Why a node did not run in the precision that it was to run in."""

    NO_KERNEL = "no kernel"
    SLOWER = "slower"
    CONVERSION = "conversion"
    LAYOUT_OR_CONVERSION = "layout or conversion"
    NOT_OFFERED = "not offered"
    TYPED = "typed"
    INSIDE_A_REGION = "inside a region"
    OUT_OF_MEMORY = "out of memory"
    NOT_SAID = "the log does not say"


@dataclass(frozen=True)
class Reason:
    """Why one node ran in `ran` and not in `wanted`; `ran` is "" if it has no implementation.

    `numbers` is the comparison in words, in microseconds on the GPU that built it. `toss_up` tells that another build
    may choose otherwise. `formats` are the wanted combinations that were tried.
    """

    node: str
    why: Why
    wanted: str = ""
    ran: str = ""
    layer: str = ""
    numbers: str = ""
    toss_up: bool = False
    formats: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return node, precision and reason in one line."""
        if not self.ran:
            return f"{self.node} has no implementation: {self.sentence}"
        return (
            f"{self.node} ran in {said(self.ran).upper()}, not {said(self.wanted).upper()}: {self.sentence}"
        )

    @property
    def sentence(self) -> str:
        """Return it as a sentence without the node's name."""
        wanted = said(self.wanted).upper()
        text = {
            Why.NO_KERNEL: f"no {wanted} kernel: none of the {len(self.formats)} combinations tried has one"
            if self.ran
            else f"no kernel at all: none of the {len(self.formats)} combinations tried has one",
            Why.SLOWER: f"{wanted} is slower",
            Why.CONVERSION: f"{wanted} costs more with its conversions",
            Why.LAYOUT_OR_CONVERSION: f"{wanted} lost by layout or conversion; the log does not let both be summed",
            Why.NOT_OFFERED: f"{wanted} was not offered for this layer",
            Why.TYPED: "the network is strongly typed, and its own type decides",
            Why.INSIDE_A_REGION: "it is inside a region of the graph compiler, which the builder times as a whole",
            Why.OUT_OF_MEMORY: f"tactics of {wanted} were skipped for lack of memory",
            Why.NOT_SAID: "the log does not say",
        }[self.why]
        tried = f" ({'; '.join(self.formats[:_SHOWN])})" if self.why is Why.NO_KERNEL and self.formats else ""
        numbers = f": {self.numbers}" if self.numbers else ""
        if is_region(self.layer):
            numbers = numbers and f", its whole region timed{numbers}"
        elif self.why is Why.CONVERSION:
            numbers += f". Harmless to the speed: {said(self.ran).upper()} is the faster way here"
        return (
            text
            + tried
            + numbers
            + (". A toss-up: another build may choose otherwise" if self.toss_up else "")
        )


class AskedNode(NamedTuple):
    """A node, the precision that it was to run in, and the one that it ran in."""

    node: str
    wanted: Precision
    ran: Precision

    def reason(self, why: Why, layer: str = "") -> Reason:
        """Return a reason without numbers."""
        return Reason(self.node, why, str(self.wanted), str(self.ran), layer)


def reasons(
    outcome: Outcome, recipe: Recipe, ran: Mapping[str, Precision], wished: Mapping[str, Precision]
) -> tuple[Reason, ...]:
    """Return a reason for each node that multiplies and ran coarser than asked or allowed, or has no implementation."""
    tactics = {each.layer: each for each in outcome.tactics}
    layers = {node: layer for layer in outcome.layers for node in layer.onnx_nodes}
    found = []
    for node in outcome.nodes:
        wanted = _wanted(node.op, wished.get(node.name), recipe)
        got = ran.get(node.name)
        if wanted and got in RANK and RANK[got] < RANK[wanted]:
            asked = AskedNode(node.name, wanted, got)
            found.append(_of_node(asked, layers.get(node.name), tactics, recipe))
    texts = [message.text for message in outcome.messages]
    missing = {ended(each["node"]) for text in texts if (each := NO_IMPLEMENTATION.search(text))}
    found += [without(layer, tactics.get(layer)) for layer in sorted(missing)]
    # TensorRT for RTX prints no tactics.
    return tuple(each for each in found if outcome.tactics or each.why is not Why.NOT_SAID)


def _wanted(op: str, wished: Precision | None, recipe: Recipe) -> Precision | None:
    """Return the finest precision that is asked of a node, or that flags and calibrator let the builder choose."""
    if op not in MULTIPLYING:
        return None
    allowed = [wished] if wished in RANK else []
    if recipe.calibrator:
        allowed.append(Precision.INT8)
    allowed += [Precision(flag.lower()) for flag in recipe.flags if flag in ("FP16", "BF16")]
    return max(allowed, key=lambda each: RANK[each], default=None)


def _of_node(asked: AskedNode, layer: Layer | None, tactics: Mapping[str, Tactics], recipe: Recipe) -> Reason:
    if layer is None:
        return asked.reason(Why.NOT_SAID)
    if is_compiled(layer.name) or layer.type == "Myelin":
        return _of_region(asked, [each for name, each in tactics.items() if is_region(name)], layer)
    about = tactics.get(layer.name)
    if about is None:
        return asked.reason(Why.NOT_SAID, layer.name)
    return judged(
        about, asked, chosen_of(about, asked.ran, layer.tactic), typed=recipe.typing is Typing.STRONG
    )


def _of_region(asked: AskedNode, regions: Sequence[Tactics], layer: Layer) -> Reason:
    """Return why the only region runs as it does; its formats tell nothing of a type that only its inside has."""
    for about in regions if len(regions) == 1 else ():
        tactic = next((each.tactic for each in about.combinations if each.tactic), "")
        found = judged(about, asked, chosen_of(about, asked.ran, tactic))
        if found.formats and found.why is not Why.NOT_SAID:
            return found
    return asked.reason(Why.INSIDE_A_REGION, layer.name)


def without(layer: str, about: Tactics | None) -> Reason:
    """Return why a layer has no implementation."""
    if is_compiled(layer):
        return Reason(layer, Why.INSIDE_A_REGION, layer=layer)
    if about is None:
        return Reason(layer, Why.NOT_SAID, layer=layer)
    formats = tuple(each.formats for each in about.combinations)
    if any(each.short_of_memory for each in about.combinations):
        return Reason(layer, Why.OUT_OF_MEMORY, layer=layer, formats=formats)
    refused = formats and all(each.refused for each in about.combinations)
    return Reason(layer, Why.NO_KERNEL if refused else Why.NOT_SAID, layer=layer, formats=formats)


def judged(about: Tactics, asked: AskedNode, chosen: Combination | None, *, typed: bool = False) -> Reason:
    """Return why a layer ran in one precision and not in a finer one."""
    of_wanted = [each for each in about.combinations if same_precision(asked.wanted, computes_in(each))]
    timed = [each for each in of_wanted if each.time_us is not None]
    formats = tuple(each.formats for each in of_wanted)
    reason = replace(asked.reason(Why.NOT_SAID, about.layer), formats=formats)
    if not of_wanted:
        return replace(reason, why=Why.TYPED if typed else Why.NOT_OFFERED)
    if timed:
        return _compared(about, chosen, timed, reason) if chosen and chosen.time_us is not None else reason
    if any(each.short_of_memory for each in of_wanted):
        return replace(reason, why=Why.OUT_OF_MEMORY)
    return replace(reason, why=Why.NO_KERNEL) if all(each.refused for each in of_wanted) else reason


def _compared(about: Tactics, chosen: Combination, timed: Sequence[Combination], reason: Reason) -> Reason:
    fastest = min(timed, key=_us)
    slower = _us(fastest) > _us(chosen)
    numbers = f"its fastest kernel takes {_us(fastest):.2f} us, the chosen one {_us(chosen):.2f} us"
    ways = [(way, each) for each in timed if (way := way_us(about, each, chosen)) is not None]
    taken = way_us(about, chosen, chosen)
    if taken is not None and len(ways) == len(timed):
        least, through = min(ways, key=lambda each: (each[0], each[1] is not fastest))
        if through is not fastest:
            numbers += f"; its cheapest way takes {through.tactic or 'another kernel'}, {_us(through):.2f} us"
        return replace(
            reason,
            why=Why.SLOWER if slower else Why.CONVERSION,
            numbers=f"{numbers}; with conversions {least:.2f} us against {taken:.2f} us",
            toss_up=least <= taken * (1 + TOSS_UP),
        )
    if taken is not None and _us(fastest) > taken * (1 + TOSS_UP):
        # Conversions can only add to it.
        return replace(reason, why=Why.SLOWER, numbers=f"{numbers}, {taken:.2f} us with its conversions")
    if slower and _layouts(fastest) == _layouts(chosen):
        close = _us(fastest) <= _us(chosen) * (1 + TOSS_UP)
        return replace(reason, why=Why.SLOWER, numbers=numbers, toss_up=close)
    return replace(reason, why=Why.LAYOUT_OR_CONVERSION, numbers=numbers)


def way_us(about: Tactics, way: Combination, chosen: Combination) -> float | None:
    """Return a combination's kernel and conversions in us, its neighbours as chosen; None if a price is not printed."""
    sides = (("in", way.inputs, chosen.inputs), ("out", way.outputs, chosen.outputs))
    total = _us(way)
    for side, mine, theirs in sides:
        for at, (own, other) in enumerate(zip(mine, theirs, strict=False)):
            beside = [each for each in about.prices if (each.side, each.at) == (side, at)]
            price = _beside_us(beside, own) if beside else _converted_us(about, side, at, own, other)
            if price is None:
                return None
            total += price
    return total


def _beside_us(beside: Sequence[Conversion], own: str) -> float | None:
    """Return the price of the nodes that convert a tensor from or to a layer's own format."""
    total = 0.0
    for node in {each.tensor for each in beside}:
        prices = [
            0.0 if _same_memory(each.source, each.target) else each.time_us or 0.0
            for each in beside
            if each.tensor == node and own == (each.target if each.side == "in" else each.source)
        ]
        if not prices:
            return None
        total += min(prices)
    return total


def _converted_us(about: Tactics, side: str, at: int, own: str, chosen: str) -> float | None:
    """Return the price of converting a tensor from the format that comes in, or to the one that is read behind."""
    made = next((each for each in about.added if (each.side, each.at) == (side, at)), None)
    if side == "in":
        source, target = made.source if made else chosen, own
    else:
        source, target = own, made.target if made else chosen
    if _same_memory(source, target):
        return 0.0
    plain = (each for each in about.prices if not each.side)
    return next((each.time_us for each in plain if (each.source, each.target) == (source, target)), None)


def _same_memory(source: str, target: str) -> bool:
    """Tell whether two formats are one in memory: equal, or the first stride is of a dimension of one."""
    a, b = (_strides(each) for each in (source, target))
    return a == b or (a[0] == b[0] and a[2:] == b[2:] and "1" in (a[1], b[1]) and ":" not in source + target)


def _strides(text: str) -> list[str]:
    """Return the type and the strides of a format; of vectors along the dense dimension, in elements."""
    kind, *strides = re.split(r"[(,]", text.rstrip(")"))
    vector = next((each[2:] for each in strides if each.startswith("1:")), "")
    # A stride of a dynamic shape is an expression.
    if not vector.isdecimal() or not all(each.isdecimal() for each in strides if ":" not in each):
        return [kind, *strides]
    return [kind, *("1" if ":" in each else str(int(each) * int(vector)) for each in strides)]


def chosen_of(about: Tactics, got: Precision, tactic: str) -> Combination | None:
    """Return the combination that the engine holds, by its tactic, its precision and the conversions made."""
    fits = [
        each
        for each in about.combinations
        if each.time_us is not None and each.tactic == tactic and same_precision(got, computes_in(each))
    ]
    for made in about.added:
        sides = [each.inputs if made.side == "in" else each.outputs for each in fits]
        own = made.target if made.side == "in" else made.source
        agreeing = [
            each for each, side in zip(fits, sides, strict=True) if side[made.at : made.at + 1] == (own,)
        ]
        fits = agreeing or fits
    return min(fits, key=_us, default=None)


def computes_in(combination: Combination) -> Precision:
    """Return the type of a combination's data: that of its first input."""
    return precision_of(combination.inputs[0]) if combination.inputs else Precision.UNKNOWN


def _us(combination: Combination) -> float:
    return combination.time_us or 0.0


def _layouts(combination: Combination) -> tuple[str, ...]:
    return tuple(each.partition("(")[2] for each in combination.sides)
