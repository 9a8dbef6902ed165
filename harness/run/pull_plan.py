"""What a run would pull before it can begin, said before it is pulled, and how far a pull is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.errors import InfraError
from harness.run import docker
from harness.run.provision.host import Host, look_at_host
from harness.run.provision.images import planned_image, wanted_pull
from harness.run.provision.pulls import GB, Pull, amount, free_bytes, threshold, too_little, with_layers
from harness.run.provision.remote import host_of
from harness.run.provision.requirements import can_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from harness.matrix import Target
    from harness.run.docker import Layers, Progress
    from harness.run.provision import Via

#: Targets of an image that are named in the table.
_NAMED = 4


@dataclass(frozen=True)
class PullPlan:
    """The images that are not here, each with the targets that start from it, and whether large ones are pulled."""

    pulls: tuple[tuple[Pull, tuple[str, ...]], ...]
    large: bool
    host: Host

    @property
    def known(self) -> dict[tuple[str, str], Layers]:
        """Return the layers that registries named, for `Pulling`."""
        return {(pull.reference, pull.platform): pull.layers for pull, _ in self.pulls}

    def too_little(self) -> str | None:
        """Return the sentence on too little space for all that is to be pulled here, None where there is enough."""
        pulls = tuple(pull for pull in self._now if not pull.host)
        return too_little(f"no room for {_images(len(pulls))}", self._size(pulls), self.host)

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
            known = amount(self._size(self._now))
            unknown = sum(pull.size is None for pull in self._now)
            sizes = ", ".join(
                [known] * (unknown < len(self._now)) + [f"{unknown} of unknown size"] * bool(unknown)
            )
            yield f"to be pulled, one after the other: {_images(len(self._now))} ({sizes}; unpacked they take more)"

    @property
    def _now(self) -> tuple[Pull, ...]:
        return tuple(pull for pull, _ in self.pulls if self.large or not pull.large)

    def _size(self, pulls: Iterable[Pull]) -> int:
        """Return the bytes of all: a layer that several share is transferred once."""
        layers: Layers = {}
        declared = 0
        for pull in pulls:
            layers |= pull.layers
            declared += 0 if pull.layers else pull.size or 0
        return sum(layers.values()) + declared


def plan_pulls(
    targets: Iterable[Target],
    via: Via,
    *,
    large: bool,
    ignore_needs: bool = False,
    host: Host | None = None,
) -> PullPlan:
    """Return what the targets that are run here would have to pull; registries are asked only of what is not here."""
    threshold()  # a variable that cannot be read is an error before anything is looked for
    host = host or look_at_host()
    wanted: dict[Pull, list[str]] = {}
    for target in targets:
        if via != "venv" and (host.docker is not None or target.host):
            able = can_run(target, host_of(target, host), via, ignore_needs=ignore_needs) is None
            if able and (pull := _missing(target)) is not None:
                wanted.setdefault(pull, []).append(target.name)
    known = docker.layers_of({(pull.reference, pull.platform) for pull in wanted})
    pulls = tuple((with_layers(pull, known), tuple(names)) for pull, names in wanted.items())
    return PullPlan(pulls, large, host)


def _missing(target: Target) -> Pull | None:
    wanted = wanted_pull(target)
    try:
        here = docker.find_image(wanted.reference, wanted.platform, target.host) or docker.find_image(
            planned_image(target), target.docker_platform, target.host
        )
    except InfraError:
        return None  # the daemon has gone: the cells will say so
    return None if here else wanted


class PullLines:
    """Shows how far pulls are: each step by `live`, where a line can be written over, else in few lines by `say`.

    That is one line for each tenth, or for each GB where the size is not known.
    """

    def __init__(self, say: Callable[[str], None], live: Callable[[str], None] | None = None) -> None:
        self._say = say
        self._live = live
        self._last: tuple[str, int] | None = None

    def __call__(self, progress: Progress) -> None:
        """Say how far a pull is, where that is news."""
        if self._live:
            self._live(told(progress))
            return
        step = progress.done * 10 // progress.total if progress.total else progress.done // GB
        if self._last != (progress.reference, step):
            self._last = (progress.reference, step)
            self._say(told(progress))


def told(progress: Progress) -> str:
    """Return how far a pull is, in words."""
    so_far = amount(progress.done)
    if progress.total:
        so_far = f"{progress.done * 100 // progress.total} % of {amount(progress.total)}"
    return f"pulling {progress.reference}: {so_far}"


def _images(count: int) -> str:
    return "1 image" if count == 1 else f"{count} images"


def _names(targets: tuple[str, ...]) -> str:
    more = len(targets) - _NAMED
    return ", ".join(targets) if more <= 0 else f"{', '.join(targets[:_NAMED])} and {more} more"
