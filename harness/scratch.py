"""Temporary folders that do not outlive their process: those of one that was killed are removed by the next run."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import weakref
from pathlib import Path

PREFIX = "trt-compat-"
#: Marks a folder that was locked when made: an unlocked one has lost its process.
_MARK = "held"
_INSIDE = "in"
#: The parent of folders that need a short path, if the temporary folder's is long; and the longest path for a Unix
#: socket: its 107 bytes less "/listener-" and eight letters for its name.
_SHORT, _SOCKETS = "/tmp", 107 - 18  # noqa: S108  (a folder of its own is made in it)


class Scratch:
    """A temporary folder, `name`, in one that is locked for as long as this process lives, however it ends.

    With `sockets` the outer one has a path that leaves room for the name of a Unix socket.
    """

    def __init__(self, purpose: str = "", *, sockets: bool = False) -> None:
        made, where = None, _SHORT if sockets and _long() else None
        # A run that starts in between takes it for one whose process was killed just here.
        while made is None:
            made = _made(Path(tempfile.mkdtemp(prefix=PREFIX + purpose, dir=where)))
        outer, self._handle = made
        self.name = str(outer / _INSIDE)
        self._clear = weakref.finalize(self, _remove, outer)

    def cleanup(self) -> None:
        """Remove the folder; the next run removes the rest."""
        self._clear()
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def __enter__(self) -> str:
        return self.name

    def __exit__(self, *_: object) -> None:
        self.cleanup()


def _long() -> bool:
    """Tell whether the temporary folder leaves no room for sockets in one of ours."""
    return len(os.fsencode(tempfile.gettempdir())) + len(f"/{PREFIX}12345678") > _SOCKETS


def _made(outer: Path) -> tuple[Path, int] | None:
    """Lock and fill a new folder; return it with the lock's descriptor, None if it was removed meanwhile."""
    handle = -1
    try:
        handle = os.open(outer, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        # A file system without locks gets no marks, so that a folder in use is never removed.
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (outer / _MARK).touch()
        (outer / _INSIDE).mkdir()
    except FileNotFoundError:
        if handle >= 0:
            os.close(handle)
        return None
    return outer, handle


def reap_scratch() -> tuple[str, ...]:
    """Remove this user's folders whose process is gone; return their names."""
    found = []
    places = [tempfile.gettempdir(), *([_SHORT] if _long() else [])]
    for path in sorted(path for place in places for path in Path(place).glob(f"{PREFIX}*")):
        with contextlib.suppress(OSError):
            if _orphaned(path):
                _remove(path)
            elif _unfilled(path):
                # Fails if it has content by now.
                path.rmdir()
            else:
                continue
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


def _unfilled(path: Path) -> bool:
    """Tell a folder whose process was killed when it had just made it, or was about to remove it."""
    seen = path.lstat()
    return stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.geteuid() and not any(path.iterdir())


def _remove(outer: Path) -> None:
    """Remove a folder, those inside that were made read-only too; the mark last, as this may be killed too."""
    for place, inner, _ in os.walk(outer):
        for name in inner:
            folder = Path(place, name)
            if not folder.is_symlink():
                folder.chmod(0o700)
    with contextlib.suppress(OSError):
        for path in outer.iterdir():
            if path.name != _MARK:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        (outer / _MARK).unlink(missing_ok=True)
        outer.rmdir()
