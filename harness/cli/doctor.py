"""`doctor`: the targets that this machine can run, and why not the rest."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator

from harness.cli.options import EXIT_OK, places
from harness.cli.project import Project, load_project
from harness.matrix import Target
from harness.plan import inapplicable_because
from harness.run.provision.cache import CACHE_VARIABLE, cache_dir
from harness.run.provision.host import Host, host_of, look_at_host
from harness.run.provision.requirements import architecture, can_run, older_driver


def do_doctor(options: argparse.Namespace) -> int:
    """Print the facts of this machine, which targets can run on it and how, and the needs of each of the others."""
    project = load_project(options)
    host = look_at_host()
    print("this machine")
    for line in (*_describe(host), f"cache         {cache_dir()} ({CACHE_VARIABLE} moves it)"):
        print(f"  {line}")
    for target in {target.host: target for target in project.matrix if target.host}.values():
        print(target.host)
        for line in _describe(host_of(target, host)):
            print(f"  {line}")
    lacking: dict[str, list[Target]] = {}
    able: list[Target] = []
    for target in project.matrix:
        reason = can_run(target, host_of(target, host))
        if reason is None:
            able.append(target)
        else:
            lacking.setdefault(reason, []).append(target)
    print(f"can run here: {len(able)} of {len(project.matrix.targets)} targets")
    for target in able:
        doubts = "; ".join(filter(None, (older_driver(target, host_of(target, host)), target.unsourced)))
        how = " or ".join(ways(target, host_of(target, host))) + (f" ({doubts})" if doubts else "")
        on = f" on {target.host}" if target.host else ""
        print(f"  {target.name:<12} {target.label:<30} {how}{on}")
    if lacking:
        print(f"cannot run here: {len(project.matrix.targets) - len(able)}")
    for reason, targets in lacking.items():
        print(f"  {reason}")
        print(f"    {', '.join(target.name for target in targets)}")
    print(_what_next(project, able, options))
    return EXIT_OK


def ways(target: Target, host: Host) -> list[str]:
    """Return how a target can run on a host, the preferred way first; an image may yet turn out to be missing."""
    found = []
    if host.docker is not None and can_run(target, host, "docker") is None:
        foreign = architecture(target) != host.docker.architecture
        found.append("container, emulated" if foreign else "container")
    if target.packages and target.platform != "jetson" and can_run(target, host, "venv") is None:
        found.append("virtual environment")
    return found


def _what_next(project: Project, able: list[Target], options: argparse.Namespace) -> str:
    names = {target.name for target in able}
    cells = [c for c in project.cells if c.target.name in names and inapplicable_because(c) is None]
    run = shlex.join(["trt-compat", "run", *places(options)])
    if not cells:
        return f"nothing of the matrix can run here; {run} would show only what is reported"
    return f"next: {run} (it runs {len(cells)} of {len(project.cells)} cells here and says why not the rest)"


def _describe(host: Host) -> Iterator[str]:
    """Yield the lines on a machine; one that a target names and Docker does not reach has no architecture."""
    docker = host.docker
    if not host.architecture:
        yield host.docker_reason
        return
    yield f"architecture  {host.architecture}"
    if not host.gpus:
        yield f"GPU           none: {host.gpu_reason}"
    for gpu in host.gpus:
        yield f"GPU           {gpu.name}, compute capability {gpu.compute_capability}, driver {gpu.driver} ({gpu.uuid})"
    if host.wsl:
        yield "Windows       this is WSL2, with the driver of Windows"
    if host.jetson:
        yield f"Jetson        L4T {host.jetson}"
    if docker is None:
        yield f"Docker        no: {host.docker_reason}; engines run in virtual environments"
    else:
        where = ", Docker Desktop" if docker.desktop else ""
        where += f" at {docker.address}, another machine" if host.docker_elsewhere else ""
        runtime = "" if docker.nvidia_runtime else ", without the NVIDIA runtime"
        yield f"Docker        {docker.version}{where}{runtime}"
    yield f"emulated      {', '.join(sorted(host.emulated)) or 'no other architecture'}"
