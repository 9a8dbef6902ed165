"""Looks at this machine, or over SSH at a target's host: architecture, GPUs, Jetson, emulation, Docker."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.errors import InfraError
from harness.matrix import Target
from harness.run.docker import Daemon, address, daemon
from harness.run.docker.client import ARCHITECTURES
from harness.run.transport import complaint, run_to_end, ssh_line

#: Handlers that qemu-user-static and binfmt register, and the architecture each runs.
EMULATORS = {"qemu-aarch64": "arm64", "qemu-x86_64": "amd64", "rosetta": "amd64"}
_QUERY = "name,uuid,compute_cap,driver_version,memory.total"
_SMI = f'timeout 30 "$smi" --query-gpu={_QUERY} --format=csv,noheader,nounits'
_BOOT = "proc/sys/kernel/random/boot_id"
_MARK = "== "
_FILES = {
    "boot": _BOOT,
    "kernel": "proc/sys/kernel/osrelease",
    "l4t": "etc/nv_tegra_release",
    **{name: f"proc/sys/fs/binfmt_misc/{name}" for name in EMULATORS},
}
#: Prints sections under their names, an empty one for anything that a machine lacks; $0 is the root folder. Not every
#: shell looks in WSL2's folder of the driver's programs.
_SCRIPT = "; ".join(
    (
        'smi=$(command -v nvidia-smi || command -v "$0/usr/lib/wsl/lib/nvidia-smi")',
        'PATH="$PATH:/usr/bin:/bin"',
        *(f"echo '{_MARK}{name}'; cat \"$0/{path}\" 2>/dev/null" for name, path in _FILES.items()),
        f"echo '{_MARK}machine'; uname -m",
        f"echo '{_MARK}groups'; stat -c %g \"$0\"/dev/dri/renderD* 2>/dev/null",
        f"echo '{_MARK}smi'; echo \"$smi\"",
        f'text=$({_SMI} 2>&1) || text="${{text:-exit code $?}}"',
        f"echo '{_MARK}gpus'; echo \"$text\"",
        f"echo '{_MARK}ended'",
    )
)
#: Seconds for all of it.
_PATIENCE = 45.0


@dataclass(frozen=True)
class HostGpu:
    """One NVIDIA GPU: `compute_capability` such as "8.9", `driver` such as "550.54.15"."""

    name: str
    uuid: str
    compute_capability: str
    driver: str
    memory_mib: int


@dataclass(frozen=True)
class Host:
    """The properties of a machine.

    `architecture` is amd64 or arm64; `jetson` the Jetson Linux release ("36.4.3") or None; `gpus` those the caller may
    use (CUDA_VISIBLE_DEVICES is heeded); `emulated` the other architectures whose containers start here. `docker` is
    None when no daemon answers and `docker_reason` says why; `docker_elsewhere` is True when the daemon runs on another
    machine, whose GPUs and emulation are unknown here. `wsl` is True under WSL2; `render_groups` are the numbers of the
    groups that own the render nodes, root's left out. `machine` tells a machine that is looked at over SSH from all
    others, "" for this one.
    """

    architecture: str
    gpus: tuple[HostGpu, ...] = ()
    gpu_reason: str = ""
    jetson: str | None = None
    emulated: frozenset[str] = frozenset()
    docker: Daemon | None = None
    docker_reason: str = ""
    docker_elsewhere: bool = False
    wsl: bool = False
    render_groups: tuple[str, ...] = ()
    machine: str = ""


def look_at_host(root: Path = Path("/"), *, docker: bool = True) -> Host:
    """Look at this machine: files under `root`, nvidia-smi and, alone on the network, the Docker daemon if wanted."""
    facts: dict[str, str] = {}
    why = ""
    try:
        facts = _sections(run_to_end(["/bin/sh", "-c", _SCRIPT, str(root)], _PATIENCE).stdout, "this machine")
    except InfraError as error:
        why = f"this machine cannot be looked at: {error}"
    seen = _host(
        facts | {"machine": platform.machine()}, *(ask_daemon() if docker else (None, "Docker was not asked"))
    )
    gpus = visible(seen.gpus, os.environ)
    if seen.gpus and not gpus:
        why = f"CUDA_VISIBLE_DEVICES={os.environ['CUDA_VISIBLE_DEVICES']} hides them"
    elsewhere = seen.docker is not None and runs_elsewhere(seen.docker, socket.gethostname())
    return replace(seen, gpus=gpus, gpu_reason=why or seen.gpu_reason, docker_elsewhere=elsewhere)


def host_of(target: Target, here: Host) -> Host:
    """Return the machine that a target runs on, for a plan: `here`, or its own host, looked at once a process."""
    return _seen(target.host) if target.host else here


def look_there(host: str) -> Host:
    """Look at the machine at `ssh://...`; `docker` is None if it is not reached or no daemon answers there."""
    engine, reason = ask_daemon(host)
    try:
        facts = _facts(host) if engine else {}
    except InfraError as error:
        facts, reason = {}, str(error)
    if not facts:
        return Host("", docker_reason=reason, gpu_reason="nobody could look")
    return replace(_host(facts, engine), machine=_machine(facts["boot"]))


def _host(facts: Mapping[str, str], engine: Daemon | None, reason: str = "") -> Host:
    gpus, gpu_reason = gpus_of(facts)
    return Host(
        architecture=ARCHITECTURES.get(facts["machine"], facts["machine"]),
        gpus=gpus,
        gpu_reason=gpu_reason,
        jetson=parse_l4t_release(facts.get("l4t", "")),
        emulated=emulated(facts),
        docker=engine,
        docker_reason=reason,
        wsl="microsoft" in facts.get("kernel", "").lower(),
        render_groups=render_groups(facts),
    )


_seen = functools.lru_cache(look_there)


@functools.lru_cache
def _facts(host: str) -> dict[str, str]:
    """Return the sections of a machine, asked once a process, as it does not change meanwhile."""
    return _sections(run_there(host, ["sh", "-c", _SCRIPT, "/"]), host)


def run_there(host: str, argv: Sequence[str]) -> str:
    """Run a program on the machine at `ssh://...` and return its output; raises InfraError if it is not reached."""
    done = run_to_end(ssh_line(host, argv), _PATIENCE)
    if done.returncode == 255:  # noqa: PLR2004  (ssh's own trouble)
        raise InfraError(f"{address(host)} does not answer: {complaint(done.stderr)}")
    return done.stdout


def _sections(text: str, machine: str) -> dict[str, str]:
    """Return the script's output, by section; raises InfraError if it did not come to its end."""
    # A shell may have greeted before.
    parts = (part.partition("\n") for part in f"\n{text}".split(f"\n{_MARK}")[1:])
    facts = {name.strip(): body.strip() for name, _, body in parts}
    if "ended" not in facts:
        raise InfraError(
            f"{machine} does not say what it has; it needs a POSIX shell, and said {text[-200:]!r}"
        )
    return facts


def runs_elsewhere(engine: Daemon, here: str) -> bool:
    """Tell whether a daemon is on another machine than the one called `here`.

    Docker Desktop's virtual machine has a name of its own, and whatever GPU and driver it has are this machine's.
    """
    nearby = engine.address.startswith(("unix://", "npipe://"))
    return engine.name != here and not (engine.desktop and nearby)


def render_groups(facts: Mapping[str, str]) -> tuple[str, ...]:
    """Return the numbers of the groups that own the render nodes, without root's."""
    numbers = {int(word) for word in facts.get("groups", "").split() if word.isdecimal()}
    return tuple(str(number) for number in sorted(numbers) if number)


def gpus_of(facts: Mapping[str, str]) -> tuple[tuple[HostGpu, ...], str]:
    """Return the GPUs of a machine, or the reason for their lack."""
    if not facts.get("smi"):
        return (), "nvidia-smi is not installed"
    gpus = parse_gpus(facts["gpus"])
    last = next(reversed(facts["gpus"].splitlines()), "it lists none")
    return gpus, "" if gpus else f"nvidia-smi: {last}"


def parse_gpus(csv: str) -> tuple[HostGpu, ...]:
    """Read the output of `nvidia-smi --query-gpu=... --format=csv,noheader,nounits` for `_QUERY`.

    A line with another number of fields is an error message of nvidia-smi, not a GPU. Unified-memory GPUs
    report their memory as "[N/A]", which is read as 0.
    """
    gpus = []
    for line in csv.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != len(_QUERY.split(",")) or not fields[1].startswith("GPU-"):
            continue
        name, uuid, capability, driver, memory = fields
        gpus.append(HostGpu(name, uuid, capability, driver, int(memory) if memory.isdigit() else 0))
    return tuple(gpus)


def visible(gpus: tuple[HostGpu, ...], environment: Mapping[str, str]) -> tuple[HostGpu, ...]:
    """Return the GPUs that CUDA_VISIBLE_DEVICES allows, up to its first unknown entry, as CUDA reads it."""
    allowed = environment.get("CUDA_VISIBLE_DEVICES")
    if allowed is None:
        return gpus
    chosen: list[HostGpu] = []
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


def emulated(facts: Mapping[str, str]) -> frozenset[str]:
    """Return the architectures whose binaries the kernel hands to an emulator inside containers too.

    Without the F flag (fix binary) the kernel looks for the emulator inside the container, and does not find it.
    """
    entries = {handler: facts.get(handler, "").splitlines() for handler in EMULATORS}
    return frozenset(
        EMULATORS[handler]
        for handler, lines in entries.items()
        if "enabled" in lines and any(line.startswith("flags:") and "F" in line for line in lines)
    )


def ask_daemon(host: str = "") -> tuple[Daemon | None, str]:
    """Return the daemon of a host, or the reason for its lack."""
    try:
        return daemon(host), ""
    except InfraError as error:
        return None, str(error)


def _machine(boot: str) -> str:
    """Return a name that no other machine has, "" for this one, whatever it is called in the address."""
    try:
        if boot == Path("/", _BOOT).read_text(encoding="ascii").strip():
            return ""
    except OSError:
        pass
    return hashlib.sha256(boot.encode()).hexdigest()[:12]
