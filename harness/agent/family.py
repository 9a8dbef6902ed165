"""This process and all that descends from it: who may look into it, who is left, what they take, and their end.

The agent is the subreaper of its jobs: whatever a job starts stays its descendant, whichever parent dies and whatever
group or session it goes to. As the first process of a container it is more: the kernel lets nobody in there kill or
stop it.
"""

import ctypes
import os
import resource
import signal
import time
from typing import Any, List, Set, Tuple

_SET_PDEATHSIG, _SET_DUMPABLE, _SET_CHILD_SUBREAPER = 1, 4, 36
#: Seconds that the processes of a job have for ending once they are killed: a memory of gigabytes is freed in that.
_PATIENCE = 10.0
_LIMITS = tuple(sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")}))


def _prctl(option: int, value: int) -> None:
    # Where there is no libc of this process's own, nothing is hidden; no engine's libraries are for such a one.
    ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0)


def close_to_others(*, closed: bool = True) -> None:
    """Let no process of this user read, trace or write this one, nor open its descriptors; children inherit that.

    Root may all the same, and so may whoever has CAP_SYS_PTRACE.
    """
    _prctl(_SET_DUMPABLE, not closed)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own has ended."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def end_with_parent() -> None:
    """Have the kernel kill this process when its parent ends."""
    _prctl(_SET_PDEATHSIG, signal.SIGKILL)


def alone() -> bool:
    """Tell whether this is the first process of a container: whatever else runs in there descends from it."""
    return os.getpid() == 1


def descendants() -> List[int]:
    """Return the processes that descend from this one."""
    found: List[int] = []
    waiting = [os.getpid()]
    while waiting:
        below = _children(waiting.pop())
        found += below
        waiting += below
    return found


def _children(pid: int) -> List[int]:
    found: List[int] = []
    try:
        for thread in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/children" % (pid, thread), "rb") as file:
                found += map(int, file.read().split())
    except FileNotFoundError:
        # Gone meanwhile, or a kernel without this list.
        return found or _by_parent(pid)
    except OSError:
        pass
    return found


def _by_parent(parent: int) -> List[int]:
    found = []
    for name in os.listdir("/proc"):
        try:
            with open("/proc/%s/stat" % name, "rb") as file:
                # The name of a program may hold blanks and brackets.
                if int(file.read().rpartition(b")")[2].split()[1]) == parent:
                    found.append(int(name))
        except (OSError, IndexError, ValueError):
            continue
    return found


def resident_bytes(pid: int) -> int:
    """Return a process's resident memory in bytes, 0 when it has gone."""
    try:
        with open("/proc/%d/statm" % pid, "rb") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return 0


def end_all() -> bool:
    """Kill all that descends from this process and wait for its end; False where something is left."""
    until = time.monotonic() + _PATIENCE
    pause = 0.001
    while True:
        _kill_all()
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return True
        if time.monotonic() > until:
            return False
        time.sleep(pause)
        pause = min(2 * pause, 0.05)


def _kill_all() -> None:
    # All at once, so that none can start another meanwhile; this process and those outside are not among them.
    targets = [-1] if alone() else descendants()
    for pid in targets:
        try:
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue


def conditions() -> Tuple[Any, ...]:
    """Return what any process of this user can take from this one: its limits, its processors, its priority."""
    limits = tuple(resource.getrlimit(limit) for limit in _LIMITS)
    processors: Set[int] = os.sched_getaffinity(0)
    return limits, processors, os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0)
