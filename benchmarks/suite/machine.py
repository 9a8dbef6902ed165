"""What a run was measured on: nothing that names the machine or its user."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from harness import __version__
from harness.agent.engines import machine_facts
from harness.run.commit import harness_commit

#: A load beyond this share of the cores, at the start, is said in the table.
_QUIET = 0.25


@dataclass(frozen=True)
class Machine:
    """Cores that this process may use, CPU model, memory, Python, harness and the load before anything was run."""

    cores: int
    cpu: str
    memory_mib: int
    python: str
    harness: str
    load: float
    when: str

    def line(self) -> str:
        """Return all of it as a sentence."""
        what = f"{self.cores} cores, {self.cpu}, {self.memory_mib / 1024:.1f} GiB of memory"
        quiet = "" if self.load <= _QUIET * self.cores else ": **not a quiet machine**"
        return (
            f"{what}; Python {self.python}; harness {self.harness}; load {self.load:.1f} at the start{quiet}."
        )


def look() -> Machine:
    """Return the machine that this runs on."""
    facts = machine_facts()
    return Machine(
        cores=len(os.sched_getaffinity(0)),
        cpu=facts.get("cpu", platform.machine()),
        memory_mib=memory_mib(Path("/proc/meminfo").read_text(encoding="ascii")),
        python=platform.python_version(),
        harness=harness_commit() or __version__,
        load=os.getloadavg()[0],
        when=datetime.now(timezone.utc).date().isoformat(),
    )


def memory_mib(meminfo: str) -> int:
    """Return the machine's memory by the text of /proc/meminfo."""
    fields = dict(line.split(":", 1) for line in meminfo.splitlines() if ":" in line)
    return int(fields["MemTotal"].split()[0]) // 1024
