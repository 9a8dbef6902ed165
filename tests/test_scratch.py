"""Temporary folders of a process that was killed are removed by the next run, and no others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from harness.run import local
from harness.scratch import Scratch, reap_scratch
from tests.fixtures import Patch

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
def temporary(tmp_path: Path, monkeypatch: Patch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    # For a long path /tmp is looked at too, and other tests leave folders of killed processes there.
    monkeypatch.setattr("harness.scratch._SHORT", str(tmp_path / "short"))
    return tmp_path


def test_a_folder_goes_with_its_owner(temporary: Path) -> None:
    with Scratch() as name:
        assert Path(name).is_dir()
        assert list(Path(name).iterdir()) == []
        (Path(name) / "file").touch()
    assert list(temporary.iterdir()) == []


def test_what_a_killed_process_left_is_removed_by_the_next_run(temporary: Path, monkeypatch: Patch) -> None:
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


@pytest.mark.parametrize("moment", ["fcntl.flock", "shutil.rmtree", "pathlib.Path.rmdir"])
def test_what_is_killed_while_it_makes_or_removes_a_folder_leaves_nothing(
    temporary: Path, moment: str
) -> None:
    kill = f"import {moment.partition('.')[0]}\n{moment} = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)\n"
    script = f"import os, pathlib, signal\nfrom harness.scratch import Scratch\n{kill}Scratch().cleanup()"
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    (left,) = temporary.iterdir()
    assert reap_scratch() == (left.name,)
    assert list(temporary.iterdir()) == []


def test_a_folder_that_another_run_took_for_left_is_made_anew(temporary: Path, monkeypatch: Patch) -> None:
    again = iter((True, True))
    makes = tempfile.mkdtemp

    def reaped(*given: str, **named: str) -> str:
        name = makes(*given, **named)
        if next(again, False):
            assert reap_scratch() == (Path(name).name,)
        return name

    monkeypatch.setattr("tempfile.mkdtemp", reaped)
    with Scratch() as name:
        assert Path(name).is_dir()
    assert list(temporary.iterdir()) == []


def test_a_link_where_the_folder_was_is_removed_and_not_followed(temporary: Path) -> None:
    (temporary / "kept").mkdir(mode=0o500)
    with Scratch() as name:
        Path(name).rmdir()
        Path(name).symlink_to(temporary / "kept")
    assert [path.name for path in temporary.iterdir()] == ["kept"]
    assert (temporary / "kept").stat().st_mode & 0o777 == 0o500


def test_what_is_not_known_to_be_left_stays(temporary: Path, monkeypatch: Patch) -> None:
    with Scratch() as alive:
        (temporary / "trt-compat-unmarked" / "in").mkdir(parents=True)
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
