"""An agent in a container: `docker run -i` as a child process, asked by the daemon how it ended, and removed.

Nothing is mounted and nothing is copied in, so that a remote daemon works as a local one does.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tarfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import docker
from docker.errors import APIError, NotFound

from harness.errors import InfraError
from harness.run.docker.client import connection, endpoint
from harness.run.docker.options import WEIGHTS, Options, arguments, program
from harness.run.docker.reaper import PROJECT_LABEL, labels, leave
from harness.run.transport.process import ExitStatus, ProcessTransport, signal_name

#: Bytes of a file that are in memory at a time.
_PIECE = 1 << 22
#: Seconds an agent may take to end when its input has, and one that was killed.
_ENDS, _DIES = 2.0, 5.0
#: The exit codes of `docker run` where the daemon made no container, or started nothing in it.
_NOT_STARTED = range(125, 128)
_NEVER = "0001-"


def tarred(folder: Path, files: Sequence[str]) -> Iterator[bytes]:
    """Yield an archive of files in pieces, as it is read; raises OSError for one that became shorter meanwhile."""
    for name in files:
        path = folder / name
        head = tarfile.TarInfo(name)
        head.size, head.mode = path.stat().st_size, 0o444
        yield head.tobuf(tarfile.PAX_FORMAT)
        left = head.size
        with path.open("rb") as file:
            while left:
                piece = file.read(min(left, _PIECE))
                if not piece:
                    raise OSError(errno.EIO, f"{path} became shorter while it was read")
                left -= len(piece)
                yield piece
        yield bytes(-head.size % tarfile.BLOCKSIZE)
    yield bytes(2 * tarfile.BLOCKSIZE)


class DockerTransport(ProcessTransport):
    """The agent as the command of a container of its own, behind the program `docker`."""

    def __init__(self, options: Options, *, target: str, run: str = "", host: str = "") -> None:
        """Start it; raises InfraError without a `docker` program or a way to its daemon.

        What the daemon refuses is learnt from `exit_status`, as the end of the agent.
        """
        if shutil.which("docker") is None:
            raise InfraError(
                "the program docker, which runs containers, is not installed here; or run with --via venv"
            )
        #: Chosen here: the daemon may make a container and go before it has said what it is called.
        self.name = f"{PROJECT_LABEL}-{uuid.uuid4().hex[:12]}"
        self._target, self._host = target, host
        self._ended: ExitStatus | None = None
        words = [*program(endpoint(host)), "run", "-i", "--pull", "never", "--name", self.name]
        for name, value in labels(target, run).items():
            words += ["--label", f"{name}={value}"]
        super().__init__([*words, *arguments(options)], environment=os.environ)

    def place(self, folder: Path, files: Sequence[str]) -> str:
        """See `Transport.place`: they go in pieces into a volume of the container's, over the daemon's own line."""
        try:
            with connection(host=self._host) as client:
                client.api.put_archive(self.name, WEIGHTS, tarred(folder, files))
        except (InfraError, OSError) as error:
            raise InfraError(
                f"the weights in {folder} could not be brought into a container: {error}"
            ) from error
        return WEIGHTS

    def exit_status(self) -> ExitStatus | None:
        """See `Transport.exit_status`; raises InfraError where it was not started, or the daemon cannot say."""
        if self._ended is None and not self._closed and not self._running():
            with connection(host=self._host) as client:
                self._ended = self._asked(client)
        return self._ended

    def _asked(self, client: docker.DockerClient) -> ExitStatus | None:
        """Return how the container ended, None where only the line to it did; raises InfraError if it never ran."""
        try:
            state: Mapping[str, object] = client.api.inspect_container(self.name)["State"]
        except NotFound:
            state = {}
        code = self._status.code if self._status else None
        if code in _NOT_STARTED and str(state.get("StartedAt", _NEVER)).startswith(_NEVER):
            self._pump.join(_ENDS)
            raise InfraError(
                f"the container of {self._target} could not be started: {_refusal(self.stderr_tail())}"
            )
        if not state:
            return ExitStatus()  # removed by someone else: how it ended went with it
        if state.get("Running"):
            return None
        code, out_of_memory = int(str(state.get("ExitCode", 0))), bool(state.get("OOMKilled"))
        # The daemon reports a command that died of signal n as 128 + n.
        if code > 128:  # noqa: PLR2004
            return ExitStatus(signal=signal_name(code - 128), out_of_memory=out_of_memory)
        return ExitStatus(code=code, out_of_memory=out_of_memory)

    def _end(self) -> None:
        """Kill what does not end by itself, and remove the container; the reaper does where the daemon is gone."""
        ended = self._ended_within(_ENDS)
        try:
            with connection(host=self._host) as client:
                if not ended:
                    with contextlib.suppress(APIError):
                        client.api.kill(self.name)
                    ended = self._ended_within(_DIES)
                with contextlib.suppress(InfraError):
                    self._ended = self._ended or self._asked(client)
                with contextlib.suppress(NotFound):
                    client.api.remove_container(self.name, force=True, v=True)
        except InfraError:
            ended = False
        if not ended:
            leave(self.name)


def _refusal(tail: str) -> str:
    """Return the daemon's own words from what `docker run` complains of."""
    lines = [line.strip() for line in tail.splitlines() if line.strip() and "docker run --help" not in line]
    said = " ".join(" ".join(lines).split()).removeprefix("docker: ")
    return said.removeprefix("Error response from daemon: ").rstrip(".") or "docker does not say why"
