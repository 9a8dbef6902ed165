"""An interpreter that the user names, instead of a virtual environment made here.

For a host that has an engine installed and reaches no package index: TRT_COMPAT_VENV_PYTHON=/path/to/python makes
`--via venv` start the agent there and install nothing. What is installed is taken as it is and recorded as such; the
engine's own version must be the declared one, here by its package and again by what the engine reports of itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from harness.errors import HandledError
from harness.run.provision.model import Unavailable
from harness.run.transport.process import agent_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.matrix import Target

#: The Python to use as every target's virtual environment.
VARIABLE = "TRT_COMPAT_VENV_PYTHON"
_TIMEOUT = 60
#: Prints each distribution's version and requirements by name; of two of one name the first is what is imported.
_ASK = """
import importlib.metadata as metadata, json
found = {}
for each in metadata.distributions():
    if each.metadata["Name"]:
        found.setdefault(each.metadata["Name"], [each.version, list(each.requires or [])])
print(json.dumps(found))
"""

#: Version and requirements by canonical name.
_Installed = dict[str, tuple[str, list[str]]]


def chosen() -> str | None:
    """Return the interpreter that TRT_COMPAT_VENV_PYTHON names, or None."""
    return os.environ.get(VARIABLE) or None


def pins_in(python: str, target: Target) -> tuple[str, ...]:
    """Return what of the target's packages, and of what those need, the interpreter holds, as name==version.

    Raises Unavailable where it lacks one of the target's packages or holds the engine in another version, and
    HandledError where it is no Python.
    """
    installed = _ask(python)
    declared = [Requirement(pin) for pin in target.packages]
    for requirement in declared:
        name = canonicalize_name(requirement.name)
        version = installed.get(name, ("", []))[0]
        if not version:
            raise Unavailable(f"needs {name}, which {python} ({VARIABLE}) does not hold")
        if name.startswith(target.module.replace("_", "-")) and not requirement.specifier.contains(
            version, prereleases=True
        ):
            raise Unavailable(f"needs {requirement}; {python} ({VARIABLE}) holds {name} {version}")
    return tuple(sorted(f"{name}=={installed[name][0]}" for name in _closure(declared, installed)))


def _ask(python: str) -> _Installed:
    with tempfile.TemporaryDirectory() as scratch:
        try:
            done = subprocess.run(
                [python, "-c", _ASK],
                capture_output=True,
                text=True,
                timeout=_TIMEOUT,
                check=True,
                cwd=scratch,
                env=agent_environment(os.environ, scratch, ()),
            )
            found: dict[str, Any] = json.loads(done.stdout)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise HandledError(f"{VARIABLE}={python}: is no Python that answers: {error}") from error
    return {canonicalize_name(name): (version, needs) for name, (version, needs) in found.items()}


def _closure(declared: list[Requirement], installed: _Installed) -> set[str]:
    """Return the declared packages and all they need, directly or not, as far as they are installed."""
    found: set[tuple[str, frozenset[str]]] = set()
    waiting: list[tuple[str, frozenset[str]]] = [
        (canonicalize_name(each.name), frozenset(each.extras)) for each in declared
    ]
    while waiting:
        one = waiting.pop()
        if one[0] in installed and one not in found:
            found.add(one)
            waiting += _needs_of(installed[one[0]][1], one[1])
    return {name for name, _ in found}


def _needs_of(lines: list[str], extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    for line in lines:
        try:
            need = Requirement(line)
        except InvalidRequirement:
            continue
        wanted = need.marker is None or any(
            need.marker.evaluate({"extra": extra}) for extra in (extras or {""})
        )
        if wanted:
            yield canonicalize_name(need.name), frozenset(need.extras)
