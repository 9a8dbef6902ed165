"""One running child, seen from the agent: its pipes, its limits, its end."""

import os
import resource
import select
import signal
import time
from typing import Any, Dict

from harness.agent.host import Host
from harness.agent.protocol import Decoder, Message, ProtocolError

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
            self._pass_events(host, decoder)
        if self.native.fd in ready and self.native.open:
            self._pass_native(host, self.native.read())
        return True

    def _pass_events(self, host: Host, decoder: Decoder) -> None:
        """Pass on whole frames only: what a killed child left half-written must not reach the host."""
        try:
            for message, body in decoder.feed(self.events.read()):
                host.send(message, body)
        except ProtocolError as error:
            # A library has written into a descriptor that is not its own; the next child gets a stream of its own.
            host.send({"type": "agent_fault", "text": "the job's stream is broken: %s" % error})
            self.events.close()
            self._kill("broken_stream")

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
