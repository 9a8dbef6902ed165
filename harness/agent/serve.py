"""The agent's main loop: preload the engine once, fork a child a job, watch it, report how it ended.

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
import time
import traceback
from typing import Any, Dict, List, Optional, Tuple

from harness.agent.protocol import Decoder, Message, encode

#: Seconds between looks at a running child's memory and at its deadline.
TICK = 0.05
#: Seconds that a child past its deadline has for printing where it hangs, before it is killed.
LAST_WORDS = 0.5
#: Bytes of a child's own stdout and stderr that are passed on; a library in a loop must not fill the host's disk.
NATIVE_LIMIT = 1 << 20


class Pipe:
    """The read end of a child's pipe, non-blocking."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.open = True

    def read(self) -> bytes:
        """Return what is there; marks the pipe closed at its end."""
        try:
            data = os.read(self.fd, 1 << 16)
        except BlockingIOError:
            return b""
        if not data:
            self.close()
        return data

    def close(self) -> None:
        """Close the descriptor, once."""
        if self.open:
            self.open = False
            os.close(self.fd)


class Host:
    """The stream to the host, on descriptors that no native library writes to."""

    def __init__(self, inward: int, outward: int) -> None:
        self.inward = inward
        self.outward = outward
        self._decoder = Decoder()
        self._frames: List[Tuple[Message, bytes]] = []

    def send(self, message: Message, body: bytes = b"") -> None:
        """Write one frame; a host that has gone ends this process."""
        self.relay(encode(message, body))

    def relay(self, data: bytes) -> None:
        """Write bytes that are frames already."""
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self.outward, view) :]
            except BrokenPipeError:
                os._exit(0)

    def next_frame(self) -> Optional[Tuple[Message, bytes]]:
        """Return the next frame, or None when the host has closed the stream."""
        while not self._frames:
            data = os.read(self.inward, 1 << 16)
            if not data:
                return None
            self._frames.extend(self._decoder.feed(data))
        return self._frames.pop(0)


class Watch:
    """One running child: its pipes, its limits, its end."""

    def __init__(self, pid: int, events: int, native: int, timeout: float, memory: int) -> None:
        self.pid = pid
        self.events = Pipe(events)
        self.native = Pipe(native)
        self.deadline = time.monotonic() + timeout
        self.timeout = timeout
        self.memory = memory
        self.killed = ""
        self.native_bytes = 0
        self.peak = 0
        self._oom_kills = oom_kills()

    def pump(self, host: Host, decoder: Decoder, wait: float) -> bool:
        """Pass on what the child said; False when the host has gone."""
        pipes = [pipe for pipe in (self.events, self.native) if pipe.open]
        ready, _, _ = select.select([host.inward] + [pipe.fd for pipe in pipes], [], [], wait)
        if host.inward in ready and not os.read(host.inward, 1):
            return False
        if self.events.fd in ready and self.events.open:
            # Whole frames only: what a killed child left half-written must not reach the host.
            for message, body in decoder.feed(self.events.read()):
                host.send(message, body)
        if self.native.fd in ready and self.native.open:
            self._pass_native(host, self.native.read())
        return True

    def _pass_native(self, host: Host, data: bytes) -> None:
        room = NATIVE_LIMIT - self.native_bytes
        self.native_bytes += len(data)
        if data and room > 0:
            host.send({"type": "native", "text": data[:room].decode("utf-8", "replace")})

    def enforce(self) -> None:
        """Kill a child that is past its deadline or over its memory."""
        if self.killed:
            return
        self.peak = max(self.peak, resident_bytes(self.pid))
        if self.peak > self.memory:
            self._kill("out_of_memory")
        elif time.monotonic() > self.deadline:
            # The child's fault handler answers with the Python stack, which says in which call it hangs.
            signal_group(self.pid, signal.SIGUSR1)
            time.sleep(LAST_WORDS)
            self._kill("timed_out")

    def _kill(self, why: str) -> None:
        self.killed = why
        signal_group(self.pid, signal.SIGKILL)

    def end(self, status: int, usage: "resource.struct_rusage") -> Message:
        """Return the message that says how the child ended."""
        message: Dict[str, Any] = {"type": "end", "peak_rss_bytes": max(self.peak, usage.ru_maxrss * 1024)}
        if os.WIFSIGNALED(status):
            name = signal_name(os.WTERMSIG(status))
            message.update(kind="signalled", signal=name, detail="killed by %s" % name)
        elif os.WEXITSTATUS(status):
            message.update(kind="exited", exit_code=os.WEXITSTATUS(status))
            message["detail"] = "the process ended with exit code %d" % os.WEXITSTATUS(status)
        else:
            message.update(kind="finished", exit_code=0, detail="")
        if self.killed == "timed_out":
            message.update(kind="timed_out", detail="not finished after %g s" % self.timeout)
        elif self.killed == "out_of_memory":
            message.update(kind="out_of_memory", detail="used more than %d MiB" % (self.memory >> 20))
        elif message.get("signal") == "SIGKILL" and oom_kills() > self._oom_kills:
            message.update(
                kind="out_of_memory", detail="killed by the kernel at the container's memory limit"
            )
        return message


def run_job(host: Host, engine: Any, job: Message, body: bytes) -> bool:
    """Run one job in a child and report on it; False when the host has gone meanwhile."""
    # What a job leaves in a container's memory-backed /tmp would count against the memory of those after it.
    scratch = tempfile.mkdtemp(prefix="job-")
    try:
        return run_in(scratch, host, engine, job, body)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


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
    try:
        os.setpgid(0, 0)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(native, 1)
        os.dup2(native, 2)
        faulthandler.enable(2)
        faulthandler.register(signal.SIGUSR1, file=2)
        prefer_for_oom_kill()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        def emit(kind: str, body: bytes = b"", **fields: Any) -> None:
            data = memoryview(encode(dict(fields, type=kind), body))
            while data:
                data = data[os.write(events, data) :]

        engine.run(job, body, emit)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            # Engines leave threads and global destructors behind that abort at exit: not this job's outcome.
            os._exit(code)


def signal_name(number: int) -> str:
    """Return the name of a signal, or "signal 40" for one that has none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return "signal %d" % number


def signal_group(pid: int, number: int) -> None:
    """Send a signal to a child and all that it started."""
    for send in (os.killpg, os.kill):
        try:
            send(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def resident_bytes(pid: int) -> int:
    """Return a process's resident memory in bytes, 0 when it has gone."""
    try:
        with open("/proc/%d/statm" % pid) as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return 0


def prefer_for_oom_kill() -> None:
    """Make the kernel take this child, not the agent, when the container's memory runs out."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        return


def oom_kills() -> int:
    """Return how many processes the kernel has killed at this control group's memory limit (cgroup v2, then v1)."""
    for path, key in (
        ("/sys/fs/cgroup/memory.events", "oom_kill"),
        ("/sys/fs/cgroup/memory/memory.oom_control", "oom_kill"),
    ):
        try:
            with open(path) as file:
                pairs = dict(line.split() for line in file if line.count(" ") == 1)
        except OSError:
            continue
        if key in pairs:
            return int(pairs[key])
    return 0


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
