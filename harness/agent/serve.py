"""The agent's main loop: preload the engine once, hand each job to a child, watch that, report how the job ended.

The engine is imported in this process and never used here: a fork inherits the loaded libraries (5 s for some
TensorRT versions) and yet owns its own CUDA context, heap and crashes. This process stays single-threaded, because
only then is a fork safe. A child may be kept for the next job; there is one at a time.
"""

import contextlib
import ctypes
import importlib
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from typing import Any, Optional, Set

from harness.agent.child import serve
from harness.agent.protocol import Frame, Message, read_message
from harness.agent.watch import Child, HostStream, Watch, adopt_orphans, alone, descendants, end_all

#: Seconds between looks at a running child's memory and at its deadline.
TICK = 0.05
#: Bytes that must be free for a job's temporary files.
SCRATCH_LEAST = 16 << 20
#: Jobs of one child, two a cell: leaks of an engine end with it.
MOST_JOBS = 128
#: Bytes of freed memory that the C library keeps, and of a block that it takes from what it keeps, as mallopt(3) names
#: them: a builder takes some 60 MB for each engine, and to fault them in again is half of a build of TensorRT for RTX.
KEPT_BYTES = 256 << 20
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3


class Server:
    """Does the host's jobs with one engine; `child` is the process that is kept for the next, None before the first."""

    def __init__(self, host: HostStream, engine: Any) -> None:
        self.host = host
        self.engine = engine
        self.child: Optional[Child] = None

    def run_job(self, frame: Frame) -> bool:
        """Run one job and report on it; False when the host has gone, or a process of the job is left."""
        host = self.host
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
            ended = self._run_in(scratch, frame)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
            for path in in_memory() - before:
                remove(path)
        if ended is None:
            return False
        host.send(ended)
        if set(descendants()) - {self.child.pid if self.child else 0}:
            print("a job has left processes", file=sys.stderr)
            return False
        return True

    def _run_in(self, scratch: str, frame: Frame) -> Optional[Message]:
        """Run one job in a child that has `scratch` as its current and its temporary folder.

        Return the message on its end; None when the host has gone.
        """
        job = read_message(frame.head)
        if self.child is None or job["fresh"]:
            self._end_child()
            self.child = self._start_child(int(job["memory_mib"]) << 20)
        watch = Watch(self.child, job)
        self.child.give(scratch, frame)
        status, usage = None, resource.getrusage(resource.RUSAGE_SELF)
        while status is None and not (job["keep"] and watch.done and not watch.killed):
            if not watch.pump(self.host, TICK):
                end_all()
                return None
            watch.enforce()
            pid, code, used = os.wait4(self.child.pid, os.WNOHANG)
            if pid:
                status, usage = code, used
        if status is None:
            watch.catch_up(self.host)
            message = watch.kept()
            if watch.spent(MOST_JOBS):
                self._end_child()
            return message
        end_all()
        watch.drain(self.host)
        self._end_child()
        return watch.end(status, usage)

    def _end_child(self) -> None:
        if self.child is not None:
            end_all()
            self.child.close()
            self.child = None

    def _start_child(self, memory: int) -> Child:
        jobs_in, jobs_out = os.pipe()
        events_in, events_out = os.pipe()
        native_in, native_out = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            # The child must not be able to write into the stream to the host.
            for descriptor in (jobs_out, events_in, native_in, self.host.inward, self.host.outward):
                os.close(descriptor)
            serve(self.engine, jobs_in, events_out, native_out)
        for descriptor in (jobs_in, events_out, native_out):
            os.close(descriptor)
        return Child(pid, jobs_out, events_in, native_in, memory)


def in_memory() -> Set[str]:
    """Return the files of a container's /tmp and shared memory, which count against the memory of its jobs.

    In a virtual environment these folders are others' too, and are not looked at.
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


def keep_memory() -> None:
    """Let this process and its children keep freed memory for the next engine, as far as the C library does so."""
    with contextlib.suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
        # An older glibc refuses a block above 32 MiB, and no longer finds the size by itself: 128 KiB would stay.
        if not mallopt(M_MMAP_THRESHOLD, KEPT_BYTES):
            mallopt(M_MMAP_THRESHOLD, 32 << 20)


def refuse(host: HostStream, why: str) -> None:
    """Answer a job that was not begun: the machine's trouble, which an engine would report as its own failure."""
    host.send({"type": "agent_fault", "text": why})
    host.send({"type": "end", "kind": "finished", "exit_code": 0, "detail": "", "peak_rss_bytes": None})


def main() -> None:
    """Serve the host on this process's standard input and output until the host closes the stream."""
    keep_memory()
    adopt_orphans()
    if alone():
        # A signal without a handler does not reach the first process of a container.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    host = HostStream(os.dup(0), os.dup(1))
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
    server = Server(host, engine)
    while True:
        frame = host.next_frame()
        if frame is None or not server.run_job(frame):
            return
