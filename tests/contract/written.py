"""The kept findings of the contract test's probe: the table of capabilities and the pages of calls."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.contract import bindings, capabilities, traces
from tests.contract.bindings import VERSIONS, Bindings
from tests.contract.scenarios import plugin_folders, scenarios


def pages(reports: Sequence[tuple[Bindings, dict[str, Any]]]) -> dict[str, str]:
    """Return the text of every file by its place in the repository, for a report of each version."""
    calls = traces.pages([(version.id, report) for version, report in reports])
    return {capabilities.FILE: capabilities.table(reports), **calls}


def probed() -> dict[str, str]:
    """Run the probe on every version and return the text of every file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "stub").mkdir()
        stub = bindings.compile_stub(shutil.which("gcc") or "gcc", folder / "stub")
        jobs = [job.as_dict() for job in scenarios(plugin_folders(folder / "plugins", stub / "stub.so"))]
        return pages([(version, bindings.probe(version, jobs, stub)) for version in VERSIONS])
