"""The GPUs of this machine, dealt out to the targets of a run; and who else is on one."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections import Counter
from typing import TYPE_CHECKING

from harness.run.docker import ALL_GPUS
from harness.run.provision.cache import locked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

#: Seconds to wait for nvidia-smi.
_PATIENCE = 10
#: Seconds that a device is waited for. Its holder is a job with a time-out of its own, and the lock ends with that.
_WAIT = 24 * 3600.0
_LISTED = "gpu_uuid,pid,process_name"


class Gpus:
    """Deals out GPUs, so that targets run side by side where there are several; safe between threads.

    `first` is where the dealing begins: the number of this process among those that deal from the same GPUs.
    """

    def __init__(self, first: int = 0) -> None:
        self._first = first
        self._held: Counter[str] = Counter()
        self._lock = threading.Lock()

    def take(self, choices: Sequence[str]) -> tuple[str, ...]:
        """Return the one of these UUIDs that is dealt out least; unchanged where none is known."""
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


def alone_on(device: str, needed: Callable[[], bool], machine: str = "") -> AbstractContextManager[None]:
    """Hold a device, by its UUID or "cpu", alone between workers and processes, as long as `needed` says so.

    `machine` is whose device it is, "" for this one's: every machine has a "cpu", and boards may share a UUID. Nobody
    waits in line: on a machine of many targets one may wait until all cells of the others are done.
    """
    name = f"{machine}-{device}" if machine else device
    return locked(name.replace("/", "_"), timeout=_WAIT, needed=needed)


def others_on(gpu: str, machine: str = "") -> str:
    """Return the processes that nvidia-smi lists on a GPU, "" for none and where it cannot tell, as of another machine.

    Asked by who holds the GPU's lock while none of its jobs runs, so that it lists no job of this harness.
    """
    if machine or shutil.which("nvidia-smi") is None:
        return ""
    command = ["nvidia-smi", f"--query-compute-apps={_LISTED}", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return parse_others(done.stdout, gpu) if done.returncode == 0 else ""


def parse_others(csv: str, gpu: str) -> str:
    """Read the lines of `gpu_uuid, pid, process_name` that are of one GPU, as "name (pid 7), ..."."""
    found = []
    for line in csv.splitlines():
        fields = [field.strip() for field in line.split(",", 2)]
        if len(fields) == len(_LISTED.split(",")) and fields[0] == gpu:
            found.append(f"{fields[2].rpartition('/')[2]} (pid {fields[1]})")
    return ", ".join(found)
