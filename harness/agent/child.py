"""The child process: does jobs with the engine, one or many behind each other, and reports the traces of each.

A process serves many jobs because its engine is slow to wake: TensorRT 8.6's builder hashes and maps 1 GB and takes
754 MB of the GPU for its kernels, 9 s each time. A job whose changes others would notice ends the process: `done` tells
the agent.
"""

import ctypes
import faulthandler
import gc
import os
import resource
import signal
import sys
import tempfile
import threading
import traceback
from typing import Any, Dict, Iterator, List, Tuple

from harness.agent import cuda
from harness.agent.protocol import Decoder, Frame, Message, encode, read_message
from harness.agent.watch import end_with_parent

#: The variables that each job gets anew.
_OWN = (b"TMPDIR",)


def serve(engine: Any, jobs: int, events: int, native: int) -> None:
    """Do the jobs that come through a pipe with descriptors 1 and 2 going into another; never return.

    A job comes as two frames: the folder that it works in, then itself. The last one is the first that is not to be
    kept for another.
    """
    code = 1
    try:
        _settle(native)
        # What the engine has brought is not looked through behind every job.
        gc.freeze()
        for folder, frame in _pairs(jobs):
            job = read_message(frame.head)
            os.chdir(folder)
            os.environ["TMPDIR"] = tempfile.tempdir = folder
            code = _do(engine, job, frame, events)
            os.chdir("/")
            if code or not job["keep"]:
                break
    finally:
        # Engines leave threads and global destructors behind that abort at exit: not this job's outcome.
        os._exit(code)


def _settle(native: int) -> None:
    """Make this process a child of the agent's that dies with it, first of all when memory is short."""
    end_with_parent()
    os.setpgid(0, 0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(native, 1)
    os.dup2(native, 2)
    faulthandler.enable(2)
    faulthandler.register(signal.SIGUSR1, file=2)
    prefer_for_oom_kill()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _pairs(jobs: int) -> Iterator[Tuple[str, Frame]]:
    """Yield the folder and the frame of each job until the agent closes the pipe."""
    decoder = Decoder()
    waiting: List[Frame] = []
    while True:
        data = os.read(jobs, 1 << 20)
        if not data:
            return
        waiting.extend(decoder.feed(data))
        if waiting[1:]:
            folder, frame = waiting
            waiting.clear()
            yield read_message(folder.head)["folder"], frame


def _do(engine: Any, job: Message, frame: Frame, events: int) -> int:
    """Do one job and return the exit code that it would end a process with."""
    # A builder logs from threads of its own, and a frame may take several writes.
    one_at_a_time = threading.Lock()

    def emit(kind: str, body: bytes = b"", **fields: Any) -> None:
        data = memoryview(encode(dict(fields, type=kind), body, frame.job))
        with one_at_a_time:
            while data:
                data = data[os.write(events, data) :]

    before = _environment()
    try:
        engine.run(job, frame.body, emit)
        if job["keep"]:
            gc.collect()
        left = cuda.left_behind()
    except MemoryError:
        # pybind11 turns an engine's std::bad_alloc into this too.
        traceback.print_exc()
        return 1
    except BaseException as error:
        traceback.print_exc()
        emit("agent_fault", text=fault(error))
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        ctypes.CDLL(None).fflush(None)
    emit("done", cuda_error=left, changed=_changed(before))
    return 0


def _environment() -> Dict[bytes, bytes]:
    """Return the variables that native code sees: a library's own `setenv` does not show in `os.environ`."""
    environ = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    found: Dict[bytes, bytes] = {}
    index = 0
    while True:
        # `clearenv` leaves no list at all.
        entry = environ[index] if ctypes.cast(environ, ctypes.c_void_p).value else None
        if entry is None:
            return found
        name, _, value = entry.partition(b"=")
        if name not in _OWN:
            found[name] = value
        index += 1


def _changed(before: Dict[bytes, bytes]) -> str:
    """Return the name of a variable that a job has changed, or ""."""
    after = _environment()
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return min(names).decode("utf-8", "replace") if names else ""


def fault(error: BaseException) -> str:
    """Return a sentence on an exception that no adapter expected: a fault of this program, not of the engine."""
    frames = traceback.extract_tb(error.__traceback__)
    place = ""
    if frames:
        place = " (%s:%d)" % ("/".join(frames[-1].filename.split("/")[-2:]), frames[-1].lineno or 0)
    return "the agent failed: %s: %s%s" % (type(error).__name__, error, place)


def prefer_for_oom_kill() -> None:
    """Make the kernel take this child, not the agent, when the container's memory runs out."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        return
