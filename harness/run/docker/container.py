"""An agent in a container: `docker run -i` as a child process, inspected when it has ended, and removed.

It has no mount of the host, so that a remote daemon works as a local one does.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import tarfile
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import InfraError
from harness.run.docker.client import DaemonRefused, ask, program, reason
from harness.run.docker.reaper import PROJECT_LABEL, inspect, labels, remove
from harness.run.transport import ExitStatus, ProcessTransport, no_questions, signal_name

#: Neither root nor an account that owns anything in an image or on a host that mounts one.
USER = "65534:65534"
PIDS = 1024
ALL_GPUS = ("all",)
TMPFS_MIB = 1024
#: Shared memory: Docker's own default, which a daemon's configuration may have raised.
SHM_MIB = 64
#: Limits of every process, soft and hard: no core files, no file larger than /tmp is, no descriptors without end, and
#: a bound on POSIX message queues. Each is at most any machine's default: a container could not raise it.
LIMITS = {"core": 0, "fsize": TMPFS_MIB << 20, "msgqueue": 1 << 19, "nofile": 1024}
#: An untrusted model's processors at most, and its share of contended ones; 1024 is usual.
UNTRUSTED_CPUS = 4
UNTRUSTED_SHARES = 512
_PERIOD_US = 100_000
#: Why a daemon runs no untrusted model.
UNFILTERED = "the kernel of its Docker daemon cannot refuse system calls to a container (it has no seccomp)"
#: The folder in a container of weights that lie beside a model.
WEIGHTS = "/weights"
#: The group that owns a Jetson's GPU devices; its number, as an image need not know its name.
JETSON_VIDEO_GROUP = "44"
#: Seconds an agent may take to end when its input has, and one that was killed.
_ENDS, _DIES = 2.0, 5.0
#: Seconds to bring weights into a container.
_PLACING = 3600.0
_PIECE = 1 << 16
#: The exit codes of `docker run` if the daemon made no container, or started no process in it.
_NOT_STARTED = range(125, 128)
_NEVER = "0001-"


@dataclass(frozen=True)
class Options:
    """One container: `argv` follows the interpreter `python`; `gpus` are UUIDs, or "all" alone.

    `jetson` starts it with the NVIDIA runtime, which brings in a Jetson's integrated GPU; `groups` are the numbers of
    the owners of its render node: on JetPack 6 CUDA is reported to start for root alone without them.
    `untrusted` limits processors as well. `weights` gives it a volume of its own for files of gigabytes, which goes
    with it.
    """

    image: str
    platform: str
    python: str
    argv: tuple[str, ...]
    memory_mib: int
    gpus: tuple[str, ...] = ()
    jetson: bool = False
    groups: tuple[str, ...] = ()
    untrusted: bool = False
    weights: bool = False


def limits(*, untrusted: bool) -> tuple[str, ...]:
    """Return the confinement of each container in words, a line a thing; an untrusted model's has a line more."""
    most = f"{PIDS} processes, {LIMITS['nofile']} open files a process, {SHM_MIB} MiB of /dev/shm"
    shared = (
        "no network, no capabilities, no new privileges, nobody's user, no device but its target's GPUs",
        f"a read-only root, a /tmp of {TMPFS_MIB} MiB; processes and shared memory of its own",
        f"its target's memory, {most}, the system calls of Docker's own profile",
    )
    own = f"a container for each cell, removed after it; {UNTRUSTED_CPUS} processors, at half the usual share"
    return (*shared, own) if untrusted else shared


def command_line(options: Options, host: str = "") -> str:
    """Return `docker run` with these options, quoted for a POSIX shell; it removes its container."""
    return shlex.join([*program(host), "run", "--rm", "-i", *arguments(options)])


def arguments(options: Options) -> list[str]:
    """Return the words after `docker run -i`."""
    words = ["--platform", options.platform, "--network", "none", "--read-only", "--cap-drop", "ALL"]
    words += ["--security-opt", "no-new-privileges", "--user", USER]
    words += ["--memory", f"{options.memory_mib}m", "--memory-swap", f"{options.memory_mib}m"]
    # `exec`, because a plugin library is loaded from /tmp.
    tmpfs = f"/tmp:rw,exec,nosuid,nodev,mode=1777,size={TMPFS_MIB}m"  # noqa: S108
    words += ["--pids-limit", str(PIDS), "--tmpfs", tmpfs, "--workdir", "/tmp"]  # noqa: S108
    words += ["--ipc", "private", "--shm-size", f"{SHM_MIB}m"]
    # The agent is to be the container's first process: no process in there can kill or stop that one. The default log
    # driver would write every model and tensor that crosses the stream to the daemon's disk.
    words += ["--init=false", "--log-driver", "none"]
    for name, most in LIMITS.items():
        words += ["--ulimit", f"{name}={most}:{most}"]
    if options.untrusted:
        # A quota, and not "cpus": a machine with fewer refuses that.
        words += ["--cpu-period", str(_PERIOD_US), "--cpu-quota", str(UNTRUSTED_CPUS * _PERIOD_US)]
        words += ["--cpu-shares", str(UNTRUSTED_SHARES)]
    # Without a name: whoever removes the container, the reaper too, removes it. Its files are root's.
    words += ["--mount", f"type=volume,target={WEIGHTS}"] if options.weights else []
    words += ["--env", "HOME=/tmp", "--env", "LANG=C.UTF-8"]
    if options.jetson:
        words += ["--env", "NVIDIA_VISIBLE_DEVICES=all", "--env", "NVIDIA_DRIVER_CAPABILITIES=all"]
        words += ["--runtime", "nvidia"]
        for group in dict.fromkeys((JETSON_VIDEO_GROUP, *options.groups)):
            words += ["--group-add", group]
    elif options.gpus:
        # The inner quotes are for Docker, which reads the value as comma-separated fields.
        words += ["--gpus", "all" if options.gpus == ALL_GPUS else f'"device={",".join(options.gpus)}"']
    # NGC images have an entry point that greets on standard output, which is the agent's stream.
    return [*words, "--entrypoint", options.python, options.image, *options.argv]


class DockerTransport(ProcessTransport):
    """The agent as the command of a container of its own, behind the program `docker`."""

    def __init__(self, options: Options, *, target: str, run: str = "", host: str = "") -> None:
        """Start it; a refusal of the daemon shows in `exit_status`, as the end of the agent."""
        #: Chosen here: the daemon may make a container and go before it has named it.
        self.name = f"{PROJECT_LABEL}-{uuid.uuid4().hex[:12]}"
        self._target, self._host = target, host
        self._ended: ExitStatus | None = None
        words = [*program(host), "run", "-i", "--pull", "never", "--name", self.name]
        for name, value in labels(target, run).items():
            words += ["--label", f"{name}={value}"]
        super().__init__([*words, *arguments(options)], environment=no_questions())

    def place(self, folder: Path, files: Sequence[str]) -> str:
        """Bring files in pieces into a volume of the container's, over the daemon's own line, and return its folder."""
        try:
            ask(lambda api: api.put_archive(self.name, WEIGHTS, archive(folder, files)), self._host, _PLACING)
        except InfraError as error:
            raise InfraError(
                f"the weights in {folder} could not be brought into a container: {error}"
            ) from error
        return WEIGHTS

    def exit_status(self) -> ExitStatus | None:
        """Return how the agent ended; raises InfraError if it was not started, or the daemon cannot say."""
        if self._ended is None and not self._closed and not self._running():
            self._ended = self._inspected()
        return self._ended

    def _inspected(self) -> ExitStatus | None:
        """Return how the container ended, None if only the line to it did; raises InfraError if it never ran."""
        state = inspect(self.name, self._host).get("State", {})
        code = self._status.code if self._status else None
        if code in _NOT_STARTED and str(state.get("StartedAt", _NEVER)).startswith(_NEVER):
            self._pump.join(_ENDS)
            raise InfraError(
                f"the container of {self._target} could not be started: {reason(self.stderr_tail())}"
            )
        if not state:
            return ExitStatus()  # removed by someone else: how it ended went with it
        if state.get("Running"):
            return None
        code, out_of_memory = int(state.get("ExitCode", 0)), bool(state.get("OOMKilled"))
        # The daemon reports a command that died of signal n as 128 + n.
        if code > 128:  # noqa: PLR2004
            return ExitStatus(signal=signal_name(code - 128), out_of_memory=out_of_memory)
        return ExitStatus(code=code, out_of_memory=out_of_memory)

    def _end(self) -> None:
        """Kill an agent that does not end by itself; remove the container, or leave it to the next run's reaper."""
        with contextlib.suppress(InfraError):
            if not self._ended_within(_ENDS):
                with contextlib.suppress(DaemonRefused):
                    ask(lambda api: api.kill(self.name), self._host)
                self._ended_within(_DIES)
            with contextlib.suppress(InfraError):
                self._ended = self._ended or self._inspected()
            remove(self.name, self._host)


def archive(folder: Path, files: Sequence[str]) -> Iterator[bytes]:
    """Yield files that everybody may read as a tar archive, in pieces; raises InfraError for one whose size changes."""
    for name in files:
        try:
            with (folder / name).open("rb") as file:
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = os.fstat(file.fileno()).st_size, 0o444
                yield entry.tobuf()
                yield from iter(lambda: file.read(_PIECE), b"")
                if file.tell() != entry.size:
                    raise InfraError(f"{name} changed its size meanwhile")
                yield bytes(-entry.size % tarfile.BLOCKSIZE)
        except OSError as error:
            raise InfraError(str(error)) from error
    yield bytes(2 * tarfile.BLOCKSIZE)
