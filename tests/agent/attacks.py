"""An engine whose job tries one way of harm, and tells what the kernel let it do; sent to the agent. Python 3.8.

It opens, and at once closes, what should be refused to it. It asks the kernel for forbidden things with arguments that
no kernel accepts, so that where a call gets through nothing comes of it. It connects to nothing.
"""

import ctypes
import errno
import fcntl
import json
import os
import platform
import signal
import socket
import sys
import tempfile
import time
from typing import Any, Callable, Dict, Iterator, List

from harness.agent.protocol import NO_JOB, encode

Emit = Callable[..., None]
LIBC = ctypes.CDLL(None, use_errno=True)
MIB = 1 << 20
NATIVE = platform.machine() == "x86_64"
#: Numbers of system calls on x86-64 and on arm64.
CALLS = {
    "bpf": (321, 280),
    "init_module": (175, 105),
    "io_uring_setup": (425, 425),
    "keyctl": (250, 219),
    "mount": (165, 40),
    "process_vm_readv": (310, 270),
    "reboot": (169, 142),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "unshare": (272, 97),
}
_REFUSALS = (errno.EPERM, errno.ENOSYS, errno.EACCES)


def preload(engine: str) -> Dict[str, str]:
    """Load nothing."""
    return {"engine": engine, "engine_version": "1.0.0"}


def run(job: Dict[str, Any], _body: bytes, emit: Emit) -> None:
    """Do what the recipe says, a name and its arguments, and tell as JSON what was not refused."""
    name, *arguments = job["recipe"]["do"].split()
    if name.startswith("forge"):
        globals()["do_" + name](emit)
        through = []  # type: List[str]
    else:
        through = list(globals()["do_" + name](*arguments) or ())
    emit("message", severity="INFO", text=json.dumps(through[:50]))


def _opened(path: str, flags: int) -> bool:
    try:
        os.close(os.open(path, flags))
    except OSError:
        return False
    return True


def _let_through(what: str, act: Callable[[], object]) -> List[str]:
    try:
        act()
    except OSError:
        return []
    return [what]


def _shared() -> str:
    """Return the folder above the job's own, which the agent has for all jobs."""
    return os.path.dirname(tempfile.gettempdir())


# Asking the kernel.


def do_call(*names: str) -> Iterator[str]:
    """Make system calls with arguments that none accepts; yield those that the kernel looked at."""
    nothing = ctypes.c_long(-1)
    for name in names:
        number = CALLS[name][0 if NATIVE else 1]
        ctypes.set_errno(0)
        if LIBC.syscall(ctypes.c_long(number), *([nothing] * 6)) == -1:
            if ctypes.get_errno() not in _REFUSALS:
                yield "%s: %s" % (name, errno.errorcode[ctypes.get_errno()])
        else:
            yield name


def do_network() -> List[str]:
    """Look for a way to another machine."""
    return sorted(set(os.listdir("/sys/class/net")) - {"lo"})


# Getting out.


def do_root() -> Iterator[str]:
    """Become root, or get something of root's."""
    yield from _let_through("setuid", lambda: os.setuid(0))
    yield from _let_through("setgid", lambda: os.setgid(0))
    yield from _let_through("setgroups", lambda: os.setgroups([0]))
    with open("/proc/self/status") as file:
        said = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    yield from (name for name in said if name.startswith("Cap") and int(said[name], 16))
    if said["NoNewPrivs"] != "1":
        yield "programs that are root's"


def do_write() -> Iterator[str]:
    """Open files without a name in folders that are not the job's, which vanish when closed."""
    folders = [
        "/",
        "/bin",
        "/etc",
        "/home",
        "/opt",
        "/proc",
        "/root",
        "/run",
        "/srv",
        "/sys",
        "/usr",
        "/usr/lib",
        "/var",
    ]
    folders += ["/var/tmp", "/sys/fs/cgroup", *filter(os.path.isdir, sys.path)]
    flags = os.O_TMPFILE | os.O_WRONLY
    return (folder for folder in folders if os.path.isdir(folder) and _opened(folder, flags))


def do_settings() -> Iterator[str]:
    """Open, for writing, what changes the machine."""
    names = [
        "sys/kernel/core_pattern",
        "sys/kernel/hostname",
        "sys/vm/drop_caches",
        "sys/fs/binfmt_misc/register",
    ]
    paths = ["/proc/" + name for name in (*names, "sysrq-trigger", "kcore", "irq/default_smp_affinity")]
    paths += [
        "/proc/self/exe",
        "/proc/%d/exe" % os.getppid(),
        "/sys/power/state",
        "/sys/kernel/uevent_helper",
    ]
    paths += [
        "/sys/fs/cgroup/memory/release_agent",
        "/sys/fs/cgroup/release_agent",
        "/sys/fs/cgroup/cgroup.procs",
    ]
    return (path for path in paths if _opened(path, os.O_WRONLY))


def do_secrets() -> Iterator[str]:
    """Open, for reading, what is root's or the machine's, and look for the sockets of Docker and containerd."""
    paths = [
        "/etc/shadow",
        "/proc/kcore",
        "/proc/kmsg",
        "/dev/mem",
        "/dev/kmsg",
        os.path.join("/proc", str(os.getppid()), "root", "etc"),
    ]
    paths += [
        "/proc/%d/cwd" % os.getppid(),
        "/root",
        "/var/lib/docker",
        "/proc/sys/net/ipv4/tcp_fastopen_key",
    ]
    yield from (path for path in paths if _opened(path, os.O_RDONLY))
    daemons = ("/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock")
    yield from (path for path in daemons if os.access(path, os.W_OK))


# Taking more than is due.


def do_big_file() -> List[str]:
    """Make a file of 4 GiB, of which nothing is written."""
    with open("big", "wb") as file:
        through = _let_through("4 GiB", lambda: os.ftruncate(file.fileno(), 4 << 30))
    os.unlink("big")
    return through


def do_many_files() -> List[str]:
    """Open a file 1100 times."""
    opened = []  # type: List[int]
    try:
        while len(opened) < 1100:
            opened += [os.open(os.devnull, os.O_RDONLY)]
    except OSError:
        return []
    finally:
        for number in opened:
            os.close(number)
    return ["1100 files"]


def do_shared_memory() -> List[str]:
    """Take 80 MiB of the machine's memory for files."""
    path = "/dev/shm/hostile-%d" % os.getpid()
    number = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        return _let_through("80 MiB", lambda: os.posix_fallocate(number, 0, 80 * MIB))
    finally:
        os.close(number)
        os.unlink(path)


def do_fork() -> List[str]:
    """Start 1100 processes that wait."""
    for _ in range(1100):
        try:
            if os.fork() == 0:
                signal.pause()
        except OSError:
            return []
    return ["1100 processes"]


def do_descend() -> List[str]:
    """Start a chain of 200 processes, each the child of the one before, in a session of its own."""
    for _ in range(200):
        if os.fork() != 0:
            break
        os.setsid()
    else:
        signal.pause()
    if os.getsid(0) == os.getpid():
        signal.pause()
    return []


# Against the agent.


def do_signals() -> None:
    """Send the agent every signal there is, those that cannot be caught last."""
    last = (signal.SIGTERM, signal.SIGSTOP, signal.SIGKILL)
    for number in (*(each for each in range(1, 65) if each not in last), *last):
        try:
            os.kill(os.getppid(), number)
        except OSError:
            continue
    time.sleep(0.2)


def do_memory_of_agent() -> Iterator[str]:
    """Open the agent's memory, maps, environment, descriptors and how gladly it is killed."""
    names = ["mem", "environ", "maps", "oom_score_adj", "auxv", "stack", "syscall", "clear_refs"]
    paths = ["/proc/%d/%s" % (os.getppid(), name) for name in names]
    paths += ["/proc/%d/fd/%d" % (os.getppid(), number) for number in range(64)]
    flags = {"oom_score_adj": os.O_WRONLY, "clear_refs": os.O_WRONLY}
    return (path for path in paths if _opened(path, flags.get(os.path.basename(path), os.O_RDONLY)))


def do_code_of_agent() -> List[str]:
    """Write into the memory that the agent's code is read from, shrink it, and take off its seals."""
    through = []
    for name in os.listdir("/proc/self/fd"):
        try:
            if "memfd:agent" not in os.readlink("/proc/self/fd/" + name):
                continue
        except OSError:
            continue
        number = int(name)
        through += _let_through("written", lambda number=number: os.pwrite(number, b"P", 0))  # type: ignore[misc]
        through += _let_through("shrunk", lambda number=number: os.ftruncate(number, 0))  # type: ignore[misc]
        through += _let_through("sealed", lambda number=number: fcntl.fcntl(number, 1033, 0))  # type: ignore[misc]
    return through


def do_trace_agent() -> List[str]:
    """Attach to the agent as a debugger does, and let it go at once."""
    if LIBC.ptrace(16, os.getppid(), 0, 0) == 0:
        LIBC.ptrace(17, os.getppid(), 0, 0)
        return ["ptrace"]
    return []


# Forging.


def _within(emit: Any) -> Dict[str, Any]:
    """Return the pipe to the agent and the frame of this job, as the agent's own function holds them."""
    return dict(zip(emit.__code__.co_freevars, (cell.cell_contents for cell in emit.__closure__)))


_END = {"type": "end", "kind": "finished", "exit_code": 0, "detail": "", "peak_rss_bytes": 1}


def do_forge_others(emit: Emit) -> None:
    """Write the end of other jobs, and a greeting, into this job's pipe."""
    said = [encode(dict(_END), b"", job) for job in (NO_JOB, os.urandom(len(NO_JOB)))]
    said.append(encode({"type": "hello", "facts": {"engine_version": "9.9.9"}}, b"", NO_JOB))
    os.write(_within(emit)["events"], b"".join(said))


def do_forge_end(emit: Emit) -> None:
    """Write this job's own end, as only the agent does, and then results for the next job to be taken for."""
    within = _within(emit)
    os.write(within["events"], encode(dict(_END), b"", within["frame"].job))
    emit("message", severity="INFO", text="of the next")


def do_forge_half(emit: Emit) -> None:
    """Write half a frame, to which the next job's would be the other half, and leave."""
    within = _within(emit)
    whole = encode({"type": "message", "severity": "INFO", "text": "x" * 4000}, b"", within["frame"].job)
    os.write(within["events"], whole[: len(whole) // 2])
    os._exit(0)


def do_forge_everywhere(emit: Emit) -> None:
    """Write this job's end into every descriptor there is but the pipe."""
    within = _within(emit)
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in (0, 1, 2, within["events"]):
            try:
                os.write(int(name), encode(dict(_END), b"", within["frame"].job))
            except OSError:
                continue


# Leaving something behind.


def do_leave_processes() -> None:
    """Leave processes that have left group, session and parent, of which one is stopped and one hears no signal."""
    for number in range(6):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                for each in range(1, 32):
                    if each not in (signal.SIGKILL, signal.SIGSTOP):
                        signal.signal(each, signal.SIG_IGN)
                if number == 0:
                    os.kill(os.getpid(), signal.SIGSTOP)
                time.sleep(600)
            os._exit(0)


def do_leave_socket() -> None:
    """Leave a process that listens on a Unix socket without a file."""
    if os.fork() == 0:
        os.setsid()
        listener = socket.socket(socket.AF_UNIX)
        listener.bind("\0hostile-%d" % os.getpid())
        listener.listen()
        time.sleep(600)


def do_leave_ipc() -> None:
    """Leave System V shared memory, semaphores and a queue, and a POSIX queue."""
    LIBC.shmget(0, MIB, 0o1600)
    LIBC.semget(0, 1, 0o1600)
    LIBC.msgget(0, 0o1600)
    opened = getattr(LIBC, "mq_open", None)
    if opened is not None:
        opened(b"/hostile", os.O_CREAT | os.O_RDWR, 0o600, None)


def do_leave_names() -> None:
    """Leave files whose names are hidden, no text, longest, or look like options and paths."""
    for folder in (_shared(), "/dev/shm"):
        for name in (b".hostile", b"\xff\xfe", b"-rf", b"a\nb", b"n" * 255, b"\x1b]0;x\x07"):
            os.close(os.open(os.path.join(os.fsencode(folder), name), os.O_CREAT | os.O_WRONLY, 0o600))


def do_leave_kinds() -> None:
    """Leave a pipe, a socket, links and a folder that is closed to all, with something in it."""
    folder = _shared()
    os.mkfifo(os.path.join(folder, "fifo"))
    socket.socket(socket.AF_UNIX).bind(os.path.join(folder, "socket"))
    os.symlink("/", os.path.join(folder, "link"))
    os.makedirs(os.path.join(folder, "closed", "within"))
    os.chmod(os.path.join(folder, "closed"), 0)


def do_found() -> List[str]:
    """Tell what there is that is not this job's own."""
    own = os.path.basename(tempfile.gettempdir())
    found = [
        os.path.join(folder, name)
        for folder in (_shared(), "/dev/shm", "/dev/mqueue")
        for name in _names(folder)
    ]
    found = [ascii(path) for path in found if os.path.basename(path) != own]
    for kind in ("shm", "sem", "msg"):
        with open("/proc/sysvipc/" + kind) as file:
            found += [kind] * (len(file.read().splitlines()) - 1)
    with open("/proc/net/unix") as file:
        found += [line.split()[-1] for line in file if "@hostile" in line]
    mine = {os.getpid(), os.getppid()}
    return [*found, *(name for name in os.listdir("/proc") if name.isdigit() and int(name) not in mine)]


def _names(folder: str) -> List[str]:
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []
