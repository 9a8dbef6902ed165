"""The agent's main loop: preload the engine once, fork a child for each job, watch it, report how it ended.

The engine is imported in this process and never used here: a fork inherits the loaded libraries (5 s for some
TensorRT versions) and yet owns its own CUDA context, heap and crashes. This process stays single-threaded, because
only then is a fork safe.
"""

import faulthandler
import importlib
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
import traceback
from typing import Any, Optional, Set

from harness.agent.protocol import Frame, Message, encode, read_message
from harness.agent.watch import Host, Watch, adopt_orphans, alone, descendants, end_all, end_with_parent

#: Seconds between looks at a running child's memory and at its deadline.
TICK = 0.05
#: Bytes that must be free for a job's temporary files.
SCRATCH_LEAST = 16 << 20


def run_job(host: Host, engine: Any, frame: Frame) -> bool:
    """Run one job in a child and report on it; False when the host has gone, or a process of the job is left."""
    host.job = frame.job
    before = in_memory()
    try:
        scratch = tempfile.mkdtemp(prefix="job-")
    except OSError as error:
        refuse(host, "the job has no temporary folder: %s" % error)
        return True
    try:
        room = shutil.disk_usage(scratch).free
        if room < SCRATCH_LEAST:
            refuse(host, "%s has %d MiB left for temporary files" % (tempfile.gettempdir(), room >> 20))
            return True
        ended = run_in(scratch, host, engine, frame)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        for path in in_memory() - before:
            remove(path)
    if ended is None:
        return False
    host.send(ended)
    if descendants():
        print("a job has left processes", file=sys.stderr)
        return False
    return True


def in_memory() -> Set[str]:
    """Return the files of a container's /tmp and shared memory, which count against the memory of its jobs.

    In a virtual environment these folders are others' too: nothing is looked at there.
    """
    folders = (tempfile.gettempdir(), "/dev/shm") if alone() else ()  # noqa: S108
    return {
        os.path.join(folder, name)
        for folder in folders
        if os.path.isdir(folder)
        for name in os.listdir(folder)
    }


def remove(path: str) -> None:
    """Remove a file or a folder, as far as it lets itself be removed."""
    try:
        os.unlink(path)
    except OSError:
        shutil.rmtree(path, ignore_errors=True)


def refuse(host: Host, why: str) -> None:
    """Answer a job that was not begun: the machine's trouble, which an engine would report as its own failure."""
    host.send({"type": "agent_fault", "text": why})
    host.send({"type": "end", "kind": "finished", "exit_code": 0, "detail": "", "peak_rss_bytes": None})


def run_in(scratch: str, host: Host, engine: Any, frame: Frame) -> Optional[Message]:
    """Run one job in a child that has `scratch` as its current and its temporary folder, and end all that it started.

    Return the message on its end; None when the host has gone.
    """
    job = read_message(frame.head)
    events_in, events_out = os.pipe()
    native_in, native_out = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        # The child must not be able to write into the stream to the host.
        for descriptor in (events_in, native_in, host.inward, host.outward):
            os.close(descriptor)
        os.chdir(scratch)
        os.environ["TMPDIR"] = tempfile.tempdir = scratch
        child(engine, job, frame, events_out, native_out)
    os.close(events_out)
    os.close(native_out)
    watch = Watch(pid, events_in, native_in, job)
    status = None
    while status is None:
        if not watch.pump(host, TICK):
            end_all()
            return None
        watch.enforce()
        done, status_now, usage = os.wait4(pid, os.WNOHANG)
        if done:
            status = status_now
    end_all()
    watch.drain(host)
    return watch.end(status, usage)


def child(engine: Any, job: Message, frame: Frame, events: int, native: int) -> None:
    """Be the child: run the job with the native library's descriptors 1 and 2 going into the pipe; never return."""
    code = 1

    # A builder logs from threads of its own, and a frame may take several writes.
    one_at_a_time = threading.Lock()

    def emit(kind: str, body: bytes = b"", **fields: Any) -> None:
        data = memoryview(encode(dict(fields, type=kind), body, frame.job))
        with one_at_a_time:
            while data:
                data = data[os.write(events, data) :]

    try:
        end_with_parent()
        os.setpgid(0, 0)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(native, 1)
        os.dup2(native, 2)
        faulthandler.enable(2)
        faulthandler.register(signal.SIGUSR1, file=2)
        prefer_for_oom_kill()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        engine.run(job, frame.body, emit)
        emit("done")
        code = 0
    except MemoryError:
        # What pybind11 makes of an engine's std::bad_alloc too.
        traceback.print_exc()
    except BaseException as error:
        traceback.print_exc()
        emit("agent_fault", text=fault(error))
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            # Engines leave threads and global destructors behind that abort at exit: not this job's outcome.
            os._exit(code)


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


def main() -> None:
    """Serve the host on this process's standard input and output until the host closes the stream."""
    adopt_orphans()
    if alone():
        # What has no handler does not reach the first process of a container.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    host = Host(os.dup(0), os.dup(1))
    # From here on descriptor 1 is the log: a library that prints must not break the frames.
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    first = host.next_frame()
    if first is None:
        return
    try:
        start = read_message(first.head)
        engine = importlib.import_module("harness.agent.engines.%s" % start["adapter"])
        hello = engine.preload(start["engine"])
    except Exception as error:
        traceback.print_exc()
        host.send({"type": "hello_failed", "error": "%s: %s" % (type(error).__name__, error)})
        return
    host.send({"type": "hello", "facts": hello})
    while True:
        frame = host.next_frame()
        if frame is None or not run_job(host, engine, frame):
            return
