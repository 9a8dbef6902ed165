"""Docker's own library, by which a daemon is asked, over the program `docker`, which finds it and runs containers.

`host` is everywhere an address as `docker -H` takes it, such as `ssh://user@host`; "" leaves the choice to Docker:
DOCKER_HOST or the current context.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import IO, TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from harness.errors import InfraError
from harness.run.transport import complaint, kill, output, run_to_end, ssh_line, start
from harness.scratch import Scratch

if TYPE_CHECKING:
    from docker import APIClient

#: Seconds a question may take; a pull, a build and a copy have their own.
CALL_TIMEOUT = 60.0
#: Seconds between looks whether an answer is still needed.
_TICK = 0.2
#: The addresses of the daemons that have answered, and the version of the interface that each speaks.
MET: dict[str, str] = {}
_PREFIX = re.compile(r"^(docker: |Error: |ERROR: )+")
#: Docker's words for the architectures of machines.
ARCHITECTURES = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64"}
_Answer = TypeVar("_Answer")
#: One of a pull or a build, as the daemon writes it.
Event = dict[str, Any]


class DaemonRefused(InfraError):
    """The daemon answered with an error; the text is its own, on one line. `status` is that of HTTP, 0 without one."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class Daemon:
    """A daemon and its machine: host name, architecture (amd64 or arm64).

    `desktop` is True for Docker Desktop, whose daemon runs in a virtual machine of its own on the caller's machine.
    `filters` tells whether its kernel can refuse system calls to a container.
    """

    version: str
    name: str
    architecture: str
    nvidia_runtime: bool
    address: str
    desktop: bool = False
    filters: bool = True


def program(host: str = "") -> list[str]:
    """Return the start of a line that asks a host's daemon."""
    return ["docker", "-H", host] if host else ["docker"]


def address(host: str = "") -> str:
    """Return the daemon's address: a target's host, DOCKER_HOST, or the current context's address; no password."""
    found = host or os.environ.get("DOCKER_HOST") or _of_context(os.environ.get("DOCKER_CONTEXT", ""))
    return re.sub(r"://([^:/@]*):[^/@]*@", r"://\1:...@", found)


@functools.cache
def _of_context(name: str) -> str:
    words = ["docker", "context", "inspect", *([name] if name else [])]
    found = ""
    with contextlib.suppress(InfraError):
        found = run_to_end([*words, "--format", "{{.Endpoints.docker.Host}}"]).stdout.strip()
    return found or (f"the context {name}" if name else "unix:///var/run/docker.sock")


def ask(
    question: Callable[[APIClient], _Answer],
    host: str = "",
    seconds: float = CALL_TIMEOUT,
    needed: Callable[[], bool] = lambda: True,
) -> _Answer:
    """Put a question to a daemon; raises DaemonRefused if it says no, InfraError if it is silent or not `needed`.

    The library is given a socket of ours, and the program makes the line behind it, as over ssh it always does. The
    library's own lines are not the program's: it finds no context without a config.json beside it (7.2), which
    `docker context create` does not write; it takes no CA alone; its ssh needs paramiko, asks at the terminal, and
    loses the complaints. And a read of its cannot be ended from outside.
    """
    from docker.errors import APIError, DockerException  # noqa: PLC0415
    from requests import RequestException  # noqa: PLC0415
    from urllib3.exceptions import HTTPError  # noqa: PLC0415

    from docker import APIClient  # noqa: PLC0415  (they take a sixth of a second)

    words = _line_to(host)
    where, end = address(host), time.monotonic() + seconds
    with tempfile.TemporaryFile() as said:
        try:
            with _lines(words, said, lambda: needed() and time.monotonic() < end) as path:
                # Without a version the library asks for it, which is another line.
                client = APIClient(f"unix://{path}", MET.get(where), int(seconds))
                MET[where] = client.api_version
                with contextlib.closing(client):
                    return question(client)
        except APIError as error:
            raise DaemonRefused(_line(error.explanation or str(error)), error.status_code or 0) from error
        except (DockerException, RequestException, HTTPError) as error:
            if not needed():
                raise InfraError(f"a question to Docker at {where} was given up") from error
            broken = "the line broke off" if isinstance(error, HTTPError) else str(error)
            why = f"nothing in {seconds:g} s" if time.monotonic() > end else complaint(output(said) or broken)
            raise InfraError(f"Docker does not answer at {where}: {why}") from error


def find(question: Callable[[APIClient], _Answer], host: str = "") -> _Answer | None:
    """Return an answer as `ask` does, None for a thing that the daemon does not have."""
    try:
        return ask(question, host)
    except DaemonRefused as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
    return None


@contextlib.contextmanager
def _lines(words: Sequence[str], said: IO[bytes], going: Callable[[], bool]) -> Iterator[str]:
    """Give the path of a Unix socket; each connection has a program behind it, for as long as it is `going` on."""
    closed = threading.Event()

    def serve() -> None:
        with contextlib.ExitStack() as lines:
            while not closed.is_set():
                if not going():
                    lines.close()
                with contextlib.suppress(TimeoutError), door.accept()[0] as line:
                    try:
                        if going() and not closed.is_set():
                            lines.callback(kill, start(words, line, line, said))
                    except InfraError as error:
                        said.write(str(error).encode())

    with Scratch(sockets=True) as folder, socket.socket(socket.AF_UNIX) as door:
        door.bind(f"{folder}/docker")
        door.listen()
        door.settimeout(_TICK)
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"{folder}/docker"
        finally:
            closed.set()
            with socket.socket(socket.AF_UNIX) as knock:
                knock.connect(f"{folder}/docker")
            thread.join()


def _line_to(host: str) -> list[str]:
    """Return the words of the program that is a line to a daemon."""
    where, words = address(host), ["system", "dial-stdio"]
    if not where.startswith("ssh://"):
        return [*program(host), *words]
    # As the program does it, but once: it asks for a version first, by a line of its own.
    path = urlsplit(where).path
    return ssh_line(where, [*program(f"unix://{path}" if path else ""), *words])


def follow(
    begin: Callable[[APIClient], Iterable[Event]],
    hear: Callable[[Event], None],
    host: str = "",
    seconds: float = CALL_TIMEOUT,
    needed: Callable[[], bool] = lambda: True,
) -> None:
    """Let `hear` have the events of a pull or a build as they come; raises as `ask` does, and for an error among them.

    It begins without the user's credentials if the program that keeps them fails, as `docker pull` does: the
    config.json of Docker Desktop may name a program that is not here, and most images need nobody's credentials.
    """

    def listen(api: APIClient) -> None:
        from docker.errors import APIError, DockerException  # noqa: PLC0415

        try:
            events = begin(api)
        except APIError:
            raise
        except DockerException:
            with tempfile.NamedTemporaryFile("w") as nobodys:
                # An empty file would be passed over, for the user's own again.
                nobodys.write('{"auths": {"nobody": {}}}')
                nobodys.flush()
                api.reload_config(nobodys.name)
            events = begin(api)
        failed = ""
        for event in events:
            # It is the last: a stream that was not read to its end would stay open.
            failed = str(event.get("error", ""))
            hear(event)
        if failed:
            raise DaemonRefused(_line(failed))

    ask(listen, host, seconds, needed)


def _line(text: str) -> str:
    """Return a daemon's complaint on one line."""
    return " ".join(text.split()).rstrip(".") or "docker does not say why"


def reason(text: str) -> str:
    """Return a complaint of `docker run` on one line, without its prefixes."""
    text = text.rpartition("Error response from daemon: ")[2]
    return _line(
        _PREFIX.sub("", "\n".join(line for line in text.splitlines() if "docker run --help" not in line))
    )


def daemon(host: str = "") -> Daemon:
    """Ask the daemon who it is; raises InfraError when it does not answer, or no program could run containers."""
    if shutil.which("docker") is None:
        raise InfraError("the program docker is not installed here")
    try:
        info: Mapping[str, Any] = ask(lambda api: api.info(), host, 20.0)
    except DaemonRefused as error:
        raise InfraError(f"Docker does not answer at {address(host)}: {error}") from error
    machine = info.get("Architecture", "")
    return Daemon(
        version=info.get("ServerVersion", ""),
        name=info.get("Name", ""),
        architecture=ARCHITECTURES.get(machine, machine),
        nvidia_runtime="nvidia" in (info.get("Runtimes") or {}),
        address=address(host),
        desktop=info.get("OperatingSystem") == "Docker Desktop",
        filters=any(
            "name=seccomp" in each and "profile=unconfined" not in each
            for each in info.get("SecurityOptions") or ()
        ),
    )


def met(host: str = "") -> bool:
    """Tell whether the daemon has answered this process before."""
    return address(host) in MET
