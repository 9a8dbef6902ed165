"""Fixtures of the command line's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli import project
from tests.fixtures import Patch


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: Patch) -> Path:
    """Return the folder of the small project, which is the current one."""
    folder = project.make(tmp_path / "project")
    monkeypatch.chdir(folder)
    return folder
