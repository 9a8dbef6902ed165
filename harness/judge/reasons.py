"""Why a node did not run in the precision that it was to run in, from the tactics that the builder tried; pure.

So of a record, and of one or two verbose build logs: each layer's precision, its reason, the changes by an upgrade.

The builder minimises the time of the whole path, kernels and conversions between formats together. So the fastest
kernel of a precision alone is no reason. Two ways of a layer are compared by their sums: the kernel's time, then the
conversions from the formats that its inputs come in and to those that its outputs are read in. A Cast, Q or DQ beside
it is taken by its own price into each format, and costs nothing into its own; other neighbours are left as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from harness.case import Recipe
from harness.judge.complaints import NO_IMPLEMENTATION, ended
from harness.layers import names
from harness.layers.datatype import WEIGHTS, precision_of, same_precision
from harness.layers.names import is_compiled
from harness.layers.operators import MULTIPLYING
from harness.layers.precision import is_compute, is_region
from harness.layers.tactics import BuildLog
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
        if names.is_region(self.layer):
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
    found = [
        _of_node(asked, layers.get(asked.node), tactics, recipe)
        for asked in _coarser(outcome, recipe, ran, wished)
    ]
    texts = (NO_IMPLEMENTATION.search(message.text) for message in outcome.messages)
    missing = {ended(match["node"]) for match in texts if match}
    found += [without(layer, tactics.get(layer)) for layer in sorted(missing)]
    # TensorRT for RTX prints no tactics.
    return tuple(each for each in found if outcome.tactics or each.why is not Why.NOT_SAID)


def _coarser(
    outcome: Outcome, recipe: Recipe, ran: Mapping[str, Precision], wished: Mapping[str, Precision]
) -> Iterator[AskedNode]:
    for node in outcome.nodes:
        wanted, got = _wanted(node.op, wished.get(node.name), recipe), ran.get(node.name)
        if wanted and got in RANK and RANK[got] < RANK[wanted]:
            yield AskedNode(node.name, wanted, got)


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
        return _of_region(asked, [each for name, each in tactics.items() if names.is_region(name)], layer)
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
    why = _untimed(of_wanted, typed=typed) if not timed else Why.NOT_SAID
    formats = tuple(each.formats for each in of_wanted)
    reason = replace(asked.reason(why, about.layer), formats=formats)
    return (
        _compared(about, chosen, timed, reason) if timed and chosen and chosen.time_us is not None else reason
    )


def _untimed(of_wanted: Sequence[Combination], *, typed: bool) -> Why:
    """Return why no combination of the wanted precision was timed."""
    if not of_wanted:
        return Why.TYPED if typed else Why.NOT_OFFERED
    if any(each.short_of_memory for each in of_wanted):
        return Why.OUT_OF_MEMORY
    return Why.NO_KERNEL if all(each.refused for each in of_wanted) else Why.NOT_SAID


def _compared(about: Tactics, chosen: Combination, timed: Sequence[Combination], reason: Reason) -> Reason:
    fastest, taken = min(timed, key=_us), way_us(about, chosen, chosen)
    slower = _us(fastest) > _us(chosen)
    numbers = f"its fastest kernel takes {_us(fastest):.2f} us, the chosen one {_us(chosen):.2f} us"
    ways = [(way, each) for each in timed if (way := way_us(about, each, chosen)) is not None]
    if taken is not None and len(ways) == len(timed):
        least, through = min(ways, key=lambda each: (each[0], each[1] is not fastest))
        if through is not fastest:
            numbers += f"; its cheapest way takes {through.tactic or 'another kernel'}, {_us(through):.2f} us"
        numbers += f"; with conversions {least:.2f} us against {taken:.2f} us"
        why = Why.SLOWER if slower else Why.CONVERSION
        return replace(reason, why=why, numbers=numbers, toss_up=least <= taken * (1 + TOSS_UP))
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
    # The source of an input, and the target of an output, are those of the conversion that was made.
    ends = (made.source if made else chosen, own) if side == "in" else (own, made.target if made else chosen)
    if _same_memory(*ends):
        return 0.0
    return {(each.source, each.target): each.time_us for each in about.prices if not each.side}.get(ends)


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
    timed = (each for each in about.combinations if each.time_us is not None and each.tactic == tactic)
    fits = [each for each in timed if same_precision(got, computes_in(each))]
    for made in about.added:
        fits = [each for each in fits if _fits(each, made)] or fits
    return min(fits, key=_us, default=None)


def _fits(combination: Combination, made: Conversion) -> bool:
    """Tell whether a combination has the format on the side of a conversion that was made."""
    sides, own = (
        (combination.inputs, made.target) if made.side == "in" else (combination.outputs, made.source)
    )
    return sides[made.at : made.at + 1] == (own,)


def computes_in(combination: Combination) -> Precision:
    """Return the type of a combination's data: that of its first input."""
    return precision_of(combination.inputs[0]) if combination.inputs else Precision.UNKNOWN


def _us(combination: Combination) -> float:
    return combination.time_us or 0.0


def _layouts(combination: Combination) -> tuple[str, ...]:
    return tuple(each.partition("(")[2] for each in combination.sides)


# ---- the layers of a verbose build log

_REFORMAT = "Reformatting CopyNode for "


@dataclass(frozen=True)
class BuiltLayer:
    """A layer of a build: its precision ("" if not reported), its kernel's time in us, and the kernel.

    `reason` tells why it runs in no finer precision that was offered, or has no kernel; else None.
    """

    name: str
    precision: str
    time_us: float | None
    tactic: str
    reason: Reason | None = None
    multiplies: bool = True

    @property
    def reformats(self) -> bool:
        """Tell whether it only converts a tensor."""
        return self.name.startswith(_REFORMAT)

    def __str__(self) -> str:
        """Return precision, time and kernel in one line."""
        time = "" if self.time_us is None else f"{self.time_us:.2f} us"
        return " ".join(filter(None, (said(self.precision).upper(), time, self.tactic)))


@dataclass(frozen=True)
class LayerChange:
    """A layer that runs otherwise in the new of two builds; a side without it is None."""

    name: str
    old: BuiltLayer | None
    new: BuiltLayer | None

    @property
    def coarser(self) -> bool:
        """Tell whether it lost precision; the inside of a region may run finer than its edges."""
        hidden = self.new and not self.new.reason and names.is_region(self.new.name)
        return bool(self.old and self.new and not hidden) and _rank(self.new) < _rank(self.old)

    @property
    def order(self) -> tuple[bool, bool, float]:
        """Return the place among changes: lost precision first, then layers of one side last, then time."""
        return not self.coarser, self.old is None or self.new is None, -self.slower_us

    @property
    def slower_us(self) -> float:
        """Return by how many us the new kernel is slower; 0 if a time is missing."""
        old, new = (each.time_us if each else None for each in (self.old, self.new))
        return new - old if old is not None and new is not None else 0.0


def built_layers(build: BuildLog) -> tuple[BuiltLayer, ...]:
    """Return the layers of a build that was priced, in the log's order; of partitions only the engine's."""
    priced = (name for name in build.layers if not build.engine or name in build.engine)
    return tuple(_built(name, build) for name in dict.fromkeys([*priced, *build.engine]))


def _built(name: str, build: BuildLog) -> BuiltLayer:
    about, layer = build.of(name), build.engine.get(name)
    if layer is None:
        return BuiltLayer(name, "", None, "", _lacking(name, about) if build.lacking else None)
    got = Precision(layer.precision)
    built = BuiltLayer(
        name,
        "" if got is Precision.UNKNOWN else layer.precision,
        None,
        _kernel(layer),
        None,
        is_compute(layer),
    )
    if about is None:
        return built
    chosen = chosen_of(about, got, layer.tactic)
    asked = AskedNode(name, Precision.INT8 if name in build.unquantised else got, got)
    reason = _reason(about, asked, chosen)
    # The inside of a region may run finer than its edges.
    kept = built.multiplies if not is_region(layer) else reason and reason.why is Why.OUT_OF_MEMORY
    return replace(built, time_us=chosen.time_us if chosen else None, reason=reason if kept else None)


def _kernel(layer: Layer) -> str:
    """Return the kernel's name; of one without, its runner and its number."""
    numbered = re.fullmatch(r"0x[0-9a-fA-F]+", layer.tactic)
    return f"{layer.type} {int(layer.tactic, 16):#x}" if numbered else layer.tactic


def _lacking(name: str, about: Tactics | None) -> Reason | None:
    """Return why a layer of an unfinished build has no kernel; None if one was timed or the log gives no reason."""
    if about is None or any(each.time_us is not None for each in about.combinations):
        return None
    reason = without(name, about)
    return reason if reason.why in (Why.NO_KERNEL, Why.OUT_OF_MEMORY) else None


def _reason(about: Tactics, asked: AskedNode, chosen: Combination | None) -> Reason | None:
    """Return why the finest precision that was asked or offered was not taken; None if it was."""
    offered = {asked.wanted, *map(computes_in, about.combinations)} & set(RANK)
    finest = max(offered, key=lambda each: RANK[each], default=None)
    if finest is None or RANK.get(asked.ran, 0) >= RANK[finest]:
        return None
    return judged(about, asked._replace(wanted=finest), chosen)


def changes(old: Sequence[BuiltLayer], new: Sequence[BuiltLayer]) -> tuple[LayerChange, ...]:
    """Return the layers that changed precision or kernel or are of one side, lost precision first, then time."""
    chains = {_ends(each.name): _key(each.name) for each in (*old, *new) if " + " in each.name}
    olds, news = (
        {chains.get(_ends(each.name)) or _key(each.name): each for each in side if not each.reformats}
        for side in (old, new)
    )
    found = (LayerChange(name, olds.get(name), news.get(name)) for name in dict.fromkeys([*news, *olds]))
    return tuple(sorted(filter(_differs, found), key=lambda each: each.order))


def _differs(change: LayerChange) -> bool:
    old, new = change.old, change.new
    if old is None or new is None:
        return True
    kernels = {each.tactic for each in (old, new) if each.multiplies and each.tactic}
    return old.precision != new.precision or len(kernels) > 1


def _key(name: str) -> str:
    """Return the part of a layer's name that versions share: the last node of a chain; without PWN(...)."""
    last = name if names.is_region(name) else names.split(name, (" + ",))[-1]
    return ", ".join(names.taken_apart(last)) if "PWN(" in last else last


def _ends(name: str) -> tuple[str, str]:
    """Return the first and the last node of a chain `a + b + c`, or of a region `{ForeignNode[a...c]}`."""
    parts = names.taken_apart(name)
    return (parts[0], parts[-1]) if parts else (name, name)


def _rank(layer: BuiltLayer | None) -> float:
    return RANK.get(Precision(layer.precision), 0) if layer and layer.precision else 0
