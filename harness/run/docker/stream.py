"""A transport to an agent in a container: the daemon's attach stream, on Unix, TCP, TLS or SSH alike.

Nothing is mounted and nothing is copied in, so that a remote daemon works as a local one does. The stream is
attached before the container starts, so that not a byte is missed.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import struct
import tarfile
import threading
import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import requests
from docker.errors import APIError, DockerException, NotFound

from harness.errors import InfraError
from harness.run.docker.client import connect, explanation, filters, knock
from harness.run.docker.options import UNFILTERED, WEIGHTS, Options, create_arguments
from harness.run.docker.reaper import PROJECT_LABEL, labels, leave
from harness.run.transport.api import LADDER, SEND_TIMEOUT, AgentGoneError, ExitStatus, signal_name
from harness.run.transport.buffers import Deadline, Inbox, Tail

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import docker

_CHUNK = 1 << 18
#: Bytes of a file that are in memory at a time.
_PIECE = 1 << 22
#: Frame header of a multiplexed stream (Docker Engine API, "Attach to a container"): stream, padding, length.
_HEADER = struct.Struct(">BxxxI")
_STDERR = 2
#: Seconds a blocking call on the socket lasts before it looks whether it should go on.
_TICK = 0.5


def split_frames(held: bytearray) -> list[tuple[int, bytes]]:
    """Take the whole frames off the front of what was received: stream (1 output, 2 error) and payload."""
    frames, start = [], 0
    while len(held) - start >= _HEADER.size:
        stream, length = _HEADER.unpack_from(held, start)
        end = start + _HEADER.size + length
        if end > len(held):
            break
        frames.append((stream, bytes(memoryview(held)[start + _HEADER.size : end])))
        start = end
    del held[:start]
    return frames


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


class DockerTransport:
    """The agent as the command of a container of its own."""

    def __init__(self, options: Options, *, target: str, run: str = "", host: str = "") -> None:
        """Create, attach and start; raises InfraError, with nothing left behind, when any of it fails.

        What cannot be removed, as the daemon is gone, is handed to the reaper.
        """
        #: Chosen here: the daemon may make a container and go before it has said what it is called.
        self.name = f"{PROJECT_LABEL}-{uuid.uuid4().hex[:12]}"
        self._inbox, self._tail = Inbox(), Tail()
        self._closed = False
        self._status: ExitStatus | None = None
        self._container: Any = None
        self._stream = _Stream()
        self._host = host
        self._client: docker.DockerClient = connect(host=host)
        try:
            made = create_arguments(self._confined(options), labels(target, run))
            self._container = self._client.containers.create(name=self.name, **made)
            self._stream.attach(self._client, self._container.id)
            self._container.start()
        except InfraError:
            self._discard()
            raise
        except (DockerException, requests.RequestException) as error:
            self._discard()
            raise InfraError(
                f"the container of {target} could not be started: {explanation(error)}"
            ) from error
        self._pump = threading.Thread(target=self._drain, name=f"pump-{self.name}", daemon=True)
        self._pump.start()

    def _confined(self, options: Options) -> Options:
        """Return the options as this daemon can have them; raises InfraError where that is too little."""
        if options.filtered and not filters(self._client, self._host):
            if options.untrusted:
                raise InfraError(f"an untrusted model is not run: {UNFILTERED}")
            return replace(options, filtered=False)
        return options

    def _drain(self) -> None:
        held = bytearray()
        try:
            while data := self._stream.receive():
                held += data
                for stream, payload in split_frames(held):
                    if stream == _STDERR:
                        self._tail.add(payload)
                    else:
                        self._inbox.put(payload)
        except OSError as error:
            self._tail.add(f"\n[the connection to the Docker daemon broke: {error}]\n".encode())
        finally:
            self._inbox.end()

    def send(self, data: bytes, timeout: float = SEND_TIMEOUT) -> None:
        """See `Transport.send`."""
        if self._closed or self._inbox.ended:
            raise AgentGoneError("the agent is gone")
        self._stream.send(data, timeout, lambda: self._inbox.ended)

    def place(self, folder: Path, files: Sequence[str]) -> str:
        """See `Transport.place`: they go in pieces into a volume of the container's, over the daemon's own line."""
        try:
            knock(self._host)
            self._container.put_archive(WEIGHTS, tarred(folder, files))
        except (DockerException, requests.RequestException, OSError) as error:
            raise InfraError(
                f"the weights in {folder} could not be brought into a container: {explanation(error)}"
            ) from error
        return WEIGHTS

    def receive(self, timeout: float | None = None) -> bytes:
        """See `Transport.receive`."""
        return self._inbox.get(timeout)

    def stderr_tail(self) -> str:
        """See `Transport.stderr_tail`."""
        return self._tail.text()

    def alive(self) -> bool:
        """See `Transport.alive`; raises InfraError when the daemon cannot say."""
        return self.exit_status() is None

    def exit_status(self) -> ExitStatus | None:
        """See `Transport.exit_status`; raises InfraError when the daemon cannot say."""
        if self._status is None and self._container is not None:
            try:
                self._status = self._ask()
            except (DockerException, OSError) as error:
                raise InfraError(
                    f"the Docker daemon does not say how the agent is: {explanation(error)}"
                ) from error
        return self._status

    def _ask(self) -> ExitStatus | None:
        knock(self._host)
        try:
            self._container.reload()
        except NotFound:
            return ExitStatus()  # removed by someone else: how it ended went with it
        state: dict[str, Any] = self._container.attrs["State"]
        if state.get("Running") or state.get("Status") == "created":
            return None
        code, out_of_memory = int(state.get("ExitCode", 0)), bool(state.get("OOMKilled"))
        # The container's init reports a command that died of signal n as 128 + n.
        if code > 128:  # noqa: PLR2004
            return ExitStatus(signal=signal_name(code - 128), out_of_memory=out_of_memory)
        return ExitStatus(code=code, out_of_memory=out_of_memory)

    def close(self) -> None:
        """See `Transport.close`; a daemon that no longer answers is left to the reaper."""
        if self._closed:
            return
        self._closed = True
        self._stream.end_input()
        with contextlib.suppress(DockerException, OSError, InfraError):
            for step, seconds in LADDER:
                if step is not None:
                    knock(self._host)
                    with contextlib.suppress(APIError):  # it ended between the question and the signal
                        self._container.kill(signal=step.name)
                if self._ended_within(seconds):
                    break
        self._inbox.end()
        self._stream.close()
        self._pump.join(timeout=2 * _TICK + 1)
        self._discard()

    def _ended_within(self, seconds: float) -> bool:
        deadline = Deadline(seconds)
        while self.alive():
            if deadline.passed():
                return False
            time.sleep(0.02)
        return True

    def _discard(self) -> None:
        self._stream.close()
        try:
            knock(self._host)
            self._client.api.remove_container(self.name, force=True, v=True)
        except NotFound:
            pass  # never made, or removed by someone else
        except (DockerException, OSError):
            leave(self.name)
        self._client.close()


class _Stream:
    """The hijacked connection of one attach call."""

    def __init__(self) -> None:
        self._parts: list[Any] = []
        self._socket: Any = None
        self._open = False

    def attach(self, client: docker.DockerClient, container: str) -> None:
        """Connect to a container, started or not."""
        params = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        wrapper: Any = client.api.attach_socket(container, params=params)
        # A SocketIO around a plain socket; a TLS socket or an SSH channel comes bare.
        self._socket = getattr(wrapper, "_sock", wrapper)
        # The SDK hangs the response on the wrapper to keep it from being collected; it is closed with the stream.
        self._parts = [part for part in (getattr(wrapper, "_response", None), wrapper, self._socket) if part]
        self._socket.settimeout(_TICK)
        self._open = True

    def receive(self) -> bytes:
        """Return the next bytes, b"" at the end."""
        while self._open:
            with contextlib.suppress(TimeoutError):
                return bytes(self._socket.recv(_CHUNK))
        return b""

    def send(self, data: bytes, timeout: float, ended: Any) -> None:  # noqa: ANN401
        """Write all of `data`; `ended` says whether the other end is gone."""
        left, deadline = memoryview(data), Deadline(timeout)
        while left:
            try:
                written = self._socket.send(left[:_CHUNK])
            except TimeoutError as error:
                if ended():
                    raise AgentGoneError("the agent is gone") from error
                if deadline.passed():
                    raise AgentGoneError(f"the agent read nothing for {timeout:g} s") from error
                continue
            except OSError as error:
                raise AgentGoneError(f"the agent is gone: {error}") from error
            left, deadline = left[written:], Deadline(timeout)

    def end_input(self) -> None:
        """Let the agent see the end of its input; its output can still be read."""
        with contextlib.suppress(OSError):
            if hasattr(self._socket, "shutdown_write"):  # an SSH channel
                self._socket.shutdown_write()
            else:
                self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close the connection; a thread that waits in `receive` returns."""
        self._open = False
        for part in self._parts:
            with contextlib.suppress(OSError):
                part.close()
