"""A running child and all that descends from it: its pipes, the limits of a job, its end.

The agent is the subreaper of its jobs: a process that a job starts stays its descendant, whichever parent dies and
whatever group or session it goes to.
"""

import ctypes
import os
import resource
import select
import signal
import time
from typing import List, Optional

from harness.agent.protocol import (
    BODIES_LIMIT,
    BROKEN,
    FROM_CHILD,
    NO_JOB,
    Decoder,
    Frame,
    FrameReader,
    Message,
    ProtocolError,
    encode,
    packed,
)

_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36
#: Seconds that a child past its deadline has for printing its stack, before it is killed.
LAST_WORDS = 0.5
#: Bytes of a child's own stdout and stderr that are passed on; a library in a loop must not fill the host's disk.
NATIVE_LIMIT = 1 << 20
#: The part of its memory beyond which a child does no other job.
_FULL = 0.75
#: Seconds between looks at the memory of the whole job: finding its processes opens a file a thread.
FAMILY_TICK = 0.25
#: Seconds that the processes of a job have for ending once they are killed: a memory of gigabytes is freed in that.
_PATIENCE = 10.0


class HostStream:
    """The stream to the host, on descriptors that no native library writes to; `job` is the id of the job in hand."""

    def __init__(self, inward: int, outward: int) -> None:
        self.inward = inward
        self.outward = outward
        self.job = NO_JOB
        self._decoder = Decoder()
        self._frames: List[Frame] = []

    def send(self, message: Message) -> None:
        """Write one frame; a host that has gone ends this process."""
        self._write(encode(message, b"", self.job))

    def pass_on(self, frame: Frame) -> None:
        """Write a child's frame as it came."""
        self._write(packed(frame))

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self.outward, view) :]
            except BrokenPipeError:
                os._exit(0)

    def next_frame(self) -> Optional[Frame]:
        """Return the next frame, or None when the host has closed the stream."""
        while not self._frames:
            data = os.read(self.inward, 1 << 16)
            if not data:
                return None
            self._frames.extend(self._decoder.feed(data))
        return self._frames.pop(0)


class Pipe:
    """The read end of a child's pipe, non-blocking."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.open = True

    def read(self) -> bytes:
        """Return the bytes that are there; marks the pipe closed at its end."""
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


class Child:
    """A process that does jobs, and the agent's ends of its pipes; `jobs` are those of cells that it was given."""

    def __init__(self, pid: int, inbox: int, events: int, native: int, limit: int) -> None:
        os.set_blocking(inbox, False)
        self.pid = pid
        self.events = Pipe(events)
        self.native = Pipe(native)
        self.jobs = 0
        # Late words of a job before may stand in front of the next one's; none says more at once than it can hold.
        self.decoder = Decoder(min(BODIES_LIMIT, limit))
        self._inbox = inbox
        self._left = memoryview(b"")

    def give(self, folder: str, frame: Frame) -> None:
        """Hand the child a job that is to be done in a folder; `hand_over` sends it."""
        self._left = memoryview(encode({"type": "folder", "folder": folder}) + packed(frame))

    def wants(self) -> List[int]:
        """Return the descriptor to write a job to, while something of it is left."""
        return [self._inbox] if self._left else []

    def hand_over(self) -> None:
        """Write as much of the job as the child takes now; how a child that has gone ended is seen by its parent."""
        try:
            self._left = self._left[os.write(self._inbox, self._left) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._left = memoryview(b"")

    def close(self) -> None:
        """Close the pipes of a child that has ended."""
        os.close(self._inbox)
        self.events.close()
        self.native.close()


class Watch:
    """One job of a running child: its limits, its end; `done` holds the child's last message, None before."""

    def __init__(self, child: Child, job: Message) -> None:
        self.child = child
        child.jobs += job["kind"] != "preflight"
        self.pid = child.pid
        self.events = child.events
        self.native = child.native
        self.timeout = float(job["timeout_s"])
        self.deadline = time.monotonic() + self.timeout
        self.memory = int(job["memory_mib"]) << 20
        self.killed = ""
        self.broken = ""
        self.done: Optional[Message] = None
        self.native_bytes = 0
        self.peak = 0
        self._reader = FrameReader(FROM_CHILD, preflight=job["kind"] == "preflight")
        self._next_look = 0.0
        self._whole = 0
        self._oom_kills = oom_kills()

    def pump(self, host: HostStream, wait: float) -> bool:
        """Pass on the child's frames and its output; False when the host has gone."""
        pipes = [pipe for pipe in (self.events, self.native) if pipe.open]
        inward = [host.inward] + [pipe.fd for pipe in pipes]
        ready, takes, _ = select.select(inward, self.child.wants(), [], wait)
        if takes:
            self.child.hand_over()
        if host.inward in ready and not os.read(host.inward, 1):
            return False
        if self.events.fd in ready and self.events.open:
            self._pass_events(host)
        if self.native.fd in ready and self.native.open:
            self._pass_native(host, self.native.read())
        return True

    def catch_up(self, host: HostStream) -> None:
        """Pass on the output that a living child had written before it was done."""
        while self.native.open and select.select([self.native.fd], [], [], 0)[0]:
            if self.native_bytes > NATIVE_LIMIT or not self.pump(host, 0):
                return

    def drain(self, host: HostStream) -> None:
        """Pass on the rest of the pipes once their writers have ended, and close them."""
        while any(pipe.open for pipe in (self.events, self.native)):
            pipes = [pipe.fd for pipe in (self.events, self.native) if pipe.open]
            # One that is open and silent is held by a process that could not be ended.
            if not select.select(pipes, [], [], 0)[0] or not self.pump(host, 0):
                break
        self.events.close()
        self.native.close()

    def _pass_events(self, host: HostStream) -> None:
        """Pass on whole frames only: half a frame of a killed child must not reach the host."""
        try:
            for frame in self.child.decoder.feed(self.events.read()):
                if frame.job != host.job:
                    # Whoever wrote it, it is not of this job.
                    continue
                message = self._reader.read(frame)
                if message["type"] == "done":
                    self.done = message
                else:
                    host.pass_on(frame)
        except ProtocolError as error:
            # An engine, or a model in it, has written a frame that no adapter writes; the next child gets a pipe of its
            # own.
            self.broken = str(error)
            self.events.close()
            self._kill("broken")

    def _pass_native(self, host: HostStream, data: bytes) -> None:
        room = NATIVE_LIMIT - self.native_bytes
        self.native_bytes += len(data)
        if data and room > 0:
            host.send({"type": "native", "text": data[:room].decode("utf-8", "replace")})

    def enforce(self) -> None:
        """Kill a job that is past its deadline or over its memory."""
        if self.killed:
            return
        now = time.monotonic()
        self.peak = max(self.peak, resident_bytes(self.pid))
        if now >= self._next_look:
            self._next_look = now + FAMILY_TICK
            self._look_at_all()
        if self.peak > self.memory:
            self._kill("out_of_memory")
        elif now > self.deadline:
            # The child's fault handler answers with the Python stack, which says in which call it hangs.
            signal_group(self.pid, signal.SIGUSR1)
            time.sleep(LAST_WORDS)
            self._kill("timed_out")

    def _look_at_all(self) -> None:
        """Add up the memory of all processes of the job."""
        whole = sum(map(resident_bytes, descendants()))
        # A process that starts a program is there twice for a moment, with every page counted twice: so twice in a row.
        self.peak = max(self.peak, min(whole, self._whole))
        self._whole = whole

    def _kill(self, why: str) -> None:
        self.killed = why
        signal_group(self.pid, signal.SIGKILL)

    def spent(self, most: int) -> bool:
        """Tell whether a child that has finished its job is to do no more: something of the job is left, or may be."""
        left = self.done is None or self.done["cuda_error"] or self.done["changed"] or self.killed
        full = self.child.jobs >= most or resident_bytes(self.pid) > self.memory * _FULL
        return bool(left or full or set(descendants()) - {self.pid})

    def kept(self) -> Message:
        """Return the message on the end of a job whose child goes on living."""
        return dict(self._end(max(self.peak, peak_bytes(self.pid))), kind="finished", exit_code=0, detail="")

    def _end(self, peak: int) -> Message:
        # The peak of a child that had done other jobs is theirs, too.
        own = peak if self.child.jobs <= 1 else None
        message: Message = {"type": "end", "peak_rss_bytes": own, "jobs_before": max(0, self.child.jobs - 1)}
        if self.done is not None and self.done["cuda_error"]:
            message["cuda_error"] = self.done["cuda_error"]
        return message

    def end(self, status: int, usage: "resource.struct_rusage") -> Message:
        """Return the message on the end of the child."""
        message = dict(self._end(max(self.peak, usage.ru_maxrss * 1024)), **self._of_itself(status))
        if self.broken:
            message["detail"] = BROKEN + self.broken
        elif self.killed == "timed_out":
            message.update(kind="timed_out", detail="not finished after %g s" % self.timeout)
        elif self.killed == "out_of_memory":
            message.update(kind="out_of_memory", detail="used more than %d MiB" % (self.memory >> 20))
        elif message.get("signal") == "SIGKILL" and oom_kills() > self._oom_kills:
            message.update(
                kind="out_of_memory", detail="killed by the kernel at the container's memory limit"
            )
        return message

    def _of_itself(self, status: int) -> Message:
        """Return how the process ended, as its parent sees it."""
        code = os.WEXITSTATUS(status)
        if os.WIFSIGNALED(status):
            name = signal_name(os.WTERMSIG(status))
            return {"kind": "signalled", "signal": name, "detail": "killed by %s" % name}
        if code or self.done is None or self.broken:
            early = "" if code else " before its job was done"
            detail = "the process ended with exit code %d%s" % (code, early)
            return {"kind": "exited", "exit_code": code, "detail": detail}
        return {"kind": "finished", "exit_code": 0, "detail": ""}


def signal_name(number: int) -> str:
    """Return the name of a signal, or "signal 40" for an unnamed one."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return "signal %d" % number


def signal_group(pid: int, number: int) -> None:
    """Send a signal to a child and all of its group."""
    for send in (os.killpg, os.kill):
        try:
            send(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


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


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own has ended."""
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_with_parent() -> None:
    """Have the kernel kill this process when its parent ends."""
    ctypes.CDLL(None).prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def alone() -> bool:
    """Return True in the first process of a container, from which every other process descends."""
    return os.getpid() == 1


def descendants() -> List[int]:
    """Return the processes that descend from this one."""
    found: List[int] = []
    waiting = [os.getpid()]
    while waiting:
        below = _children(waiting.pop())
        found += below
        waiting += below
    return found


def _children(pid: int) -> List[int]:
    found: List[int] = []
    try:
        for thread in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/children" % (pid, thread), "rb") as file:
                found += map(int, file.read().split())
    except FileNotFoundError:
        # Gone meanwhile, or a kernel without this list.
        return found or _by_parent(pid)
    except OSError:
        pass
    return found


def _by_parent(parent: int) -> List[int]:
    found = []
    for name in os.listdir("/proc"):
        try:
            with open("/proc/%s/stat" % name, "rb") as file:
                # The name of a program may hold blanks and brackets.
                if int(file.read().rpartition(b")")[2].split()[1]) == parent:
                    found.append(int(name))
        except (OSError, IndexError, ValueError):
            continue
    return found


def resident_bytes(pid: int) -> int:
    """Return a process's resident memory in bytes, 0 when it has gone."""
    try:
        with open("/proc/%d/statm" % pid, "rb") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return 0


def peak_bytes(pid: int) -> int:
    """Return a living process's peak of resident memory in bytes, 0 when it has gone."""
    try:
        with open("/proc/%d/status" % pid) as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return 0


def end_all() -> bool:
    """Kill all that descends from this process and wait for its end; False if a process is left."""
    until = time.monotonic() + _PATIENCE
    pause = 0.001
    while True:
        _kill_all()
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return True
        if time.monotonic() > until:
            return False
        time.sleep(pause)
        pause = min(2 * pause, 0.05)


def _kill_all() -> None:
    # All at once, so that they cannot start another meanwhile; this process and those outside are not among them.
    targets = [-1] if alone() else descendants()
    for pid in targets:
        try:
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue
