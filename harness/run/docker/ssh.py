"""A machine that is reached by SSH: its daemon's socket forwarded here, and programs run there.

One `ssh` a host carries all connections of this program: it heeds the user's configuration, agent and known hosts, and
a call costs what a local one does. The SDK's own two ways log in anew for each client, or for each call, and the latter
cannot say that the agent's input has ended.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from harness.errors import InfraError

if TYPE_CHECKING:
    from collections.abc import Sequence

SCHEME = "ssh://"
#: No password: it would stand in files and in the list of processes.
_ADDRESS = re.compile(
    r"ssh://(?:(?P<user>[A-Za-z0-9_][A-Za-z0-9._-]*)@)?(?P<host>[A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?(?P<socket>/[A-Za-z0-9._/-]*[A-Za-z0-9])?/?"
)
_NO_SSH = "the program ssh is not installed here"
_SOCKET = "/var/run/docker.sock"
#: Seconds to connect, and for the other side to answer after that.
_CONNECT, _ANSWER = 10, 20
_OPTIONS = (
    *("BatchMode=yes", f"ConnectTimeout={_CONNECT}", "LogLevel=INFO"),
    # A line that is cut without a word is noticed in 45 s.
    *("ServerAliveInterval=15", "ServerAliveCountMax=3"),
    # The user's own shared connection would outlive this program, with our socket in it.
    *("ControlMaster=no", "ControlPath=none", "RemoteCommand=none", "PermitLocalCommand=no"),
    *("ForwardAgent=no", "ForwardX11=no", "StreamLocalBindUnlink=yes"),
)
#: Tells the socket's state and, if it can be used, stays until its input ends, which the end of this program does too.
_WATCH = (
    'if [ ! -S "$0" ]; then echo trt-compat absent; elif [ ! -w "$0" ]; then echo trt-compat closed; '
    "else echo trt-compat open; exec cat >/dev/null; fi"
)
#: Bytes in the path of a socket, without the zero that ends it.
_LONGEST = 107
#: Bytes kept of what ssh complains of.
_MOST = 1 << 16
_SAID = re.compile(rb"^trt-compat (\w+)\r?\n", re.MULTILINE)
#: The folder goes when ssh has ended, even where this program was killed.
_AND_SWEEP = '"$@"; rm -rf -- "$0"'


@dataclass(frozen=True)
class Address:
    """What `ssh://user@host:port/socket` says; "" for what it leaves to the user's configuration."""

    text: str
    user: str
    host: str
    port: str
    socket: str

    @property
    def by_hand(self) -> str:
        """Return the line that connects a person."""
        return shlex.join(["ssh", *(["-p", self.port] if self.port else []), self._who])

    @property
    def _who(self) -> str:
        return f"{self.user}@{self.host}" if self.user else self.host

    def command(self, *options: str) -> list[str]:
        """Return `ssh` with options and destination; what follows is for a shell there."""
        words = ["ssh", "-T", *(word for option in _OPTIONS for word in ("-o", option)), *options]
        return [*words, *(["-p", self.port] if self.port else []), "--", self._who]


def parsed(address: str) -> Address:
    """Read `ssh://user@host:port/socket`; raises InfraError for anything else, without what it may hold."""
    found = _ADDRESS.fullmatch(address)
    if found is None:
        raise InfraError(
            "the daemon's address cannot be read: write it like ssh://user@host or ssh://host:22"
        )
    given = found.groupdict(default="")
    return Address(
        address, given["user"], given["host"].strip("[]"), given["port"], given["socket"] or _SOCKET
    )


def run_there(address: str, argv: Sequence[str]) -> str:
    """Run a program on the machine and return its output; raises InfraError where the machine is not reached."""
    place = parsed(address)
    command = [*place.command("-n"), shlex.join(argv)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_CONNECT + 2 * _ANSWER,
            check=False,
        )
    except FileNotFoundError:
        raise InfraError(f"{address} does not answer: {_NO_SSH}") from None
    except subprocess.TimeoutExpired:
        raise InfraError(f"{address} does not answer in {_CONNECT + 2 * _ANSWER} s") from None
    if done.returncode == 255:  # noqa: PLR2004  (ssh's own trouble)
        raise InfraError(f"{address} does not answer: {_trouble(place, done.stderr)}")
    return done.stdout


def forwarded(address: str) -> str:
    """Return the path of a socket here that leads to the daemon's there; raises InfraError where none can be made.

    It is opened once for all threads, and again when the connection has ended.
    """
    return _line(address).opened()


def socket_of(address: str) -> str:
    """Return the path of that socket as it was opened last, whether it still leads anywhere or not."""
    return str(_line(address).socket)


def complaint(address: str) -> str:
    """Return why what went to `forwarded`'s socket did not arrive, "" where nobody says."""
    return _line(address).complaint()


def _line(address: str) -> _Line:
    with _LOCK:
        return _LINES.setdefault(address, _Line(parsed(address)))


class _Line:
    """The connection to one machine."""

    def __init__(self, place: Address) -> None:
        self._place = place
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._complaints: IO[bytes] | None = None
        #: Where it was opened last, whether it still leads anywhere or not.
        self.socket = Path()

    def opened(self) -> str:
        with self._lock:
            if self._process is None or self._process.poll() is not None or not self.socket.exists():
                self._close()
                self._open()
            return str(self.socket)

    def _open(self) -> None:
        if shutil.which("ssh") is None:
            raise InfraError(f"Docker does not answer at {self._place.text}: {_NO_SSH}")
        # Not named like a scratch folder, which the next run removes when it is empty.
        folder = Path(tempfile.mkdtemp(prefix="compat-ssh-"))
        self.socket = folder / "docker.sock"
        if len(os.fsencode(self.socket)) > _LONGEST:
            folder.rmdir()
            raise InfraError(
                f"Docker does not answer at {self._place.text}: no socket can have a path as long as those in "
                f"{folder.parent}; set TMPDIR to a folder with a shorter name"
            )
        ssh = self._place.command("-L", f"{self.socket}:{self._place.socket}")
        there = shlex.join(["exec", "sh", "-c", _WATCH, self._place.socket])
        self._complaints = (folder / "complaints").open("w+b")
        # A session of its own: an interrupt at the terminal must not cut off the containers that are to be ended.
        self._process = subprocess.Popen(
            ["sh", "-c", _AND_SWEEP, str(folder), *ssh, there],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            start_new_session=True,
        )
        assert self._process.stdout is not None  # noqa: S101  (asked for above)
        said = _first_word(self._process.stdout)
        if said == "open" and self.socket.exists():
            return
        why = self._why(said)
        self._close()
        raise InfraError(f"Docker does not answer at {self._place.text}: {why}")

    def complaint(self) -> str:
        """Return why what was sent through the connection did not arrive, "" where ssh said nothing."""
        said = self._complained()
        if "prohibited" in said:
            return "its sshd forbids to forward a socket (AllowStreamLocalForwarding)"
        return (
            f"nothing answers at {self._place.socket} there; is Docker running?"
            if "open failed" in said
            else ""
        )

    def _complained(self) -> str:
        if self._complaints is None:
            return ""
        # Not by `read`, which would move where ssh writes.
        return os.pread(self._complaints.fileno(), _MOST, 0).decode("utf-8", "replace")

    def _why(self, said: str) -> str:
        if said == "absent":
            return f"that machine has no socket {self._place.socket}; is Docker installed and running there?"
        if said == "closed":
            return f"its user may not write to {self._place.socket}; add that user to the group docker there"
        return _trouble(self._place, self._complained())

    def _close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for stream in (process.stdin, process.stdout, self._complaints):
            if stream is not None:
                stream.close()
        self._complaints = None
        process.wait()
        shutil.rmtree(self.socket.parent, ignore_errors=True)


_LOCK = threading.Lock()
_LINES: dict[str, _Line] = {}


def _first_word(output: IO[bytes]) -> str:
    """Return what the other side says of its socket, "" where it says nothing; a shell there may greet before."""
    end, heard = time.monotonic() + _CONNECT + _ANSWER, b""
    while (left := end - time.monotonic()) > 0:
        if not select.select([output], [], [], left)[0]:
            break
        if not (data := os.read(output.fileno(), 1 << 12)):
            break
        heard += data
        if found := _SAID.search(heard):
            return found[1].decode()
    return ""


def _trouble(place: Address, complaints: str) -> str:
    """Return what ssh complained of, with what to do about it."""
    lines = [" ".join(line.split()) for line in complaints.splitlines() if line.strip()]
    said = lines[-1] if lines else "no answer"
    if "IDENTIFICATION HAS CHANGED" in complaints:
        return f"ssh: its host key is not the one that is known; make sure why, then `ssh-keygen -R {place.host}`"
    if "Host key verification failed" in said:
        return f"ssh: its host key is not known here; connect once by hand, `{place.by_hand}`, and confirm it"
    if "Permission denied" in said:
        copy = place.by_hand.replace("ssh", "ssh-copy-id", 1)
        return f"{_of_ssh(said.rstrip('.'))}; it takes none of your keys: `{copy}`"
    return _of_ssh(said)


def _of_ssh(said: str) -> str:
    return said if said.startswith("ssh: ") else f"ssh: {said}"
