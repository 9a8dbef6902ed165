"""Chooses how a target runs here, makes it ready or takes the user's own interpreter, and starts an agent in it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from harness.errors import HandledError
from harness.matrix import Target
from harness.run import docker
from harness.run.docker import ALL_GPUS, DockerTransport, Options, command_line
from harness.run.provision import packages
from harness.run.provision.host import Host, HostGpu, look_at_host, look_there
from harness.run.provision.images import Pulling, prepare_image
from harness.run.provision.model import (
    UNKNOWN,
    BrokenOff,
    Environment,
    NeedsPull,
    Unavailable,
    Unreachable,
    Via,
)
from harness.run.provision.requirements import architecture, can_run, dealt_gpus
from harness.run.transport import ProcessTransport, agent_environment
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


def prepare(
    target: Target,
    via: Via = "auto",
    pulling: Pulling = Pulling(),  # noqa: B008  (frozen)
    *,
    allow_build: bool = True,
    host: Host | None = None,
) -> Environment:
    """Make the target's environment, or find it made, and return it.

    The lacks of the machine are found out first and offline, so that a machine without a GPU never pulls an image that
    needs one. "auto" takes Docker if its daemon answers and the image is to be had, else a virtual environment, but for
    an untrusted target; a large image that waits for `pulling` to allow it, or a pull that breaks off, does not lead to
    one. Without `allow_build` it makes and pulls no part, and raises NotMade for a missing one. Raises Unavailable when
    the target cannot run here, InfraError when the machinery fails. Safe to call from several processes at once: one
    does the work, the others wait for it.
    """
    if target.untrusted and via == "auto":
        via = "docker"
    host = host or _looked_at(target, via)
    if lacking := can_run(target, host, via):
        away = target.host and via != "venv" and host.docker is None
        raise (Unreachable if away else Unavailable)(lacking)
    image = partial(prepare_image, target, host, pulling, allow_build=allow_build)
    made = _prepare(target, via, host, image, allow_build=allow_build)
    dealt = dealt_gpus(target, host)
    made = replace(made, gpus=_given_gpus(target, host, made, tuple(gpu.uuid for gpu in dealt)))
    return replace(made, device=_device(target, host, dealt, made))


def _device(target: Target, host: Host, dealt: tuple[HostGpu, ...], made: Environment) -> str:
    """Return the device of an environment, as far as it is known from here."""
    if made.via == "docker" and host.docker_elsewhere:
        return UNKNOWN
    if target.platform == "jetson":
        return f"Jetson Linux {host.jetson}" if host.jetson else UNKNOWN
    shown = _shown(host, dealt, made)
    if made.gpus and not shown:
        return UNKNOWN
    words = {f"{gpu.compute_capability} {gpu.name}, driver {gpu.driver.partition('.')[0]}" for gpu in shown}
    return "; ".join(sorted(words))


def _shown(host: Host, dealt: tuple[HostGpu, ...], made: Environment) -> tuple[HostGpu, ...]:
    """Return the GPUs that an environment sees; a virtual one without a GPU of its own sees the machine's."""
    if made.via == "venv":
        return dealt or host.gpus
    return host.gpus if made.gpus == ALL_GPUS else tuple(gpu for gpu in dealt if gpu.uuid in made.gpus)


def _looked_at(target: Target, via: Via) -> Host:
    """Return the machine that the target runs on; raises Unreachable if its daemon has gone since it answered."""
    host = look_there(target.host) if target.host else look_at_host(docker=via != "venv")
    if via != "venv" and host.docker is None and docker.met(target.host):
        raise Unreachable(f"needs Docker; {host.docker_reason}")
    return host


def _prepare(
    target: Target, via: Via, host: Host, image: Callable[[], Environment], *, allow_build: bool
) -> Environment:
    venv = partial(_venv, target, allow_build=allow_build)
    if via == "venv":
        return venv("as was asked for")
    if host.docker is None:
        if via == "docker":
            raise Unavailable(f"needs Docker; {host.docker_reason}")
        return venv(f"as {host.docker_reason}")
    try:
        made = image()
    except (NeedsPull, BrokenOff):
        raise
    except Unavailable as why:
        if via == "docker" or not _venv_possible(target, host):
            raise
        return venv(f"as Docker has no image for it ({why})")
    where = f" on {target.host}" if target.host else ""
    machine = host.docker.name if host.docker_elsewhere else host.machine
    note = f"{made.note[:-1]}: Docker {host.docker.version} answers{where}."
    return replace(made, groups=_groups(target, host), note=note, machine=machine)


def _groups(target: Target, host: Host) -> tuple[str, ...]:
    """Return the groups that own a board's render node; those of a daemon elsewhere are not known from here."""
    return host.render_groups if target.platform == "jetson" and not host.docker_elsewhere else ()


def _given_gpus(target: Target, host: Host, made: Environment, dealt: tuple[str, ...]) -> tuple[str, ...]:
    if made.via == "venv" or host.docker is None:
        return dealt
    # A daemon that cannot pass a GPU on is no reason to fail if one is welcome but not needed.
    if not (target.needs.gpu or host.docker.nvidia_runtime):
        return ()
    # Under WSL2 the NVIDIA Container Toolkit cannot tell one GPU from another.
    return ALL_GPUS if host.docker_elsewhere or (dealt and host.wsl) else dealt


def _venv_possible(target: Target, host: Host) -> bool:
    return (
        not target.host
        and bool(target.packages)
        and architecture(target) == host.architecture
        and target.platform != "jetson"
    )


def _venv(target: Target, why: str, *, allow_build: bool) -> Environment:
    python, folder, files = os.environ.get(PYTHON_VARIABLE, ""), "", ""
    if python:
        pins, files = installed_in(python, target)
        note = f"{target.name} runs in {python}, as {PYTHON_VARIABLE} says, with its own packages."
    else:
        folder = str(packages.venv_folder(target))
        made, pins = packages.venv(target, allow_build=allow_build)
        python = str(made)
        note = f"{target.name} runs in a virtual environment, {why}."
    return Environment(
        via="venv", target=target.name, python=python, packages=pins, note=note, folder=folder, files=files
    )


# ---- an interpreter of the user's that holds an engine, used as it is


def refuse_no_python() -> None:
    """Raise HandledError if the user names an interpreter that is none."""
    if python := os.environ.get(PYTHON_VARIABLE):
        _ask(python, "sys")


def installed_in(python: str, target: Target) -> tuple[tuple[str, ...], str]:
    """Return the pins `name==version` of the target's packages in an interpreter, and a hash of their files.

    The hash tells installations apart. The engine counts by the version that it reports itself, whatever distribution
    holds it: a wheel, Debian's package, an image's own. Raises Unavailable if it, or another package of the target, is
    missing or another, and HandledError for a program that is no Python.
    """
    place = f"{python} ({PYTHON_VARIABLE})"
    answer = _engine_in(python, target, place)
    held = {canonicalize_name(name): version for name, version in answer["packages"].items()}
    engine = canonicalize_name(target.module)
    others = {canonicalize_name(Requirement(each).name) for each in target.packages}
    others = {name for name in others if not name.startswith(engine)}
    if missing := sorted(others - held.keys()):
        raise Unavailable(f"needs {missing[0]}, which {place} does not hold")
    names = {name for name in held if name == engine or name.startswith(f"{engine}-")} or {engine}
    pins = sorted(f"{name}=={held.get(name, answer['version'])}" for name in names | others)
    return tuple(pins), hashlib.sha256(json.dumps(answer["files"]).encode()).hexdigest()


def _engine_in(python: str, target: Target, place: str) -> dict[str, Any]:
    """Return an interpreter's answer; raises Unavailable unless it has the target's engine."""
    answer = _ask(python, target.module)
    needs = f"needs {target.module} {target.version}"
    if answer["error"]:
        raise Unavailable(f"{needs}, which {place} cannot import: {one_line(answer['error'], 300)}")
    if not target.runs_version(answer["version"]):
        raise Unavailable(f"{needs}; {place} holds {target.module} {answer['version']}")
    return answer


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
            answer = json.loads(done.stdout.strip().rpartition("\n")[2])
            return {key: answer[key] for key in ("error", "version", "packages", "files")}
        except (OSError, ValueError, TypeError, KeyError, subprocess.SubprocessError) as error:
            said = one_line(str(error), 200)
            raise HandledError(
                f"{PYTHON_VARIABLE}={python}: is no Python that answers ({said}); name a Python's program file"
            ) from error


def start(  # noqa: PLR0913  (each by its name)
    environment: Environment,
    target: Target,
    *,
    argv: Sequence[str],
    gpus: Sequence[str] | None = None,
    run: str = "",
    weights: bool = False,
) -> ProcessTransport:
    """Start the environment's Python with `argv` and return the stream to it.

    `gpus` are UUIDs, by default those of the environment; `run` goes into the container's labels, which has room for
    `weights` if that is set. Raises InfraError when it cannot be started.
    """
    chosen = tuple(environment.gpus if gpus is None else gpus)
    if environment.via == "venv":
        return ProcessTransport([environment.python, *argv], gpus=chosen)
    options = Options(
        image=environment.image,
        python=environment.python,
        argv=tuple(argv),
        gpus=chosen,
        groups=environment.groups,
        weights=weights,
        **_confined(target),
    )
    return DockerTransport(options, target=target.name, run=run, host=target.host)


def docker_command_line(target: Target, image: str, groups: tuple[str, ...] = ()) -> str:
    """Return the `docker run` line that starts the same container, to print the engine's version.

    It gives the container every GPU if the target needs one, and on a Jetson the `groups` that own its render node.
    """
    options = Options(
        image=image,
        python="python3",
        argv=("-c", f"import {target.module} as engine; print(engine.__version__)"),
        gpus=ALL_GPUS if target.needs.gpu else (),
        groups=groups,
        **_confined(target),
    )
    return command_line(options, target.host)


def _confined(target: Target) -> dict[str, Any]:
    """Return the options of a container that a target decides."""
    return {
        "platform": target.docker_platform,
        "memory_mib": target.memory_mib,
        "jetson": target.platform == "jetson",
        "untrusted": target.untrusted,
    }
