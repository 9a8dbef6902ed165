"""`doctor`: what this machine can run, and why not the rest."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from harness.cli.common import EXIT_OK, load_project
from harness.provision import can_run, look_at_host
from harness.provision.cache import CACHE_VARIABLE, cache_dir

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.provision import Host


def add_arguments(_command: argparse.ArgumentParser) -> None:
    """Add nothing: `doctor` only looks."""


def doctor(options: argparse.Namespace) -> int:
    """Print the facts of this machine and, for each target, whether it can run here and if not what it needs."""
    project = load_project(options)
    host = look_at_host()
    print("this machine")
    for line in _describe(host):
        print(f"  {line}")
    print("targets")
    able = 0
    for target in project.matrix:
        reason = can_run(target, host)
        able += reason is None
        print(f"  {'can run' if reason is None else 'cannot '}  {target.name:<12} {reason or target.label}")
    print(f"{able} of {len(project.matrix.targets)} targets can run here; {len(project.cells)} cells in all")
    return EXIT_OK


def _describe(host: Host) -> Iterator[str]:
    yield f"architecture  {host.architecture}"
    if not host.gpus:
        yield f"GPU           none: {host.gpu_reason}"
    for gpu in host.gpus:
        yield f"GPU           {gpu.name}, compute capability {gpu.compute_capability}, driver {gpu.driver} ({gpu.uuid})"
    if host.jetson:
        yield f"Jetson        L4T {host.jetson}"
    yield f"Docker        {host.docker.version}" if host.docker else f"Docker        no: {host.docker_reason}"
    yield f"emulated      {', '.join(sorted(host.emulated)) or 'no other architecture'}"
    yield f"cache         {cache_dir()} ({host.free_disk_mib >> 10} GiB free; {CACHE_VARIABLE} moves it)"
