"""The two forms of a reports folder, files beside the page or few that are packed (`pack.py`), and what reads both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.bounded import read_bytes
from harness.record.archive import PACKED, archive_of, decompress, unpack
from harness.record.store import LOGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

#: The folder of the models, beside the page.
MODELS = "models"
RESULTS = "results.json"
#: The files of a report that are packed, each by itself; the others are for looking at, or small.
PACKABLE = (RESULTS, "results.csv")


def twin(path: Path) -> Path:
    """Return the place of a file's packed form."""
    return path.with_name(path.name + PACKED)


def is_packed(folder: Path) -> bool:
    """Tell whether a folder holds a packed report; a plain one beside it was written later."""
    return twin(folder / RESULTS).is_file() and not (folder / RESULTS).exists()


def archived(folder: Path, *, packed: bool) -> tuple[str, ...]:
    """Return what the page of a report, packed or plain, finds in archives beside it: logs may be in both forms."""
    logs = (LOGS,) if archive_of(folder / LOGS).is_file() else ()
    return (*logs, MODELS, RESULTS) if packed else logs


def results_file(folder: Path) -> Path:
    """Return the place of a folder's results.json, in the form that it has."""
    path = folder / RESULTS
    return twin(path) if is_packed(folder) else path


def content(path: Path) -> bytes:
    """Return what a file holds, unpacked where its name says that it is packed."""
    return decompress(path) if path.suffix == PACKED else read_bytes(path)


def published(folder: Path, names: Iterable[str]) -> Iterator[tuple[str, Path, bytes | None]]:
    """Yield of each name of a report's file the place that it has in a folder, and what is there, None for nothing.

    Whatever else an archive of models holds comes last.
    """
    packed = is_packed(folder)
    archive = archive_of(folder / MODELS)
    models = unpack(archive) if packed and archive.is_file() else {}
    for name in names:
        top, _, inside = name.partition("/")
        if packed and top == MODELS:
            yield name, archive / inside, models.pop(inside, None)
        else:
            path = twin(folder / name) if packed and name in PACKABLE else folder / name
            yield name, path, content(path) if path.is_file() else None
    for name in models:
        yield f"{MODELS}/{name}", archive / name, models[name]
