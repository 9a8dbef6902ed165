"""Docker's own library, by which a daemon is asked, over the program `docker`, which finds it and runs containers.

`host` is everywhere an address as `docker -H` takes it, such as `ssh://user@host`; "" leaves the choice to Docker:
DOCKER_HOST or the current context.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from harness.errors import InfraError
from harness.scratch import Scratch
from harness.text import clip

if TYPE_CHECKING:
    from docker import APIClient

#: Seconds a question may take; a pull, a build and a copy have their own.
CALL_TIMEOUT = 60.0
#: Seconds between looks whether an answer is still needed.
_TICK = 0.2
#: The addresses of the daemons that have answered, and the version of the interface that each speaks.
MET: dict[str, str] = {}
#: Characters of a command line in a sentence.
_LONGEST = 120
_PREFIX = re.compile(r"^(docker: |Error: |ERROR: )+")
#: Complaints of ssh, and the remedy for each.
_SSH_REMEDIES = {
    "IDENTIFICATION HAS CHANGED": "its host key is not the known one; make sure why, then `ssh-keygen -R`",
    "Host key verification failed": "its host key is not known here; connect once by hand with ssh, and confirm it",
    "Permission denied (": "it takes none of your keys; `ssh-copy-id` brings one there",
}
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


def environment() -> dict[str, str]:
    """Return the environment of the program: the caller's, in which ssh asks for no password."""
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
    for name in ("docker", words[0]):
        if shutil.which(name) is None:
            raise InfraError(f"the program {name} is not installed here")
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
            why = _complaint(words[0], _text(said).strip() or broken)
            if time.monotonic() > end:
                why = f"nothing in {seconds:g} s"
            raise InfraError(f"Docker does not answer at {where}: {why}") from error


@contextlib.contextmanager
def _lines(words: Sequence[str], said: IO[bytes], going: Callable[[], bool]) -> Iterator[str]:
    """Give the path of a Unix socket; each connection has a program behind it, for as long as it is `going` on."""
    closed = threading.Event()

    def serve() -> None:
        with contextlib.ExitStack() as lines:
            while not closed.is_set():
                if not going():
                    lines.close()
                with contextlib.suppress(TimeoutError, InfraError):
                    line, _ = door.accept()
                    with line:
                        if going() and not closed.is_set():
                            lines.callback(_kill, _start(words, line, line, said))

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


def _complaint(name: str, said: str) -> str:
    """Return why a program made no line to a daemon, or why that broke off."""
    if name == "ssh":
        return ssh_trouble(said)
    _, dial, why = said.partition("raw stream connection: ")
    return f"{_line(why)}; does it run, and may you use it?" if dial else _line(said)


def ssh_trouble(text: str) -> str:
    """Return the complaint of ssh, with its remedy."""
    remedy = next((remedy for words, remedy in _SSH_REMEDIES.items() if words in text), "")
    last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no answer")
    return "; ".join(filter(None, (last.rstrip("."), remedy)))


def run_to_end(words: Sequence[str], seconds: float = CALL_TIMEOUT) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; raises InfraError if it is missing or too slow.

    Its output goes to files, so that a grandchild with the pipes in hand, as ssh is, does not delay this. It has a
    session of its own: an interrupt at the terminal must not cut it off, and ssh finds no terminal to ask at.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = _start(words, subprocess.DEVNULL, out, err)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            shown = clip(shlex.join(words).partition("\n")[0], _LONGEST)
            raise InfraError(f"{shown} was not done after {seconds:g} s") from None
        finally:
            _kill(process)
        return subprocess.CompletedProcess(words, process.returncode, _text(out), _text(err))


def _start(words: Sequence[str], stdin: Any, stdout: Any, stderr: Any) -> subprocess.Popen[bytes]:  # noqa: ANN401
    try:
        return subprocess.Popen(
            words, stdin=stdin, stdout=stdout, stderr=stderr, env=environment(), start_new_session=True
        )
    except FileNotFoundError:
        raise InfraError(f"the program {words[0]} is not installed here") from None


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")


def daemon(host: str = "") -> Daemon:
    """Ask the daemon who it is; raises InfraError when it does not answer."""
    try:
        info: Mapping[str, Any] = ask(lambda api: api.info(), host, 20.0)
    except DaemonRefused as error:
        raise InfraError(f"Docker does not answer at {address(host)}: {error}") from error
    machine = str(info.get("Architecture", ""))
    options = [str(option) for option in info.get("SecurityOptions") or ()]
    return Daemon(
        version=str(info.get("ServerVersion", "")),
        name=str(info.get("Name", "")),
        architecture=ARCHITECTURES.get(machine, machine),
        nvidia_runtime="nvidia" in (info.get("Runtimes") or {}),
        address=address(host),
        desktop=info.get("OperatingSystem") == "Docker Desktop",
        filters=any("name=seccomp" in each and "profile=unconfined" not in each for each in options),
    )


def met(host: str = "") -> bool:
    """Tell whether the daemon has answered this process before."""
    return address(host) in MET
