"""Registries for tests: Debian's docker-registry on a port of its own, and a gate before it that can shut."""

from __future__ import annotations

import contextlib
import http
import os
import re
import socket
import subprocess
import threading
import urllib.request
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests import needs
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_CONFIG = """
version: 0.1
log: {{level: info, accesslog: {{disabled: false}}}}
storage: {{filesystem: {{rootdirectory: {folder}}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""


@dataclass
class Gate:
    """Forwards connections to a port; lets `limit` more bytes come back, where that is set, and then none."""

    to: int
    limit: int | None = None
    shut: threading.Event = field(default_factory=threading.Event)
    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    open: list[socket.socket] = field(default_factory=list)

    @property
    def port(self) -> int:
        """Return the port to come in by."""
        return int(self.listener.getsockname()[1])

    def serve(self) -> None:
        """Take connections until the gate is closed."""
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.to))
                self.open += [client, server]
                threading.Thread(target=self._forward, args=(client, server, False), daemon=True).start()
                threading.Thread(target=self._forward, args=(server, client, True), daemon=True).start()

    def close(self) -> None:
        """Let nobody in any more and drop those who are."""
        self.shut.set()
        for each in (self.listener, *self.open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _forward(self, one: socket.socket, other: socket.socket, back: bool) -> None:
        with contextlib.suppress(OSError):
            while chunk := one.recv(1 << 14):
                if back and self.limit is not None:
                    self.limit -= len(chunk)
                    if self.limit < 0:
                        self.shut.wait()
                        return
                other.sendall(chunk)
            other.shutdown(socket.SHUT_WR)


@dataclass(frozen=True)
class Registry:
    """A running registry; images are pushed and pulled through its gate."""

    folder: Path
    log: Path
    gate: Gate

    def reference(self, name: str) -> str:
        """Return the reference of an image here."""
        return f"127.0.0.1:{self.gate.port}/{name}:1"

    def put(self, name: str, *layers: bytes) -> str:
        """Push an image of these layers ; returns its reference."""
        reference, context = self.reference(name), self.folder / "context"
        context.mkdir(exist_ok=True)
        lines = ["FROM scratch"]
        for number, content in enumerate(layers):
            (context / f"layer{number}").write_bytes(content)
            # An older time, the same for equal contents: two builds give one layer.
            os.utime(context / f"layer{number}", (0, 0))
            lines.append(f"COPY layer{number} /")
        (context / "Dockerfile").write_text("\n".join(lines))
        docker("build", "-q", "--platform", "linux/amd64", "-t", reference, str(context))
        docker("push", "-q", reference)
        return reference

    def fetched(self, name: str) -> list[str]:
        """Return the digests of the blobs of a repository that were fetched, in order, by the registry's log."""
        found = re.findall(rf'"GET /v2/{name}/blobs/(sha256:[0-9a-f]+) HTTP/1.1" 200', self.log.read_text())
        return [str(digest) for digest in found]

    def lose_largest(self) -> None:
        """Lose the largest blob."""
        blobs = (self.folder / "store/docker/registry/v2/blobs/sha256").glob("*/*/data")
        max(blobs, key=lambda path: path.stat().st_size).unlink()


def docker(*words: str) -> None:
    """Run the docker command."""
    done = subprocess.run(
        ["docker", *words],
        env={**os.environ, "DOCKER_BUILDKIT": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def registry(folder: Path) -> Iterator[Registry]:
    """Run a registry."""
    program = needs.program("docker-registry")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config, log = folder / "config.yml", folder / "log"
    config.write_text(_CONFIG.format(folder=folder / "store", port=port))
    gate = Gate(port)
    threading.Thread(target=gate.serve, daemon=True).start()
    with log.open("wb") as out:
        running = subprocess.Popen([program, "serve", str(config)], stdout=out, stderr=out)
    try:
        wait_for(lambda: _answers(port))
        yield Registry(folder, log, gate)
    finally:
        running.kill()
        running.wait()
        gate.close()


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/", timeout=5) as answer:
            return bool(answer.status == http.HTTPStatus.OK)
    except OSError:
        return False


def forget(*references: str) -> None:
    """Remove images, and the layers that only they have."""
    for reference in references:
        subprocess.run(["docker", "rmi", "-f", reference], capture_output=True, check=False)
