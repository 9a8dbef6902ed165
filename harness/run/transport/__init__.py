"""Child processes in sessions of their own: an agent behind a duplex byte stream, and programs run to their end.

A child process has no limit on its own memory: CUDA reserves far more address space than it uses, so RLIMIT_AS cannot
tell a leak from a normal start. The limit that the agent puts on each of its children holds here too; a
bound that must hold for certain needs a container.
"""

from __future__ import annotations

import contextlib
import os
import queue
import resource
import selectors
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from harness.errors import InfraError
from harness.scratch import Scratch
from harness.text import clip

#: Seconds the agent is given after each step of the ladder: its input closes, interrupt, terminate, kill.
LADDER: tuple[tuple[signal.Signals | None, float], ...] = (
    (None, 2.0),
    (signal.SIGINT, 1.0),
    (signal.SIGTERM, 1.0),
    (signal.SIGKILL, 5.0),
)
#: Seconds `send` waits for an agent that has stopped reading.
SEND_TIMEOUT = 120.0
#: Pieces of agent output held for a reader that has not come, of at most a pipe's 64 KiB each; past it the pump waits,
#: and so does the agent.
_HELD = 1 << 14
#: Bytes of the agent's standard error that are kept: its end, which holds the reason.
TAIL_BYTES = 64 << 10
_CHUNK = 1 << 20
#: Seconds a wait lasts before it looks whether it should go on.
_TICK = 0.25
#: The caller's environment variables that may change an engine's work.
HEEDED = (
    "LD_LIBRARY_PATH",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_MPS_PIPE_DIRECTORY",
    "COMPAT_PLUGIN_DIR",
)
#: Complaints of ssh, and of `docker` as a line to a daemon, and the remedy for each.
_REMEDIES = {
    "raw stream connection": "does it run, and may you use it?",
    "IDENTIFICATION HAS CHANGED": "its host key is not the known one; make sure why, then `ssh-keygen -R`",
    "Host key verification failed": "its host key is not known here; connect once by hand with ssh, and confirm it",
    "Permission denied (": "it takes none of your keys; `ssh-copy-id` brings one there",
}
#: Seconds a program may take, and the characters of its command line in a sentence.
_PROGRAM_TIMEOUT, _LONGEST = 60.0, 120
#: Those that an engine needs. No Python variable, so that the host's packages stay out.
_KEPT = ("PATH", "HOME", *HEEDED)


@dataclass(frozen=True)
class ExitStatus:
    """How the agent ended.

    Exactly one of `code` and `signal` (a name such as "SIGKILL") is set, or neither for an unknown end.
    `out_of_memory` is the container engine's record; a virtual environment has no such record.
    """

    code: int | None = None
    signal: str | None = None
    out_of_memory: bool = False

    def __str__(self) -> str:
        """Return the status as the end of a sentence: "exited with code 3", "killed by SIGKILL"."""
        if self.out_of_memory:
            return "killed by the kernel: out of memory"
        if self.signal is not None:
            return f"killed by {self.signal}"
        if self.code is not None:
            return f"exited with code {self.code}"
        return "ended in a way that could not be learnt"


def signal_name(number: int) -> str:
    """Return the name of a signal, or "signal 34" for a nameless one."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class AgentGoneError(InfraError):
    """The agent takes no more input: it ended, or it stopped reading."""


def agent_environment(caller: Mapping[str, str], scratch: str, gpus: Sequence[str]) -> dict[str, str]:
    """Return the agent's environment variables: those an engine needs, a scratch folder, its GPUs."""
    kept = {name: caller[name] for name in _KEPT if name in caller}
    return (
        kept
        | {"LANG": "C.UTF-8", "TMPDIR": scratch}
        | ({"CUDA_VISIBLE_DEVICES": ",".join(gpus)} if gpus else {})
    )


class ProcessTransport:
    """The agent as a child process of this one. One thread may send while another receives."""

    def __init__(
        self, argv: Sequence[str], *, gpus: Sequence[str] = (), environment: Mapping[str, str] | None = None
    ) -> None:
        """Start `argv`, by default in the agent's environment; raises InfraError when it cannot be started."""
        self._inbox: queue.Queue[bytes] = queue.Queue(_HELD)
        self._tail = b""
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
                env=environment or agent_environment(os.environ, self._scratch.name, gpus),
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
            ready.register(self._process.stdout, selectors.EVENT_READ, self._hand_over)
            ready.register(self._process.stderr, selectors.EVENT_READ, self._add_to_tail)
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
                        self._hand_over(b"")
        self._hand_over(b"")

    def _hand_over(self, data: bytes) -> None:
        """Put data, or the end, where `receive` finds it; wait for room until the transport is closed."""
        while not self._closed:
            with contextlib.suppress(queue.Full):
                self._inbox.put(data, timeout=_TICK)
                return

    def _add_to_tail(self, data: bytes) -> None:
        self._tail = (self._tail + data)[-TAIL_BYTES:]

    def send(self, data: bytes, timeout: float = SEND_TIMEOUT) -> None:
        """Hand all of `data` to the agent.

        Raises AgentGoneError when the agent has ended or does not read for `timeout` seconds. How much it got
        is unknown then; its earlier output can still be received.
        """
        deadline, left = time.monotonic() + timeout, memoryview(data)
        with selectors.DefaultSelector() as ready:
            while left:
                try:
                    if not ready.get_map():
                        ready.register(self._stdin, selectors.EVENT_WRITE)
                    writable = ready.select(max(0.0, min(_TICK, deadline - time.monotonic())))
                    written = os.write(self._stdin.fileno(), left[:_CHUNK]) if writable else 0
                except BlockingIOError:
                    continue
                except (BrokenPipeError, ValueError) as error:  # ValueError: closed here, by another thread
                    raise AgentGoneError("the agent is gone") from error
                if self._closed:
                    raise AgentGoneError("the transport is closed")
                if written:
                    left, deadline = left[written:], time.monotonic() + timeout
                elif time.monotonic() > deadline:
                    raise AgentGoneError(f"the agent read nothing for {timeout:g} s")

    def place(self, folder: Path, files: Sequence[str]) -> str:  # noqa: ARG002
        """Bring files of a folder to the agent, and return their place; here they stay."""
        return str(folder)

    def receive(self, timeout: float | None = None) -> bytes:
        """Return the next bytes of the agent's output, b"" when it has ended.

        Raises TimeoutError when no byte came for `timeout` seconds.
        """
        try:
            data = self._inbox.get(timeout=timeout)
        except queue.Empty:
            raise TimeoutError(f"the agent said nothing for {timeout:g} s") from None
        if not data:
            self._inbox.put(b"")  # the end, for the next to ask
        return data

    def stderr_tail(self) -> str:
        """Return the end of the agent's standard error, at most 64 KiB."""
        return self._tail.decode("utf-8", "replace")

    def exit_status(self) -> ExitStatus | None:
        """Return how the agent ended, None while it runs."""
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
        deadline = time.monotonic() + seconds
        while self._running():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True

    def close(self) -> None:
        """End the agent and its process group, within about ten seconds; a second call has no effect."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()
        self._end()
        self._signal(signal.SIGKILL)
        self._pump.join(timeout=2)
        with contextlib.suppress(queue.Full):
            self._inbox.put_nowait(b"")
        with contextlib.suppress(subprocess.TimeoutExpired):
            # Not ended even by SIGKILL: stuck in the kernel (a lost GPU); waiting longer would not help.
            self._process.wait(timeout=0.1)
        if not self._pump.is_alive():
            for stream in (self._process.stdout, self._process.stderr):
                if stream is not None:
                    stream.close()
        self._scratch.cleanup()

    def _end(self) -> None:
        """Make the agent end, whose input has; the caller kills the rest."""
        for step, seconds in LADDER:
            if step is not None:
                self._signal(step)
            if self._ended_within(seconds):
                break

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def no_questions() -> dict[str, str]:
    """Return the caller's environment, in which ssh asks for no password."""
    return {**os.environ, "SSH_ASKPASS_REQUIRE": "never"}


def ssh_line(host: str, argv: Sequence[str]) -> list[str]:
    """Return the words that run a program on the machine at `ssh://...` and ask for no password."""
    place = urlsplit(host)
    where = f"{place.username}@{place.hostname}" if place.username else str(place.hostname)
    port = ["-p", str(place.port)] if place.port else []
    return [
        "ssh",
        "-T",
        "-o",
        "BatchMode=yes",
        "-o",
        "ConnectTimeout=10",
        *port,
        "--",
        where,
        shlex.join(argv),
    ]


def complaint(text: str) -> str:
    """Return the last line of a program's complaint, with the remedy."""
    remedy = next((remedy for words, remedy in _REMEDIES.items() if words in text), "")
    last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no answer")
    return "; ".join(filter(None, (last.rstrip("."), remedy)))


def run_to_end(
    words: Sequence[str], seconds: float = _PROGRAM_TIMEOUT, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, by default in the caller's environment; raises InfraError if it is missing or too slow.

    Its output goes to files, so that a grandchild with the pipes in hand, as ssh is, does not delay this. It has a
    session of its own: an interrupt at the terminal must not cut it off, and ssh finds no terminal to ask at.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = start(words, subprocess.DEVNULL, out, err, environment)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            shown = clip(shlex.join(words).partition("\n")[0], _LONGEST)
            raise InfraError(f"{shown} was not done after {seconds:g} s") from None
        finally:
            kill(process)
        return subprocess.CompletedProcess(words, process.returncode, output(out), output(err))


def start(
    words: Sequence[str],
    stdin: Any,  # noqa: ANN401  (files as `Popen` takes them)
    stdout: Any,  # noqa: ANN401
    stderr: Any,  # noqa: ANN401
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, in which ssh asks for no password; raises InfraError without it."""
    try:
        return subprocess.Popen(
            words,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=environment or no_questions(),
            start_new_session=True,
        )
    except FileNotFoundError:
        raise InfraError(f"the program {words[0]} is not installed here") from None


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a program that `start` started, with its children."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def output(file: IO[bytes]) -> str:
    """Return the contents of a file that a program wrote."""
    file.seek(0)
    return file.read().decode("utf-8", "replace")
