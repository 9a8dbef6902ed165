"""A user at a shell who followed the README, on a machine without other programs that these tests could use."""

from __future__ import annotations

import os
import sysconfig


def reader(*programs: str) -> dict[str, str]:
    """Return the variables of a shell after `source .venv/bin/activate`.

    On its PATH are the system's own folders and, last, those of `programs`, paths of further programs that a line
    needs.
    """
    folders = [sysconfig.get_path("scripts"), *os.defpath.split(os.pathsep), *map(os.path.dirname, programs)]
    return os.environ | {"PATH": os.pathsep.join(folders), "VIRTUAL_ENV": sysconfig.get_path("data")}
