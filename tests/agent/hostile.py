"""An engine that means harm in the way a job asks for; sent to the agent in place of a real one. Python 3.8.

It opens, and at once closes, what should be refused to it, and touches nothing but the agent that it runs under.
"""

import ctypes
import json
import os
import resource
import time
from typing import Any, Callable, Dict, List

Emit = Callable[..., None]
LIBC = ctypes.CDLL(None, use_errno=True)
IPC_CREAT = 0o1000
MIB = 1 << 20


def preload(engine: str) -> Dict[str, str]:
    """Load nothing."""
    return {"engine": engine, "engine_version": "1.0.0"}


def run(job: Dict[str, Any], _body: bytes, emit: Emit) -> None:
    """Do what the job's recipe says, and tell what came of it as JSON."""
    if job["kind"] == "preflight":
        return
    recipe = job["recipe"]
    do = recipe["do"] if "do" in recipe else recipe["flags"][0]
    emit("message", severity="INFO", text=json.dumps(globals()["do_" + do]()))


def _opened(path: str, flags: int) -> bool:
    try:
        os.close(os.open(path, flags))
    except OSError:
        return False
    return True


def do_spy() -> List[str]:
    """Look into the agent in every way that the kernel has; return those that it let through."""
    agent = os.getppid()
    proc = "/proc/%d/" % agent
    ways = ["%s%s" % (proc, name) for name in ("mem", "environ", "maps", "oom_score_adj", "auxv")]
    ways += ["%sfd/%d" % (proc, number) for number in range(10)]
    through = [way for way in ways if _opened(way, os.O_WRONLY if way.endswith("adj") else os.O_RDONLY)]
    attach, detach = 16, 17
    if LIBC.ptrace(attach, agent, 0, 0) == 0:
        LIBC.ptrace(detach, agent, 0, 0)
        through.append("ptrace")
    # One byte of this process's own, at an address that is mapped in both: it is read and not kept.
    byte = ctypes.create_string_buffer(1)
    vector = (ctypes.c_size_t * 2)(ctypes.addressof(byte), 1)
    there = (ctypes.c_size_t * 2)(ctypes.cast(LIBC.getpid, ctypes.c_void_p).value or 0, 1)
    if LIBC.process_vm_readv(agent, vector, 1, there, 1, 0) == 1:
        through.append("process_vm_readv")
    return through


def do_rewrite() -> List[str]:
    """Write into the memory that the agent's own code is read from; return what let it."""
    through = []
    for name in os.listdir("/proc/self/fd"):
        try:
            if "memfd:agent" in os.readlink("/proc/self/fd/" + name):
                os.pwrite(int(name), b"P", 0)
                through.append(name)
        except OSError:
            continue
    return through


def do_stay() -> int:
    """Leave a process that has left the group and the session, whose parent has ended; return its id."""
    inward, outward = os.pipe()
    if os.fork() == 0:
        os.setsid()
        stays = os.fork()
        if stays == 0:
            time.sleep(600)
        os.write(outward, b"%d" % stays)
        os._exit(0)
    return int(os.read(inward, 32))


def do_breed() -> int:
    """Take 3 * 200 MiB in processes that have left the group, each by itself under a limit of 400."""
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
            kept = [bytearray(os.urandom(MIB)) for _ in range(200)]
            time.sleep(600)
            os._exit(len(kept) & 1)
    time.sleep(600)
    return 0


def do_leave_memory() -> List[int]:
    """Leave System V shared memory that was written to and is attached by nobody, semaphores and a queue."""
    LIBC.shmat.restype = ctypes.c_void_p
    memory = LIBC.shmget(0, 8 * MIB, IPC_CREAT | 0o600)
    address = LIBC.shmat(memory, None, 0)
    ctypes.memset(address, 1, 8 * MIB)
    LIBC.shmdt(ctypes.c_void_p(address))
    return [memory, LIBC.semget(0, 1, IPC_CREAT | 0o600), LIBC.msgget(0, IPC_CREAT | 0o600)]


def do_dig() -> int:
    """Leave folders in one another, more than a call or a descriptor a level could be had for, closed to all."""
    for level in range(1500):
        os.mkdir("d")
        if level:
            os.chmod("..", 0)
        os.chdir("d")
    return 1500


def do_starve() -> int:
    """Leave the agent with three open files, and fewer than it needs for another job."""
    # prlimit asks for the same user, and for no more.
    resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (3, 3))
    return 3


def do_slow() -> int:
    """Leave the agent with one processor and the lowest priority."""
    os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)
    return 19


def do_score() -> int:
    """Tell how gladly the kernel ends this process when memory runs out."""
    with open("/proc/self/oom_score_adj") as file:
        return int(file.read())


def do_nothing() -> int:
    """Do no harm."""
    return 0
