"""Images that are pulled: how large they are, whether they may be, and one at a time."""

from __future__ import annotations

import math
import os
import shutil
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from harness.errors import HandledError, InfraError
from harness.run import docker
from harness.run.docker import Image, ImageRefused, Layers, Progress, PullBroke
from harness.run.provision.cache import locked
from harness.run.provision.model import BrokenOff, NeedsPull, Unavailable, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness.run.provision.host import Host

#: Above how many GB (compressed, as they are transferred) an image is pulled only where that was asked for.
THRESHOLD_VARIABLE = "TRT_COMPAT_PULL_GB"
_THRESHOLD_GB = 2.0
GB = 10**9
#: Seconds to wait while others pull: a dozen images of several GB over a slow line. A lock ends with its holder.
PATIENCE = 24 * 3600.0


@dataclass(frozen=True)
class Pulling:
    """What is pulled in a run, and who hears of it.

    `large` allows images above the threshold. `known` are the layers that registries have named already, by reference
    and platform. `tell` is called as a pull goes on; it ends when `needed` says that nobody waits for it.
    """

    large: bool = False
    known: Mapping[tuple[str, str], Layers] | None = None
    tell: Callable[[Progress], None] = lambda _: None
    needed: Callable[[], bool] = lambda: True


@dataclass(frozen=True)
class Pull:
    """An image to be pulled.

    `declared` is its size in bytes by matrix.yaml; `plain` says that it is the Python that package images are built
    on; `layers` are as the registry names them, empty where it does not. `host` is whose daemon pulls it, "" for the
    one of this environment.
    """

    reference: str
    platform: str
    declared: int | None = None
    plain: bool = False
    layers: Layers = field(default_factory=dict, hash=False)
    host: str = ""

    @property
    def size(self) -> int | None:
        """Return the bytes that are transferred if no layer is there yet, None where nobody says."""
        return sum(self.layers.values()) or self.declared

    @property
    def says(self) -> str:
        """Return the size in words."""
        return "size unknown" if self.size is None else amount(self.size)

    @property
    def large(self) -> bool:
        """Tell whether it is above the threshold, as one of unknown size is.

        Not so the plain Python of package images: it is some 50 MB, and a machine that reaches no registry but by its
        daemon's mirror has always pulled it.
        """
        return not self.plain if self.size is None else self.size > threshold()

    @property
    def refusal(self) -> str:
        """Return what a target whose image it is needs, where large ones are not pulled."""
        return f"needs --pull ({self.says})"


def threshold() -> float:
    """Return the bytes above which an image is large; raises HandledError where the variable cannot be read."""
    text = os.environ.get(THRESHOLD_VARIABLE) or str(_THRESHOLD_GB)
    try:
        gigabytes = float(text)
    except ValueError:
        gigabytes = math.nan
    if not gigabytes >= 0:
        raise HandledError(f"{THRESHOLD_VARIABLE}={text} is no number of GB; write it like 2 or 0.5")
    return gigabytes * GB


def amount(size: float) -> str:
    """Return a number of bytes as people say it."""
    return f"{size / GB:.1f} GB" if size >= GB / 10 else f"{size / 10**6:.0f} MB"


def free_bytes(host: Host) -> int | None:
    """Return what is free where the daemon keeps images, None where it is not known."""
    if host.docker is None or host.docker_elsewhere or not host.docker.root:
        return None
    if host.machine:
        return host.free_image_bytes
    try:
        return shutil.disk_usage(host.docker.root).free
    except OSError:
        return None


def too_little(what: str, size: int | None, host: Host) -> str | None:
    """Return the sentence on the lack of space for `what`, None where there is enough or nobody knows."""
    free = free_bytes(host)
    if host.docker is None or size is None or free is None or size <= free:
        return None
    return (
        f"{what}: {amount(size)} to pull, unpacked more, and {amount(free)} free in {host.docker.root}; "
        "make room there, or select fewer targets"
    )


def obtain(wanted: Pull, pulling: Pulling, host: Host) -> Image:
    """Return an image that is here, or pull it, one at a time on a machine.

    Raises NeedsPull where it is large and that was not asked for, Unavailable where it is not to be had, and InfraError
    where there is no room for it.
    """
    found = docker.find_image(wanted.reference, wanted.platform, wanted.host)
    if found is not None:
        return found
    wanted = _measured(wanted, pulling)
    if wanted.large and not pulling.large:
        raise NeedsPull(wanted.refusal)
    with locked(f"pull-{host.machine}".rstrip("-"), timeout=PATIENCE, needed=pulling.needed):
        # Whoever had the lock before may have pulled this very image.
        found = docker.find_image(wanted.reference, wanted.platform, wanted.host)
        return found or _pulled(wanted, pulling, host)


def _measured(wanted: Pull, pulling: Pulling) -> Pull:
    key = (wanted.reference, wanted.platform)
    known = docker.layers_of([key]) if pulling.known is None else pulling.known
    return with_layers(wanted, known)


def with_layers(wanted: Pull, known: Mapping[tuple[str, str], Layers]) -> Pull:
    """Return a pull with the layers that its registry named."""
    return replace(wanted, layers=known.get((wanted.reference, wanted.platform), {}))


def _pulled(wanted: Pull, pulling: Pulling, host: Host) -> Image:
    lacking = too_little(f"no room for {wanted.reference}", wanted.size, host)
    if lacking:
        raise InfraError(lacking)
    needs = f"needs image {wanted.reference}"
    try:
        return docker.pull_image(
            wanted.reference,
            wanted.platform,
            layers=wanted.layers,
            tell=pulling.tell,
            needed=pulling.needed,
            host=wanted.host,
        )
    except PullBroke as error:
        raise BrokenOff(f"{needs}, whose pull broke off after {amount(error.done)}: {error}") from error
    except ImageRefused as error:
        kind = Unreachable if error.unreachable else Unavailable
        raise kind(f"{needs}, which cannot be pulled: {error}") from error
