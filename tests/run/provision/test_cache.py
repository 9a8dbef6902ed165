"""Environments are made once, completely or not at all, whoever asks and whoever dies."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import time
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import pytest

from harness.errors import InfraError
from harness.run.provision.cache import locked, make_once
from tests.waiting import PATIENCE, wait_for

pytestmark = pytest.mark.integration
SPAWN = multiprocessing.get_context("spawn")


def make_slowly(folder: Path, seconds: float) -> None:
    """Make an environment of two files, with time to be caught in the middle."""

    def make(partial: Path) -> None:
        partial.mkdir()
        (partial / "first").write_text(str(os.getpid()))
        with (folder.parent / "log").open("a") as log:
            log.write(f"{os.getpid()}\n")
        time.sleep(seconds)
        (partial / "second").touch()

    make_once(folder, make)


def begin(*arguments: Any) -> SpawnProcess:
    """Run `make_slowly` in a process of its own."""
    process = SPAWN.Process(target=make_slowly, args=arguments)
    process.start()
    return process


def test_several_processes_make_one_environment(tmp_path: Path) -> None:
    folder = tmp_path / "env"
    processes = [begin(folder, 0.3) for _ in range(3)]
    for process in processes:
        process.join(PATIENCE)
        assert process.exitcode == 0
    makers = (tmp_path / "log").read_text().split()
    assert len(makers) == 1
    assert sorted(path.name for path in folder.iterdir()) == ["first", "second"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["env", "env.lock", "log"]


def test_a_killed_process_leaves_nothing_that_could_be_used(tmp_path: Path) -> None:
    folder = tmp_path / "env"
    process = begin(folder, 600)
    assert wait_for(lambda: bool(list(tmp_path.glob("env.partial-*/first"))))
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(PATIENCE)
    assert not folder.exists()
    make_slowly(folder, 0)
    assert sorted(path.name for path in folder.iterdir()) == ["first", "second"]
    assert (folder / "first").read_text() == str(os.getpid())
    assert not list(tmp_path.glob("*.partial-*"))


def test_a_failure_leaves_nothing_and_can_be_tried_again(tmp_path: Path) -> None:
    folder = tmp_path / "env"

    def fail(partial: Path) -> None:
        partial.mkdir()
        (partial / "half").touch()
        raise InfraError("no")

    with pytest.raises(InfraError):
        make_once(folder, fail)
    assert [path.name for path in tmp_path.iterdir()] == ["env.lock"]
    make_slowly(folder, 0)
    assert (folder / "second").exists()


def test_waiting_for_a_lock_is_bounded(tmp_path: Path) -> None:
    with (
        locked("one", directory=tmp_path),
        pytest.raises(InfraError, match=r"held .*one\.lock for 0\.2 s"),
        locked("one", directory=tmp_path, timeout=0.2),
    ):
        pass
    with locked("one", directory=tmp_path, timeout=0.2):
        pass


def test_a_cache_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(InfraError, match="TRT_COMPAT_CACHE_DIR"),
        locked("x", directory=tmp_path / "file" / "deep"),
    ):
        pass


def test_a_cache_of_another_user_is_one_sentence(tmp_path: Path) -> None:
    """Its folders may not even be looked into."""

    def closed(folder: Path) -> bool:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))

    with pytest.raises(
        InfraError, match=r"cannot be used: Permission denied; TRT_COMPAT_CACHE_DIR names one"
    ):
        make_once(tmp_path / "one", lambda _: None, whole=closed)
