"""What a target asks of a Slurm cluster, as matrix.yaml says it; data alone, which one room turns into a command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Slurm:
    """What `sbatch` is told for a target; "" leaves it to the cluster.

    `gres` is None where nothing is said: one GPU for a target that needs one, else none; "" asks for none.
    `architecture` "" is the target's own. `cells` is how many of the target's cells go into one task, 0 for all.
    `options` are further long options of sbatch, and `python` is what runs the harness on these nodes.
    """

    gres: str | None = None
    constraint: str = ""
    partition: str = ""
    time: str = ""
    account: str = ""
    architecture: Literal["", "x86_64", "aarch64", "any"] = ""
    python: str = ""
    cells: int = 0
    options: tuple[str, ...] = ()


#: What a target asks for that says nothing of it.
UNSAID = Slurm()


def read_slurm(target: dict[str, Any], defaults: dict[str, Any]) -> Slurm:
    """Return the `slurm` of a target's fields, each field that it does not give as the defaults have it."""
    fields = {**defaults.get("slurm", {}), **target.get("slurm", {})}
    gres = fields.get("gres") or ("" if "gres" in fields else None)
    return Slurm(**{**fields, "gres": gres, "options": tuple(fields.get("options", ()))})
