"""Chooses how a target runs here, and makes it ready."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.run.docker import ALL_GPUS
from harness.run.provision import interpreter, packages
from harness.run.provision.host import Host, look_at_host
from harness.run.provision.images import prepare_image
from harness.run.provision.model import BrokenOff, Environment, NeedsPull, Unavailable, Via
from harness.run.provision.pulls import Pulling
from harness.run.provision.requirements import architecture, can_run, fitting_gpus

if TYPE_CHECKING:
    from harness.matrix import Target
    from harness.run.docker import Daemon


def prepare(
    target: Target,
    via: Via = "auto",
    pulling: Pulling = Pulling(),  # noqa: B008  (frozen)
    *,
    allow_build: bool = True,
    host: Host | None = None,
) -> Environment:
    """Make the target's environment, or find it made, and return it.

    What the machine lacks is found out first and offline, so that a machine without a GPU never pulls an
    image that needs one. "auto" takes Docker where its daemon answers and the image is to be had, else a
    virtual environment; a large image that `pulling` does not allow is not to be had either way. Raises
    Unavailable when the target cannot run here, InfraError when the machinery fails. Safe to call from several
    processes at once: one does the work, the others wait for it.
    """
    host = host or look_at_host()
    lacking = can_run(target, host, via)
    if lacking is not None:
        raise Unavailable(lacking)
    if via == "venv":
        return _venv(target, host, "as was asked for")
    if host.docker is None:
        if via == "docker":
            raise Unavailable(f"needs Docker; {host.docker_reason}")
        return _venv(target, host, f"as {host.docker_reason}")
    try:
        made = prepare_image(target, host, pulling, allow_build=allow_build)
    except (NeedsPull, BrokenOff):
        raise
    except Unavailable as refusal:
        if via == "docker" or not _venv_possible(target, host):
            raise
        return _venv(target, host, f"as Docker has no image for it ({refusal})")
    note = f"{made.note[:-1]}: Docker {host.docker.version} answers."
    return replace(made, gpus=_container_gpus(target, host, host.docker), note=note)


def _container_gpus(target: Target, host: Host, docker: Daemon) -> tuple[str, ...]:
    if host.docker_elsewhere:
        return ALL_GPUS if target.needs.gpu or docker.nvidia_runtime else ()
    # Where a GPU is welcome but not needed, a daemon that cannot pass one on is no reason to fail.
    wanted = target.needs.gpu or docker.nvidia_runtime
    return tuple(gpu.uuid for gpu in fitting_gpus(target, host)) if wanted else ()


def _venv_possible(target: Target, host: Host) -> bool:
    return bool(target.packages) and architecture(target) == host.architecture and target.platform != "jetson"


def _venv(target: Target, host: Host, why: str) -> Environment:
    own, folder = interpreter.chosen(), ""
    if own is not None:
        python, pins = own, interpreter.pins_in(own, target)
        note = f"{target.name} runs in {own}, as {interpreter.VARIABLE} says, with what is installed there."
    else:
        folder = str(packages.venv_folder(target))
        made, pins = packages.venv(target)
        python = str(made)
        note = f"{target.name} runs in a virtual environment, {why}."
    return Environment(
        via="venv",
        target=target.name,
        python=python,
        packages=pins,
        gpus=tuple(gpu.uuid for gpu in fitting_gpus(target, host)),
        note=note,
        folder=folder,
    )
