"""An engine that fails in the way a job asks for; sent to the agent in place of a real one. Python 3.8."""

import ctypes
import os
import subprocess
import sys
import time
from typing import Any, Callable, Dict

Emit = Callable[..., None]


def preload(engine: str) -> Dict[str, str]:
    """Load nothing."""
    if engine == "absent":
        raise ImportError("no engine called absent")
    return {"engine": engine, "engine_version": "1.0.0"}


def run(job: Dict[str, Any], body: bytes, emit: Emit) -> None:
    """Do what the job's recipe says."""
    do = job["recipe"]["do"]
    emit("message", severity="INFO", text="about to " + do)
    globals()["do_" + do](body, emit)


def do_echo(body: bytes, emit: Emit) -> None:
    """Send the body back."""
    emit("echo", body, length=len(body))


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


def do_raise(_body: bytes, _emit: Emit) -> None:
    """Fail in Python."""
    raise RuntimeError("a fault of the adapter")


def do_exit(_body: bytes, _emit: Emit) -> None:
    """Leave with an exit code of its own, as a library that calls exit() does."""
    os._exit(7)


def do_print(_body: bytes, emit: Emit) -> None:
    """Write to the descriptors that carry the protocol in the agent."""
    os.write(1, b"native stdout\n")
    os.write(2, b"native stderr\n")
    print("python stdout")
    emit("done")


def do_flood(_body: bytes, emit: Emit) -> None:
    """Write more than anyone wants to keep."""
    for _ in range(200):
        os.write(2, b"x" * 65536)
    emit("done")


def do_orphan(_body: bytes, emit: Emit) -> None:
    """Leave a process behind that holds the pipes open."""
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], close_fds=False)
    emit("done")


def do_half(_body: bytes, emit: Emit) -> None:
    """Die in the middle of a frame."""
    emit("message", severity="INFO", text="whole")
    for fd in range(3, 64):
        try:
            os.write(fd, b"TCM1\x00\x00\xff\xff\x00\x00\x00\x00{")
        except OSError:
            continue
    os._exit(9)
