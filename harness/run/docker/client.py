"""The program `docker`, by which everything is asked of a daemon: a host's, DOCKER_HOST's or the current context's.

`host` is everywhere an address as `docker -H` takes it, such as `ssh://user@host`; "" leaves the choice to Docker.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from harness.errors import InfraError
from harness.text import clip

#: Seconds a question may take; a pull, a build and a copy have their own.
CALL_TIMEOUT = 60.0
#: Seconds between looks at a program that runs.
_TICK = 0.2
#: The addresses of the daemons that have answered to `daemon`.
MET: set[str] = set()
#: How the program reports that no daemon answered; other failures are the daemon's own answer.
_ABSENT = re.compile(
    r"Cannot connect to the Docker daemon|error during connect|failed to connect to the docker API"
    r"|trying to connect to the (Docker daemon|docker API)|[Uu]nable to resolve docker endpoint|context not found"
)
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


class DaemonRefused(InfraError):
    """The daemon answered with an error; the text is its own, on one line. `out` is the program's output before."""

    def __init__(self, text: str, out: str = "") -> None:
        super().__init__(text)
        self.out = out


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
    *words: str,
    host: str = "",
    seconds: float = CALL_TIMEOUT,
    stdin: IO[bytes] | int = subprocess.DEVNULL,
    needed: Callable[[], bool] = lambda: True,
    hear: Callable[[str], None] = lambda _: None,
) -> str:
    """Run `docker` and return its output; raises DaemonRefused if the daemon says no, InfraError if it is silent.

    `hear` is called with the output so far, as it grows. Raises InfraError as well when `needed` returns False.
    """
    done = run_to_end([*program(host), *words], seconds, stdin=stdin, needed=needed, hear=hear)
    if done.returncode and _ABSENT.search(done.stderr):
        raise _silent(host, done.stderr)
    if done.returncode:
        raise DaemonRefused(reason(done.stderr), done.stdout)
    return done.stdout


def reason(text: str) -> str:
    """Return a complaint of the program on one line, without its prefixes."""
    # Warnings come before: of an older builder, for example.
    text = text.rpartition("Error response from daemon: ")[2]
    lines = [line.strip() for line in text.splitlines() if "docker run --help" not in line]
    return _PREFIX.sub("", " ".join(" ".join(lines).split())).rstrip(".") or "docker does not say why"


def _shown(words: Sequence[str]) -> str:
    """Return the start of a command line: of a script its shell, of ssh the host too."""
    return clip(shlex.join(words).partition("\n")[0], _LONGEST)


def run_to_end(
    words: Sequence[str],
    seconds: float = CALL_TIMEOUT,
    *,
    stdin: IO[bytes] | int = subprocess.DEVNULL,
    needed: Callable[[], bool] = lambda: True,
    hear: Callable[[str], None] = lambda _: None,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; raises InfraError if it is missing, too slow, or no longer `needed`.

    Its output goes to files, so that a grandchild with the pipes in hand, as ssh is, does not delay this. It has a
    session of its own: an interrupt at the terminal must not cut it off, and ssh finds no terminal to ask at.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                words, stdin=stdin, stdout=out, stderr=err, env=environment(), start_new_session=True
            )
        except FileNotFoundError:
            raise InfraError(f"the program {words[0]} is not installed here") from None
        end = time.monotonic() + seconds
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_TICK)
                hear(_text(out))
                if process.returncode is not None:
                    return subprocess.CompletedProcess(words, process.returncode, _text(out), _text(err))
                if not needed():
                    raise InfraError(f"{_shown(words)} was given up")
                if time.monotonic() > end:
                    raise InfraError(f"{_shown(words)} was not done after {seconds:g} s")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _text(file: IO[bytes]) -> str:
    # Not by `read`, which would move the place that the program writes at.
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode("utf-8", "replace")


def _silent(host: str, text: str) -> InfraError:
    """Return the error for a daemon that does not answer."""
    ssh = text.partition("stderr=")[2] or (text if address(host).startswith("ssh://") else "")
    why = ssh_trouble(ssh) if ssh else reason(text)
    why = re.sub(
        r"^Cannot connect to the Docker daemon at \S+ Is (the docker daemon running\?)",
        r"no connection (is \1)",
        why,
    )
    return InfraError(f"Docker does not answer at {address(host)}: {why}")


def ssh_trouble(text: str) -> str:
    """Return the complaint of ssh, with its remedy."""
    remedy = next((remedy for words, remedy in _SSH_REMEDIES.items() if words in text), "")
    last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no answer")
    return "; ".join(filter(None, (last.rstrip("."), remedy)))


def daemon(host: str = "") -> Daemon:
    """Ask the daemon who it is; raises InfraError when it does not answer."""
    try:
        text = ask("info", "--format", "{{json .}}", host=host, seconds=20.0)
        info: Mapping[str, Any] = json.loads(text)
    except DaemonRefused as error:
        raise InfraError(f"Docker does not answer at {address(host)}: {error}") from error
    except ValueError as error:
        raise InfraError(f"Docker's answer at {address(host)} cannot be read: {error}") from error
    # The program of 20.10 exits with 0 if no daemon answers.
    if errors := info.get("ServerErrors"):
        raise _silent(host, str(errors[0]))
    MET.add(address(host))
    machine = str(info.get("Architecture", ""))
    return Daemon(
        version=str(info.get("ServerVersion", "")),
        name=str(info.get("Name", "")),
        architecture=ARCHITECTURES.get(machine, machine),
        nvidia_runtime="nvidia" in (info.get("Runtimes") or {}),
        address=address(host),
        desktop=info.get("OperatingSystem") == "Docker Desktop",
        filters=_filters(info),
    )


def _filters(info: Mapping[str, Any]) -> bool:
    options = [str(option) for option in info.get("SecurityOptions") or ()]
    return any("name=seccomp" in option and "profile=unconfined" not in option for option in options)


def met(host: str = "") -> bool:
    """Tell whether the daemon has answered this process before."""
    return address(host) in MET
