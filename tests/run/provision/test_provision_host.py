"""What a machine is found to have, and what it is found to lack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harness.matrix import Needs
from harness.run.docker import Daemon
from harness.run.provision import Gpu, Host, can_run, fitting_gpus, look_at_host
from harness.run.provision.host import emulated_architectures, parse_gpus, parse_l4t_release, visible
from tests.run.provision.factory import arm64, gpu_target, target

if TYPE_CHECKING:
    from pathlib import Path

SMI = """NVIDIA RTX A4000, GPU-8f7dcc1e, 8.6, 550.54.15, 16376
NVIDIA GB10, GPU-00aa11bb, 12.1, 580.95.05, [N/A]
NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver
"""
AMPERE = Gpu("NVIDIA RTX A4000", "GPU-8f7dcc1e", "8.6", "550.54.15", 16376)
BLACKWELL = Gpu("NVIDIA GB10", "GPU-00aa11bb", "12.1", "580.95.05", 0)
LOCAL = Daemon("28.0", "here", "amd64", nvidia_runtime=True, address="unix:///var/run/docker.sock")
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
def test_the_callers_visible_devices_are_heeded(value: str | None, expected: tuple[Gpu, ...]) -> None:
    environment = {} if value is None else {"CUDA_VISIBLE_DEVICES": value}
    assert visible((AMPERE, BLACKWELL), environment) == expected


@pytest.mark.unit
def test_the_jetson_release_is_read() -> None:
    text = "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic, EABI: aarch64, DATE: Wed Jan  8"
    assert parse_l4t_release(text) == "36.4.3"
    assert parse_l4t_release("Debian") is None


@pytest.mark.unit
def test_emulation_counts_only_where_containers_see_it(tmp_path: Path) -> None:
    """The F flag keeps the emulator open: without it a container would have to bring its own."""
    handler = tmp_path / "qemu-aarch64"
    assert emulated_architectures(tmp_path) == frozenset()
    for lines, expected in (
        ("enabled\ninterpreter /usr/bin/qemu\nflags: PF\n", {"arm64"}),
        ("enabled\ninterpreter /usr/bin/qemu\nflags: P\n", set()),
        ("disabled\ninterpreter /usr/bin/qemu\nflags: F\n", set()),
    ):
        handler.write_text(lines)
        assert emulated_architectures(tmp_path) == expected


@pytest.mark.unit
@pytest.mark.parametrize(
    ("host", "reason"),
    [
        (Host("amd64", gpus=(AMPERE,), docker=LOCAL), None),
        (
            Host("amd64", gpu_reason="nvidia-smi is not installed", docker=LOCAL),
            "needs an NVIDIA GPU; none found (nvidia-smi is not installed)",
        ),
        (
            Host("amd64", gpus=(BLACKWELL,), docker=LOCAL),
            "needs a GPU of compute capability >=6.0,<=9.0; found NVIDIA GB10 (12.1)",
        ),
        (
            Host("amd64", gpus=(Gpu("Old", "GPU-1", "8.6", "470.1", 1),), docker=LOCAL),
            "needs NVIDIA driver >=530; this machine has 470.1",
        ),
        (Host("amd64", docker=BOARD, docker_elsewhere=True), None),
        (
            Host("amd64", docker=LAPTOP, docker_elsewhere=True),
            "needs an NVIDIA GPU; the Docker daemon at tcp://desktop has no NVIDIA runtime",
        ),
    ],
)
def test_a_gpu_target_says_what_is_missing(host: Host, reason: str | None) -> None:
    said = can_run(gpu_target(), host)
    assert (said or "").startswith(reason or "")
    assert (said is None) == (reason is None)


@pytest.mark.unit
def test_a_foreign_architecture_needs_emulation_or_a_daemon_that_has_it() -> None:
    said = can_run(arm64(), Host("amd64", docker=LOCAL))
    assert said == (
        "needs linux/arm64 and no emulation of it is registered: "
        "docker run --privileged --rm tonistiigi/binfmt --install arm64"
    )
    assert can_run(arm64(), Host("amd64", docker=LOCAL, emulated=frozenset({"arm64"}))) is None
    assert can_run(arm64(), Host("amd64", docker=BOARD, docker_elsewhere=True)) is None
    assert "a virtual environment runs linux/amd64 alone" in str(
        can_run(arm64(), Host("amd64", docker=LOCAL, emulated=frozenset({"arm64"})), "venv")
    )
    assert "without Docker (no daemon)" in str(can_run(arm64(), Host("amd64", docker_reason="no daemon")))
    assert can_run(target(), Host("amd64")) is None


@pytest.mark.unit
def test_a_jetson_target_needs_a_board_of_its_release() -> None:
    assert can_run(jetson(), Host("arm64", jetson="36.4.3")) is None
    assert can_run(jetson(), Host("arm64", jetson="35.4.1")) == (
        "needs a Jetson with Jetson Linux >=36.2,<37; this one runs 35.4.1"
    )
    assert "without /etc/nv_tegra_release" in str(can_run(jetson(), Host("amd64", docker=LOCAL)))
    assert can_run(jetson(), Host("amd64", docker=BOARD, docker_elsewhere=True)) is None
    assert "is not on one" in str(can_run(jetson(), Host("amd64", docker=LAPTOP, docker_elsewhere=True)))


@pytest.mark.unit
def test_only_gpus_that_can_run_the_target_fit() -> None:
    host = Host("amd64", gpus=(AMPERE, BLACKWELL))
    assert fitting_gpus(gpu_target(), host) == (AMPERE,)
    assert fitting_gpus(target(), host) == (AMPERE, BLACKWELL)


@pytest.mark.integration
def test_a_look_at_this_machine_gives_each_fact_or_why_not() -> None:
    host = look_at_host()
    assert host.architecture in ("amd64", "arm64")
    assert host.free_disk_mib > 0
    assert (host.docker is None) == bool(host.docker_reason)
    assert (not host.gpus) == bool(host.gpu_reason)


@pytest.mark.integration
@pytest.mark.parametrize(
    ("script", "visible_devices", "gpus", "reason"),
    [
        ("echo 'NVIDIA L4, GPU-1, 8.9, 550.1, 23034'", None, ("GPU-1",), ""),
        ("echo 'NVIDIA L4, GPU-1, 8.9, 550.1, 23034'", "", (), "CUDA_VISIBLE_DEVICES= hides them"),
        ("echo 'No devices were found'", None, (), "nvidia-smi lists none"),
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
    stand_in = tmp_path / "nvidia-smi"
    stand_in.write_text(f"#!/bin/sh\n{script}\n")
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible_devices is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible_devices)
    host = look_at_host()
    assert tuple(gpu.uuid for gpu in host.gpus) == gpus
    assert host.gpu_reason == reason
