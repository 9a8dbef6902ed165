"""What the kernel tells of a process."""

from __future__ import annotations

from pathlib import Path

PROC = Path("/proc")


def field_mb(pid: int, file: str, name: str) -> float:
    """Return a field of a process's file in MB, 0 where it has ended."""
    line = next((line for line in read(pid, file).splitlines() if line.startswith(f"{name}:")), "")
    return int(line.split()[1]) * 1024 / 1e6 if line else 0.0


def read(pid: int, file: str) -> str:
    """Return a process's file, nothing where it has ended."""
    try:
        return (PROC / str(pid) / file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
