"""What a job leaves behind on the machine once its processes are gone: files, shared memory, semaphores, queues.

In a container of the agent's own all that appeared is removed. In a virtual environment the machine is others' too:
removed is only what is known to be the job's, which of System V is shared memory alone, by who made it; of what else
appeared meanwhile a sentence is told.
"""

import ctypes
import os
import stat
import tempfile
from typing import Collection, Dict, Iterator, List, Set, Tuple

from harness.agent.family import alone

_IPC_RMID = 0
_SHARED_FOLDERS = ("/dev/shm", "/dev/mqueue")  # noqa: S108  (looked into, nothing is made there)
_KINDS = {"shm": "shared memory", "sem": "semaphores", "msg": "message queues"}
#: Names listed in a sentence.
_SHOWN = 5

Row = Dict[str, int]


class Leftovers:
    """What was there before a job, for telling what appeared."""

    def __init__(self) -> None:
        self._ipc = {kind: {row["id"] for row in system_v(kind)} for kind in _KINDS}
        self._files = {folder: _names(folder) for folder in _folders()}

    def unattached(self, pids: Collection[int]) -> int:
        """Return the resident bytes of shared memory that these processes made and none has attached."""
        return sum(
            row.get("rss", 0) for row in self._appeared("shm") if row["cpid"] in pids and not row["nattch"]
        )

    def remove(self, pids: Collection[int]) -> List[str]:
        """Remove what the job of these processes left; return a sentence on what may be its and is left alone."""
        left: List[str] = []
        for kind, name in _KINDS.items():
            for row in self._appeared(kind):
                if alone() or row.get("cpid") in pids:
                    _remove_ipc(kind, row["id"])
                else:
                    left.append("%s %d" % (name, row["id"]))
        for path in self._new_files():
            if alone():
                remove(path)
            else:
                left.append(path)
        if not left:
            return []
        more = "" if len(left) <= _SHOWN else " and %d more" % (len(left) - _SHOWN)
        return [
            "the agent: appeared during this job and is left alone, because whose it is cannot be known: %s%s"
            % (", ".join(left[:_SHOWN]), more)
        ]

    def _appeared(self, kind: str) -> Iterator[Row]:
        me = os.getuid()
        return (row for row in system_v(kind) if row["cuid"] == me and row["id"] not in self._ipc[kind])

    def _new_files(self) -> List[str]:
        found = []
        for folder, before in self._files.items():
            for name in sorted(_names(folder) - before):
                path = os.path.join(folder, name)
                try:
                    if os.lstat(path).st_uid == os.getuid():
                        found.append(path)
                except OSError:
                    continue
        return found


def _folders() -> Tuple[str, ...]:
    return (*_SHARED_FOLDERS, tempfile.gettempdir()) if alone() else _SHARED_FOLDERS


def _names(folder: str) -> Set[str]:
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()


def system_v(kind: str) -> Iterator[Row]:
    """Yield the System V objects of a kind (shm, sem, msg) that the kernel lists: its own columns, and `id`."""
    try:
        with open("/proc/sysvipc/" + kind) as file:
            names = file.readline().split()
            lines = file.read().splitlines()
    except OSError:
        return
    for line in lines:
        # Permissions are octal and keys may be negative; neither is looked at.
        row = dict(zip(names, (int(word) for word in line.split())))
        row["id"] = row[names[1]]
        yield row


def _remove_ipc(kind: str, number: int) -> None:
    libc = ctypes.CDLL(None)
    if kind == "shm":
        libc.shmctl(number, _IPC_RMID, None)
    elif kind == "sem":
        libc.semctl(number, 0, _IPC_RMID, None)
    else:
        libc.msgctl(number, _IPC_RMID, None)


def remove(path: str) -> None:
    """Remove a file, or a folder with all that is in it, as far as it lets itself be removed; never raises.

    However deep the folder: shutil.rmtree descends a call and a descriptor a level, and a job can make more levels than
    a process has of either. Here every folder found is first brought up to the top.
    """
    try:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            os.unlink(path)
            return
        folders = [path]
        while folders:
            folder = folders.pop()
            folders += _emptied(folder, path)
            if folder != path:
                os.rmdir(folder)
        os.rmdir(path)
    except OSError:
        return


def _emptied(folder: str, top: str) -> List[str]:
    """Remove the files of a folder and bring its folders up to the top, under names that no job knows; return these."""
    os.chmod(folder, stat.S_IRWXU)
    found = []
    with os.scandir(folder) as entries:
        listed = [(entry.path, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for path, is_folder in listed:
        try:
            if is_folder:
                # One that its owner may not write cannot be moved.
                os.chmod(path, stat.S_IRWXU)
                moved = os.path.join(top, os.urandom(16).hex())
                os.rename(path, moved)
                found.append(moved)
            else:
                os.unlink(path)
        except OSError:
            continue
    return found
