"""The tries of a check beyond a model as it is: the entries of results.json's `further`, frozen data."""

from __future__ import annotations

from msgspec import Struct

from harness.record.outcome import Accuracy
from harness.words import Class, Precision


class Became(Struct, frozen=True, rename={"cls": "class"}):
    """The outcome of a model that was tried, in short: `kept` of `wanted` nodes ran in the narrow type."""

    cls: Class
    signature: str | None
    reason: str
    precision: Precision | None
    kept: int
    wanted: int


class Blocker(Struct, frozen=True, rename={"cls": "class"}):
    """One refusal of a target: the nodes, of one operator unless they are a fused region, and why.

    `named` says that the engine names them; if it names an operator alone, they are all nodes of it that may be meant.
    `after_cut` says that others were cut out before.
    """

    nodes: tuple[str, ...]
    operator: str
    cls: Class
    reason: str
    signature: str | None = None
    title: str = ""
    cause: str = ""
    advice: str = ""
    named: bool = True
    after_cut: bool = False


class Blockers(Struct, frozen=True):
    """The blockers of a model on a target in the order in which they were found; `end` is the fate of the rest.

    `cut_as_well` are nodes that were cut out with them, as the shape of their inputs is unknown.
    """

    found: tuple[Blocker, ...]
    end: str
    cut_as_well: tuple[str, ...] = ()
    tries: int = 0
    seconds: float = 0.0


class LeftFloat(Struct, frozen=True):
    """Nodes left in floating point, of all that are quantised; `least` says that each of them is needed."""

    nodes: tuple[str, ...]
    of: tuple[str, ...]
    helps: bool
    least: bool
    became: Became | None
    tries: int
    seconds: float


class Tried(Struct, frozen=True):
    """A rewrite and its outcome; `outputs` are those of the rewritten model against the first one's."""

    name: str
    title: str
    costs: str
    proof: tuple[str, ...]
    gain: str
    became: Became
    outputs: tuple[Accuracy, ...]
    uncompared: str


class Workarounds(Struct, frozen=True):
    """All rewrites that changed a model, the cheapest first, and those that changed it in no way."""

    best: str | None
    tried: tuple[Tried, ...]
    nothing_to_change: tuple[str, ...]
    seconds: float


class Further(Struct, frozen=True):
    """The tries of one model on one target; a question that was not asked is null.

    `cell` is the id of the model's own cell, `model` the user's name for it.
    """

    cell: str
    variant: str
    model: str
    target: str
    blockers: Blockers | None = None
    leave_float: LeftFloat | None = None
    workarounds: Workarounds | None = None
