"""The bench, on which engines fail on purpose."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.run.provision.cache import CACHE_VARIABLE
from tests import needs
from tests.run.bench import Bench, kill, lives


@pytest.fixture(params=["venv", "docker"])
def bench(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Bench]:
    """Lend a bench; no agent may be left when its runners are closed."""
    # Asked here and not at the first start, which some tests make in a thread, where a skip is an error.
    if request.param == "docker":
        needs.base_image()
    # The lock on the processor is kept there, and a matrix that runs on this machine holds it for long.
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    bench = Bench(request.param, monkeypatch)
    bench.install()
    yield bench
    for runner in bench.runners:
        runner.close()
    left = [agent for agent in bench.agents if lives(agent)]
    for agent in left:
        kill(agent)
    assert not left
