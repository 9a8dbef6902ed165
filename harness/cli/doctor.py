"""`doctor`: the targets that this machine can run, and why not the rest."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
from collections.abc import Iterator, Mapping

from harness.cli.options import EXIT_OK, add_json, places, print_json
from harness.cli.project import Project, load_project
from harness.matrix import Target
from harness.plan import inapplicable_because
from harness.run.provision.cache import CACHE_VARIABLE, cache_dir
from harness.run.provision.host import Host, host_of, look_at_host
from harness.run.provision.requirements import architecture, can_run, older_driver


def add_doctor(command: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    add_json(command, "object")


def do_doctor(options: argparse.Namespace) -> int:
    """Print the facts of this machine, which targets can run on it and how, and the needs of each of the others."""
    project = load_project(options)
    host = look_at_host()
    reasons = {target: can_run(target, host_of(target, host)) for target in project.matrix}
    able = [target for target, reason in reasons.items() if reason is None]
    if options.json:
        print_json(_as_json(host, reasons))
        return EXIT_OK
    print("this machine")
    for line in (*_describe(host), f"cache         {cache_dir()} ({CACHE_VARIABLE} moves it)"):
        print(f"  {line}")
    for target in {target.host: target for target in project.matrix if target.host}.values():
        print(target.host)
        for line in _describe(host_of(target, host)):
            print(f"  {line}")
    print(f"can run here: {len(able)} of {len(reasons)} targets")
    for target in able:
        doubts = "; ".join(filter(None, (older_driver(target, host_of(target, host)), target.unsourced)))
        how = " or ".join(ways(target, host_of(target, host))) + (f" ({doubts})" if doubts else "")
        on = f" on {target.host}" if target.host else ""
        print(f"  {target.name:<12} {target.label:<30} {how}{on}")
    lacking = {
        reason: [each for each, why in reasons.items() if why == reason] for reason in reasons.values()
    }
    if len(able) < len(reasons):
        print(f"cannot run here: {len(reasons) - len(able)}")
    for reason, targets in lacking.items():
        if reason is not None:
            print(f"  {reason}")
            print(f"    {', '.join(target.name for target in targets)}")
    print(_what_next(project, able, options))
    return EXIT_OK


def _as_json(host: Host, reasons: Mapping[Target, str | None]) -> dict[str, object]:
    return {
        "architecture": host.architecture,
        "gpus": [dataclasses.asdict(gpu) for gpu in host.gpus],
        "docker": host.docker.version if host.docker else None,
        "cache": str(cache_dir()),
        "targets": [
            {
                "id": target.name,
                "can_run": reason is None,
                "ways": ways(target, host_of(target, host)),
                "lacks": reason,
            }
            for target, reason in reasons.items()
        ],
    }


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
