"""Both front doors say what is to be pulled, pull what is large only with `--pull`, and say how far they are."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests import needs
from tests.cli.project import TOP, harness
from tests.run.provision.registries import Registry, forget, registry
from tests.waiting import PATIENCE, wait_for

pytestmark = [pytest.mark.integration, pytest.mark.docker]

LARGE = 3_000_000


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Registry]:
    """Run a registry."""
    needs.docker()
    (tmp_path / "registry").mkdir()
    with registry(tmp_path / "registry") as running:
        yield running


@pytest.fixture
def image(shop: Registry, toy: Path) -> Iterator[str]:
    """Give the project one target, whose image the registry has and this machine has not; it holds no Python."""
    reference = shop.put("large", os.urandom(LARGE))
    forget(reference)
    target = {"engine": "onnxruntime", "version": "1.31.1", "image": reference, "size_gb": 3}
    (toy / "matrix.yaml").write_text(yaml.safe_dump({"schema": 1, "targets": {"big": target}}))
    (toy / "conftest.py").write_text('pytest_plugins = ["harness.pytest_plugin"]\n')
    (toy / "pytest.ini").write_text("[pytest]\naddopts = -ra\n")
    yield reference
    forget(reference)


def trt_compat(folder: Path, *words: str) -> tuple[int, str, str]:
    process = harness(folder, *words)
    out, err = process.communicate()
    return process.returncode, out, err


def matrix_tests(folder: Path, *words: str, **environment: str) -> str:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:randomly",
            "matrix.yaml",
            *words,
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(TOP), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


def test_run_withholds_a_large_image_until_it_is_asked_for(toy: Path, shop: Registry, image: str) -> None:
    _, out, _ = trt_compat(toy, "run", "--dry-run")
    assert f"container from {image}, to be pulled (3 GB)" in out
    code, out, _ = trt_compat(toy, "run")
    assert not shop.fetched("large")
    assert code == 3
    assert "--pull (3 GB)" in out
    code, out, err = trt_compat(toy, "run", "--pull")
    assert f"pulling {image}: 1 of 1 layers" in err
    assert 1 <= err.count("pulling ") <= 2
    assert len(shop.fetched("large")) == 2
    _, out, _ = trt_compat(toy, "run")
    assert "needs --pull" not in out


@pytest.mark.usefixtures("image")
def test_an_interrupt_ends_the_run_in_the_middle_of_a_pull(toy: Path, shop: Registry) -> None:
    shop.gate.limit = LARGE // 2
    process = harness(toy, "run", "--pull")
    assert wait_for(lambda: (shop.gate.limit or 0) < 0)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGINT
    # What the daemon then does is its own: 20.10 may hold its connection until the registry speaks again.
    assert err.endswith("interrupted\n")
    assert not shop.gate.shut.is_set()


@pytest.mark.long
def test_pytest_does_the_same(toy: Path, shop: Registry, image: str) -> None:
    for words in ([], ["-n", "2"]):
        said = matrix_tests(toy, *words)
        assert "needs --pull (3 GB)" in said.partition("short test summary info")[2]
        assert not shop.fetched("large")
    said = matrix_tests(toy, "--pull")
    assert f"pulling {image}: 1 of 1 layers" in said
    assert shop.fetched("large")
