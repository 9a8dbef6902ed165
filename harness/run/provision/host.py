"""Looks at this machine, or over SSH at a target's host: architecture, GPUs, Jetson, emulation, Docker, disk."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
import shutil
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import InfraError
from harness.matrix import Target
from harness.run.docker import Daemon, daemon, run_there
from harness.run.provision.cache import cache_dir

ARCHITECTURES = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
#: Handlers that qemu-user-static and binfmt register, and the architecture each runs.
EMULATORS = {"qemu-aarch64": "arm64", "qemu-x86_64": "amd64", "rosetta": "amd64"}
#: Where WSL2 puts the driver's programs, which is not on the PATH of every shell.
_WSL_SMI = "usr/lib/wsl/lib/nvidia-smi"
_QUERY = "name,uuid,compute_cap,driver_version,memory.total"
GPU_QUERY = (f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits")

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_MARK = "== "
#: Sections under their names; what a machine does not have is empty.
_SCRIPT = "; ".join(
    (
        *(
            f"echo '{_MARK}{name}'; {command} 2>/dev/null"
            for name, command in {
                "boot": f"cat {_BOOT}",
                "machine": "uname -m",
                "kernel": "cat /proc/sys/kernel/osrelease",
                "l4t": "cat /etc/nv_tegra_release",
                "groups": "stat -c %g /dev/dri/renderD*",
                **{name: f"cat /proc/sys/fs/binfmt_misc/{name}" for name in EMULATORS},
            }.items()
        ),
        f"echo '{_MARK}smi'; command -v nvidia-smi",
        f"echo '{_MARK}gpus'; nvidia-smi {' '.join(GPU_QUERY)} 2>&1",
        f"echo '{_MARK}ended'",
    )
)


@dataclass(frozen=True)
class Gpu:
    """One NVIDIA GPU: `compute_capability` such as "8.9", `driver` such as "550.54.15"."""

    name: str
    uuid: str
    compute_capability: str
    driver: str
    memory_mib: int


@dataclass(frozen=True)
class Host:
    """What a machine has.

    `architecture` is amd64 or arm64; `jetson` the Jetson Linux release ("36.4.3") or None; `gpus` those the
    caller may use (CUDA_VISIBLE_DEVICES is heeded); `emulated` the other architectures whose containers start
    here. `docker` is None when no daemon answers and `docker_reason` says why; `docker_elsewhere` is True
    when the daemon runs on another machine, of whose GPUs and emulation nothing is known here. `wsl` is True under
    WSL2; `render_groups` are the numbers of the groups that own the render nodes, root's left out. `machine` tells a
    machine that is looked at over SSH from all others, "" for this one.
    """

    architecture: str
    gpus: tuple[Gpu, ...] = ()
    gpu_reason: str = ""
    jetson: str | None = None
    emulated: frozenset[str] = frozenset()
    docker: Daemon | None = None
    docker_reason: str = ""
    docker_elsewhere: bool = False
    free_disk_mib: int = 0
    wsl: bool = False
    render_groups: tuple[str, ...] = ()
    machine: str = ""


def look_at_host(root: Path = Path("/")) -> Host:
    """Look at this machine: files under `root`, nvidia-smi and the Docker daemon; nothing else on the network."""
    machine = platform.machine()
    every, gpu_reason = _gpus(root)
    gpus = visible(every, os.environ)
    if every and not gpus:
        gpu_reason = f"CUDA_VISIBLE_DEVICES={os.environ['CUDA_VISIBLE_DEVICES']} hides them"
    engine, docker_reason = ask_daemon()
    return Host(
        architecture=ARCHITECTURES.get(machine, machine),
        gpus=gpus,
        gpu_reason=gpu_reason,
        jetson=parse_l4t_release(_text(root / "etc/nv_tegra_release")),
        emulated=emulated_architectures(root / "proc/sys/fs/binfmt_misc"),
        docker=engine,
        docker_reason=docker_reason,
        docker_elsewhere=engine is not None and runs_elsewhere(engine, socket.gethostname()),
        free_disk_mib=_free_mib(cache_dir()),
        wsl="microsoft" in _text(root / "proc/sys/kernel/osrelease").lower(),
        render_groups=render_groups(root / "dev/dri"),
    )


def runs_elsewhere(engine: Daemon, here: str) -> bool:
    """Tell whether a daemon is on another machine than the one called `here`.

    Docker Desktop's virtual machine has a name of its own, and whatever GPU and driver it has are this machine's.
    """
    return engine.name != here and not (engine.desktop and engine.nearby)


def render_groups(folder: Path) -> tuple[str, ...]:
    """Return the numbers of the groups that own the render nodes in a folder, without root's."""
    groups = {node.stat().st_gid for node in folder.glob("renderD*")} if folder.is_dir() else set()
    return tuple(str(group) for group in sorted(groups) if group)


def parse_gpus(csv: str) -> tuple[Gpu, ...]:
    """Read what `nvidia-smi --query-gpu=... --format=csv,noheader,nounits` prints for `_QUERY`.

    A line with another number of fields is an error message of nvidia-smi, not a GPU. Unified-memory GPUs
    report their memory as "[N/A]", which is read as 0.
    """
    gpus = []
    for line in csv.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != len(_QUERY.split(",")) or not fields[1].startswith("GPU-"):
            continue
        name, uuid, capability, driver, memory = fields
        gpus.append(Gpu(name, uuid, capability, driver, int(memory) if memory.isdigit() else 0))
    return tuple(gpus)


def visible(gpus: tuple[Gpu, ...], environment: Mapping[str, str]) -> tuple[Gpu, ...]:
    """Return the GPUs that CUDA_VISIBLE_DEVICES allows, up to its first unknown entry, as CUDA reads it."""
    allowed = environment.get("CUDA_VISIBLE_DEVICES")
    if allowed is None:
        return gpus
    chosen: list[Gpu] = []
    for entry in (part.strip() for part in allowed.split(",")):
        if entry.isdigit():
            match = gpus[int(entry) : int(entry) + 1]
        else:
            match = tuple(gpu for gpu in gpus if entry and gpu.uuid.startswith(entry))[:1]
        if not match:
            break
        chosen += match
    return tuple(chosen)


def parse_l4t_release(text: str) -> str | None:
    """Read /etc/nv_tegra_release ("# R36 (release), REVISION: 4.3, ...") as "36.4.3"."""
    found = re.search(r"#\s*R(\d+)\s*\(release\),\s*REVISION:\s*([\d.]+)", text)
    return f"{found[1]}.{found[2]}" if found else None


def emulated_architectures(registry: Path) -> frozenset[str]:
    """Return the architectures whose binaries the kernel hands to an emulator inside containers too.

    Without the F flag (fix binary) the kernel looks for the emulator inside the container, where it is not.
    """
    found = set()
    for handler, architecture in EMULATORS.items():
        try:
            text = (registry / handler).read_text(encoding="ascii", errors="replace")
        except OSError:
            continue
        if runs_emulator(text):
            found.add(architecture)
    return frozenset(found)


def runs_emulator(entry: str) -> bool:
    """Tell from a handler's entry in binfmt_misc whether its emulator runs in containers."""
    lines = entry.splitlines()
    flags = next((line.partition(":")[2] for line in lines if line.startswith("flags:")), "")
    return "enabled" in lines and "F" in flags


def _gpus(root: Path) -> tuple[tuple[Gpu, ...], str]:
    program = shutil.which("nvidia-smi") or shutil.which(root / _WSL_SMI)
    if program is None:
        return (), "nvidia-smi is not installed"
    try:
        done = subprocess.run([program, *GPU_QUERY], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return (), f"nvidia-smi did not answer: {error}"
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines() or [f"exit code {done.returncode}"]
        return (), f"nvidia-smi: {said[-1]}"
    gpus = parse_gpus(done.stdout)
    return gpus, "" if gpus else "nvidia-smi lists none"


def ask_daemon(address: str = "") -> tuple[Daemon | None, str]:
    """Return the daemon at an address, or why there is none."""
    try:
        return daemon(address), ""
    except InfraError as error:
        return None, str(error)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _free_mib(folder: Path) -> int:
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free >> 20


def host_of(target: Target, here: Host) -> Host:
    """Return the machine that a target runs on, for a plan: `here`, or its own host, looked at once a process."""
    return _seen(target.host) if target.host else here


def look_there(address: str) -> Host:
    """Look at the machine at `ssh://...`; `docker` is None where it is not reached or no daemon answers there."""
    engine, reason = ask_daemon(address)
    if engine is None:
        return Host("", docker_reason=reason, gpu_reason="nobody could look")
    try:
        said = _sections(address)
    except InfraError as error:
        return Host("", docker_reason=str(error), gpu_reason="nobody could look")
    gpus = parse_gpus(said["gpus"])
    groups = dict.fromkeys(word for word in said["groups"].split() if word.isdecimal() and int(word))
    return Host(
        architecture=ARCHITECTURES.get(said["machine"], said["machine"]),
        gpus=gpus,
        gpu_reason="" if gpus else _no_gpus(said),
        jetson=parse_l4t_release(said["l4t"]),
        emulated=frozenset(of for name, of in EMULATORS.items() if runs_emulator(said[name])),
        docker=engine,
        wsl="microsoft" in said["kernel"].lower(),
        render_groups=tuple(sorted(groups)),
        machine=_machine(said["boot"]),
    )


_seen = functools.lru_cache(look_there)


@functools.lru_cache
def _sections(address: str) -> dict[str, str]:
    """Return what the machine says under each name; it is asked once a process, as it does not change meanwhile."""
    text = run_there(address, ["sh", "-c", _SCRIPT])
    # A shell there may have greeted before.
    parts = (part.partition("\n") for part in f"\n{text}".split(f"\n{_MARK}")[1:])
    found = {name.strip(): body.strip() for name, _, body in parts}
    if "ended" not in found:
        raise InfraError(
            f"{address} does not say what it has; it needs a POSIX shell, and said {text[-200:]!r}"
        )
    return found


def _no_gpus(said: dict[str, str]) -> str:
    if not said["smi"]:
        return "nvidia-smi is not installed there"
    return f"nvidia-smi: {said['gpus'].splitlines()[-1]}" if said["gpus"] else "nvidia-smi lists none"


def _machine(boot: str) -> str:
    """Return a name that no other machine has, "" for this one, whatever it is called in the address."""
    try:
        if boot == _BOOT.read_text(encoding="ascii").strip():
            return ""
    except OSError:
        pass
    return hashlib.sha256(boot.encode()).hexdigest()[:12]
