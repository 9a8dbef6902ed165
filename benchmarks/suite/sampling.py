"""Where a program's CPU time goes: samples by the interval timer of its own CPU time.

A tracing profiler counts calls, and makes small functions look dear; samples cost the same whatever runs. A signal
finds the main thread alone, so that what each thread has used since the last one is read from its own clock, and added
to where that thread is now.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

#: Seconds of CPU time between samples.
_INTERVAL = 0.01
_TOP = Path(__file__).resolve().parents[2]


@dataclass
class Samples:
    """CPU seconds by function: of its own, and with all that it called."""

    own: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    whole: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _used: dict[int, float] = field(default_factory=dict)

    def start(self) -> None:
        """Begin to take samples; to be called in the main thread, before it starts any other."""
        signal.signal(signal.SIGPROF, lambda _, frame: self.take(frame))
        # The kernel gives the signal to the thread that ran, unless that blocks it, and Python waits for the main one.
        threading.setprofile(_block)
        signal.setitimer(signal.ITIMER_PROF, _INTERVAL, _INTERVAL)

    @staticmethod
    def stop() -> None:
        """Take no more."""
        signal.setitimer(signal.ITIMER_PROF, 0)

    def take(self, interrupted: FrameType | None) -> None:
        """Add what each thread has used since the last sample; this one was `interrupted` to take it."""
        frames = sys._current_frames() | {threading.get_ident(): interrupted}  # noqa: SLF001  (what it is there for)
        for thread, frame in frames.items():
            used = time.clock_gettime(time.pthread_getcpuclockid(thread))
            self.add(used - self._used.get(thread, 0.0), _stack(frame))
            self._used[thread] = used
        for ended in self._used.keys() - frames.keys():
            del self._used[ended]

    def add(self, seconds: float, stack: list[str]) -> None:
        """Add CPU time to a stack of functions, innermost first."""
        if seconds <= 0 or not stack:
            return
        self.own[stack[0]] += seconds
        for name in set(stack):
            self.whole[name] += seconds

    def to_json(self) -> dict[str, Any]:
        """Return the samples as plain data, files by short names."""
        return {"own": _short(self.own), "whole": _short(self.whole)}


def table(found: Mapping[str, Mapping[str, float]], most: int = 25) -> str:
    """Return the functions that took most, as Markdown: their own share, and that with all that they called."""
    own, whole = found["own"], found["whole"]
    total = sum(own.values())
    if not total:
        return "No sample was taken.\n"
    dearest = sorted(own, key=lambda name: (-own[name], name))[:most]
    callers = sorted(whole, key=lambda name: (-whole[name], name))[:most]
    return "\n".join(
        [
            f"{total:.1f} s of CPU time of the host's process.",
            "",
            "| function | own | with what it called |",
            "| --- | ---: | ---: |",
            *(
                f"| `{name}` | {own.get(name, 0.0) / total:.1%} | {whole[name] / total:.1%} |"
                for name in dict.fromkeys([*dearest, *callers])
            ),
            "",
        ]
    )


def _block(*_: object) -> None:
    """Leave the signal to the main thread; called once in each thread that starts."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPROF})
    sys.setprofile(None)


def _stack(frame: FrameType | None) -> list[str]:
    """Return the functions of a stack, innermost first: no more, as this is done a hundred times a second."""
    names = []
    while frame is not None:
        code = frame.f_code
        # Python 3.10 has no qualified names, which tell one listcomp from another.
        names.append(f"{code.co_filename}:{getattr(code, 'co_qualname', code.co_name)}")
        frame = frame.f_back
    return names


def _short(seconds: Mapping[str, float]) -> dict[str, float]:
    """Return the same by files of this checkout, and for all others by folder and file."""
    found: dict[str, float] = defaultdict(float)
    for name, each in seconds.items():
        file, _, function = name.rpartition(":")
        path = Path(file)
        parts = path.parts[-2:] if "site-packages" in path.parts or not path.is_relative_to(_TOP) else None
        shown = Path(*parts) if parts is not None else path.relative_to(_TOP)
        found[f"{shown}:{function}" if file else name] += each
    return dict(found)
