"""Read one or two verbose build logs: the precision of each layer, its reason, and the changes by an upgrade; pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.judge.reasons import RANK, AskedNode, Reason, Why, chosen_of, computes_in, judged, without
from harness.layers import names
from harness.layers.compute import is_compute, is_region
from harness.layers.tactics import BuildLog
from harness.record.outcome import Combination, Layer, Tactics
from harness.words import Precision, said

_REFORMAT = "Reformatting CopyNode for "
_NUMBER = re.compile(r"-?\d+|0x[0-9a-fA-F]+")


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
    def slower_us(self) -> float:
        """Return by how many us the new kernel is slower; 0 if a time is missing."""
        old, new = (each.time_us if each else None for each in (self.old, self.new))
        return new - old if old is not None and new is not None else 0.0


def built_layers(build: BuildLog) -> tuple[BuiltLayer, ...]:
    """Return the layers of a build that was priced, in the log's order; of partitions only the engine's."""
    priced = [name for name in build.layers if not build.engine or name in build.engine]
    names = dict.fromkeys([*priced, *build.engine])
    return tuple(_built(name, build) for name in names)


def _built(name: str, build: BuildLog) -> BuiltLayer:
    about, layer = build.of(name), build.engine.get(name)
    if layer is None:
        return BuiltLayer(name, "", None, "", _lacking(name, about) if build.lacking else None)
    got = Precision(layer.precision)
    precision = "" if got is Precision.UNKNOWN else str(got)
    multiplies = is_compute(layer)
    if about is None:
        return BuiltLayer(name, precision, None, _kernel(layer), None, multiplies)
    chosen = chosen_of(about, got, layer.tactic)
    asked = AskedNode(name, Precision.INT8 if name in build.unquantised else got, got)
    reason = _reason(about, asked, chosen) if multiplies or is_region(layer) else None
    if reason and is_region(layer) and reason.why is not Why.OUT_OF_MEMORY:
        # Its inside may run finer than its edges.
        reason = None
    time_us = chosen.time_us if chosen else None
    return BuiltLayer(name, precision, time_us, _kernel(layer), reason, multiplies)


def _kernel(layer: Layer) -> str:
    """Return the kernel's name; of one without, its runner and its number, which 7.x to 8.3 print as a decimal."""
    if _NUMBER.fullmatch(layer.tactic):
        number = int(layer.tactic, 16 if "x" in layer.tactic else 10)
        return f"{layer.type} {number % (1 << 64):#x}"
    return layer.tactic


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
        {
            chains.get(_ends(each.name)) or _key(each.name): each
            for each in side
            if not each.name.startswith(_REFORMAT)
        }
        for side in (old, new)
    )
    both = dict.fromkeys([*news, *olds])
    found = [LayerChange(name, olds.get(name), news.get(name)) for name in both]
    return tuple(
        sorted(
            (each for each in found if _differs(each)),
            key=lambda each: (not each.coarser, each.old is None or each.new is None, -each.slower_us),
        )
    )


def _differs(change: LayerChange) -> bool:
    old, new = change.old, change.new
    if old is None or new is None:
        return True
    kernels = {each.tactic for each in (old, new) if each.multiplies and each.tactic}
    return old.precision != new.precision or len(kernels) > 1


def _key(name: str) -> str:
    """Return the part of a layer's name that versions share: the last node of a chain; without PWN(...)."""
    last = name if names.is_region(name) else names.split(name, (" + ",))[-1]
    return ", ".join(each.name for each in names.taken_apart(last)) if "PWN(" in last else last


def _ends(name: str) -> tuple[str, str]:
    """Return the first and the last node of a chain `a + b + c`, or of a region `{ForeignNode[a...c]}`."""
    parts = names.taken_apart(name)
    return (parts[0].name, parts[-1].name) if parts else (name, name)


def _rank(layer: BuiltLayer | None) -> float:
    return RANK.get(Precision(layer.precision), 0) if layer and layer.precision else 0
