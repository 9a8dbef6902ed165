"""The command lines that a person can paste, and the plan of `prepare`; it neither makes nor pulls."""

from __future__ import annotations

import shlex

from harness.errors import InfraError
from harness.matrix import Matrix, Target
from harness.plan.by_hand import started_in
from harness.run import docker
from harness.run.provision import packages
from harness.run.provision.host import Host, host_of, look_at_host
from harness.run.provision.images import image_command_lines, planned_image, size
from harness.run.provision.model import Via
from harness.run.provision.prepare import docker_command_line
from harness.run.provision.requirements import BARE, can_run


def command_lines(target: Target, via: Via = "docker", groups: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the lines that make the target's environment by hand and print its engine's version in it.

    They are for a shell in which the harness's own environment is activated: `uv` comes with it. The `docker run`
    line starts the container with the options under which cells run, `groups` those of a Jetson's render node.
    """
    if via != "venv":
        return (
            *image_command_lines(target),
            docker_command_line(target, planned_image(target), groups),
        )
    folder = packages.by_hand(target, "venv")
    python = str(folder / "bin" / "python")
    return (
        *(shlex.join(["uv", *arguments]) for arguments in packages.venv_commands(target, folder)),
        *packages.venv_shim(target, folder),
        shlex.join([python, "-c", f"import {target.module} as engine; print(engine.__version__)"]),
    )


def published_lines(matrix: Matrix) -> dict[str, tuple[str, ...]]:
    """Return, by target, the lines that make its container by hand: the same on every machine, for the report.

    The last one starts it in the current folder, and takes a command.
    """
    return {target.name: container_lines(target, here=False) for target in matrix}


def container_lines(target: Target, *, here: bool = True) -> tuple[str, ...]:
    """Return the lines that make a target's container by hand; the last one starts it and takes a command.

    They are for the project's top folder. `here` is as for `base_image`.
    """
    started = started_in(target, planned_image(target, here=here))
    return (*image_command_lines(target, here=here), started)


def plan_environment(target: Target, via: Via = "auto", host: Host | None = None) -> tuple[str, ...]:
    """Return, as lines, the plan of `prepare` here: the way, the missing parts, the commands."""
    host = host_of(target, host or look_at_host())
    lacking = can_run(target, host, via)
    if lacking is not None:
        return (f"cannot run here: it {lacking}",)
    if not _confined(target, via, host):
        made = "there" if packages.venv_folder(target).exists() else "to be made"
        return (f"virtual environment, {made}", *command_lines(target, "venv"))
    if host.docker is None:
        return (f"cannot run here: it needs Docker; {host.docker_reason}",)
    return _container_plan(target, host)


def _confined(target: Target, via: Via, host: Host | None) -> bool:
    return target.untrusted or via == "docker" or (via == "auto" and not (host and host.docker is None))


def _container_plan(target: Target, host: Host) -> tuple[str, ...]:
    image = planned_image(target)
    groups = () if host.docker_elsewhere else host.render_groups
    on = f" on {target.host}" if target.host else ""
    todo = f"to be pulled ({size(target)})" if target.build is None else "to be built"
    return (
        f"container from {image}{on}, {'there' if _there(image, target) else todo}",
        *command_lines(target, groups=groups),
    )


def limits(target: Target, via: Via = "docker", host: Host | None = None) -> tuple[str, ...]:
    """Return, as lines, the limits on the target's cells: those of a container, or that it has no limit."""
    if not _confined(target, via, host):
        return (f"not confined: {BARE}",)
    return tuple(f"confined: {line}" for line in docker.limits(untrusted=target.untrusted))


def _there(image: str, target: Target) -> bool:
    try:
        return docker.find_image(image, target.docker_platform, target.host) is not None
    except InfraError:
        return False
