"""Images are pulled where that was asked for, one at a time, told of, and to their end or to one sentence."""

from __future__ import annotations

import functools
import http.server
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from harness.errors import HandledError, InfraError
from harness.matrix import Build
from harness.run import docker
from harness.run.docker import Daemon, Image, Progress
from harness.run.docker.registry import layers_of, parsed
from harness.run.provision import Host, Pulling, Unreachable, prepare, pulls
from harness.run.provision.model import BrokenOff, NeedsPull
from harness.run.provision.pulls import GB, THRESHOLD_VARIABLE, Pull, amount, obtain, threshold
from harness.run.pull_plan import PullLines, PullPlan, plan_pulls
from harness.run.target import Aborted, TargetRunner
from tests import needs
from tests.run.bench import cell
from tests.run.provision.factory import gpu_target, target
from tests.run.provision.registries import Registry, forget, registry
from tests.waiting import PATIENCE, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

AMD64 = "linux/amd64"
DAEMON = Daemon("28.0", "here", "amd64", nvidia_runtime=True, address="unix:///x", root="/")
HOST = Host("amd64", docker=DAEMON)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test locks of its own, and the threshold that users have."""
    monkeypatch.setenv("TRT_COMPAT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv(THRESHOLD_VARIABLE, raising=False)


class World:
    """Stands for the daemon and the registries: which images are here, how large the others are, what was done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, sizes: dict[str, int | None], *here: str) -> None:
        self.here = set(here)
        self.asked: list[str] = []
        self.pulled: list[str] = []
        self.sizes = sizes
        monkeypatch.setattr(docker, "find_image", self.find)
        monkeypatch.setattr(docker, "pull_image", self.pull)
        monkeypatch.setattr(docker, "layers_of", self.layers)

    def find(self, reference: str, platform: str, _host: str = "") -> Image | None:
        return Image("sha256:1", "sha256:2", platform, {}) if reference in self.here else None

    def pull(self, reference: str, platform: str, **_: Any) -> Image:
        self.pulled.append(reference)
        self.here.add(reference)
        return Image("sha256:1", "sha256:2", platform, {})

    def layers(self, images: Any) -> dict[tuple[str, str], dict[str, int]]:
        self.asked += [reference for reference, _ in images]
        known = {image: self.sizes.get(image[0]) for image in images}
        return {image: {f"sha256:{image[0]}": size} for image, size in known.items() if size}


@pytest.mark.unit
def test_a_large_image_is_pulled_only_where_that_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, {"a/large:1": 6_200_000_000, "a/small:1": 1_900_000_000})
    large, small, unknown = (Pull(f"a/{name}:1", AMD64) for name in ("large", "small", "unknown"))
    with pytest.raises(NeedsPull, match=r"^needs --pull \(6\.2 GB\)$"):
        obtain(large, Pulling(), HOST)
    with pytest.raises(NeedsPull, match=r"^needs --pull \(size unknown\)$"):
        obtain(unknown, Pulling(), HOST)
    obtain(small, Pulling(), HOST)
    obtain(Pull("python:3", AMD64, plain=True), Pulling(), HOST)
    assert world.pulled == ["a/small:1", "python:3"]
    obtain(large, Pulling(large=True), HOST)
    obtain(unknown, Pulling(large=True), HOST)
    assert world.pulled[2:] == ["a/large:1", "a/unknown:1"]


@pytest.mark.unit
def test_an_image_that_is_here_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, {}, "a/large:1")
    obtain(Pull("a/large:1", AMD64), Pulling(), HOST)
    assert (world.asked, world.pulled) == ([], [])
    assert not list(plan_pulls([gpu_less("a/large:1")], "auto", large=False, host=HOST).lines())
    assert not world.asked


@pytest.mark.unit
def test_the_threshold_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(THRESHOLD_VARIABLE, "0.5")
    assert Pull("a", AMD64, declared=600_000_000).large
    monkeypatch.setenv(THRESHOLD_VARIABLE, "0.7")
    assert not Pull("a", AMD64, declared=600_000_000).large
    for text in ("much", "-1", "nan"):
        monkeypatch.setenv(THRESHOLD_VARIABLE, text)
        with pytest.raises(HandledError, match=rf"{THRESHOLD_VARIABLE}={text} is no number of GB"):
            threshold()


@pytest.mark.unit
def test_the_registry_knows_better_than_the_matrix() -> None:
    assert Pull("a", AMD64, declared=7 * GB).says == "7.0 GB"
    assert Pull("a", AMD64, declared=7 * GB, layers={"sha256:1": 3 * GB, "sha256:2": GB}).says == "4.0 GB"
    assert Pull("a", AMD64).says == "size unknown"
    assert amount(46_000_000) == "46 MB"


def gpu_less(image: str, name: str = "toy", **changes: Any) -> Any:
    """Return a target that is pulled and can run anywhere."""
    return target(name=name, image=image, build=None, **changes)


@pytest.mark.unit
def test_a_target_whose_image_needs_pull_takes_no_other_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its virtual environment would be gigabytes too, and nobody asked for those either."""
    World(monkeypatch, {"a/large:1": 6 * GB})
    with pytest.raises(NeedsPull):
        prepare(gpu_less("a/large:1"), "auto", host=HOST)


@pytest.mark.unit
def test_its_cells_are_not_run_with_that_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    World(monkeypatch, {})
    monkeypatch.setattr("harness.run.target.prepare", functools.partial(prepare, host=HOST))
    runner = TargetRunner(gpu_less("a/large:1", size_gb=6.2), via="docker", run_id="pulls")
    outcome, _ = runner.run(cell("echo", runner.target))
    assert (outcome.state, outcome.reason) == ("not_run", "needs --pull (6.2 GB)")


@pytest.mark.unit
def test_the_table_says_what_is_pulled_before_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, {"a/large:1": 6 * GB, "python:3.11-slim": 46_000_000}, "a/here:1")
    monkeypatch.delenv("TRT_COMPAT_BASE_IMAGE", raising=False)
    monkeypatch.setattr(pulls, "free_bytes", lambda _: 9 * GB)
    monkeypatch.setattr("harness.run.pull_plan.free_bytes", lambda _: 9 * GB)
    targets = [
        gpu_less("a/large:1", "big"),
        gpu_less("a/large:1", "bigger"),
        gpu_less("a/here:1", "here"),
        gpu_target(name="elsewhere"),
        *(target(name=f"small{number}") for number in range(6)),
    ]
    plan = plan_pulls(targets, "auto", large=False, host=HOST)
    assert list(plan.lines()) == [
        "images not here yet; Docker keeps them in / (free: 9.0 GB):",
        "  a/large:1         linux/amd64  6.0 GB, needs --pull        big, bigger",
        "  python:3.11-slim  linux/amd64  46 MB                       small0, small1, small2, small3 and 2 more",
        "to be pulled, one after the other: 1 image (46 MB; unpacked they take more)",
    ]
    assert (world.pulled, plan.too_little()) == ([], None)
    assert list(plan_pulls(targets, "venv", large=False, host=HOST).lines()) == []
    tried = plan_pulls(targets, "auto", large=False, ignore_needs=True, host=HOST)
    assert any(names == ("elsewhere",) for _, names in tried.pulls)
    asked = plan_pulls(targets, "auto", large=True, host=HOST)
    assert (
        list(asked.lines())[1] == "  a/large:1         linux/amd64  6.0 GB                      big, bigger"
    )
    assert list(asked.lines())[-1].endswith("2 images (6.0 GB; unpacked they take more)")
    monkeypatch.setattr(pulls, "free_bytes", lambda _: 6 * GB)
    assert asked.too_little() == (
        "no room for 2 images: 6.0 GB to pull, unpacked more, and 6.0 GB free in /; "
        "make room there, or select fewer targets"
    )


@pytest.mark.unit
def test_a_layer_that_images_share_counts_once_and_what_is_unknown_is_said() -> None:
    one = Pull("a/one:1", AMD64, layers={"sha256:1": GB, "sha256:2": GB})
    two = Pull("a/two:1", AMD64, layers={"sha256:1": GB, "sha256:3": 2 * GB})
    some = PullPlan(((one, ("one",)), (two, ("two",)), (Pull("a/three:1", AMD64), ("three",))), True, HOST)
    assert list(some.lines())[-1].endswith("3 images (4.0 GB, 1 of unknown size; unpacked they take more)")


@pytest.mark.unit
def test_too_little_room_is_the_machinerys_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, {"a/large:1": 6 * GB})
    monkeypatch.setattr(pulls, "free_bytes", lambda _: 5 * GB)
    with pytest.raises(
        InfraError, match=r"^no room for a/large:1: 6\.0 GB to pull, unpacked more, and 5\.0 GB free in /;"
    ):
        obtain(Pull("a/large:1", AMD64), Pulling(large=True), HOST)
    assert not world.pulled


@pytest.mark.unit
def test_of_a_daemon_elsewhere_nothing_is_known_of_its_room() -> None:
    elsewhere = Host("amd64", docker=DAEMON, docker_elsewhere=True)
    assert pulls.free_bytes(elsewhere) is None
    assert (pulls.free_bytes(HOST) or 0) > 0


@pytest.mark.unit
def test_pulls_are_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, {})
    at_work, most, begun = 0, 0, threading.Event()

    def pull(reference: str, platform: str, **options: Any) -> Image:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        begun.wait(0.2)
        at_work -= 1
        return world.pull(reference, platform, **options)

    monkeypatch.setattr(docker, "pull_image", pull)
    wanted = [Pull(f"a/{name}:1", AMD64) for name in ("one", "two", "three", "one")]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda one: obtain(one, Pulling(large=True), HOST), wanted))
    assert most == 1
    assert sorted(world.pulled) == ["a/one:1", "a/three:1", "a/two:1"]


@pytest.mark.unit
def test_progress_without_a_terminal_is_a_few_lines() -> None:
    said: list[str] = []
    lines = PullLines(said.append)
    for done in range(5001):
        lines(Progress("a/one:1", done * 10**6, 5 * GB))
    assert said[:2] == ["pulling a/one:1: 0 % of 5.0 GB", "pulling a/one:1: 10 % of 5.0 GB"]
    assert len(said) == 11
    for done in range(2500):
        lines(Progress("a/two:1", done * 10**6, 0))
    assert said[11:] == ["pulling a/two:1: 0 MB", "pulling a/two:1: 1.0 GB", "pulling a/two:1: 2.0 GB"]
    live: list[str] = []
    PullLines(said.append, live.append)(Progress("a/two:1", 1, 0))
    assert (len(said), len(live)) == (14, 1)


# What registries say.


@pytest.mark.unit
@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("python:3.11-slim", ("registry-1.docker.io", "library/python", "3.11-slim")),
        ("docker.io/some/one", ("registry-1.docker.io", "some/one", "latest")),
        ("nvcr.io/nvidia/tensorrt:24.05-py3", ("nvcr.io", "nvidia/tensorrt", "24.05-py3")),
        ("nvcr.io/nvidia/tensorrt:24.05-py3@sha256:1", ("nvcr.io", "nvidia/tensorrt", "sha256:1")),
        ("localhost:5000/one:1", ("localhost:5000", "one", "1")),
        ("nvidia/cuda:12", ("registry-1.docker.io", "nvidia/cuda", "12")),
    ],
)
def test_a_reference_is_read_as_docker_reads_it(reference: str, name: tuple[str, str, str]) -> None:
    assert parsed(reference) == name


INDEX = {
    "manifests": [
        {"digest": "sha256:attestation", "platform": {"os": "unknown", "architecture": "unknown"}},
        {"digest": "sha256:arm", "platform": {"os": "linux", "architecture": "arm64", "variant": "v8"}},
        {"digest": "sha256:intel", "platform": {"os": "linux", "architecture": "amd64"}},
    ]
}


class Answers(http.server.BaseHTTPRequestHandler):
    """A registry that wants a token, as Docker Hub and NGC do; some of its images are trouble."""

    def do_GET(self) -> None:
        shut: threading.Event = self.server.shut  # type: ignore[attr-defined]
        port = self.connection.getsockname()[1]
        path, _, query = self.path.partition("?")
        if path == "/token":
            wanted = query == "service=the+registry&scope=repository%3Aone%3Apull"
            return self._say(200, {"token": "anybody" if wanted else "nobody"})
        if path.startswith("/v2/hangs/"):
            shut.wait(PATIENCE)
            return None
        if path.startswith("/v2/page/"):
            return self._say(200, "<html>log in</html>")
        if self.headers["Authorization"] != "Bearer anybody":
            realm = (
                f'realm="http://127.0.0.1:{port}/token",service="the registry",scope="repository:one:pull"'
            )
            return self._say(401, {}, {"WWW-Authenticate": f"Bearer {realm}"})
        if path == "/v2/one/manifests/1":
            return self._say(200, INDEX)
        layers = {"intel": [40, 2], "arm": [39, 2]}[path.rpartition(":")[2]]
        return self._say(200, {"layers": [{"digest": f"sha256:{n}", "size": n} for n in layers]})

    def _say(self, code: int, what: object, headers: dict[str, str] | None = None) -> None:
        body = json.dumps(what).encode()
        self.send_response(code)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def asking() -> Iterator[str]:
    """Run such a registry; lends its host and port."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.shut = threading.Event()  # type: ignore[attr-defined]
    threading.Thread(target=functools.partial(server.serve_forever, 0.05), daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shut.set()  # type: ignore[attr-defined]
        server.shutdown()
        server.server_close()


@pytest.mark.unit
def test_a_registry_tells_the_layers_of_the_platform_to_anybody(asking: str) -> None:
    images = [(f"{asking}/one:1", f"linux/{architecture}") for architecture in ("amd64", "arm64", "riscv64")]
    assert layers_of(images) == {
        images[0]: {"sha256:40": 40, "sha256:2": 2},
        images[1]: {"sha256:39": 39, "sha256:2": 2},
    }


@pytest.mark.unit
def test_of_a_registry_that_does_not_answer_in_time_or_in_sense_nothing_is_known(asking: str) -> None:
    good, page, hangs = ((f"{asking}/{name}:1", AMD64) for name in ("one", "page", "hangs"))
    assert layers_of([page, ("127.0.0.1:1/nobody:1", AMD64)]) == {}
    assert set(layers_of([good, hangs, page], patience=2.0)) <= {good}


# Real pulls.


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Registry]:
    """Run a real registry that the daemon pulls from."""
    needs.docker()
    with registry(tmp_path) as running:
        yield running


def pull(reference: str, **options: Any) -> tuple[Image, list[Progress]]:
    """Pull an image for real."""
    layers = layers_of([(reference, AMD64)])[reference, AMD64]
    told: list[Progress] = []
    return docker.pull_image(reference, AMD64, layers=layers, tell=told.append, **options), told


@pytest.mark.integration
@pytest.mark.docker
def test_layers_that_are_there_are_not_fetched_again(shop: Registry) -> None:
    shared, own, other = (os.urandom(300_000) for _ in range(3))
    one = shop.put("one", shared, own)
    two = shop.put("two", shared, other)
    forget(one, two)
    try:
        layers = {name: layers_of([(name, AMD64)])[name, AMD64] for name in (one, two)}
        image, told = pull(one)
        assert image.platform == AMD64
        assert set(shop.fetched("one")) & set(layers[one]) == set(layers[one])
        assert told[-1] == Progress(one, sum(layers[one].values()), sum(layers[one].values()))
        _, told = pull(two)
        assert len(layers[two]) == 2
        assert set(shop.fetched("two")) & set(layers[two]) == set(layers[two]) - set(layers[one])
        assert told[-1].done == told[-1].total == sum(layers[two].values())
        forget(two)
        fetched = shop.fetched("one")
        prepare(gpu_less(one), "docker")
        assert shop.fetched("one") == fetched
    finally:
        forget(one, two)


@pytest.mark.integration
@pytest.mark.docker
def test_a_pull_that_breaks_off_is_infrastructure_and_the_record_says_so(shop: Registry) -> None:
    reference = shop.put("half", os.urandom(300_000), os.urandom(3_000_000))
    forget(reference)
    shop.lose(list(layers_of([(reference, AMD64)])[reference, AMD64])[1])
    # `packages` could be had without the image: not so by somebody who asked for that.
    runner = TargetRunner(gpu_less(reference), via="auto", run_id="pulls")
    outcome, _ = runner.run(cell("echo", runner.target))
    assert outcome.state == "infra_error"
    assert outcome.reason.startswith(f"needs image {reference}, whose pull broke off after ")
    assert "\n" not in outcome.reason


@pytest.mark.integration
@pytest.mark.docker
@pytest.mark.long
def test_a_registry_that_stops_is_infrastructure(shop: Registry) -> None:
    """The daemon itself tries five times, a minute in all."""
    reference = shop.put("stops", os.urandom(3_000_000))
    forget(reference)
    shop.gate.limit = 1_000_000
    with ThreadPoolExecutor(1) as pool:
        ends = pool.submit(obtain, Pull(reference, AMD64, declared=1), Pulling(known={}), HOST)
        assert wait_for(lambda: (shop.gate.limit or 0) < 0)
        shop.gate.close()
        with pytest.raises(
            BrokenOff, match=rf"^needs image {reference}, whose pull broke off after \d+ MB: "
        ):
            ends.result()


@pytest.mark.integration
@pytest.mark.docker
def test_a_registry_that_is_not_there_is_infrastructure_too(shop: Registry) -> None:
    reference = shop.reference("gone")
    shop.gate.close()
    with pytest.raises(Unreachable, match=rf"^needs image {reference}, which cannot be pulled: "):
        obtain(Pull(reference, AMD64), Pulling(large=True), HOST)


@pytest.mark.integration
@pytest.mark.docker
def test_an_interrupt_ends_a_pull(shop: Registry) -> None:
    reference = shop.put("slow", os.urandom(3_000_000))
    forget(reference)
    layers = layers_of([(reference, AMD64)])
    shop.gate.limit = 1_000_000
    runner = TargetRunner(gpu_less(reference), via="docker", run_id="pulls", pulling=Pulling(known=layers))
    with ThreadPoolExecutor(1) as pool:
        ends = pool.submit(runner.run, cell("echo", runner.target))
        assert wait_for(lambda: (shop.gate.limit or 0) < 0)
        runner.abort()
        with pytest.raises(Aborted):
            ends.result(PATIENCE)
    # Still shut: it was not the end of the pull that ended it.
    assert not shop.gate.shut.is_set()
    assert docker.find_image(reference, AMD64) is None


@pytest.mark.integration
@pytest.mark.docker
def test_what_an_image_is_built_on_is_pulled_as_well(shop: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = shop.put("base", os.urandom(1000))
    forget(reference)
    chosen = target(build=Build("ngc", reference), packages=())
    assert [pull.reference for pull, _ in plan_pulls([chosen], "docker", large=False).pulls] == [reference]
    monkeypatch.setenv(THRESHOLD_VARIABLE, "0")
    with pytest.raises(NeedsPull, match=r"^needs --pull \(0 MB\)$"):
        prepare(chosen, "docker")
