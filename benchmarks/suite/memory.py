"""(f) Memory of a run at its peak: the host, what helps it, the agents and their jobs.

Shares of memory (PSS) are added up, which counts a page that processes share once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.suite.figures import Figure, Limit, Section
from benchmarks.suite.processes import PROC, field_mb, read
from benchmarks.suite.running import run
from harness.agent.bootstrap import BOOTSTRAP

if TYPE_CHECKING:
    from benchmarks.suite.running import Setting

TITLE = "peak memory of a run"
_TICK = 0.2


@dataclass
class Peaks:
    """The most that was seen so far, in MB."""

    host: float = 0.0
    host_side: float = 0.0
    agent: float = 0.0
    agents_side: float = 0.0
    _stop: threading.Event = field(default_factory=threading.Event)
    _watch: threading.Thread | None = None

    def watch(self, host: int) -> None:
        """Look at a process and its descendants until `stop`."""
        self._watch = threading.Thread(target=self._look_on, args=(host,), daemon=True)
        self._watch.start()

    def stop(self) -> None:
        """Stop looking."""
        self._stop.set()
        if self._watch is not None:
            self._watch.join()

    def _look_on(self, host: int) -> None:
        while not self._stop.wait(_TICK):
            self.look(host)

    def look(self, host: int) -> None:
        """Look once."""
        agents, others = split(host, _parents(), _is_agent)
        self.host = max(self.host, field_mb(host, "status", "VmHWM"))
        self.agent = max([self.agent, *(field_mb(pid, "status", "VmHWM") for pid in agents)])
        self.host_side = max(self.host_side, sum(field_mb(pid, "smaps_rollup", "Pss") for pid in others))
        self.agents_side = max(self.agents_side, sum(field_mb(pid, "smaps_rollup", "Pss") for pid in agents))


def measure(setting: Setting) -> Section:
    """Watch a run of the whole matrix in virtual environments in each round."""
    found = []
    options = setting.selection if setting.small else ()
    for _ in setting.rounds("f"):
        peaks = Peaks()
        run(setting.folder(), "--via", "venv", "-j", str(setting.cores), *options, beside=peaks.watch)
        peaks.stop()
        found.append(peaks)
    rows: tuple[tuple[str, tuple[float, ...], Limit | None], ...] = (
        ("the host's process", tuple(one.host for one in found), Limit(500)),
        ("the host with its helpers", tuple(one.host_side for one in found), None),
        ("the largest agent or job", tuple(one.agent for one in found), None),
        ("all agents with their jobs", tuple(one.agents_side for one in found), None),
    )
    return Section(
        "f", TITLE, tuple(Figure(f"{TITLE}: {what}", "MB", each, limit) for what, each, limit in rows)
    )


def split(
    host: int, parents: Mapping[int, int], is_agent: Callable[[int], bool]
) -> tuple[set[int], set[int]]:
    """Return the agents below a process, jobs with them, and all others of its family, itself among them."""
    family = {host}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    agents = {pid for pid in family - {host} if is_agent(pid)}
    while more := {pid for pid in family if parents.get(pid) in agents} - agents:
        agents |= more
    return agents, family - agents


def _parents() -> dict[int, int]:
    """Return the parent of each process."""
    found = {}
    for folder in PROC.iterdir():
        if folder.name.isdecimal():
            # The name, in parentheses, may hold anything.
            words = read(int(folder.name), "stat").rpartition(")")[2].split()
            if words:
                found[int(folder.name)] = int(words[1])
    return found


def _is_agent(pid: int) -> bool:
    return BOOTSTRAP in read(pid, "cmdline")
