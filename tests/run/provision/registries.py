"""Registries for tests: Debian's docker-registry on a port of its own, and a gate before it that can shut."""

from __future__ import annotations

import contextlib
import http
import os
import re
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests import needs
from tests.run.lines import Line
from tests.waiting import wait_for

_CONFIG = """
version: 0.1
log: {{level: info, accesslog: {{disabled: false}}}}
storage: {{filesystem: {{rootdirectory: {folder}}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""


@dataclass(frozen=True)
class Registry:
    """A running registry; images are pushed and pulled through its gate."""

    folder: Path
    log: Path
    gate: Line

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
    gate = Line(
        lambda: socket.create_server(("127.0.0.1", 0)), lambda: socket.create_connection(("127.0.0.1", port))
    )
    gate.restore()
    with log.open("wb") as out:
        running = subprocess.Popen([program, "serve", str(config)], stdout=out, stderr=out)
    try:
        wait_for(lambda: _answers(port))
        yield Registry(folder, log, gate)
    finally:
        running.kill()
        running.wait()
        gate.cut()


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
