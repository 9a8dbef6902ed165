"""What escapes a target becomes a finding: a sentence, and the shortest input that ends so."""

from __future__ import annotations

import hashlib
import os
import traceback
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]


def keep(folder: Path, data: bytes, error: BaseException) -> None:
    """Write a finding into a folder, unless a shorter input is there that ends in the same way."""
    said = sentence(error)
    path = folder / hashlib.sha256(said.encode()).hexdigest()[:12]
    if path.exists() and path.stat().st_size <= len(data):
        return
    folder.mkdir(parents=True, exist_ok=True)
    for suffix, content in ((".txt", f"{said}\n".encode()), ("", data)):
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_bytes(content)
        temporary.replace(path.with_name(path.name + suffix))


def sentence(error: BaseException) -> str:
    """Return what escaped and from where, the same for all inputs that end so: type, place, without what it says."""
    if type(error).__name__ == "TooLong":
        return f"TooLong: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(TOP)]
    last = next((frame for frame in reversed(ours) if "/harness/" in frame.filename), ours[-1])
    # By its dotted name: a file may move, and what was found stays.
    module = ".".join(Path(last.filename).relative_to(TOP).with_suffix("").parts)
    return f"{type(error).__name__} in {module}.{last.name}: {_line(last)}"


def _line(frame: traceback.FrameSummary) -> str:
    return " ".join((frame.line or "").split())[:80]
