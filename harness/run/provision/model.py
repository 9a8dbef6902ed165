"""The environment that provisioning gives, and its refusals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Via = Literal["docker", "venv", "auto"]


class Unavailable(Exception):
    """The target cannot run here; the text begins with "needs" and names the cure if there is one."""


class Unreachable(Unavailable):
    """An image or a package could not be fetched: infrastructure, and no property of this machine."""


class BrokenOff(Unreachable):
    """A pull failed after it had begun: no other way is tried, since it would have to be fetched as well."""


class NeedsPull(Unavailable):
    """An image is large, and pulls of large ones were not asked for."""


class NotMade(NeedsPull):
    """The environment is not here, and was not to be made."""


#: The device of an environment whose GPU is unknown here.
UNKNOWN = "?"


@dataclass(frozen=True)
class Environment:
    """The place of a target's agent.

    `python` is the interpreter: a path, or a name inside the image. `image` and `image_digest` (the registry's digest
    of it, or of the base that brought the engine; the image's id if it came from neither) are empty for a virtual
    environment. `packages` are the pins `name==version` that were resolved; empty for an image that brought its engine
    along. `gpus` are the UUIDs of the GPUs that the agent is given ("all" alone: those of a daemon elsewhere, or under
    WSL2). `note` says which way was taken and why. `folder` is the part of the cache that it was made in, if any;
    `files` is a hash of the files of an interpreter of the user's. `groups` own a Jetson's render node. `machine` tells
    another machine's devices from this one's, for which it is "". `device` names the devices that tell outcomes apart:
    compute capability, product and driver branch of each kind of GPU, "" without a GPU, UNKNOWN for unknown ones.
    """

    via: Literal["docker", "venv"]
    target: str
    python: str
    image: str = ""
    image_digest: str = ""
    packages: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    note: str = ""
    folder: str = ""
    files: str = ""
    groups: tuple[str, ...] = ()
    machine: str = ""
    device: str = ""

    @property
    def remedy(self) -> str:
        """Return the remedy for an engine that does not load, as the end of a sentence; "" without one."""
        return f"; if that stays, delete {self.folder}, which is then made anew" if self.folder else ""
