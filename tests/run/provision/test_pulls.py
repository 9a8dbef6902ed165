"""Images are pulled where that was asked for, one at a time, told of, and to their end or to one sentence."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from harness.matrix import Build, Target
from harness.run import docker
from harness.run.docker import Daemon, Image
from harness.run.provision.host import Host
from harness.run.provision.images import BASE_VARIABLE, Pulling, obtain
from harness.run.provision.model import NeedsPull, Unreachable
from harness.run.provision.prepare import prepare
from harness.run.target import TargetRunner
from tests import needs
from tests.run.bench import cell
from tests.run.provision.factory import target
from tests.run.provision.registries import Registry, forget, registry

AMD64 = "linux/amd64"
DAEMON = Daemon("28.0", "here", "amd64", nvidia_runtime=True, address="unix:///x")
HOST = Host("amd64", docker=DAEMON)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test locks of its own."""
    monkeypatch.setenv("TRT_COMPAT_CACHE_DIR", str(tmp_path / "cache"))


class World:
    """A daemon and registries: images that are here, and those that were pulled."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *here: str) -> None:
        self.here = set(here)
        self.pulled: list[str] = []
        monkeypatch.delenv(BASE_VARIABLE, raising=False)
        monkeypatch.setattr(docker, "find_image", self.find)
        monkeypatch.setattr(docker, "pull_image", self.pull)

    def find(self, reference: str, platform: str, _host: str = "") -> Image | None:
        return Image("sha256:1", "sha256:2", platform, {}) if reference in self.here else None

    def pull(self, reference: str, platform: str, **_: Any) -> Image:
        self.pulled.append(reference)
        self.here.add(reference)
        return Image("sha256:1", "sha256:2", platform, {})


@pytest.mark.unit
def test_a_large_image_is_pulled_only_where_that_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    large, small = image("a/large:1", size_gb=6.2), image("a/small:1", size_gb=1.9)
    unknown = image("a/unknown:1")
    with pytest.raises(NeedsPull, match=r"^needs --pull \(6\.2 GB\)$"):
        obtain(large, Pulling(), HOST)
    with pytest.raises(NeedsPull, match=r"^needs --pull \(size unknown\)$"):
        obtain(unknown, Pulling(), HOST)
    obtain(small, Pulling(), HOST)
    obtain(target(), Pulling(), HOST)
    assert world.pulled == ["a/small:1", "python:3.11-slim"]
    obtain(large, Pulling(large=True), HOST)
    obtain(unknown, Pulling(large=True), HOST)
    assert world.pulled[2:] == ["a/large:1", "a/unknown:1"]
    obtain(large, Pulling(), HOST)
    assert len(world.pulled) == 4, "one that is here needs no permission"


def image(reference: str, **changes: Any) -> Target:
    """Return a target that is pulled and can run anywhere."""
    return target(image=reference, build=None, **changes)


@pytest.mark.unit
def test_a_target_whose_image_needs_pull_takes_no_other_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its virtual environment would be gigabytes too, and nobody asked for those either."""
    World(monkeypatch)
    with pytest.raises(NeedsPull):
        prepare(image("a/large:1"), "auto", host=HOST)


@pytest.mark.unit
def test_pulls_are_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    at_work, most, begun = 0, 0, threading.Event()

    def pull(reference: str, platform: str, **options: Any) -> Image:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        begun.wait(0.2)
        at_work -= 1
        return world.pull(reference, platform, **options)

    monkeypatch.setattr(docker, "pull_image", pull)
    wanted = [image(f"a/{name}:1") for name in ("one", "two", "three", "one")]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda one: obtain(one, Pulling(large=True), HOST), wanted))
    assert most == 1
    assert sorted(world.pulled) == ["a/one:1", "a/three:1", "a/two:1"]


# Real pulls.


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Registry]:
    """Run a real registry that the daemon pulls from."""
    needs.docker()
    with registry(tmp_path) as running:
        yield running


@pytest.mark.integration
@pytest.mark.docker
def test_a_pull_tells_its_layers_and_fetches_none_twice(shop: Registry) -> None:
    shared, own, other = (os.urandom(300_000) for _ in range(3))
    one, two = shop.put("one", shared, own), shop.put("two", shared, other)
    forget(one, two)
    try:
        told: list[str] = []
        found = docker.pull_image(one, AMD64, tell=told.append)
        assert found.platform == AMD64
        assert told[-1] == f"pulling {one}: 2 of 2 layers"
        before = set(shop.fetched("one"))
        docker.pull_image(two, AMD64)
        assert not before & set(shop.fetched("two"))
        forget(two)
        prepare(image(one), "docker")
        assert set(shop.fetched("one")) == before
    finally:
        forget(one, two)


@pytest.mark.integration
@pytest.mark.docker
def test_a_pull_that_breaks_off_is_infrastructure_and_the_record_says_so(shop: Registry) -> None:
    reference = shop.put("half", os.urandom(300_000), os.urandom(3_000_000))
    forget(reference)
    shop.lose_largest()
    # `packages` could be had without the image: not so by somebody who asked for that.
    runner = TargetRunner(image(reference, size_gb=0.003), via="auto", run_id="pulls")
    outcome, _ = runner.run(cell("echo", runner.target))
    assert outcome.state == "infra_error"
    assert outcome.reason.startswith(f"needs image {reference}, whose pull broke off: ")
    assert "\n" not in outcome.reason


@pytest.mark.integration
@pytest.mark.docker
def test_a_registry_that_is_not_there_is_infrastructure_too(shop: Registry) -> None:
    reference = shop.reference("gone")
    shop.gate.cut()
    with pytest.raises(Unreachable, match=rf"^needs image {reference}, which cannot be pulled: "):
        obtain(image(reference), Pulling(large=True), HOST)


@pytest.mark.integration
@pytest.mark.docker
def test_what_an_image_is_built_on_is_pulled_as_well(shop: Registry) -> None:
    reference = shop.put("base", os.urandom(1000))
    forget(reference)
    chosen = target(build=Build("ngc", reference), packages=())
    with pytest.raises(NeedsPull, match=r"^needs --pull \(size unknown\)$"):
        prepare(chosen, "docker")
