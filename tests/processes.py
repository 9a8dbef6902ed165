"""Processes, looked at by /proc, and scripts that stand for programs."""

from __future__ import annotations

import contextlib
import gc
from collections import Counter
from pathlib import Path


def descendants(pid: int) -> set[int]:
    """Return the processes below one."""
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        # Some of them may end meanwhile.
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{waiting.pop()}/task").glob("*/children"):
                children = {int(word) for word in task.read_text().split()}
                found |= children
                waiting += children
    return found


def state(pid: int) -> str:
    """Return the letter of a process's state, "" if it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def alive(pid: int) -> bool:
    """Tell whether a process exists and is not a zombie."""
    return state(pid) not in ("", "Z")


def open_files() -> Counter[str]:
    """Return the open files of this process by their paths, those of forgotten objects closed.

    A test looks for new ones: those of an earlier one may be closed meanwhile.
    """
    gc.collect()
    found: Counter[str] = Counter()
    for path in Path("/proc/self/fd").iterdir():
        # The folder itself was open while it was listed.
        with contextlib.suppress(FileNotFoundError):
            found[str(path.readlink())] += 1
    return found


def put_program(folder: Path, name: str, script: str) -> None:
    """Put a shell script into a folder, as a program of this name."""
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
