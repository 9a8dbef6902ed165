"""Lines to a server that can be cut: a socket in front of it, and an sshd."""

from __future__ import annotations

import contextlib
import getpass
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests import needs, processes
from tests.waiting import wait_for


def local_socket() -> str:
    """Need the daemon of this machine at a Unix socket; returns its path."""
    needs.docker()
    address = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    if not address.startswith("unix://"):
        pytest.skip(f"the daemon is at {address}, and not at a socket of this machine")
    return address.removeprefix("unix://")


class Line:
    """A way to a server that can be cut; with `limit`, so many more bytes come back by it, and then none."""

    def __init__(self, listen: Callable[[], socket.socket], connect: Callable[[], socket.socket]) -> None:
        self.limit: int | None = None
        self.shut = threading.Event()
        self._listen, self._connect = listen, connect
        self._open: list[socket.socket] = []
        self._listener: socket.socket | None = None

    @property
    def port(self) -> int:
        """Return the port to come in by."""
        assert self._listener is not None
        return int(self._listener.getsockname()[1])

    def restore(self) -> None:
        """Take connections, again."""
        self._listener = self._listen()
        threading.Thread(target=self._serve, args=(self._listener,), daemon=True).start()

    def cut(self) -> None:
        """Cut all connections and take no more."""
        listener, self._listener = self._listener, None
        self.shut.set()
        for each in (listener, *self._open) if listener else ():
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._open.clear()

    def _serve(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = self._connect()
                self._open += [near, far]
                for way in ((near, far, False), (far, near, True)):
                    threading.Thread(target=self._copy, args=way, daemon=True).start()

    def _copy(self, source: socket.socket, sink: socket.socket, back: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 14):
                if back and self.limit is not None:
                    self.limit -= len(data)
                    if self.limit < 0:
                        self.shut.wait()
                        return
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)


@dataclass
class Sshd:
    """An sshd on 127.0.0.1 that lets one key of its own in; with `path` as PATH, `ssh` knows it and has the key."""

    folder: Path
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    path: str = ""
    log: Path = field(init=False)

    def __post_init__(self) -> None:
        """Make keys and settings."""
        self.log = self.folder / "log"
        for name in ("host", "key", "stranger"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name)], check=True
            )
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        settings = {
            "Port": self.port,
            "ListenAddress": "127.0.0.1",
            "HostKey": self.folder / "host",
            "AuthorizedKeysFile": self.folder / "key.pub",
            "PidFile": "none",
            "StrictModes": "no",
            "UsePAM": "no",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            # Of the daemon that is to be reached, for the program `docker` there.
            "SetEnv": f"DOCKER_HOST=unix://{local_socket()}",
        }
        (self.folder / "sshd_config").write_text(
            "".join(f"{key} {value}\n" for key, value in settings.items())
        )
        kind, public = (self.folder / "host.pub").read_text().split()[:2]
        (self.folder / "known").write_text(f"[127.0.0.1]:{self.port} {kind} {public}\n")
        self.let("key", "known")
        folder = self.folder / "bin"
        folder.mkdir()
        processes.put_program(folder, "ssh", f'exec {needs.program("ssh")} -F {self.folder}/ssh_config "$@"')
        self.path = f"{folder}:{os.environ['PATH']}"

    @property
    def address(self) -> str:
        """What a target names as its host."""
        return f"ssh://{getpass.getuser()}@127.0.0.1:{self.port}"

    def let(self, key: str, known: str) -> None:
        """Have the program `ssh` of `path` use a key, and a file of known hosts."""
        (self.folder / "ssh_config").write_text(
            f"IdentityFile {self.folder / key}\nIdentitiesOnly yes\nIdentityAgent none\n"
            f"UserKnownHostsFile {self.folder / known}\nGlobalKnownHostsFile none\n"
        )

    def start(self) -> None:
        """Start it and wait until it listens."""
        if os.geteuid() == 0:
            # Where Debian's package is installed and nothing starts its service.
            Path("/run/sshd").mkdir(exist_ok=True)
        program = needs.program("sshd")
        self.process = subprocess.Popen(
            [program, "-D", "-f", str(self.folder / "sshd_config"), "-E", str(self.log)],
            start_new_session=True,
        )
        assert wait_for(self._listens), self.log.read_text()

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def cut(self) -> None:
        """End every session, but not the sshd that takes new ones."""
        assert self.process is not None
        for pid in processes.descendants(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def end(self) -> None:
        """End it with its sessions."""
        if self.process is not None:
            self.cut()
            self.process.terminate()
            self.process.wait()
            self.process = None


def needs_sshd() -> None:
    """Need an sshd and an ssh, and the daemon of this machine."""
    local_socket()
    for name in ("sshd", "ssh", "ssh-keygen"):
        needs.program(name)
    assert sys.platform == "linux"
