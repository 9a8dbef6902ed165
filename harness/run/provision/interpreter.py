"""An interpreter of the user's that holds an engine: asked for its version and its files, and used as it is."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from harness.errors import HandledError
from harness.matrix import Target
from harness.run.provision.model import Unavailable
from harness.run.transport import agent_environment
from harness.text import one_line

#: The Python to use as every target's virtual environment, on a host that has an engine and reaches no package index.
PYTHON_VARIABLE = "TRT_COMPAT_VENV_PYTHON"
#: Seconds for its answer: TensorRT's libraries take 5 s to load, from a network folder much longer.
_PATIENCE = 180
#: Imports a module, and prints its version or its error, each distribution's version by name (of two of one name the
#: first is imported), and size and time of each file that was loaded or stands in LD_LIBRARY_PATH.
_ASK = """
import glob, importlib, importlib.metadata as metadata, json, os, sys
found, said, version = {}, "", ""
for each in metadata.distributions():
    if each.metadata["Name"]:
        found.setdefault(each.metadata["Name"], each.version)
try:
    version = str(importlib.import_module(sys.argv[1]).__version__)
except Exception as error:
    said = "%s: %s" % (type(error).__name__, error)
paths = {getattr(each, "__file__", None) for each in list(sys.modules.values())}
paths |= {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
for folder in filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")):
    paths |= set(glob.glob(glob.escape(folder) + "/*.so*"))
files = [(path, os.stat(path)) for path in sorted(filter(None, paths)) if os.path.isfile(path)]
files = [(path, status.st_size, status.st_mtime_ns) for path, status in files]
print("\\n" + json.dumps({"version": version, "error": said, "packages": found, "files": files}))
"""


def installed_in(python: str, target: Target) -> tuple[tuple[str, ...], str]:
    """Return the pins `name==version` of the target's packages in an interpreter, and a hash of their files.

    The hash tells installations apart. The engine counts by the version that it reports itself, whatever distribution
    holds it: a wheel, Debian's package, an image's own. Raises Unavailable if it, or another package of the target, is
    missing or another, and HandledError for a program that is no Python.
    """
    answer = _ask(python, target.module)
    place = f"{python} ({PYTHON_VARIABLE})"
    if answer["error"]:
        said = one_line(answer["error"], 300)
        raise Unavailable(f"needs {target.module} {target.version}, which {place} cannot import: {said}")
    if not target.runs_version(answer["version"]):
        raise Unavailable(
            f"needs {target.module} {target.version}; {place} holds {target.module} {answer['version']}"
        )
    held = {canonicalize_name(name): version for name, version in answer["packages"].items()}
    engine = canonicalize_name(target.module)
    names = {name for name in held if name == engine or name.startswith(f"{engine}-")} or {engine}
    for requirement in map(Requirement, target.packages):
        name = canonicalize_name(requirement.name)
        if not name.startswith(engine):
            if name not in held:
                raise Unavailable(f"needs {name}, which {place} does not hold")
            names.add(name)
    pins = sorted(f"{name}=={held.get(name, answer['version'])}" for name in names)
    return tuple(pins), hashlib.sha256(json.dumps(answer["files"]).encode()).hexdigest()


def _ask(python: str, module: str) -> dict[str, Any]:
    """Return an interpreter's answer."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            done = subprocess.run(
                [python, "-c", _ASK, module],
                capture_output=True,
                text=True,
                timeout=_PATIENCE,
                check=False,
                cwd=scratch,
                env=agent_environment(os.environ, scratch, ()),
            )
            # A library's own output stands before it.
            answer: dict[str, Any] = json.loads(done.stdout.strip().rpartition("\n")[2])
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise HandledError(f"{PYTHON_VARIABLE}={python}: is no Python that answers: {error}") from error
    return answer
