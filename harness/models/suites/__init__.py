"""Suites: foreign collections of models with data of their own, and how they are run."""

from __future__ import annotations

from pathlib import Path

from harness.errors import HandledError
from harness.models.suites import folder, onnx_node
from harness.models.suites.running import Sink, SuitePrepared, about, suite_cells
from harness.models.suites.suite import Item, Suite
from harness.suggest import did_you_mean

__all__ = ["Item", "Sink", "Suite", "SuitePrepared", "about", "find_suite", "suite_cells"]

#: The suites that have a name.
SUITES = {suite.name: suite for suite in (onnx_node.SUITE,)}


def find_suite(name: str) -> Suite:
    """Return a suite by its name, or the one in a folder; raises HandledError where there is neither."""
    if name in SUITES:
        return SUITES[name]
    if "/" in name or Path(name).is_dir():
        return folder.suite(Path(name))
    raise HandledError(f"no suite {name!r}, and no folder; {did_you_mean(name, SUITES)}")
