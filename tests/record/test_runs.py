"""What a reports folder keeps of runs that were stopped, and of the last that was not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import HandledError
from harness.record.runs import Planned, stopped, under_way

pytestmark = pytest.mark.unit

PLANNED = Planned("a1", "2026-01-01T00:00", ("one", "two"), {"via": "venv"})


def stop(folder: Path, planned: Planned) -> None:
    """Leave a run unfinished."""
    with pytest.raises(KeyboardInterrupt), under_way(folder, planned):
        raise KeyboardInterrupt


def test_a_run_that_ends_leaves_nothing(tmp_path: Path) -> None:
    with under_way(tmp_path, PLANNED):
        assert list(tmp_path.rglob("*.json"))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(HandledError, match="no unfinished run"):
        stopped(tmp_path)


def test_the_newest_run_that_was_stopped_is_gone_on_with(tmp_path: Path) -> None:
    newer = Planned("b2", "2026-01-02T00:00", ("three",))
    stop(tmp_path, newer)
    stop(tmp_path, PLANNED)
    assert stopped(tmp_path) == newer
    with under_way(tmp_path, newer):
        assert stopped(tmp_path) == PLANNED, "one that is under way is not stopped"
        with pytest.raises(HandledError, match="under way in another process"), under_way(tmp_path, newer):
            pass
    assert stopped(tmp_path) == PLANNED


def test_a_killed_process_holds_its_run_no_more(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; from pathlib import Path; from harness.record.runs import *\n"
        "with under_way(Path(sys.argv[1]), Planned('a1', '2026', ('one',))): os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert stopped(tmp_path).cells == ("one",)


def test_a_run_of_the_same_cells_makes_going_on_needless(tmp_path: Path) -> None:
    stop(tmp_path, PLANNED)
    with under_way(tmp_path, Planned("b2", "2026-01-02", ("one",))):
        pass
    assert stopped(tmp_path) == PLANNED
    with under_way(tmp_path, Planned("c3", "2026-01-03", ("one", "two", "three"))):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"run": "a1"}', '{"run": "other", "when": "", "cells": []}']
)
def test_what_is_no_plan_is_none(tmp_path: Path, text: str) -> None:
    """Its process was killed before it had written it, and so before anything was recorded."""
    path = tmp_path / "unfinished" / "a1.json"
    path.parent.mkdir()
    path.write_text(text)
    os.mkfifo(path.with_name("pipe.json"))
    with pytest.raises(HandledError, match="no unfinished run"):
        stopped(tmp_path)
