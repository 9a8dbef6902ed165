"""The inputs that are kept: a corpus a target, packed, and the findings, a file each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from harness.record.archive import ARCHIVE, pack, unpack

HERE = Path(__file__).parent
CORPUS, FINDINGS = HERE / "corpus", HERE / "findings"
#: Bytes of a target's corpus, and of all of them as they are packed.
MOST, MOST_PACKED = 200_000, 1_000_000


def name_of(data: bytes) -> str:
    """Return the name of an input."""
    return hashlib.sha256(data).hexdigest()[:12]


def kept(target: str, folder: Path | None = None) -> list[bytes]:
    """Return a target's corpus, the shortest input first."""
    path = (folder or CORPUS) / f"{target}{ARCHIVE}"
    return sorted(unpack(path).values(), key=lambda data: (len(data), data)) if path.exists() else []


def keep(target: str, inputs: Iterable[bytes], folder: Path | None = None) -> None:
    """Write a target's corpus: the shortest inputs, as many as there is room for."""
    chosen, room = {}, MOST
    for data in sorted(set(inputs), key=lambda data: (len(data), data)):
        room -= len(data)
        if room < 0:
            break
        chosen[name_of(data)] = data
    folder = folder or CORPUS
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{target}{ARCHIVE}").write_bytes(pack(target, chosen))


def findings(target: str, folder: Path | None = None) -> list[Path]:
    """Return the files of what was ever found with a target."""
    return sorted(path for path in ((folder or FINDINGS) / target).glob("*") if path.is_file())
