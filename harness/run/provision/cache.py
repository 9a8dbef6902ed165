"""The folder of finished environments: made once, by one process, completely or not at all."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from platformdirs import user_cache_dir

from harness.errors import InfraError

#: Stands between the name of a lock and a number in the line for it.
_NUMBER = ".number-"
#: The folder of environments, instead of the user's cache folder.
CACHE_VARIABLE = "TRT_COMPAT_CACHE_DIR"
#: Seconds to wait for another process that makes the same environment: a large image over a slow line.
LOCK_TIMEOUT = 3600.0


def cache_dir() -> Path:
    """Return the cache folder: TRT_COMPAT_CACHE_DIR, or the user's cache folder for this project."""
    chosen = os.environ.get(CACHE_VARIABLE)
    return Path(chosen).expanduser().resolve() if chosen else Path(user_cache_dir("trt-compat"))


def make_once(
    folder: Path,
    make: Callable[[Path], None],
    *,
    whole: Callable[[Path], bool] = Path.exists,
) -> Path:
    """Return `folder`, calling `make` with a scratch path to fill if it does not exist yet or is not `whole`.

    One of several processes makes it, and the others wait. `folder` appears by a rename when `make` has returned, so
    that a process killed meanwhile leaves no half-made one; the next to come clears its leftovers away.
    """
    if _is_whole(folder, whole):
        return folder
    with locked(folder.name, directory=folder.parent):
        if _is_whole(folder, whole):
            return folder
        if folder.is_file():
            folder.unlink()
        for leftover in (folder, *folder.parent.glob(f"{folder.name}.partial-*")):
            shutil.rmtree(leftover, ignore_errors=True)
        # A name of its own: the installer of a harness that was killed may still be writing into the last one.
        partial = folder.parent / f"{folder.name}.partial-{uuid.uuid4().hex}"
        try:
            make(partial)
            partial.rename(folder)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise InfraError(f"no space left for the environment under {folder.parent}") from error
            if isinstance(error, PermissionError):
                raise InfraError(_refused(folder.parent, error)) from error
            raise
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return folder


def _is_whole(folder: Path, whole: Callable[[Path], bool]) -> bool:
    """Ask whether an environment is whole; raises InfraError for one that another user alone may read."""
    try:
        return whole(folder)
    except PermissionError as error:
        raise InfraError(_refused(folder, error)) from error


def _refused(folder: Path, error: OSError) -> str:
    why = error.strerror or str(error)
    return f"the cache folder {folder} cannot be used: {why}; {CACHE_VARIABLE} names one of your own"


@contextmanager
def locked(  # noqa: PLR0913  (each by its name)
    name: str,
    *,
    timeout: float = LOCK_TIMEOUT,
    directory: Path | None = None,
    needed: Callable[[], bool] = lambda: True,
    shared: bool = False,
    in_line: bool = False,
    places: int = 1,
) -> Iterator[None]:
    """Hold a lock between processes, which ends with its holder.

    Any number hold a `shared` lock at once. Those that stand `in_line` take it in the order in which they came. The
    first that is free of several `places` is taken.

    Raises InfraError after `timeout` seconds, when `needed` says that it is not waited for any more, and if the folder
    cannot be written. Not by filelock: without flock that takes a file instead, which outlives its holder, and does not
    say so.
    """
    folder = directory or cache_dir() / "locks"
    with contextlib.ExitStack() as held:
        handles = [held.enter_context(_opened(folder, each)) for each in _names(name, places)]
        with _stand_in_line(folder, name) if in_line else contextlib.nullcontext(lambda: True) as is_first:
            end = time.monotonic() + timeout
            while not (is_first() and any(_try_lock(handle, shared=shared) for handle in handles)):
                if time.monotonic() > end:
                    raise InfraError(f"another process has held {folder / name}.lock for {timeout:g} s")
                if not needed():
                    raise InfraError(f"the wait for {folder / name}.lock was given up")
                time.sleep(0.05)
        yield


def _names(name: str, places: int) -> list[str]:
    return [name, *(f"{name}.{place}" for place in range(1, places))]


def holders(name: str, places: int, *, shared: bool = True) -> int:
    """Return how many of a lock's places are taken now; unless `shared` those count, too, that share it."""
    taken = 0
    for each in _names(name, places):
        with _opened(cache_dir() / "locks", each) as handle:
            taken += not _try_lock(handle, shared=shared)
    return taken


@contextmanager
def _opened(folder: Path, name: str) -> Iterator[int]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise InfraError(_refused(folder, error)) from error
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def _stand_in_line(folder: Path, name: str) -> Iterator[Callable[[], bool]]:
    """Draw the next number for a lock; gives a function that tells whether nobody with a lower one still waits."""
    with _opened(folder, f"{name}.numbers") as drawing:
        fcntl.flock(drawing, fcntl.LOCK_EX)
        number = max(_numbers(folder, name), default=0) + 1
        mine = f"{name}{_NUMBER}{number}"
        waiting = contextlib.ExitStack()
        fcntl.flock(waiting.enter_context(_opened(folder, mine)), fcntl.LOCK_EX)
    with waiting:
        try:
            yield (
                lambda: (
                    not any(_waits(folder, name, each) for each in _numbers(folder, name) if each < number)
                )
            )
        finally:
            (folder / f"{mine}.lock").unlink(missing_ok=True)


def _numbers(folder: Path, name: str) -> list[int]:
    """Return the numbers that are drawn for a lock."""
    found = (each.name.removesuffix(".lock").partition(f"{name}{_NUMBER}") for each in folder.glob("*.lock"))
    return [int(number) for before, _, number in found if not before and number.isdecimal()]


def _waits(folder: Path, name: str, number: int) -> bool:
    """Tell whether the process that drew a number lives; the number of one that was killed is taken away."""
    path = folder / f"{name}{_NUMBER}{number}.lock"
    if not path.exists():
        return False
    with _opened(folder, f"{name}{_NUMBER}{number}") as handle:
        if not _try_lock(handle, shared=True):
            return True
        path.unlink(missing_ok=True)
    return False


def _try_lock(handle: int, *, shared: bool) -> bool:
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        return True
    return False
