"""What a machine is found to have, and what it is found to lack."""

from __future__ import annotations

import dataclasses
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.matrix import Needs, Target
from harness.run.docker import Daemon
from harness.run.local import reap_orphans
from harness.run.provision.host import (
    Host,
    HostGpu,
    emulated,
    look_at_host,
    parse_gpus,
    runs_elsewhere,
    visible,
)
from harness.run.provision.model import Environment, NotMade, Via
from harness.run.provision.prepare import prepare
from harness.run.provision.requirements import can_run, dealt_gpus, older_driver
from tests.processes import put_program
from tests.run.provision.factory import arm64, gpu_target, target

SMI = """NVIDIA RTX A4000, GPU-8f7dcc1e, 8.6, 550.54.15, 16376
NVIDIA GB10, GPU-00aa11bb, 12.1, 580.95.05, [N/A]
NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver
"""
AMPERE = HostGpu("NVIDIA RTX A4000", "GPU-8f7dcc1e", "8.6", "550.54.15", 16376)
BLACKWELL = HostGpu("NVIDIA GB10", "GPU-00aa11bb", "12.1", "580.95.05", 0)
UNIX = "unix:///var/run/docker.sock"
LOCAL = Daemon("28.0", "here", "amd64", nvidia_runtime=True, address=UNIX)
BOARD = Daemon("28.0", "board", "arm64", nvidia_runtime=True, address="ssh://board")
LAPTOP = Daemon("28.0", "docker-desktop", "amd64", nvidia_runtime=False, address="tcp://desktop")


def jetson(**changes: Any) -> Any:
    """Return a target for a Jetson of JetPack 6."""
    needs = Needs(gpu=True, architecture="aarch64", l4t=">=36.2,<37")
    return gpu_target(**({"name": "l4t86", "platform": "jetson", "needs": needs} | changes))


@pytest.mark.unit
def test_gpus_are_read_and_complaints_are_not() -> None:
    assert parse_gpus(SMI) == (AMPERE, BLACKWELL)
    assert parse_gpus("") == ()


@pytest.mark.unit
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, (AMPERE, BLACKWELL)),
        ("1", (BLACKWELL,)),
        ("1,0", (BLACKWELL, AMPERE)),
        ("GPU-8f7d", (AMPERE,)),
        ("0,7,1", (AMPERE,)),
        ("", ()),
        ("-1", ()),
    ],
)
def test_the_callers_visible_devices_are_heeded(value: str | None, expected: tuple[HostGpu, ...]) -> None:
    environment = {} if value is None else {"CUDA_VISIBLE_DEVICES": value}
    assert visible((AMPERE, BLACKWELL), environment) == expected


@pytest.mark.unit
def test_emulation_counts_only_where_containers_see_it() -> None:
    """The F flag keeps the emulator open: without it a container would have to bring its own."""
    assert emulated({}) == frozenset()
    for lines, expected in (
        ("enabled\ninterpreter /usr/bin/qemu\nflags: PF\n", {"arm64"}),
        ("enabled\ninterpreter /usr/bin/qemu\nflags: P\n", set()),
        ("disabled\ninterpreter /usr/bin/qemu\nflags: F\n", set()),
    ):
        assert emulated({"qemu-aarch64": lines}) == expected


HERE = Host("amd64", docker=LOCAL)
AWAY = Host("amd64", docker=BOARD, docker_elsewhere=True)
NO_BOARD = Host("amd64", docker=LAPTOP, docker_elsewhere=True)
EMULATING = dataclasses.replace(HERE, emulated=frozenset({"arm64"}))
LACKING: list[tuple[Target, Via, Host, str]] = [
    (gpu_target(), "auto", dataclasses.replace(HERE, gpus=(AMPERE,)), ""),
    (gpu_target(), "auto", HERE, "needs an NVIDIA GPU; none found"),
    (
        gpu_target(),
        "auto",
        dataclasses.replace(HERE, gpus=(BLACKWELL,)),
        "needs a GPU of compute capability >=6.0,<=9.0; found NVIDIA GB10 (12.1)",
    ),
    (
        gpu_target(),
        "auto",
        dataclasses.replace(HERE, gpus=(HostGpu("Old", "GPU-1", "8.6", "470.1", 1),)),
        "needs NVIDIA driver >=530; this machine has 470.1",
    ),
    (gpu_target(), "auto", AWAY, ""),
    (gpu_target(), "auto", NO_BOARD, "the Docker daemon at tcp://desktop has no NVIDIA runtime"),
    (arm64(), "auto", HERE, "registered: docker run --privileged --rm tonistiigi/binfmt --install arm64"),
    (arm64(), "auto", EMULATING, ""),
    (arm64(), "auto", AWAY, ""),
    (arm64(), "venv", EMULATING, "a virtual environment runs linux/amd64 alone"),
    (arm64(), "auto", Host("amd64", docker_reason="no daemon"), "without Docker (no daemon)"),
    (target(), "auto", Host("amd64"), ""),
    (jetson(), "auto", Host("arm64", jetson="36.4.3"), ""),
    (
        jetson(),
        "auto",
        Host("arm64", jetson="35.4.1"),
        "needs a Jetson with Jetson Linux >=36.2,<37; this one runs 35.4.1",
    ),
    (jetson(), "auto", HERE, "without /etc/nv_tegra_release"),
    (jetson(), "auto", AWAY, ""),
    (jetson(), "auto", NO_BOARD, "is not on one"),
]


@pytest.mark.unit
@pytest.mark.parametrize(("chosen", "via", "host", "reason"), LACKING)
def test_a_target_says_what_it_lacks(chosen: Target, via: Via, host: Host, reason: str) -> None:
    said = can_run(chosen, host, via)
    assert reason in (said or "")
    assert (said is None) == (not reason)


@pytest.mark.integration
def test_a_look_at_this_machine_gives_each_fact_or_why_not() -> None:
    host = look_at_host()
    assert host.architecture in ("amd64", "arm64")
    assert (host.docker is None) == bool(host.docker_reason)
    assert (not host.gpus) == bool(host.gpu_reason)


@pytest.mark.integration
def test_no_daemon_is_asked_where_engines_run_in_virtual_environments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_program(tmp_path, "docker", f"touch {tmp_path}/asked; exit 1")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("TRT_COMPAT_CACHE_DIR", str(tmp_path / "cache"))
    with pytest.raises(NotMade):
        prepare(target(), "venv", allow_build=False)
    reap_orphans([target()], "venv")
    assert not (tmp_path / "asked").exists()
    look_at_host()
    assert (tmp_path / "asked").exists()


@pytest.mark.integration
@pytest.mark.parametrize(
    ("script", "visible_devices", "gpus", "reason"),
    [
        ("echo 'NVIDIA L4, GPU-1, 8.9, 550.1, 23034'", None, ("GPU-1",), ""),
        ("echo 'NVIDIA L4, GPU-1, 8.9, 550.1, 23034'", "", (), "CUDA_VISIBLE_DEVICES= hides them"),
        ("echo 'No devices were found'", None, (), "nvidia-smi: No devices were found"),
        ("echo 'cannot talk to the driver'; exit 9", None, (), "nvidia-smi: cannot talk to the driver"),
    ],
)
def test_gpus_are_what_nvidia_smi_says(  # noqa: PLR0913, PLR0917
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    visible_devices: str | None,
    gpus: tuple[str, ...],
    reason: str,
) -> None:
    """A program of that name stands for the driver's own on a machine that has none."""
    put_program(tmp_path, "nvidia-smi", script)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible_devices is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible_devices)
    host = look_at_host()
    assert tuple(gpu.uuid for gpu in host.gpus) == gpus
    assert host.gpu_reason == reason


DESKTOP = Daemon("28.0", "docker-desktop", "amd64", nvidia_runtime=True, address=UNIX, desktop=True)


@pytest.mark.unit
def test_docker_desktop_is_on_this_machine_unless_it_is_reached_over_a_network() -> None:
    assert not runs_elsewhere(DESKTOP, "here")
    assert runs_elsewhere(dataclasses.replace(DESKTOP, address="tcp://there:2375"), "here")
    assert runs_elsewhere(BOARD, "here")
    assert not runs_elsewhere(LOCAL, "here")


@pytest.mark.unit
def test_docker_desktop_hands_on_a_gpu_under_wsl2_alone_and_the_driver_is_looked_at_there() -> None:
    old = HostGpu("Old", "GPU-1", "8.6", "470.1", 1)
    assert can_run(gpu_target(), Host("amd64", gpus=(AMPERE,), docker=DESKTOP, wsl=True)) is None
    assert "this machine has 470.1" in str(
        can_run(gpu_target(), Host("amd64", gpus=(old,), docker=DESKTOP, wsl=True))
    )
    bare = Host("amd64", gpus=(AMPERE,), docker=DESKTOP)
    assert "under WSL2 alone" in str(can_run(gpu_target(), bare))
    assert can_run(gpu_target(), bare, "venv") is None
    assert can_run(arm64(), bare) is None


@pytest.mark.unit
def test_a_target_gets_gpus_of_one_name() -> None:
    """Of two kinds that fit, the first that nvidia-smi lists: results of another would mix with its history."""
    twin = dataclasses.replace(AMPERE, uuid="GPU-twin")
    other = dataclasses.replace(AMPERE, uuid="GPU-other", name="NVIDIA L4", compute_capability="8.9")
    host = Host("amd64", gpus=(AMPERE, other, twin), docker=LOCAL)
    assert dealt_gpus(gpu_target(), host) == (AMPERE, twin)


@pytest.mark.unit
def test_a_driver_that_is_not_the_recommended_one_is_told_and_refuses_nothing() -> None:
    needs = Needs(gpu=True, architecture="x86_64", driver=">=525", recommended=">=560")
    chosen, host = gpu_target(needs=needs), Host("amd64", gpus=(AMPERE,), docker=LOCAL)
    assert can_run(chosen, host) is None
    assert older_driver(chosen, host) == (
        "the release notes recommend driver >=560, this machine has 550.54.15"
    )
    assert older_driver(chosen, Host("amd64", gpus=(AMPERE, BLACKWELL), docker=LOCAL)) == ""
    assert older_driver(chosen, Host("amd64", docker=BOARD, docker_elsewhere=True)) == ""
    assert older_driver(gpu_target(), host) == ""


@pytest.mark.unit
def test_the_groups_of_the_render_nodes_are_those_of_the_board_without_root(tmp_path: Path) -> None:
    assert look_at_host(tmp_path).render_groups == ()
    nodes = tmp_path / "dev" / "dri"
    nodes.mkdir(parents=True)
    for name in ("renderD128", "renderD129", "card0"):
        (nodes / name).touch()
    mine = os.getgid()
    assert look_at_host(tmp_path).render_groups == ((str(mine),) if mine else ())
    if os.geteuid() == 0:
        os.chown(nodes / "renderD128", -1, 994)
        os.chown(nodes / "card0", -1, 44)
        assert look_at_host(tmp_path).render_groups == ("994",)


class TestPrepared:
    """What `prepare` gives a container, with an image that is there."""

    @pytest.fixture(autouse=True)
    def _image(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def made(target: Target, *_: object, **__: object) -> Environment:
            return Environment("docker", target.name, "python3", image="image", note="It runs in image.")

        # The name in the package is the function of the module.
        monkeypatch.setattr(sys.modules[prepare.__module__], "prepare_image", made)

    @pytest.mark.unit
    def test_a_jetson_gets_the_group_of_its_render_node(self) -> None:
        host = Host("arm64", jetson="36.4.3", docker=BOARD, render_groups=("994",))
        assert prepare(jetson(), host=host).groups == ("994",)
        away = prepare(jetson(), host=dataclasses.replace(host, docker_elsewhere=True))
        assert away.groups == ()
        assert prepare(target(), host=Host("amd64", docker=LOCAL, render_groups=("994",))).groups == ()

    @pytest.mark.unit
    def test_under_wsl2_a_container_gets_all_gpus(self) -> None:
        host = Host("amd64", gpus=(AMPERE,), docker=DESKTOP, wsl=True)
        assert prepare(gpu_target(), host=host).gpus == ("all",)
        assert prepare(gpu_target(), host=Host("amd64", gpus=(AMPERE,), docker=LOCAL)).gpus == (
            "GPU-8f7dcc1e",
        )
