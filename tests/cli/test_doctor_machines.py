# ruff: noqa: E501  (what is printed is quoted whole)
"""What `doctor` says of three machines, from what their nvidia-smi, release files and Docker daemon say."""

from __future__ import annotations

import platform
import re
import socket
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.cli import doctor, main
from harness.matrix import load_matrix
from harness.run import commands
from harness.run.commands import plan_environment
from harness.run.docker import Daemon
from harness.run.provision import host as host_module
from harness.run.provision.host import Host, look_at_host
from tests.cli import project
from tests.fixtures import Capture, Patch

pytestmark = pytest.mark.unit

UNIX = "unix:///var/run/docker.sock"


class Machine(NamedTuple):
    """What its nvidia-smi prints (None: there is none), its files, its daemon and its processor."""

    smi: str | None
    files: dict[str, str] = {}  # noqa: RUF012
    docker: Daemon = Daemon("28.0", "here", "amd64", nvidia_runtime=True, address=UNIX)
    machine: str = "x86_64"


ORIN = Machine(
    None,
    {"etc/nv_tegra_release": "# R35 (release), REVISION: 2.1, GCID: 1, BOARD: generic"},
    Daemon("28.0", "here", "arm64", nvidia_runtime=True, address=UNIX),
    "aarch64",
)


WSL = {"proc/sys/kernel/osrelease": "6.6.87.2-microsoft-standard-WSL2\n"}
DESKTOP = Daemon("28.0", "docker-desktop", "amd64", nvidia_runtime=True, address=UNIX, desktop=True)
MACHINES = {
    "H100, driver 535": Machine("NVIDIA H100 80GB HBM3, GPU-0, 9.0, 535.183.06, 16384"),
    "Orin, JetPack 5.1": ORIN,
    "WSL2, Docker Desktop": Machine("NVIDIA RTX A4000, GPU-0, 8.6, 560.94, 16376", WSL, DESKTOP),
}


@pytest.mark.parametrize("name", MACHINES)
def test_what_can_run_and_why_not_the_rest(
    name: str, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    machine = MACHINES[name]
    if machine.smi is not None:
        # Under WSL2 it is where no shell of a service looks.
        folder = tmp_path / ("usr/lib/wsl/lib" if "WSL2" in name else "bin")
        folder.mkdir(parents=True)
        stand_in = folder / "nvidia-smi"
        stand_in.write_text(f"#!/bin/sh\necho '{machine.smi}'\n")
        stand_in.chmod(0o755)
    for file, text in machine.files.items():
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/nowhere")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(platform, "machine", lambda: machine.machine)
    monkeypatch.setattr(socket, "gethostname", lambda: "here")
    monkeypatch.setattr(host_module, "daemon", lambda _: machine.docker)
    monkeypatch.setattr(doctor, "look_at_host", lambda: look_at_host(tmp_path))
    # What is to be pulled depends on the images that are here: tests/cli/test_pull.py.
    monkeypatch.chdir(project.TOP)
    assert main(["doctor"]) == 0
    assert table(capsys.readouterr().out) == SAID[name].strip("\n")


def test_a_dry_run_shows_what_would_be_started_on_a_board(monkeypatch: Patch) -> None:
    """The container has the group of the board's render node."""
    target = load_matrix(project.TOP / "matrix.yaml").target("l4t86")
    monkeypatch.setattr(commands, "_there", lambda *_: False)
    host = Host("arm64", jetson="35.2.1", docker=ORIN.docker, render_groups=("994",))
    (refused,) = plan_environment(target, host=host)
    assert (">=36.2,<37" in refused, "runs 35.2.1" in refused) == (True, True)
    fits = Host("arm64", jetson="36.4.3", docker=ORIN.docker, render_groups=("994",))
    first, *lines = plan_environment(target, host=fits)
    assert first.startswith("container from ")
    assert "44 --group-add 994" in lines[-1]


def table(printed: str) -> str:
    """Return the targets of `SAID` that can run, by how, and those that cannot, by why; without their labels."""
    lines = printed[printed.index("can run here") :].splitlines()
    able, _, lacking = "\n".join(lines[1:-1]).partition("cannot run here: ")
    ways: dict[str, list[str]] = {}
    for line in able.splitlines():
        name, how = line.split()[0], line[46:].strip()
        ways.setdefault(how, []).append(name)
    reasons = [line.strip() for line in lacking.splitlines()[1:]]
    ways |= {why: names.split(", ") for why, names in zip(reasons[::2], reasons[1::2], strict=True)}
    shown = {way: [name for name in names if name in TARGETS] for way, names in ways.items()}
    return "\n".join(f"{way}\n  {', '.join(names)}" for way, names in shown.items() if names)


#: No board, and no arm64, on any machine but the Orin.
BOARDS = """needs a Jetson with Jetson Linux >=35.2,<36; this machine is linux/amd64 without /etc/nv_tegra_release
  l4t85
needs a Jetson with Jetson Linux >=36.2,<37; this machine is linux/amd64 without /etc/nv_tegra_release
  l4t86
needs a Jetson with Jetson Linux >=36.4,<37; this machine is linux/amd64 without /etc/nv_tegra_release
  l4t103"""
ARM64 = """needs linux/arm64 and no emulation of it is registered: docker run --privileged --rm tonistiigi/binfmt --install arm64
  rtx17-arm64"""
SAID = {
    "H100, driver 535": f"""
container or virtual environment
  trt86, rtx14, rtx15, rtx16, rtx17, rtx14-sm75, rtx15-sm75, rtx16-sm75, rtx17-sm75, rtx17-sm86, rtx17-sm89, rtx17-sm120, ort117, ort131
container
  trt92
container or virtual environment (the release notes recommend driver >=545, this machine has 535.183.06)
  trt100
container or virtual environment (the release notes recommend driver >=555, this machine has 535.183.06)
  trt101, trt102
container or virtual environment (the release notes recommend driver >=560, this machine has 535.183.06)
  trt103, trt107
needs NVIDIA driver >=580; this machine has 535.183.06
  trt1016, trt110, trt112, ort131-cuda
{BOARDS}
{ARM64}
""",
    "Orin, JetPack 5.1": """
container
  l4t85
container or virtual environment
  rtx17-arm64
needs an NVIDIA GPU; none found (nvidia-smi is not installed)
  trt86, trt92, trt100, trt101, trt102, trt103, trt107, trt1016, trt110, trt112, ort131-cuda
needs a Jetson with Jetson Linux >=36.2,<37; this one runs 35.2.1
  l4t86
needs a Jetson with Jetson Linux >=36.4,<37; this one runs 35.2.1
  l4t103
needs linux/amd64 and no emulation of it is registered: docker run --privileged --rm tonistiigi/binfmt --install amd64
  rtx14, rtx15, rtx16, rtx17, rtx14-sm75, rtx15-sm75, rtx16-sm75, rtx17-sm75, rtx17-sm86, rtx17-sm89, rtx17-sm120, ort117, ort131
""",
    "WSL2, Docker Desktop": f"""
container or virtual environment
  trt86, trt100, trt101, trt102, trt103, trt107, rtx14, rtx15, rtx16, rtx17, rtx14-sm75, rtx15-sm75, rtx16-sm75, rtx17-sm75, rtx17-sm86, rtx17-sm89, rtx17-sm120, ort117, ort131
container
  trt92
container, emulated
  rtx17-arm64
needs NVIDIA driver >=580; this machine has 560.94
  trt1016, trt110, trt112, ort131-cuda
{BOARDS}
""",
}
#: A target that is added to matrix.yaml changes nothing here.
TARGETS = set(re.findall(r"\b(?:trt|rtx|ort|l4t)[\w-]+", "".join(SAID.values())))
