"""Starts an agent in an environment: chooses the transport, and shows the line that a person would type."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.run.docker import ALL_GPUS, DockerTransport, Options, command_line
from harness.run.transport import ProcessTransport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.matrix import Target
    from harness.run.provision import Environment
    from harness.run.transport import Transport


def start(  # noqa: PLR0913  (each by its name)
    environment: Environment,
    target: Target,
    *,
    argv: Sequence[str],
    gpus: Sequence[str] | None = None,
    run: str = "",
    weights: bool = False,
) -> Transport:
    """Start the environment's Python with `argv` and return the stream to it.

    `gpus` are UUIDs, by default those of the environment; `run` goes into the container's labels, which has room for
    `weights` where that is set. Raises InfraError when it cannot be started.
    """
    chosen = tuple(environment.gpus if gpus is None else gpus)
    if environment.via == "venv":
        return ProcessTransport([environment.python, *argv], gpus=chosen)
    options = _options(target, environment.image, environment.python, argv, chosen, environment.groups)
    options = replace(options, weights=weights)
    return DockerTransport(options, target=target.name, run=run, host=target.host)


def docker_command_line(
    target: Target,
    image: str,
    *,
    argv: Sequence[str] = (),
    python: str = "python3",
    groups: tuple[str, ...] = (),
) -> str:
    """Return the `docker run` line that starts the same container, by default to print the engine's version.

    It gives the container every GPU where the target needs one, and on a Jetson the `groups` that own its render node.
    """
    shown = argv or ("-c", f"import {target.module} as engine; print(engine.__version__)")
    options = _options(target, image, python, shown, ALL_GPUS if target.needs.gpu else (), groups)
    return command_line(options, target.host)


def _options(  # noqa: PLR0913, PLR0917
    target: Target,
    image: str,
    python: str,
    argv: Sequence[str],
    gpus: tuple[str, ...],
    groups: tuple[str, ...],
) -> Options:
    return Options(
        image=image,
        platform=target.docker_platform,
        python=python,
        argv=tuple(argv),
        memory_mib=target.memory_mib,
        gpus=gpus,
        jetson=target.platform == "jetson",
        groups=groups,
        untrusted=target.untrusted,
    )
