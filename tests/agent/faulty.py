"""An engine that fails in the way a job asks for; sent to the agent in place of a real one. Python 3.8."""

import ctypes
import json
import mmap
import os
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, Callable, Dict, List

Emit = Callable[..., None]
#: The job's id takes its place in a frame that is to be written.
ID = b"the id of a job."
#: The traces that jobs leave in their process.
KEPT: List[Any] = []
FIRST: List[str] = []


def preload(engine: str) -> Dict[str, str]:
    """Load nothing."""
    if engine == "absent":
        raise ImportError("no engine called absent")
    return {"engine": engine, "engine_version": "1.0.0"}


def run(job: Dict[str, Any], body: bytes, emit: Emit) -> None:
    """Follow the job's recipe: by `do`, or by its only flag in a variant's recipe."""
    if job["kind"] == "preflight":
        return
    recipe = job["recipe"]
    do = recipe["do"] if "do" in recipe else recipe["flags"][0]
    emit("message", severity="INFO", text="about to " + do)
    emit("phase_begin", name="build")
    globals()["do_" + do](body, emit)
    FIRST.append(do)
    emit("phase", name="build", seconds=0.0, ok=True)


def do_echo(body: bytes, emit: Emit) -> None:
    """Send the body back."""
    emit("plan", body)


def do_segfault(_body: bytes, _emit: Emit) -> None:
    """Read address 0."""
    ctypes.string_at(0)


def do_abort(_body: bytes, _emit: Emit) -> None:
    """Die as a failed assertion in a C++ library does."""
    os.write(2, b"terminate called after throwing an instance of 'std::runtime_error'\n")
    os.abort()


def do_hang(_body: bytes, _emit: Emit) -> None:
    """Ignore SIGTERM and never return."""
    import signal

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(1)


def do_eat(_body: bytes, _emit: Emit) -> None:
    """Take memory until stopped."""
    kept = []
    while True:
        kept.append(os.urandom(1 << 20) * 8)


def do_gulp(_body: bytes, _emit: Emit) -> None:
    """Take 4 GiB at once, faster than anyone can watch."""
    populate = 0x8000  # MAP_POPULATE, which Python names from 3.10 on
    mmap.mmap(-1, 4 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | populate)  # novm: flags


def do_betray(body: bytes, emit: Emit) -> None:
    """Take all memory, when the kernel has been told not to begin with this process."""
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("0")
    do_gulp(body, emit)


def do_litter(_body: bytes, _emit: Emit) -> None:
    """Leave 64 MiB in the temporary folder and die."""
    handle, _ = tempfile.mkstemp()
    os.write(handle, bytes(64 << 20))
    os.abort()


def do_look(_body: bytes, emit: Emit) -> None:
    """List the temporary folders, the job's own and that of all jobs, and the process that the kernel kills first."""
    own = tempfile.gettempdir()
    with open("/proc/self/oom_score_adj") as file:
        score = int(file.read())
    seen = {"own": os.listdir(own), "all": os.listdir(os.path.dirname(own)), "here": os.getcwd() == own}
    emit("message", severity="INFO", text=json.dumps(dict(seen, score=score)))


def do_nap(_body: bytes, _emit: Emit) -> None:
    """Take a while: in a container, which is killed by way of its daemon, the longer one."""
    time.sleep(3 if os.path.exists("/.dockerenv") else 1)


def do_suicide(_body: bytes, _emit: Emit) -> None:
    """Die as if killed by somebody."""
    os.kill(os.getpid(), 9)


def do_odd_signal(_body: bytes, _emit: Emit) -> None:
    """Die of a signal that has no name."""
    os.kill(os.getpid(), 40)


def do_raise(_body: bytes, _emit: Emit) -> None:
    """Fail in Python."""
    raise RuntimeError("a fault of the adapter")


def do_exit(_body: bytes, _emit: Emit) -> None:
    """Leave with an exit code of its own, as a library that calls exit() does."""
    os._exit(7)


def do_leave(_body: bytes, _emit: Emit) -> None:
    """Leave in good order, as a library that calls exit() may too."""
    os._exit(0)


def do_print(_body: bytes, emit: Emit) -> None:
    """Write to the descriptors that carry the protocol in the agent."""
    os.write(1, b"native stdout\n")
    os.write(2, b"native stderr\n")
    print("python stdout")
    emit("fact", facts={})


def do_flood(_body: bytes, emit: Emit) -> None:
    """Write more than anyone wants to keep."""
    for _ in range(200):
        os.write(2, b"x" * 65536)
    emit("fact", facts={})


def do_chatter(_body: bytes, emit: Emit) -> None:
    """Say much from many threads at once, as a builder's do."""

    def talk(number: int) -> None:
        for count in range(20):
            emit("message", severity="INFO", text="%d %d " % (number, count) + "x" * 200000)

    threads = [threading.Thread(target=talk, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def do_orphan(_body: bytes, emit: Emit) -> None:
    """Leave a process behind that holds the pipes open."""
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], close_fds=False)
    emit("fact", facts={})


def do_stay(_body: bytes, emit: Emit) -> None:
    """Leave a chain of processes, each in a session of its own, and tell the id of the last."""
    inward, outward = os.pipe()
    if os.fork() == 0:
        for _ in range(20):
            os.setsid()
            if os.fork() != 0:
                os._exit(0)
        os.write(outward, b"%d" % os.getpid())
        time.sleep(600)
    emit("message", severity="INFO", text=os.read(inward, 32).decode())


def do_breed(_body: bytes, _emit: Emit) -> None:
    """Take 3 * 200 MiB in processes that have left the group, each by itself under a limit of 400."""
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
            kept = [bytearray(os.urandom(1 << 20)) for _ in range(200)]
            time.sleep(600)
            os._exit(len(kept) & 1)
    time.sleep(600)


def do_clutter(_body: bytes, _emit: Emit) -> None:
    """Leave a folder and a hidden file, whose name is no UTF-8, in /tmp and in shared memory."""
    for folder in (os.path.dirname(tempfile.gettempdir()), "/dev/shm"):
        os.makedirs(os.path.join(folder, "cluttered", "below"))
        with open(os.path.join(folder, ".cluttered \udcff"), "wb") as file:
            file.write(bytes(1 << 20))


def do_lie(body: bytes, emit: Emit) -> None:
    """Write the body, which may be no frame, into the pipe of events, then go on; ID stands for the job's."""
    known = [cell.cell_contents for cell in emit.__closure__ or ()]
    (pipe,) = [one for one in known if isinstance(one, int)]
    (job,) = [one.job for one in known if hasattr(one, "job")]
    os.write(pipe, body.replace(ID, job))
    emit("message", severity="INFO", text="after the lie")


def do_break_cuda(_body: bytes, _emit: Emit) -> None:
    """Leave a context that a kernel has broken, as far as the agent can tell."""
    from harness.agent import cuda

    cuda.note("1: [kernel.cu] Cuda Runtime (an illegal memory access was encountered)")


def do_leak(_body: bytes, _emit: Emit) -> None:
    """Keep 600 MiB for good."""
    KEPT.append(os.urandom(1 << 20) * 600)


def do_set_variable(_body: bytes, _emit: Emit) -> None:
    """Change the environment as a library does, without Python's knowledge."""
    ctypes.CDLL(None).setenv(b"FAULTY", b"1", 1)


def do_register(_body: bytes, emit: Emit) -> None:
    """Register a plugin under a name that is taken by now if this was ever done in the same process."""
    if "plugin" in KEPT:
        emit("failed", text="the name of the plugin is taken")
    KEPT.append("plugin")


def do_lean(_body: bytes, emit: Emit) -> None:
    """Succeed only by the traces of an earlier job."""
    ctypes.CDLL(None).getenv.restype = ctypes.c_char_p
    if not (KEPT or ctypes.CDLL(None).getenv(b"FAULTY")):
        emit("failed", text="nobody has left anything here")


def do_first(_body: bytes, emit: Emit) -> None:
    """Fail unless this is the first job of its process, by a trace that is not looked at."""
    if FIRST:
        emit("failed", text="somebody was here before")


def do_who(_body: bytes, emit: Emit) -> None:
    """Tell the process."""
    emit("message", severity="INFO", text="process %d" % os.getpid())


def do_half(_body: bytes, emit: Emit) -> None:
    """Die in the middle of a frame."""
    emit("message", severity="INFO", text="whole")
    for fd in range(3, 64):
        try:
            os.write(fd, b"TCM2" + bytes(16) + b"\x00\x00\xff\xff\x00\x00\x00\x00{")
        except OSError:
            continue
    os._exit(9)
