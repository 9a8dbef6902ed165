"""Environments that are really made: virtual environments, images for two platforms, and clear refusals."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.errors import HandledError
from harness.matrix import Build, Target, load_matrix
from harness.run import docker
from harness.run.commands import command_lines, plan_environment, published_lines
from harness.run.provision import packages
from harness.run.provision.host import Host, HostGpu
from harness.run.provision.images import BASE_VARIABLE, Pulling, base_image, planned_image
from harness.run.provision.model import Environment, Unavailable, Unreachable
from harness.run.provision.prepare import prepare, start
from tests import needs
from tests.reader import reader
from tests.run.provision.factory import PIN, arm64, gpu_target, target
from tests.waiting import PATIENCE

PORTRAIT = (
    "import packaging, platform, sys; print(packaging.__version__, platform.machine(), *sys.version_info[:2])"
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test a cache folder of its own."""
    monkeypatch.setenv("TRT_COMPAT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def ask(environment: Environment, chosen: Target) -> str:
    """Return what an agent in the environment prints of itself."""
    transport = start(environment, chosen, argv=["-I", "-c", PORTRAIT])
    try:
        return b"".join(iter(lambda: transport.receive(PATIENCE), b"")).decode().strip()
    finally:
        transport.close()


def forget(image: str) -> None:
    """Remove an image that a test made."""
    subprocess.run(["docker", "rmi", "-f", image], capture_output=True, check=False)


@pytest.mark.integration
def test_a_virtual_environment_holds_the_pins() -> None:
    needs.network()
    made = prepare(target(), "venv")
    assert (made.via, made.packages, made.image) == ("venv", (PIN,), "")
    assert made.note == "toy runs in a virtual environment, as was asked for."
    assert ask(made, target()).startswith("24.1 x86_64 3 11")


@pytest.mark.docker
@pytest.mark.integration
def test_an_image_is_built_once_and_holds_the_pins(monkeypatch: pytest.MonkeyPatch) -> None:
    needs.base_image()
    needs.network()
    # A memory limit is no part of an image: a name of its own keeps this test from meeting another's.
    chosen = target(build=Build("packages", "python:3.11-slim", (("TEST", "image"),)))
    image = planned_image(chosen)
    forget(image)
    try:
        made = prepare(chosen, "docker")
        assert (made.via, made.image, made.packages) == ("docker", image, (PIN,))
        assert made.image_digest.startswith("sha256:")
        assert ask(made, chosen) == "24.1 x86_64 3 11"
        monkeypatch.setattr(docker, "build_image", refuse_to_be_called)
        assert prepare(chosen, "docker", allow_build=False) == made
    finally:
        forget(image)


@pytest.mark.docker
@pytest.mark.integration
def test_an_image_for_another_architecture_needs_no_emulation_to_build() -> None:
    needs.emulation("arm64")
    needs.base_image("arm64")
    needs.network()
    chosen = arm64(build=Build("packages", "python:3.11-slim", (("TEST", "arm64"),)))
    forget(planned_image(chosen))
    try:
        assert ask(prepare(chosen, "docker"), chosen) == "24.1 aarch64 3 11"
    finally:
        forget(planned_image(chosen))


@pytest.mark.docker
@pytest.mark.integration
def test_without_an_image_auto_falls_back_and_says_so() -> None:
    needs.docker()
    needs.network()
    chosen = target(image="registry.invalid/toy:1", build=None)
    made = prepare(chosen, "auto", Pulling(large=True))
    assert made.via == "venv"
    assert "as Docker has no image for it (needs image registry.invalid/toy:1" in made.note
    with pytest.raises(Unavailable, match=r"needs image registry\.invalid/toy:1, which cannot be pulled: "):
        prepare(chosen, "docker", Pulling(large=True))


@pytest.mark.integration
def test_a_pin_that_does_not_exist_is_unavailable(own_cache: Path) -> None:
    needs.network()
    with pytest.raises(
        Unavailable, match=r"needs packaging==0\.0\.404, which cannot be installed: (?!Using).*404"
    ) as refusal:
        prepare(target(packages=("packaging==0.0.404",)), "venv")
    assert not isinstance(refusal.value, Unreachable)
    assert not [path for path in (own_cache / "venvs").iterdir() if path.is_dir()]


def refuse_to_be_called(*_: Any, **__: Any) -> None:
    """Stand for what must not happen."""
    raise AssertionError("the network was touched")


@pytest.mark.unit
def test_a_machine_without_a_gpu_never_tries_to_get_the_image(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("find_image", "pull_image", "build_image"):
        monkeypatch.setattr(docker, name, refuse_to_be_called)
    monkeypatch.setattr(packages, "_uv", refuse_to_be_called)
    host = Host("amd64", gpu_reason="nvidia-smi is not installed", docker=a_daemon())
    for via in ("auto", "docker", "venv"):
        with pytest.raises(Unavailable, match="needs an NVIDIA GPU; none found"):
            prepare(gpu_target(), via, host=host)


@pytest.mark.unit
def test_without_docker_a_target_without_packages_is_unavailable() -> None:
    host = Host("amd64", gpus=(a_gpu(),), docker_reason="Docker does not answer at unix:///x: no such file")
    with pytest.raises(Unavailable, match=r"needs its container image.*does not answer"):
        prepare(gpu_target(packages=()), host=host)
    with pytest.raises(Unavailable, match="needs Docker; Docker does not answer"):
        prepare(target(), "docker", host=host)


@pytest.mark.unit
def test_a_container_gets_the_gpus_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    image = docker.Image("sha256:1", "sha256:2", "linux/amd64", {})
    monkeypatch.setattr(docker, "find_image", lambda *_: image)
    old = HostGpu("Old", "GPU-old", "5.2", "550.1", 1)
    host = Host("amd64", gpus=(old, a_gpu()), docker=a_daemon())
    made = prepare(gpu_target(), "docker", host=host)
    assert made.gpus == ("GPU-new",)
    assert made.image_digest == "sha256:2"


@pytest.mark.unit
def test_the_tag_of_an_image_follows_what_it_is_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRT_COMPAT_BASE_IMAGE", raising=False)
    first = planned_image(target())
    assert first.startswith("trt-compat/packages:amd64-")
    assert planned_image(target(name="other", memory_mib=1)) == first
    assert packages.venv_folder(target(name="other", memory_mib=1)) == packages.venv_folder(target())
    others = [target(packages=("packaging==24.2",)), target(python="3.12"), arm64()]
    tags = {planned_image(one) for one in others}
    monkeypatch.setenv("TRT_COMPAT_BASE_IMAGE", "mine:{python}-{arch}")
    assert base_image(target()) == "mine:3.11-amd64"
    tags.add(planned_image(target()))
    assert len(tags | {first}) == 5
    assert planned_image(gpu_target()) == "registry.invalid/tensorrt:23.06"


@pytest.mark.unit
def test_a_base_pattern_with_an_unknown_placeholder_is_the_users_mistake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRT_COMPAT_BASE_IMAGE", "mine:{version}")
    with pytest.raises(HandledError, match=r"only \{arch\} and \{python\}"):
        base_image(target())


@pytest.mark.docker
@pytest.mark.integration
def test_the_printed_lines_make_the_same_environment() -> None:
    """The lines that `show` prints are run as they stand: image built by hand, engine's version printed."""
    needs.base_image()
    needs.network()
    from harness.run.provision.images import _DOCKERFILES

    chosen = target(build=Build("packages", "python:3.11-slim", (("TEST", "lines"),)))
    lines = [line.replace("onnxruntime as engine", "packaging as engine") for line in command_lines(chosen)]
    try:
        for line in lines:
            done = subprocess.run(  # noqa: S602  (a shell is where the lines are pasted)
                line,
                shell=True,
                cwd=_DOCKERFILES.parent,
                env=reader(needs.program("docker")),
                capture_output=True,
                text=True,
                check=False,
                stdin=subprocess.DEVNULL,
            )
            assert done.returncode == 0, (line, done.stderr)
        assert done.stdout.strip() == "24.1"
    finally:
        forget(planned_image(chosen))


@pytest.mark.unit
def test_the_plan_says_which_way_without_going_it(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> None:
    monkeypatch.setattr(docker, "find_image", lambda *_: None)
    without = plan_environment(target(), host=Host("amd64", docker_reason="no daemon"))
    assert without[0] == "virtual environment, to be made"
    assert "uv venv" in without[1]
    within = plan_environment(target(), host=Host("amd64", docker=a_daemon()))
    assert within[0] == f"container from {planned_image(target())}, to be built"
    assert within[-1].startswith("docker run --rm -i --platform linux/amd64")
    assert (
        plan_environment(gpu_target(), host=Host("amd64"))[0]
        == "cannot run here: it needs an NVIDIA GPU; none found"
    )
    assert not own_cache.exists()


def a_daemon() -> docker.Daemon:
    """Return a daemon of this machine."""
    return docker.Daemon("28.0", "here", "amd64", nvidia_runtime=False, address="unix:///x")


def a_gpu() -> HostGpu:
    """Return a GPU that TensorRT 8.6 supports."""
    return HostGpu("New", "GPU-new", "8.6", "550.1", 1)


@pytest.mark.unit
def test_published_lines_are_the_same_whatever_this_machine_builds_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A report's bytes are the same everywhere, and its readers have the public base."""
    matrix = load_matrix(Path(__file__).parents[3] / "matrix.yaml")
    plain = published_lines(matrix)
    monkeypatch.setenv(BASE_VARIABLE, "mine:{arch}")
    assert published_lines(matrix) == plain
    assert set(plain) == {each.name for each in matrix}
    assert "BASE=mine:amd64" in " ".join(command_lines(matrix.target("rtx17")))
