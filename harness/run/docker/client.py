"""A client of a Docker daemon, a host's or the one that DOCKER_HOST names, and what the daemon says of itself.

`host` is everywhere an address `ssh://user@host`, "" for the daemon of this environment.
"""

from __future__ import annotations

import contextlib
import functools
import os
import socket
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import docker
import requests
from docker.context import ContextAPI
from docker.errors import APIError, DockerException

from harness.errors import InfraError
from harness.run.docker.ssh import SCHEME, complaint, forwarded, socket_of

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Seconds a call may take; a pull and a build get their own, as they are silent while a layer is unpacked.
CALL_TIMEOUT = 60
#: The daemons that answered this process: None, or since when one is gone.
MET: dict[str, float | None] = {}
_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True)
class Daemon:
    """What the daemon says of its machine: its host name, its architecture (amd64 or arm64).

    `desktop` is True of Docker Desktop, whose daemon runs in a virtual machine of its own on the caller's machine.
    `root` is the folder there that images are kept in, "" where it does not say. `filters` says whether it can refuse
    a container system calls: not every kernel can.
    """

    version: str
    name: str
    architecture: str
    nvidia_runtime: bool
    address: str
    desktop: bool = False
    root: str = ""
    filters: bool = True

    @property
    def nearby(self) -> bool:
        """Tell whether it is asked by a socket of this machine, and not over a network."""
        return self.address.startswith(("unix://", "npipe://"))


def address(host: str = "") -> str:
    """Return where the daemon is looked for: a target's host, DOCKER_HOST, or the current context's address."""
    return host or os.environ.get("DOCKER_HOST") or _of_context() or "unix:///var/run/docker.sock"


@functools.cache
def _of_context() -> str:
    """Return the address in Docker's current context, "" where there is none or it cannot be read."""
    with contextlib.suppress(DockerException, OSError, ValueError, AttributeError):
        found = ContextAPI.get_context(os.environ.get("DOCKER_CONTEXT") or None)
        return str(found.Host or "")
    return ""


def endpoint(host: str = "") -> str:
    """Return the address that both the program `docker` and the SDK are given; raises InfraError for want of a way."""
    where = address(host)
    return f"unix://{forwarded(where)}" if where.startswith(SCHEME) else where


def connect(timeout: int = CALL_TIMEOUT, host: str = "") -> docker.DockerClient:
    """Return a client, to be closed by the caller; raises InfraError when the daemon does not answer."""
    where = address(host)
    try:
        near = endpoint(host)
        knock(host)
        client = docker.from_env(timeout=timeout, environment={**os.environ, "DOCKER_HOST": near})
    except (DockerException, requests.RequestException, OSError) as error:
        raise InfraError(f"Docker does not answer at {where}: {_why(where, error)}") from error
    MET[where] = None
    return client


def _why(where: str, error: Exception) -> str:
    return (complaint(where) if where.startswith(SCHEME) else "") or explanation(error)


def knock(host: str = "") -> None:
    """Try a Unix socket first: the SDK leaves its own open when nobody listens, and Python warns of it."""
    where = address(host)
    if where.startswith(SCHEME):
        where = f"unix://{socket_of(where)}"
    if where.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(where.removeprefix("unix://"))


@contextmanager
def connection(timeout: int = CALL_TIMEOUT, host: str = "") -> Iterator[docker.DockerClient]:
    """Lend a client and turn whatever the SDK raises meanwhile into an InfraError of one sentence."""
    client = connect(timeout, host)
    try:
        yield client
    except (DockerException, requests.RequestException) as error:
        raise InfraError(f"the Docker daemon at {address(host)} failed: {explanation(error)}") from error
    finally:
        client.close()


def explanation(error: Exception) -> str:
    """Return what the daemon itself said, without the SDK's prose around it."""
    said = error.explanation if isinstance(error, APIError) and error.explanation else innermost(error)
    return " ".join(str(said).split())


def innermost(error: BaseException) -> str:
    """Return the text of the first cause: the SDK and its HTTP library wrap it three times over."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return str(error) or type(error).__name__


def daemon(timeout: int = 10, host: str = "") -> Daemon:
    """Ask the daemon who it is; raises InfraError when it does not answer within `timeout` seconds a call."""
    with connection(timeout, host) as client:
        info = client.info()
    return Daemon(
        version=str(info.get("ServerVersion", "")),
        name=str(info.get("Name", "")),
        architecture=_ARCHITECTURES.get(str(info.get("Architecture", "")), str(info.get("Architecture", ""))),
        nvidia_runtime="nvidia" in (info.get("Runtimes") or {}),
        address=address(host),
        desktop=info.get("OperatingSystem") == "Docker Desktop",
        root=_root(info),
        filters=_filters(info),
    )


def _filters(info: dict[str, Any]) -> bool:
    options = [str(option) for option in info.get("SecurityOptions") or ()]
    return any("name=seccomp" in option and "profile=unconfined" not in option for option in options)


def _root(info: dict[str, Any]) -> str:
    """Return where images are kept: "" where containerd keeps them, whose folder the daemon does not say."""
    of_containerd = any(
        "io.containerd" in str(value) for pair in info.get("DriverStatus") or () for value in pair
    )
    return "" if of_containerd else str(info.get("DockerRootDir") or "")
