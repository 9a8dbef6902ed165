"""The GPUs of this machine, dealt out to the targets of a run; how jobs share a device; and who else is on one."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.run import trace
from harness.run.docker import ALL_GPUS
from harness.run.provision.cache import holders, locked

#: Seconds to wait for nvidia-smi.
_PATIENCE = 10
#: Seconds that a device is waited for. Its holder is a job with a time-out of its own, and the lock ends with that.
WAIT = 24 * 3600.0
#: Builds at once on one GPU at most, and the GPU's memory that each is given room for. The GPU is dealt to processes
#: in slices: with 10 or 15 of them TensorRT 8.6 and 10.6 built no faster than with 6 (docs/benchmarks.md).
MOST_BUILDS, BUILD_MIB = 6, 4096
#: The memory that an unknown GPU is taken to have: its preflight is not to wait for the first of all places.
_UNKNOWN = MOST_BUILDS * BUILD_MIB
#: The lock that those hold who wait for a device alone, or have it.
_WAITING = "-waiting"
_LISTED = "gpu_uuid,pid,process_name"
#: What nvidia-smi said of a GPU, and when.
_answered: dict[str, tuple[float, str]] = {}
#: No processes of others: MPS works for those that it lists beside itself, and a child that ends has no name any more.
_NOBODY = ("nvidia-cuda-mps-server", "[No data]")
#: Words of the program that starts an agent.
_AGENT = b"from harness.agent.serve import main"


class Gpus:
    """Deals out GPUs, so that targets run side by side on several; safe between threads.

    `first` is the start of the dealing: the number of this process among those that deal from the same GPUs.
    """

    def __init__(self, first: int = 0) -> None:
        self._first = first
        self._held: Counter[str] = Counter()
        self._lock = threading.Lock()

    def take(self, choices: Sequence[str]) -> tuple[str, ...]:
        """Return the one of these UUIDs that is dealt out least; unchanged if no GPU is known."""
        if not choices or tuple(choices) == ALL_GPUS:
            return tuple(choices)
        start = self._first % len(choices)
        with self._lock:
            chosen = min((*choices[start:], *choices[:start]), key=lambda uuid: self._held[uuid])
            self._held[chosen] += 1
        return (chosen,)

    def give_back(self, gpus: Sequence[str]) -> None:
        """Take GPUs back."""
        with self._lock:
            self._held.subtract(gpus)


@dataclass(frozen=True)
class Device:
    """A device that jobs share: its UUID, or "cpu"; `machine` is whose it is, "" for this one's.

    Every machine has a "cpu", and boards may share a UUID. Who waits stands in a line with those of other processes,
    for `wait` seconds and while `needed` says so.
    """

    name: str
    needed: Callable[[], bool]
    machine: str = ""
    #: Its memory in MiB, 0 if unknown.
    memory_mib: int = 0
    wait: float = WAIT

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold it alone between workers and processes, for a timed run.

        Builds that are under way are waited for, and no other begins that came later.
        """
        with contextlib.ExitStack() as held:
            with trace.span("wait for the device alone", device=self.name):
                held.enter_context(self._locked(f"{self._lock}{_WAITING}", shared=True))
                held.enter_context(self._locked(self._lock, in_line=True))
            with trace.span("device held alone", device=self.name):
                yield

    def wanted(self) -> bool:
        """Tell whether anybody waits to hold it alone, or does."""
        return bool(holders(f"{self._lock}{_WAITING}", 1, shared=False))

    @contextmanager
    def among_builds(self) -> Iterator[Callable[[], int]]:
        """Hold a place for a build beside others; gives a function that counts these now."""
        places, name = (
            max(1, min(MOST_BUILDS, (self.memory_mib or _UNKNOWN) // BUILD_MIB)),
            f"{self._lock}-build",
        )
        with contextlib.ExitStack() as held:
            with trace.span("wait for a place to build", device=self.name):
                held.enter_context(self._locked(name, places=places))
                held.enter_context(self._locked(self._lock, shared=True, in_line=True))
            yield lambda: holders(name, places) - 1

    @property
    def _lock(self) -> str:
        return (f"{self.machine}-{self.name}" if self.machine else self.name).replace("/", "_")

    def _locked(self, name: str, **how: Any) -> AbstractContextManager[None]:  # noqa: ANN401  (as `locked` has them)
        return locked(name, timeout=self.wait, needed=self.needed, **how)


def others_on(device: Device, *, within: float = 0.0) -> str:
    """Return the processes of others that nvidia-smi lists on a GPU, "" for no process and if it cannot tell.

    Agents of this harness that wait for their turn do not count: their children hold a context and are idle. An answer
    of the last `within` seconds is as good as a new one.
    """
    if device.name == "cpu" or device.machine:
        return ""
    when, found = _answered.get(device.name, (float("-inf"), ""))
    if time.monotonic() - when > within:
        with trace.span("nvidia-smi"):
            found = parse_others(_nvidia_smi(), device.name)
        _answered[device.name] = time.monotonic(), found
    return found


def _nvidia_smi() -> str:
    command = ["nvidia-smi", f"--query-compute-apps={_LISTED}", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def parse_others(csv: str, gpu: str) -> str:
    """Read the lines of `gpu_uuid, pid, process_name` that are of one GPU, as "name (pid 7), ..."."""
    found = []
    for line in csv.splitlines():
        fields = [field.strip() for field in line.split(",", 2)]
        if len(fields) == len(_LISTED.split(",")) and fields[0] == gpu and not _is_agent(fields[1]):
            name = fields[2].rpartition("/")[2]
            found += [f"{name} (pid {fields[1]})"] if name not in _NOBODY else []
    return ", ".join(found)


def _is_agent(pid: str) -> bool:
    """Tell whether a process of this machine is an agent or a child of one, in a container or not."""
    try:
        return _AGENT in Path("/proc", pid, "cmdline").read_bytes()
    except OSError:
        return False
