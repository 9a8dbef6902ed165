"""What a transport promises, whatever is at its other end."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.errors import InfraError

#: Seconds the agent is given after each step of the ladder: its input closes, interrupt, terminate, kill.
LADDER: tuple[tuple[signal.Signals | None, float], ...] = (
    (None, 2.0),
    (signal.SIGINT, 1.0),
    (signal.SIGTERM, 1.0),
    (signal.SIGKILL, 5.0),
)
#: Seconds `send` waits for an agent that has stopped reading.
SEND_TIMEOUT = 120.0


@dataclass(frozen=True)
class ExitStatus:
    """How the agent ended.

    Exactly one of `code` and `signal` (a name such as "SIGKILL") is set, or neither when nobody could say.
    `out_of_memory` is what the container engine recorded; a virtual environment has no such record.
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
    """Return the name of a signal, or "signal 34" for one that has none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class AgentGoneError(InfraError):
    """The agent takes nothing any more: it ended, or it stopped reading."""


class Transport(Protocol):
    """A duplex byte stream to one running agent. One thread may send while another receives."""

    def send(self, data: bytes, timeout: float = SEND_TIMEOUT) -> None:
        """Hand all of `data` to the agent.

        Raises AgentGoneError when the agent has ended or does not read for `timeout` seconds. How much it got
        is unknown then; what it said before can still be received.
        """

    def place(self, folder: Path, files: Sequence[str]) -> str:
        """Bring files of a folder where the agent can read them, and return that place; raises InfraError."""

    def receive(self, timeout: float | None = None) -> bytes:
        """Return the next bytes of the agent's output, b"" when it has ended.

        Raises TimeoutError when nothing came for `timeout` seconds.
        """

    def stderr_tail(self) -> str:
        """Return the end of what the agent wrote to its standard error, at most 64 KiB."""

    def alive(self) -> bool:
        """Return whether the agent still runs."""

    def exit_status(self) -> ExitStatus | None:
        """Return how the agent ended, None while it runs."""

    def close(self) -> None:
        """End the agent and free all it held, within about ten seconds; a second call does nothing."""
