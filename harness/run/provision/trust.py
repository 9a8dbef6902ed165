"""Untrusted models: refused, before anything is run, where they could not be confined."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.errors import HandledError
from harness.run import docker
from harness.run.provision.host import Host, look_at_host

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.matrix import Target
    from harness.run.provision.model import Via

#: What is not protected where there is no container.
BARE = (
    "in a virtual environment nothing keeps a model's code from your files, your network and your processes"
)


def refuse_unconfined(targets: Iterable[Target], via: Via = "auto", host: Host | None = None) -> None:
    """Raise HandledError where untrusted targets are to run where no container of this machine's daemon can be had.

    Hosts that targets name are not asked: there is no other way there than a container.
    """
    untrusted = [target for target in targets if target.untrusted]
    if not untrusted:
        return
    cure = "; give --trusted where the models are your own"
    if via == "venv":
        raise HandledError(f"--via venv is refused for untrusted models: {BARE}{cure}")
    if all(target.host for target in untrusted):
        return
    host = host or look_at_host()
    if host.docker is None:
        raise HandledError(
            f"untrusted models run in containers alone, and {host.docker_reason}: {BARE}{cure}"
        )
    if not host.docker.filters:
        raise HandledError(
            f"untrusted models are refused: {docker.UNFILTERED}, and what they ask of it is unbounded{cure}"
        )
