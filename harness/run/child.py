"""Runs a function in a child process that is bounded in time and memory, and says how a failed one ended.

The children are forked from a process of their own (multiprocessing's fork server), which has imported onnx and NumPy
and runs no thread: this process has threads, and a fork of it could inherit a lock that is never released.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable, Iterator
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

from harness.agent.watch import signal_name
from harness.errors import InfraError, described
from harness.scratch import Scratch

#: Starting a process collects every other child that has ended, and two threads that ask after the same one can take
#: its exit code from each other.
_LOCK = threading.Lock()
#: Seconds between looks at whether anybody still waits for a child.
_TICK = 0.25
#: Seconds from the limit to the child's own alarm, which ends it if this process was killed.
_ALARM = 5
#: The modules that the fork server imports before the first child.
_PRELOADED = ["harness.run.prepared", "harness.run.numbers.operators"]


class ChildFailed(Exception):
    """The child did not get to its end: the sentence says how it ended, or gives the function's exception."""


def stream(
    function: Callable[..., Iterator[Any]],
    *arguments: Any,  # noqa: ANN401  (those of the function)
    seconds: float,
    memory_mib: int,
    needed: Callable[[], bool] = lambda: True,
) -> Iterator[Any]:
    """Yield the items of `function(*arguments)` from a child; it is a generator function at the top level of a module.

    Each item may take `seconds`, and the child `memory_mib` of address space beyond its size at the start. Raises
    ChildFailed if the function raises, dies or is stopped, also when `needed` says that it is not waited for any more.
    """
    warm()
    context = multiprocessing.get_context("forkserver")
    reader, writer = context.Pipe(duplex=False)
    child = context.Process(
        target=_work, args=(writer, function, arguments, seconds, memory_mib), daemon=True, name="prepare"
    )
    with reader:
        with writer, _LOCK, _without_main():
            child.start()
        try:
            while (item := _next(reader, child, seconds, needed)) is not None:
                yield item[0]
        except BaseException:
            # A native library in a loop heeds only SIGKILL.
            child.kill()
            raise
        finally:
            with _LOCK:
                child.join()
                child.close()


def warm() -> None:
    """Start the process that children are forked from, if it is not there: it loads while this one goes on."""
    with _LOCK, _without_main():
        _keep_socket_in_scratch()
        forkserver.set_forkserver_preload(_PRELOADED)
        forkserver.ensure_running()


def _keep_socket_in_scratch() -> None:
    """Put the fork server's socket into a folder that the next run removes: multiprocessing's own outlives a kill."""
    # Not within it, for a socket's path has to be short.
    vars(multiprocessing.current_process())["_config"].setdefault(
        "tempdir", str(Path(_scratch().name).parent)
    )


@functools.cache
def _scratch() -> Scratch:
    try:
        return Scratch(sockets=True)
    except OSError as error:
        raise InfraError(
            f"{tempfile.gettempdir()}: no folder with a name short enough for sockets can be made there or in /tmp "
            f"({error.strerror}); set TMPDIR to a shorter one"
        ) from error


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Hide the program that runs: each child would import it, and a user's script without a guard would run again."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _next(reader: Connection, child: Any, seconds: float, needed: Callable[[], bool]) -> tuple[Any] | None:  # noqa: ANN401  (a process of a context)
    """Return the next item, None at the end."""
    deadline = time.monotonic() + seconds
    while not reader.poll(_TICK):
        if not needed():
            raise ChildFailed("was given up")
        if time.monotonic() > deadline:
            raise ChildFailed(f"was not done after {seconds:g} s")
    try:
        kind, value = reader.recv()
    except (EOFError, OSError):
        with _LOCK:
            child.join(_ALARM)
        raise ChildFailed(_how(child.exitcode)) from None
    if kind == "failed":
        raise ChildFailed(value)
    return None if kind == "done" else (value,)


def _how(code: int | None) -> str:
    if code is None:
        return "ended without a word"
    return f"was killed by {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"


def _work(
    writer: Connection,
    function: Callable[..., Iterator[Any]],
    arguments: tuple[Any, ...],
    seconds: float,
    memory_mib: int,
) -> NoReturn:
    """Be the child; output of the function is discarded."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    most = _address_space() + (memory_mib << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    patience = int(seconds) + _ALARM
    signal.alarm(patience)
    try:
        for item in function(*arguments):
            writer.send(("item", item))
            signal.alarm(patience)
        writer.send(("done", None))
    except MemoryError:
        writer.send(("failed", f"needs more than {memory_mib} MiB"))
    except BaseException as error:  # noqa: BLE001  (user code: anything may come out of it)
        writer.send(("failed", f"failed: {described(error)}"))
    # A user's module may have left threads and exit handlers behind.
    os._exit(0)


def _address_space() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123  (a pseudo-file)
        return int(file.read().split()[0]) * resource.getpagesize()
