"""Reads files and JSON that strangers wrote: plain files of a bounded size, JSON of a bounded depth, never a wait."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from harness.errors import HandledError

#: Bytes of a file that is read whole; 2 GiB is protobuf's own limit.
LARGE = (1 << 31) - 1


def check_file(path: Path, most: int) -> None:
    """Raise OSError, with the reason as `strerror`, unless a path is a plain file of at most so many bytes.

    A pipe would be waited for without end, and a device may have none.
    """
    try:
        found = path.stat()
    except ValueError as error:
        # A NUL, or a surrogate, which no file system holds; a path out of a file may have either.
        raise FileNotFoundError(errno.ENOENT, "its name can be no file's", repr(str(path))) from error
    if not stat.S_ISREG(found.st_mode):
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(errno.EINVAL, "it is no plain file", str(path))
    if found.st_size > most:
        raise OSError(errno.EFBIG, f"it has {found.st_size >> 20} MiB, and may have {most >> 20}", str(path))


def read_bytes(path: Path, most: int = LARGE) -> bytes:
    """Return the bytes of a plain file; raises OSError as `check_file` does."""
    check_file(path, most)
    # Another file may have taken its place since.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb") as file:  # noqa: PTH123  (a descriptor)
        # Not `most` at once: so much memory would be taken for a file of any size.
        size = os.fstat(handle).st_size
        data = file.read(min(most, size) + 1)
        if len(data) > size:
            data += file.read(most + 1 - len(data))
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {most >> 20} MiB", str(path))
    return data


def files_of(folder: Path, suffix: str) -> Iterator[tuple[Path, bytes]]:
    """Yield the files in a folder whose names end so, by name; raises HandledError for one that cannot be read."""
    place = folder
    try:
        for place in sorted(folder.glob(f"*{suffix}")):
            yield place, read_bytes(place)
    except OSError as error:
        raise HandledError(f"{place}: cannot be read ({error.strerror})") from error


def parse_json(text: str | bytes) -> Any:  # noqa: ANN401  (whatever it holds)
    """Return parsed JSON; raises ValueError, also for NaN and for nesting deeper than Python can follow."""
    try:
        return json.loads(text, parse_constant=_no_number)
    except RecursionError as error:
        raise ValueError("it is nested too deeply to be read") from error


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number in JSON")
