"""The needs of tests from the machine: each helper returns, or skips the test and says why.

`make test` leaves out by their marks the tests that need more than Python, git, make and a network: a helper fails a
test that lacks the mark.

TRT_COMPAT_TEST_REQUIRE turns such a skip into a failure, so that a CI job that is meant to have Docker does not
pass without it. It is a comma-separated list of the names below, or "all":

    docker     a Docker daemon answers
    base       the base image that TRT_COMPAT_BASE_IMAGE names is there (see docker/README.md; it may hold {arch})
    emulation  the daemon starts containers of another architecture
    network    the package index answers `uv`
    chromium   a Chromium that starts: TRT_COMPAT_CHROMIUM, Playwright's own, or one on the PATH
    axe        axe-core, for `needs.axe()`
    gpu        an NVIDIA GPU
    slurm      the daemons and commands of Slurm and munge, as root
    python3.8  the oldest Python that the agent meets
    NAME       a program of that name, for `needs.program("NAME")`
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import platformdirs
import pytest

from harness.errors import InfraError
from harness.run import docker as docker_engine
from harness.run.docker import Daemon
from harness.run.provision.host import look_at_host
from tests.waiting import PATIENCE

REQUIRE = "TRT_COMPAT_TEST_REQUIRE"
#: The mark that a test has which needs a program; one that is not here is on every machine.
_MARKS = {
    "gcc": "contract",
    "g++": "contract",
    **dict.fromkeys(("docker", "docker-registry", "ssh", "ssh-keygen", "sshd"), "docker"),
}


def docker() -> Daemon:
    """Need a Docker daemon; returns what it says of itself."""
    _marked("docker")
    found = _daemon()
    return found if not isinstance(found, str) else _missing("docker", found)


def base_image(architecture: str = "amd64", python: str = "3.11") -> str:
    """Need the base image that TRT_COMPAT_BASE_IMAGE names; returns its reference."""
    docker()
    pattern = os.environ.get("TRT_COMPAT_BASE_IMAGE")
    if not pattern:
        _missing("base", "TRT_COMPAT_BASE_IMAGE names no base image for tests")
    reference = pattern.format(arch=architecture, python=python)
    if not _present(reference, f"linux/{architecture}"):
        _missing("base", f"the daemon has no {reference} for linux/{architecture}")
    return reference


def emulation(architecture: str) -> None:
    """Need a daemon that starts containers of this architecture, its own or an emulated one."""
    if architecture not in (docker().architecture, *look_at_host().emulated):
        _missing("emulation", f"no emulation of {architecture} is registered")


def network() -> None:
    """Need a package index that answers."""
    said = _index()
    if said:
        _missing("network", f"the package index does not answer: {said}")


def chromium() -> dict[str, Any]:
    """Need a Chromium, and a Playwright that drives it; returns its launch options."""
    _marked("browser")
    found = _chromium()
    return found if not isinstance(found, str) else _missing("chromium", found)


def axe() -> str:
    """Need axe-core, the accessibility checker: TRT_COMPAT_AXE, or from the user's cache; returns the script's path."""
    named = os.environ.get("TRT_COMPAT_AXE")
    cached = platformdirs.user_cache_path("trt-compat") / "node_modules/axe-core/axe.min.js"
    script = Path(named) if named else cached
    if script.is_file():
        return str(script)
    return _missing("axe", f"no axe-core at {script}: `npm install --prefix {cached.parents[2]} axe-core`")


def gpu() -> None:
    """Need an NVIDIA GPU."""
    host = look_at_host()
    if not host.gpus:
        _missing("gpu", f"no NVIDIA GPU: {host.gpu_reason}")


def program(name: str) -> str:
    """Need a program on the PATH; returns where it is."""
    if name in _MARKS:
        _marked(_MARKS[name])
    return shutil.which(name) or _missing(name, f"{name} is not installed")


def slurm() -> None:
    """Need the programs of a Slurm of two nodes on this machine, and the rights to start it."""
    _marked("slurm")
    for name in ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel", "sinfo"):
        if shutil.which(name) is None:
            _missing("slurm", f"{name} is not installed")
    if os.geteuid() != 0:
        _missing("slurm", "only root starts the daemons of Slurm as the tests do")


def oldest_python() -> str:
    """Need the oldest Python that the agent runs on, in the containers of Jetson boards; returns where it is."""
    _marked("contract")
    return _python("3.8") or _missing(
        "python3.8", "python3.8 is not installed; `uv python install 3.8` brings it"
    )


@functools.lru_cache
def _python(version: str) -> str:
    """Return the Python of a version that is on the PATH or that uv has installed, or ""."""
    import uv

    find = [uv.find_uv_bin(), "python", "find", "--managed-python", "--no-python-downloads", version]
    managed = subprocess.run(find, capture_output=True, text=True, check=False).stdout.strip()
    for found in filter(None, (shutil.which(f"python{version}"), managed)):
        # A version manager's stand-in for it prints its path, or fails.
        ask = [found, "-c", "import sys; print(sys.executable)"]
        done = subprocess.run(ask, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout.strip()
    return ""


def running(item: pytest.Item) -> None:
    """Note the marks of the test that is about to call the helpers."""
    _marks.clear()
    _marks.update(mark.name for mark in item.iter_markers())


_marks: set[str] = set()


def _marked(mark: str) -> None:
    if mark not in _marks:
        pytest.fail(f"mark it with pytest.mark.{mark}: `make test` leaves such tests out", pytrace=False)


def _missing(name: str, reason: str) -> NoReturn:
    required = {word.strip() for word in os.environ.get(REQUIRE, "").split(",")}
    if required & {name, "all"}:
        pytest.fail(f"{reason} ({REQUIRE} demands {name})", pytrace=False)
    pytest.skip(reason)


@functools.lru_cache(maxsize=1)
def _daemon() -> Daemon | str:
    try:
        return docker_engine.daemon()
    except InfraError as error:
        return str(error)


@functools.lru_cache
def _present(reference: str, platform: str) -> bool:
    return docker_engine.find_image(reference, platform) is not None


@functools.lru_cache(maxsize=1)
def _index() -> str:
    import uv

    command = [uv.find_uv_bin(), "pip", "compile", "--quiet", "--no-cache", "--no-deps", "--no-header", "-"]
    try:
        done = subprocess.run(
            command, input="packaging", capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {PATIENCE} s"
    return _last(done.stderr) if done.returncode else ""


@functools.lru_cache(maxsize=1)
def _chromium() -> dict[str, Any] | str:
    """Return the options that Chromium starts with here, after a try, or why it does not."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError as error:
        return f"Playwright cannot be loaded: {error}"
    # Its driver is a program of its own with needs of its own, and Playwright does not name the missing ones.
    driver = subprocess.run(
        [sys.executable, "-m", "playwright", "--version"], capture_output=True, text=True, check=False
    )
    if driver.returncode:
        return f"Playwright's driver does not start: {_last(driver.stderr)}"
    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
        names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
        there = [own] if Path(own).exists() else filter(None, map(shutil.which, names))
        path = os.environ.get("TRT_COMPAT_CHROMIUM") or next(iter(there), None)
        if not path:
            return "no Chromium: set TRT_COMPAT_CHROMIUM or `playwright install chromium`"
        # Chromium's sandbox refuses to run as root, as CI containers do.
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        launch: dict[str, Any] = {"executable_path": path, "args": flags, "timeout": 1000 * PATIENCE}
        try:
            playwright.chromium.launch(**launch).close()
        except Error as error:
            return f"{path} does not start: {_last(str(error))}"
    return launch


def _last(said: str) -> str:
    """Return the end of a program's output, on one line."""
    return " ".join(said.split())[-300:] or "it does not say why"
