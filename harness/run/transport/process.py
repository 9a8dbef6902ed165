"""A transport to an agent in a virtual environment: a child process in a session of its own.

There is no limit on its own memory: CUDA reserves far more address space than it uses, so RLIMIT_AS cannot tell a leak
from a normal start. The limit that the agent puts on each of its children holds here too; what must be bounded for
certain belongs in a container.
"""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import signal
import subprocess
import threading
from typing import IO, TYPE_CHECKING

from harness.errors import InfraError
from harness.run.transport.api import LADDER, SEND_TIMEOUT, AgentGoneError, ExitStatus, signal_name
from harness.run.transport.buffers import Deadline, Inbox, Tail
from harness.scratch import Scratch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_CHUNK = 1 << 20
#: Seconds a wait lasts before it looks whether it should go on.
_TICK = 0.25
#: What of the caller's environment may change what an engine does.
HEEDED = (
    "LD_LIBRARY_PATH",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_MPS_PIPE_DIRECTORY",
)
#: What of it an engine needs. No Python variable, so that the host's packages stay out.
_KEPT = ("PATH", "HOME", *HEEDED)


def agent_environment(caller: Mapping[str, str], scratch: str, gpus: Sequence[str]) -> dict[str, str]:
    """Return the agent's environment variables: those an engine needs, a scratch folder, its GPUs."""
    kept = {name: caller[name] for name in _KEPT if name in caller}
    return (
        kept
        | {"LANG": "C.UTF-8", "TMPDIR": scratch}
        | ({"CUDA_VISIBLE_DEVICES": ",".join(gpus)} if gpus else {})
    )


class ProcessTransport:
    """The agent as a child process of this one."""

    def __init__(self, argv: Sequence[str], *, gpus: Sequence[str] = ()) -> None:
        """Start `argv`; raises InfraError when it cannot be started."""
        self._inbox, self._tail = Inbox(), Tail()
        self._closed = False
        self._status: ExitStatus | None = None
        self._scratch = Scratch()
        try:
            self._process = subprocess.Popen(
                list(argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=self._scratch.name,
                env=agent_environment(os.environ, self._scratch.name, gpus),
                start_new_session=True,
            )
        except OSError as error:
            self._scratch.cleanup()
            raise InfraError(f"the agent could not be started: {error}") from error
        with contextlib.suppress(ProcessLookupError):
            # A crash is an outcome here; gigabytes of core dump a case are not wanted.
            resource.prlimit(self._process.pid, resource.RLIMIT_CORE, (0, 0))
        os.set_blocking(self._stdin.fileno(), False)
        self._pump = threading.Thread(target=self._drain, name=f"pump-{self._process.pid}", daemon=True)
        self._pump.start()

    @property
    def pid(self) -> int:
        """The agent's process id, which is also its process group."""
        return self._process.pid

    @property
    def _stdin(self) -> IO[bytes]:
        assert self._process.stdin is not None  # noqa: S101  (asked for above)
        return self._process.stdin

    def _drain(self) -> None:
        assert self._process.stdout is not None  # noqa: S101
        assert self._process.stderr is not None  # noqa: S101
        with selectors.DefaultSelector() as ready:
            ready.register(self._process.stdout, selectors.EVENT_READ, self._inbox.put)
            ready.register(self._process.stderr, selectors.EVENT_READ, self._tail.add)
            while ready.get_map():
                events = ready.select(_TICK)
                # A grandchild may outlive the agent and hold these pipes open: silence then is the end.
                if not events and not self._running():
                    break
                for key, _ in events:
                    data = os.read(key.fd, _CHUNK)
                    if data:
                        key.data(data)
                        continue
                    ready.unregister(key.fileobj)
                    if key.fileobj is self._process.stdout:
                        self._inbox.end()
        self._inbox.end()

    def send(self, data: bytes, timeout: float = SEND_TIMEOUT) -> None:
        """See `Transport.send`."""
        deadline, left = Deadline(timeout), memoryview(data)
        with selectors.DefaultSelector() as ready:
            while left:
                try:
                    if not ready.get_map():
                        ready.register(self._stdin, selectors.EVENT_WRITE)
                    writable = ready.select(min(_TICK, deadline.left()))
                    written = os.write(self._stdin.fileno(), left[:_CHUNK]) if writable else 0
                except BlockingIOError:
                    continue
                except (BrokenPipeError, ValueError) as error:  # ValueError: closed here, by another thread
                    raise AgentGoneError("the agent is gone") from error
                if self._closed:
                    raise AgentGoneError("the transport is closed")
                if written:
                    left, deadline = left[written:], Deadline(timeout)
                elif deadline.passed():
                    raise AgentGoneError(f"the agent read nothing for {timeout:g} s")

    def place(self, folder: Path, files: Sequence[str]) -> str:  # noqa: ARG002
        """See `Transport.place`: they are read where they lie."""
        return str(folder)

    def receive(self, timeout: float | None = None) -> bytes:
        """See `Transport.receive`."""
        return self._inbox.get(timeout)

    def stderr_tail(self) -> str:
        """See `Transport.stderr_tail`."""
        return self._tail.text()

    def alive(self) -> bool:
        """See `Transport.alive`."""
        return self._running()

    def exit_status(self) -> ExitStatus | None:
        """See `Transport.exit_status`."""
        self._running()
        return self._status

    def _running(self) -> bool:
        # WNOWAIT leaves the process to be reaped by `close`: until then its id, which names the process group
        # that `close` kills, cannot be given to a stranger.
        if self._status is not None:
            return False
        ended = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        if ended is None:
            return True
        if ended.si_code == os.CLD_EXITED:
            self._status = ExitStatus(code=ended.si_status)
        else:
            self._status = ExitStatus(signal=signal_name(ended.si_status))
        return False

    def _ended_within(self, seconds: float) -> bool:
        deadline, pause = Deadline(seconds), threading.Event()
        while self._running():
            if deadline.passed():
                return False
            pause.wait(0.01)
        return True

    def close(self) -> None:
        """See `Transport.close`; what is left in the agent's process group is killed with it."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()
        for step, seconds in LADDER:
            if step is not None:
                self._signal(step)
            if self._ended_within(seconds):
                break
        self._signal(signal.SIGKILL)
        self._inbox.end()
        self._pump.join(timeout=2)
        with contextlib.suppress(subprocess.TimeoutExpired):
            # Not ended even by SIGKILL: stuck in the kernel (a lost GPU); waiting longer would not help.
            self._process.wait(timeout=0.1)
        if not self._pump.is_alive():
            for stream in (self._process.stdout, self._process.stderr):
                if stream is not None:
                    stream.close()
        self._scratch.cleanup()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)
