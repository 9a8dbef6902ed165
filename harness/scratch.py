"""Temporary folders that do not outlive their process: those of one that was killed are removed by the next run."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from pathlib import Path

PREFIX = "trt-compat-"
#: Tells that the folder was locked when it was made: what is locked no more has lost its process.
_MARK = "held"
_INSIDE = "in"


class Scratch:
    """A temporary folder, `name`, in one that is locked for as long as this process lives, however it ends."""

    def __init__(self, purpose: str = "") -> None:
        self._outer = tempfile.TemporaryDirectory(prefix=PREFIX + purpose, ignore_cleanup_errors=True)
        outer = Path(self._outer.name)
        self.name = str(outer / _INSIDE)
        (outer / _INSIDE).mkdir()
        self._handle = os.open(outer, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        # On a file system without locks nothing is marked, so that nothing in use is removed.
        with contextlib.suppress(OSError):
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (outer / _MARK).touch()

    def cleanup(self) -> None:
        """Remove the folder; what cannot be removed is left to the next run."""
        self._outer.cleanup()
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def __enter__(self) -> str:
        return self.name

    def __exit__(self, *_: object) -> None:
        self.cleanup()


def reap_scratch() -> tuple[str, ...]:
    """Remove this user's folders whose process is gone; return their names."""
    found = []
    for path in sorted(Path(tempfile.gettempdir()).glob(f"{PREFIX}*")):
        with contextlib.suppress(OSError):
            if _orphaned(path):
                _remove(path)
                found.append(path.name)
    return tuple(found)


def _orphaned(path: Path) -> bool:
    seen = path.lstat()
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid() or not (path / _MARK).is_file():
        return False
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True


def _remove(path: Path) -> None:
    """Remove a folder, those inside that were made read-only too."""
    for place, inner, _ in os.walk(path):
        for name in inner:
            folder = Path(place, name)
            if not folder.is_symlink():
                folder.chmod(0o700)
    shutil.rmtree(path, ignore_errors=True)
