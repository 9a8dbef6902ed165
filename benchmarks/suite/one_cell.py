"""(one) A run of one cell in a warm environment: until the first line is printed, and to the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.suite.figures import Figure, Limit, Section
from benchmarks.suite.running import run
from harness.errors import InfraError

if TYPE_CHECKING:
    from benchmarks.suite.running import Setting

TITLE = "a run of one cell, warm"
_OPTIONS = ("--via", "venv", "--target", "rtx17", "-k", "residual-fp32")


def measure(setting: Setting) -> Section:
    """Run the cell once for warmth, then once a round; its output goes to a pipe, where no progress bar is drawn."""
    run(setting.folder(), *_OPTIONS)
    found = [run(setting.folder(), *_OPTIONS) for _ in setting.rounds("one")]
    if any(len(one.cells) != 1 for one in found):
        raise InfraError(f"{' '.join(_OPTIONS)} ran {len(found[0].cells)} cells, not one")
    return Section(
        "one",
        TITLE,
        (
            Figure(f"{TITLE}: first line", "s", tuple(one.ran.first for one in found), Limit(1)),
            Figure(f"{TITLE}: to the end", "s", tuple(one.ran.seconds for one in found)),
            Figure(
                f"{TITLE}: beyond the engine's own phases",
                "s",
                tuple(one.ran.seconds - one.engine_seconds for one in found),
                Limit(2),
            ),
        ),
    )
