"""Records of cells in which nothing was observed, made without an environment."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from harness import __version__
from harness.case import model_sha256
from harness.errors import HandledError
from harness.record.outcome import Outcome, Stamps, State
from harness.run.commit import harness_commit

if TYPE_CHECKING:
    from harness.case import Variant
    from harness.plan import Cell


def bare_stamps(cell: Cell, run_id: str) -> Stamps:
    """Return the stamps of a cell that no environment has a part in."""
    return Stamps(
        model_sha256=_hash(cell.variant),
        recipe_sha256=cell.variant.recipe_sha256,
        harness_version=__version__,
        when=dt.datetime.now(dt.timezone.utc).isoformat(timespec="milliseconds"),
        run=run_id,
        harness_commit=harness_commit(),
    )


def blank(cell: Cell, state: State, reason: str, run_id: str) -> Outcome:
    """Return the record of a cell that came to no engine, with the reason."""
    return Outcome.blank(cell, state, reason, bare_stamps(cell, run_id))


def _hash(variant: Variant) -> str:
    """Return the hash of a variant's model, "" where there is none."""
    try:
        return model_sha256(variant.model_bytes())
    except HandledError:
        return ""
