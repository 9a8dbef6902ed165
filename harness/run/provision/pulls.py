"""The images that a run would pull before it can begin, announced before it does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from harness.errors import InfraError
from harness.matrix import Target
from harness.run import docker
from harness.run.provision.host import Host, host_of, look_at_host
from harness.run.provision.images import (
    Pull,
    amount,
    free_bytes,
    planned_image,
    threshold,
    too_little,
    wanted_pull,
)
from harness.run.provision.model import Via
from harness.run.provision.requirements import can_run

#: Targets of an image that are named in the table.
_NAMED = 4


@dataclass(frozen=True)
class PullPlan:
    """The images that are not here, each with the targets that start from it, and whether large ones are pulled."""

    pulls: tuple[tuple[Pull, tuple[str, ...]], ...]
    large: bool
    host: Host

    def too_little(self) -> str | None:
        """Return the sentence on too little space for all that is to be pulled here, None where there is enough."""
        pulls = tuple(pull for pull in self._now if not pull.host)
        return too_little(f"no room for {_images(len(pulls))}", _size(pulls), self.host)

    def lines(self) -> Iterator[str]:
        """Yield the table; nothing where nothing is to be pulled."""
        if not self.pulls:
            return
        root = (self.host.docker and self.host.docker.root) or "a folder that the daemon does not name"
        free = free_bytes(self.host)
        room = "unknown" if free is None else amount(free)
        yield f"images not here yet; Docker keeps them in {root} (free: {room}):"
        width = max(len(pull.reference) for pull, _ in self.pulls)
        for pull, targets in self.pulls:
            size = f"{pull.says}{'' if pull in self._now else ', needs --pull'}"
            on = f" on {pull.host}" if pull.host else ""
            yield f"  {pull.reference:<{width}}  {pull.platform}  {size:<26}  {_names(targets)}{on}"
        if self._now:
            known = amount(_size(self._now))
            unknown = sum(pull.size is None for pull in self._now)
            sizes = ", ".join(
                [known] * (unknown < len(self._now)) + [f"{unknown} of unknown size"] * bool(unknown)
            )
            yield f"to be pulled, one after the other: {_images(len(self._now))} ({sizes}; unpacked they take more)"

    @property
    def _now(self) -> tuple[Pull, ...]:
        return tuple(pull for pull, _ in self.pulls if self.large or not pull.large)


def plan_pulls(
    targets: Iterable[Target],
    via: Via,
    *,
    large: bool,
    ignore_needs: bool = False,
    host: Host | None = None,
) -> PullPlan:
    """Return the images that the targets of a run would have to pull here."""
    threshold()  # a variable that cannot be read is an error before anything is looked for
    host = host or look_at_host()
    wanted: dict[Pull, list[str]] = {}
    for target in targets:
        if via != "venv" and (host.docker is not None or target.host):
            able = can_run(target, host_of(target, host), via, ignore_needs=ignore_needs) is None
            if able and (pull := _missing(target)) is not None:
                wanted.setdefault(pull, []).append(target.name)
    return PullPlan(tuple((pull, tuple(names)) for pull, names in wanted.items()), large, host)


def _missing(target: Target) -> Pull | None:
    wanted = wanted_pull(target)
    try:
        here = docker.find_image(wanted.reference, wanted.platform, target.host) or docker.find_image(
            planned_image(target), target.docker_platform, target.host
        )
    except InfraError:
        return None  # the daemon has gone: the cells will say so
    return None if here else wanted


def _size(pulls: Iterable[Pull]) -> int:
    return sum(pull.size or 0 for pull in pulls)


def _images(count: int) -> str:
    return "1 image" if count == 1 else f"{count} images"


def _names(targets: tuple[str, ...]) -> str:
    more = len(targets) - _NAMED
    return ", ".join(targets) if more <= 0 else f"{', '.join(targets[:_NAMED])} and {more} more"
