"""How a container is confined: the arguments of `docker run`, for an agent and for the line to paste."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

#: Nobody: neither root nor an account that owns anything in an image or on a host that mounts one.
USER = "65534:65534"
PIDS = 1024
ALL_GPUS = ("all",)
TMPFS_MIB = 1024
#: Shared memory: Docker's own default, which a daemon's configuration may have raised.
SHM_MIB = 64
#: Limits of every process, soft and hard: no core files, no file larger than /tmp is, no descriptors without end, and
#: what POSIX message queues of the user may hold. None is above what any machine has: a container could not raise it.
LIMITS = {"core": 0, "fsize": TMPFS_MIB << 20, "msgqueue": 1 << 19, "nofile": 1024}
#: Of an untrusted model: processors at most, and its share of them where others want them too; 1024 is usual.
UNTRUSTED_CPUS = 4
UNTRUSTED_SHARES = 512
_PERIOD_US = 100_000
#: Why a daemon runs no untrusted model.
UNFILTERED = "the kernel of its Docker daemon cannot refuse system calls to a container (it has no seccomp)"
#: Where a container has weights that lie beside a model.
WEIGHTS = "/weights"
#: The group that owns a Jetson's GPU devices; its number, as an image need not know its name.
JETSON_VIDEO_GROUP = "44"


@dataclass(frozen=True)
class Options:
    """One container: `argv` follows the interpreter `python`; `gpus` are UUIDs, or "all" alone.

    `jetson` starts it with the NVIDIA runtime, which is how a Jetson's integrated GPU gets in; `groups` are the
    numbers of those that own its render node: on JetPack 6 CUDA is reported to start for root alone without them.
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

    @property
    def tmpfs(self) -> str:
        """Mount options of /tmp. `exec`, because a plugin library is loaded from there."""
        return f"rw,exec,nosuid,nodev,mode=1777,size={TMPFS_MIB}m"

    @property
    def added_groups(self) -> tuple[str, ...]:
        """Groups of the user in a Jetson's container, each once."""
        return tuple(dict.fromkeys((JETSON_VIDEO_GROUP, *self.groups)))

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables beyond the image's own."""
        jetson = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "all"} if self.jetson else {}
        return {"HOME": "/tmp", "LANG": "C.UTF-8"} | jetson  # noqa: S108  (the only writable place)


def program(host: str = "") -> list[str]:
    """Return the start of a line that asks a host's daemon."""
    return ["docker", "-H", host] if host else ["docker"]


def limits(*, untrusted: bool) -> tuple[str, ...]:
    """Return what holds in each container, in words, a line a thing; in that of an untrusted model there is more."""
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
    """Return what follows `docker run -i`."""
    words = ["--platform", options.platform, "--network", "none", "--read-only", "--cap-drop", "ALL"]
    words += ["--security-opt", "no-new-privileges", "--user", USER]
    words += ["--memory", f"{options.memory_mib}m", "--memory-swap", f"{options.memory_mib}m"]
    words += ["--pids-limit", str(PIDS), "--tmpfs", f"/tmp:{options.tmpfs}", "--workdir", "/tmp"]  # noqa: S108
    words += ["--ipc", "private", "--shm-size", f"{SHM_MIB}m"]
    # The agent is to be the container's first process: nothing in there can kill or stop that one. The default log
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
    for name, value in options.environment.items():
        words += ["--env", f"{name}={value}"]
    if options.jetson:
        words += ["--runtime", "nvidia"]
        words += [word for group in options.added_groups for word in ("--group-add", group)]
    elif options.gpus:
        # The inner quotes are for Docker, which reads the value as comma-separated fields.
        words += ["--gpus", "all" if options.gpus == ALL_GPUS else f'"device={",".join(options.gpus)}"']
    # NGC images have an entry point that greets on standard output, which is the agent's stream.
    return [*words, "--entrypoint", options.python, options.image, *options.argv]
