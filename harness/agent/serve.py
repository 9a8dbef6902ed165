"""The agent's main loop: preload the engine once, fork a child for each job, watch it, report how it ended.

The engine is imported in this process and never used here: a fork inherits the loaded libraries (5 s for some
TensorRT versions) and yet owns its own CUDA context, heap and crashes. This process stays single-threaded, because
only then is a fork safe.
"""

import faulthandler
import importlib
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import threading
import traceback
from typing import Any

from harness.agent.host import Host
from harness.agent.protocol import Decoder, Message, encode
from harness.agent.watch import Watch, signal_group

#: Seconds between looks at a running child's memory and at its deadline.
TICK = 0.05
#: Bytes that must be free for a job's temporary files.
SCRATCH_LEAST = 16 << 20


def run_job(host: Host, engine: Any, job: Message, body: bytes) -> bool:
    """Run one job in a child and report on it; False when the host has gone meanwhile."""
    # What a job leaves in a container's memory-backed /tmp would count against the memory of those after it.
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
        return run_in(scratch, host, engine, job, body)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def refuse(host: Host, why: str) -> None:
    """Answer a job that was not begun: the machine's trouble, which an engine would report as its own failure."""
    host.send({"type": "agent_fault", "text": why})
    host.send({"type": "end", "kind": "finished", "exit_code": 0, "detail": "", "peak_rss_bytes": None})


def run_in(scratch: str, host: Host, engine: Any, job: Message, body: bytes) -> bool:
    """Run one job in a child that has `scratch` as its current and its temporary folder."""
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
        child(engine, job, body, events_out, native_out)
    os.close(events_out)
    os.close(native_out)
    watch = Watch(pid, events_in, native_in, float(job["timeout_s"]), int(job["memory_mib"]) << 20)
    decoder = Decoder()
    status = None
    while status is None:
        if not watch.pump(host, decoder, TICK):
            signal_group(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return False
        watch.enforce()
        done, status_now, usage = os.wait4(pid, os.WNOHANG)
        if done:
            status = status_now
    # A grandchild may hold the pipes open for ever: take what is there now, and no more.
    signal_group(pid, signal.SIGKILL)
    while (watch.events.open or watch.native.open) and _readable(watch):
        watch.pump(host, decoder, 0)
    watch.events.close()
    watch.native.close()
    host.send(watch.end(status, usage))
    return True


def _readable(watch: Watch) -> bool:
    pipes = [pipe.fd for pipe in (watch.events, watch.native) if pipe.open]
    return bool(select.select(pipes, [], [], 0)[0])


def child(engine: Any, job: Message, body: bytes, events: int, native: int) -> None:
    """Be the child: run the job with the native library's descriptors 1 and 2 going into the pipe; never return."""
    code = 1

    # A builder logs from threads of its own, and a frame may take several writes.
    one_at_a_time = threading.Lock()

    def emit(kind: str, body: bytes = b"", **fields: Any) -> None:
        data = memoryview(encode(dict(fields, type=kind), body))
        with one_at_a_time:
            while data:
                data = data[os.write(events, data) :]

    try:
        os.setpgid(0, 0)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(native, 1)
        os.dup2(native, 2)
        faulthandler.enable(2)
        faulthandler.register(signal.SIGUSR1, file=2)
        prefer_for_oom_kill()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        engine.run(job, body, emit)
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
    host = Host(os.dup(0), os.dup(1))
    # From here on descriptor 1 is the log: a library that prints must not break the frames.
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    first = host.next_frame()
    if first is None:
        return
    try:
        engine = importlib.import_module("harness.agent.engines.%s" % first[0]["adapter"])
        hello = engine.preload(first[0]["engine"])
    except Exception as error:
        traceback.print_exc()
        host.send({"type": "hello_failed", "error": "%s: %s" % (type(error).__name__, error)})
        return
    host.send({"type": "hello", "facts": hello})
    while True:
        frame = host.next_frame()
        if frame is None or not run_job(host, engine, *frame):
            return
