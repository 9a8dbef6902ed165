"""Looks at the machine that a target names as its host, over SSH, as `look_at_host` does at this one."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import InfraError
from harness.run.docker import run_there
from harness.run.provision.host import (
    ARCHITECTURES,
    EMULATORS,
    GPU_QUERY,
    Host,
    ask_daemon,
    parse_gpus,
    parse_l4t_release,
    runs_emulator,
)

if TYPE_CHECKING:
    from harness.matrix import Target

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_MARK = "== "
#: Sections under their names; what a machine does not have is empty. $0 is the folder of the daemon's images.
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
                "free": "df -Pk -- \"$0\" | tail -n 1 | tr -s ' ' | cut -d' ' -f4",
                **{name: f"cat /proc/sys/fs/binfmt_misc/{name}" for name in EMULATORS},
            }.items()
        ),
        f"echo '{_MARK}smi'; command -v nvidia-smi",
        f"echo '{_MARK}gpus'; nvidia-smi {' '.join(GPU_QUERY)} 2>&1",
        f"echo '{_MARK}ended'",
    )
)


def host_of(target: Target, here: Host) -> Host:
    """Return the machine that a target runs on, for a plan: `here`, or its own host, looked at once a process."""
    return _seen(target.host) if target.host else here


def look_there(address: str) -> Host:
    """Look at the machine at `ssh://...`; `docker` is None where it is not reached or no daemon answers there."""
    engine, reason = ask_daemon(address)
    if engine is None:
        return Host("", docker_reason=reason, gpu_reason="nobody could look")
    try:
        said = _sections(address, engine.root or "/")
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
        free_image_bytes=int(said["free"]) << 10 if said["free"].isdecimal() else None,
        wsl="microsoft" in said["kernel"].lower(),
        render_groups=tuple(sorted(groups)),
        machine=_machine(said["boot"]),
    )


_seen = functools.lru_cache(look_there)


@functools.lru_cache
def _sections(address: str, root: str) -> dict[str, str]:
    """Return what the machine says under each name; it is asked once a process, as it does not change meanwhile."""
    text = run_there(address, ["sh", "-c", _SCRIPT, root])
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
