"""Temporary folders of a process that was killed are removed by the next run, and nobody else's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.run import local
from harness.scratch import Scratch, reap_scratch

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[1]
KILLED = """
import os, signal
from pathlib import Path
from harness.scratch import Scratch
scratch = Scratch("job-")
(Path(scratch.name) / "deep").mkdir()
(Path(scratch.name) / "deep" / "file").touch()
(Path(scratch.name) / "out").symlink_to("/")
os.chmod(Path(scratch.name) / "deep", 0o500)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_goes_with_its_owner(temporary: Path) -> None:
    with Scratch() as name:
        assert Path(name).is_dir()
        assert list(Path(name).iterdir()) == []
        (Path(name) / "file").touch()
    assert list(temporary.iterdir()) == []


@pytest.mark.fault("kills", "a temporary folder of a run killed by SIGKILL", "removed by the next run")
def test_what_a_killed_process_left_is_removed_by_the_next_run(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", KILLED], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    (left,) = temporary.iterdir()
    assert left.name.startswith("trt-compat-job-")
    monkeypatch.setattr("harness.run.docker.reap", lambda _: ())
    with Scratch() as alive:
        local.reap_orphans(())
        assert not left.exists()
        assert Path(alive).is_dir()


@pytest.mark.fault("kills", "temporary folders of others", "left alone")
def test_what_is_not_known_to_be_left_stays(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Scratch() as alive:
        (temporary / "trt-compat-unmarked").mkdir()
        (temporary / "trt-compat-file").touch()
        (temporary / "other").mkdir()
        (temporary / "other" / "held").touch()
        (temporary / "trt-compat-link").symlink_to(temporary / "other")
        assert reap_scratch() == ()
        (temporary / "trt-compat-foreign").mkdir()
        (temporary / "trt-compat-foreign" / "held").touch()
        with monkeypatch.context() as somebody:
            somebody.setattr(os, "geteuid", lambda: os.getuid() + 1)
            assert reap_scratch() == ()
        assert reap_scratch() == ("trt-compat-foreign",)
        assert Path(alive).is_dir()
