"""Rewrites models: pure functions that give another model, or None if there is no change.

rewrites.tsv lists them with their effects, their costs, and the cases that prove them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Each registers its functions.
from harness.models.rewrites import exact, floats, folded, quantised  # noqa: F401
from harness.models.rewrites.editor import FUNCTIONS, Function
from harness.models.rewrites.floats import unquantised

__all__ = ["REWRITES", "Rewrite", "unquantised"]


@dataclass(frozen=True)
class Rewrite:
    """A way round a failure: its effect and its cost in words, and the variants of cases that prove it, if any.

    `apply` takes the model and the nodes that are blamed: those that are refused, or that lost their precision. One
    that `gives_up` INT8 helps only a model that is not built with it. One that `fixes` shapes takes the model at those
    of this run.
    """

    name: str
    title: str
    cost: str
    proof: tuple[str, ...]
    apply: Function
    gives_up: bool = False
    fixes: bool = False


def _read() -> Iterator[Rewrite]:
    lines = Path(__file__).with_name("rewrites.tsv").read_text(encoding="utf-8").splitlines()
    for line in lines:
        if not line.startswith("#"):
            name, kind, proof, title, cost = line.split("\t")
            yield Rewrite(
                name, title, cost, tuple(proof.split()), FUNCTIONS[name], kind == "gives_up", kind == "fixes"
            )


REWRITES = tuple(_read())
