"""An engine that tries to leave its container and returns as JSON the attempts that succeeded. Python 3.8.

It opens files that should be refused to it, and neither reads nor writes them. It makes forbidden system calls with
arguments that no kernel accepts, so that a call that gets through has no effect. It connects to no host.
"""

import ctypes
import errno
import json
import os
import platform
import signal
import sys
from typing import Any, Callable, Dict, Iterator, List, Tuple

Emit = Callable[..., None]
LIBC = ctypes.CDLL(None, use_errno=True)
#: System calls that no engine needs: their numbers on x86-64 and on arm64.
CALLS = {
    "bpf": (321, 280),
    "init_module": (175, 105),
    "keyctl": (250, 219),
    "mount": (165, 40),
    "reboot": (169, 142),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "unshare": (272, 97),
}
#: Files that are root's or the machine's, to be read and to be written.
READ = (
    *("/etc/shadow", "/proc/kcore", "/proc/kmsg", "/dev/mem", "/dev/kmsg", "/root", "/var/lib/docker"),
    "/proc/sys/net/ipv4/tcp_fastopen_key",
)
WRITTEN = (
    *("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/vm/drop_caches"),
    *("/proc/sys/fs/binfmt_misc/register", "/proc/sysrq-trigger", "/proc/irq/default_smp_affinity"),
    *("/proc/self/exe", "/sys/power/state", "/sys/kernel/uevent_helper", "/sys/fs/cgroup/release_agent"),
    "/sys/fs/cgroup/cgroup.procs",
)
#: How the attempts of this job were refused.
REFUSED = []  # type: List[str]
SOCKETS = ("/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock")


def preload(engine: str) -> Dict[str, str]:
    """Load nothing."""
    return {"engine": engine, "engine_version": "1.0.0"}


def run(job: Dict[str, Any], _body: bytes, emit: Emit) -> None:
    """Make the attempt that the recipe names."""
    del REFUSED[:]
    through = list(globals()["do_" + job["recipe"]["do"]]())
    emit("message", severity="INFO", text=json.dumps({"through": through[:50], "refused": REFUSED[:50]}))


def _succeeds(act: Callable[..., Any], *arguments: Any) -> bool:
    """Make an attempt; what is not there is none, and is not refused either."""
    try:
        act(*arguments)
    except OSError as error:
        REFUSED.append(errno.errorcode.get(error.errno or 0, "?"))
        return False
    return True


def _opened(paths: Tuple[str, ...], flags: int) -> List[str]:
    return [path for path in paths if _succeeds(os.open, path, flags)]


def do_nothing() -> List[str]:
    """Make no attempt."""
    return []


def do_calls() -> Iterator[str]:
    """Make system calls with arguments that no kernel accepts; yield those that the kernel looked at."""
    nothing = ctypes.c_long(-1)
    for name, numbers in CALLS.items():
        ctypes.set_errno(0)
        LIBC.syscall(ctypes.c_long(numbers[platform.machine() != "x86_64"]), *([nothing] * 6))
        if ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS, errno.EACCES):
            yield name
        else:
            REFUSED.append(errno.errorcode[ctypes.get_errno()])


def do_network() -> List[str]:
    """Look for a way to another machine."""
    return sorted(set(os.listdir("/sys/class/net")) - {"lo"})


def do_root() -> Iterator[str]:
    """Become root, or keep a capability of root's."""
    yield from (name for name in ("setuid", "setgid") if _succeeds(getattr(os, name), 0))
    with open("/proc/self/status") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    yield from (name for name in status if name.startswith("Cap") and int(status[name], 16))
    if status["NoNewPrivs"] != "1":
        yield "programs that are root's"


def do_write() -> List[str]:
    """Open files without a name in folders that are not the job's."""
    folders = [
        "/" + name for name in ("", "bin", "etc", "home", "opt", "proc", "root", "run", "srv", "sys", "usr")
    ]
    folders += ["/var", "/var/tmp", "/sys/fs/cgroup", *filter(os.path.isdir, sys.path)]
    return _opened(tuple(filter(os.path.isdir, folders)), os.O_TMPFILE | os.O_WRONLY)


def do_machine() -> List[str]:
    """Open files that are the machine's, and its daemons' sockets."""
    sockets = [path for path in SOCKETS if os.access(path, os.W_OK)]
    return [*_opened(READ, os.O_RDONLY), *_opened(WRITTEN, os.O_WRONLY), *sockets]


def do_big_file() -> List[str]:
    """Make a file of 4 GiB without content."""
    with open("big", "wb") as file:
        return ["4 GiB"] if _succeeds(os.ftruncate, file.fileno(), 4 << 30) else []


def do_many_files() -> List[str]:
    """Open a file 1100 times."""
    return ["1100 files"] if all(_succeeds(os.open, os.devnull, os.O_RDONLY) for _ in range(1100)) else []


def do_shared_memory() -> List[str]:
    """Take 80 MiB of the machine's memory for files."""
    number = os.open("/dev/shm/large", os.O_CREAT | os.O_RDWR, 0o600)
    return ["80 MiB"] if _succeeds(os.posix_fallocate, number, 0, 80 << 20) else []


def do_fork() -> List[str]:
    """Start 1100 processes that wait."""
    for _ in range(1100):
        try:
            if os.fork() == 0:
                signal.pause()
        except OSError:
            return []
    return ["1100 processes"]
