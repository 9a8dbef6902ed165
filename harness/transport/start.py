"""Chooses the transport that an environment asks for.

The Docker room is imported where it is used: it builds on this one, and a machine without Docker need not
load its SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.transport.process import ProcessTransport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.docker_engine import Options
    from harness.matrix import Target
    from harness.provision import Environment
    from harness.transport.api import Transport


def start(
    environment: Environment,
    target: Target,
    *,
    argv: Sequence[str],
    gpus: Sequence[str] | None = None,
    run: str = "",
) -> Transport:
    """Start the environment's Python with `argv` and return the stream to it.

    `gpus` are UUIDs, by default those of the environment; `run` goes into the container's labels. Raises
    InfraError when it cannot be started.
    """
    chosen = tuple(environment.gpus if gpus is None else gpus)
    if environment.via == "venv":
        return ProcessTransport([environment.python, *argv], gpus=chosen)
    from harness.docker_engine import DockerTransport  # noqa: PLC0415  (see above)

    options = _options(target, environment.image, environment.python, argv, chosen)
    return DockerTransport(options, target=target.name, run=run)


def docker_command_line(
    target: Target, image: str, *, argv: Sequence[str] = (), python: str = "python3"
) -> str:
    """Return the `docker run` line that starts the same container, by default to print the engine's version.

    It gives the container every GPU where the target needs one.
    """
    from harness.docker_engine import ALL_GPUS, command_line  # noqa: PLC0415  (see above)

    shown = argv or ("-c", f"import {target.module} as engine; print(engine.__version__)")
    return command_line(_options(target, image, python, shown, ALL_GPUS if target.needs.gpu else ()))


def _options(target: Target, image: str, python: str, argv: Sequence[str], gpus: tuple[str, ...]) -> Options:
    from harness.docker_engine import Options  # noqa: PLC0415  (see above)

    return Options(
        image=image,
        platform=target.docker_platform,
        python=python,
        argv=tuple(argv),
        memory_mib=target.memory_mib,
        gpus=gpus,
        jetson=target.platform == "jetson",
    )
