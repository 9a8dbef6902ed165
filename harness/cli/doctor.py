"""`doctor`: the targets that this machine can run, and why not the rest."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
from collections.abc import Iterable, Iterator, Mapping

from harness.cli.options import EXIT_OK, add_json, places, print_json
from harness.cli.project import Project, load_project
from harness.matrix import Target
from harness.run.provision.cache import CACHE_VARIABLE, cache_dir
from harness.run.provision.host import Host, host_of, look_at_host
from harness.run.provision.requirements import architecture, can_run, older_driver
from harness.text import grouped


def add_doctor(command: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    add_json(command, "object")


def do_doctor(options: argparse.Namespace) -> int:
    """Print the facts of this machine, which targets can run on it and how, and the needs of each of the others."""
    project = load_project(options)
    host = look_at_host()
    reasons = {target: can_run(target, host_of(target, host)) for target in project.matrix}
    if options.json:
        print_json(_as_json(host, reasons))
    else:
        print(*_machines(host, project.matrix), *_able(host, reasons), *_unable(reasons), sep="\n")
        print(_what_next(project, reasons, options))
    return EXIT_OK


def _machines(host: Host, targets: Iterable[Target]) -> Iterator[str]:
    """Yield the lines on this machine, and on each that a target names."""
    yield "this machine"
    yield from (f"  {line}" for line in _describe(host))
    yield f"  cache         {cache_dir()} ({CACHE_VARIABLE} moves it)"
    for name, target in {target.host: target for target in targets if target.host}.items():
        yield name
        yield from (f"  {line}" for line in _describe(host_of(target, host)))


def _able(host: Host, reasons: Mapping[Target, str | None]) -> Iterator[str]:
    able = [target for target, reason in reasons.items() if reason is None]
    yield f"can run here: {len(able)} of {len(reasons)} targets"
    for target in able:
        its = host_of(target, host)
        doubts = "; ".join(filter(None, (older_driver(target, its), target.unsourced)))
        how = " or ".join(ways(target, its)) + (f" ({doubts})" if doubts else "")
        on = f" on {target.host}" if target.host else ""
        yield f"  {target.name:<12} {target.label:<30} {how}{on}"


def _unable(reasons: Mapping[Target, str | None]) -> Iterator[str]:
    lacking = grouped((reason, target.name) for target, reason in reasons.items() if reason is not None)
    if lacking:
        yield f"cannot run here: {sum(map(len, lacking.values()))}"
    for reason, names in lacking.items():
        yield f"  {reason}"
        yield f"    {', '.join(names)}"


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


def _what_next(project: Project, reasons: Mapping[Target, str | None], options: argparse.Namespace) -> str:
    names = {target.name for target, reason in reasons.items() if reason is None}
    cells = [c for c in project.cells if c.target.name in names and c.inapplicable is None]
    run = shlex.join(["trt-compat", "run", *places(options)])
    if not cells:
        return f"nothing of the matrix can run here; {run} would show only what is reported"
    return f"next: {run} (it runs {len(cells)} of {len(project.cells)} cells here and says why not the rest)"


def _describe(host: Host) -> Iterator[str]:
    """Yield the lines on a machine; one that a target names and Docker does not reach has no architecture."""
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
    yield f"Docker        {_docker(host)}"
    yield f"emulated      {', '.join(sorted(host.emulated)) or 'no other architecture'}"


def _docker(host: Host) -> str:
    docker = host.docker
    if docker is None:
        return f"no: {host.docker_reason}; engines run in virtual environments"
    where = ", Docker Desktop" if docker.desktop else ""
    where += f" at {docker.address}, another machine" if host.docker_elsewhere else ""
    return f"{docker.version}{where}{'' if docker.nvidia_runtime else ', without the NVIDIA runtime'}"
