"""A fault of the agent: what is taken away or turned round, and the sentence that has to say so."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.contract.bindings import ROOT


@dataclass(frozen=True)
class Fault:
    """`right` in a file of the agent becomes `wrong`; on a version, a job then gives this sentence and maybe more."""

    name: str
    file: str
    right: str
    wrong: str
    version: str
    job: str
    said: str


def seeded(folder: Path, file: str, right: str, wrong: str) -> Path:
    """Make a copy of the agent in which one text of a file is another; returns where its package lies."""
    agent = folder / "harness" / "agent"
    shutil.copytree(ROOT / "harness" / "agent", agent, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "harness" / "__init__.py", folder / "harness")
    text = (agent / file).read_text(encoding="utf-8")
    assert text.count(right) == 1, "the agent has changed: seed the fault anew"
    (agent / file).write_text(text.replace(right, wrong), encoding="utf-8")
    return folder
