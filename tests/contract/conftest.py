"""The stub, and the reports of the probe on every version, made once."""

from __future__ import annotations

import functools
import platform
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests import needs
from tests.contract import bindings
from tests.contract.bindings import Bindings
from tests.contract.scenarios import Scenario, plugin_folders, scenarios

#: Runs every job on a version through the adapter.
Probe = Callable[[Bindings], dict[str, Any]]


@pytest.fixture(scope="session")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the stub library."""
    if platform.machine() != "x86_64":
        pytest.skip("the stub returns structures as x86-64 does")
    return bindings.compile_stub(needs.program("gcc"), tmp_path_factory.mktemp("stub"))


@pytest.fixture(scope="session")
def jobs(stub: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Scenario]:
    """Return every job by its name."""
    folder = plugin_folders(tmp_path_factory.mktemp("plugins"), stub / "stub.so")
    return {scenario.name: scenario for scenario in scenarios(folder)}


@pytest.fixture(scope="session")
def probe(stub: Path, jobs: Mapping[str, Scenario]) -> Probe:
    """Return a function that runs every job on a version, once for each version."""
    needs.network()
    orders = [scenario.as_dict() for scenario in jobs.values()]
    return functools.cache(lambda version: bindings.probe(version, orders, stub))
