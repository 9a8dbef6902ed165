"""NVIDIA's real runtime core under the agent: the effects of an import, a fork and a missing driver, and its refusals.

The lean runtime has no builder and no parser, and runs plans that were built version compatible alone: no cell runs
on it. On an H100 with driver 580.159.04, in a run by hand, 11.4.0.106 came up in two preflights and refused each of the
plans below in its own words, in a child each.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.run.provision.cache import cache_dir, make_once
from tests import needs
from tests.contract.bindings import PYTHON, _uv, installed, python_of_bindings
from tests.waiting import HANGS

pytestmark = [pytest.mark.contract, pytest.mark.timeout(2 * HANGS)]

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = ("10.16.1.11", "11.2.1.2", "11.4.0.106")
EVERY_VERSION = pytest.mark.parametrize("version", VERSIONS)
Run = Callable[[str], dict[str, Any]]
_DRIVER = "no NVIDIA driver: libcuda.so.1"


@pytest.fixture(scope="module")
def run() -> Run:
    """Return a function that drives an agent on a version of the lean core once, and returns its messages."""
    if platform.machine() != "x86_64" or sys.platform != "linux":
        pytest.skip("the lean core's wheels of CUDA 12 are for linux/amd64")
    needs.network()
    done: dict[str, dict[str, Any]] = {}

    def driven(version: str) -> dict[str, Any]:
        if version not in done:
            done[version] = drive(version)
        return done[version]

    return driven


def drive(version: str) -> dict[str, Any]:
    """Drive an agent on the lean core of a version, which is installed once."""
    folder = cache_dir() / "bindings" / f"lean-{version}-{PYTHON}"
    packages = [f"tensorrt-lean-cu12-{part}=={version}" for part in ("libs", "bindings")]
    options = ("--no-deps", "--python", str(python_of_bindings()), "--target")
    make_once(folder, lambda partial: _uv("pip", "install", *options, str(partial), *packages))
    numpy = installed("numpy==2.2.6")
    paths = [str(ROOT), str(folder), str(numpy)]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(paths),
        "LD_LIBRARY_PATH": str(folder / "tensorrt_lean_libs"),
    }
    command = [str(python_of_bindings()), "-m", "tests.lean.agent"]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=HANGS, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr[-4000:]
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def texts(events: list[dict[str, Any]], kind: str) -> list[str]:
    """Return the texts of the events of a kind."""
    return [event["text"] for event in events if event["type"] == kind]


@EVERY_VERSION
def test_an_import_starts_nothing_that_a_fork_would_break(run: Run, version: str) -> None:
    """The agent forks after the import: a thread or an open device there would be lost or shared in each child."""
    report = run(version)
    assert report["hello"]["facts"]["engine_version"] == version
    for when in ("loaded", "after"):
        assert report[when]["core"]
        assert (report[when]["threads"], report[when]["opened"]) == (1, [])


@EVERY_VERSION
def test_nvidias_own_registry_takes_the_plugin_in_python(run: Run, version: str) -> None:
    """As IPluginV2DynamicExt and as IPluginV3."""
    assert run(version)["registry"] == {"said": "1,2", "signal": 0}


@EVERY_VERSION
def test_without_a_driver_a_runtime_is_null_and_its_use_is_not_tried(run: Run, version: str) -> None:
    """Used as it is, it ends the process by SIGSEGV; the adapter gives the reason in the library's own words."""
    report = run(version)
    if not texts(report["preflight"][0], "agent_fault") and report["loaded"]["mapped"]:
        pytest.skip("this machine has a driver")
    bare = report["bare runtime"]
    assert bare["as it is"] == {"said": "", "signal": 11}
    assert bare["by the adapter"]["signal"] == 0
    for words in (
        "Runtime: it is null; createInferRuntime: Error Code 6: API Usage Error",
        "CUDA initialization failure with error: 35",
        "the driver is too old for this CUDA",
    ):
        assert words in bare["by the adapter"]["said"]
    for jobs in report["plans"].values():
        for events in jobs:
            (said,) = texts(events, "agent_fault")
            assert said.startswith(_DRIVER)
            assert events[-1]["kind"] == "finished"


@pytest.mark.gpu
@EVERY_VERSION
def test_on_a_gpu_it_comes_up_and_refuses_what_is_no_plan_of_its_own(run: Run, version: str) -> None:
    needs.gpu()
    report = run(version)
    for events in report["preflight"]:
        assert texts(events, "agent_fault") == []
        assert [event["facts"]["gpu_uuid"] for event in events if event["type"] == "fact"]
        assert events[-1]["kind"] == "finished"
    said = {
        "zeros": "header.magicTag == kEXPECTED_MAGIC_TAG",
        "text": "bufferSize >= minBufferSize",
        "nothing": "Cannot deserialize with an empty memory buffer",
    }
    for name, words in said.items():
        for events in report["plans"][name]:
            assert set(texts(events, "failed")) == {"the runtime refused the plan"}
            assert any(words in text for text in texts(events, "message"))
