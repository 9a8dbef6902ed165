"""Pulls an image: shows its progress, ends at an interrupt, and says how far it had come where it fails."""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from docker.errors import APIError
from docker.utils import parse_repository_tag

from harness.errors import InfraError
from harness.run.docker.client import connection, explanation
from harness.run.docker.images import (
    TRANSFER_TIMEOUT,
    Image,
    ImageRefused,
    canonical,
    find_image,
    refusal,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: Seconds between looks at whether anybody still waits, while the daemon is silent.
_LOOK = 0.2
#: What the daemon says of a layer that it has whole; one that was there already is never fetched.
_WHOLE = {"Verifying Checksum", "Download complete", "Extracting", "Pull complete", "Already exists"}


@dataclass(frozen=True)
class Progress:
    """How far a pull is, in bytes as they are transferred; `total` is 0 while unknown."""

    reference: str
    done: int
    total: int


class PullBroke(Exception):
    """A pull that had begun failed; the text is the daemon's, and `done` the bytes it had by then."""

    def __init__(self, said: str, done: int) -> None:
        super().__init__(said)
        self.done = done


def pull_image(  # noqa: PLR0913  (all named)
    reference: str,
    platform: str,
    *,
    layers: Mapping[str, int] | None = None,
    tell: Callable[[Progress], None] = lambda _: None,
    needed: Callable[[], bool] = lambda: True,
    host: str = "",
) -> Image:
    """Pull an image and `tell` how far it is; `layers` are those that the registry named, if it did.

    Raises ImageRefused when the registry says no or cannot be reached, PullBroke when a pull that had begun fails, and
    InfraError when the daemon does, or when `needed` says that nobody waits for it any more.
    """
    events: queue.SimpleQueue[Any] = queue.SimpleQueue()
    given_up = threading.Event()
    # In a thread of its own: the daemon is silent while the registry is, and an interrupt must not wait for it. The
    # daemon gives up a pull whose client has gone, at the latest when the registry speaks again (20.10).
    threading.Thread(target=_fetch, args=(reference, platform, events, given_up, host), daemon=True).start()
    so_far = _SoFar(reference, layers or {})
    try:
        while (event := _next(events, needed, reference)) is not None:
            if isinstance(event, Exception):
                raise event
            if "error" in event:
                raise so_far.failure(" ".join(str(event["error"]).split()))
            if so_far.take(event):
                tell(so_far.progress())
    finally:
        given_up.set()
    image = find_image(reference, platform, host)
    if image is None:
        raise ImageRefused(f"the registry has it for another platform than {platform}")
    return image


def _next(events: queue.SimpleQueue[Any], needed: Callable[[], bool], reference: str) -> Any:  # noqa: ANN401
    while True:
        if not needed():
            raise InfraError(f"the pull of {reference} was given up")
        try:
            return events.get(timeout=_LOOK)
        except queue.Empty:
            continue


def _fetch(
    reference: str, platform: str, events: queue.SimpleQueue[Any], given_up: threading.Event, host: str
) -> None:
    """Put each event of a pull into the queue, and at last None or the exception that ended it."""
    name, tag = parse_repository_tag(canonical(reference))
    try:
        with connection(TRANSFER_TIMEOUT, host) as client:
            try:
                # Without a tag the daemon would pull all there are.
                stream = client.api.pull(
                    name, tag=tag or "latest", stream=True, decode=True, platform=platform
                )
                for event in stream:
                    if given_up.is_set():
                        return
                    events.put(event)
            except APIError as error:
                events.put(refusal(explanation(error)))
                return
    except Exception as error:  # noqa: BLE001  (told by the thread that waits)
        events.put(error)
    else:
        events.put(None)


class _SoFar:
    """The layers of a pull, as the daemon's events tell of them: by the first twelve digits of their digests."""

    def __init__(self, reference: str, layers: Mapping[str, int]) -> None:
        self._reference = reference
        self._sizes = {digest.partition(":")[2][:12]: size for digest, size in layers.items()}
        self._done: dict[str, int] = {}
        self._known = bool(layers)
        self._begun = False

    def take(self, event: Mapping[str, Any]) -> bool:
        """Take in an event and tell whether it was about a layer's bytes."""
        layer, status = str(event.get("id", "")), event.get("status")
        detail = event.get("progressDetail") or {}
        if status == "Downloading":
            self._begun = True
            self._sizes.setdefault(layer, int(detail.get("total") or 0))
            self._done[layer] = int(detail.get("current") or 0)
        elif status in _WHOLE:
            self._begun = self._begun or status != "Already exists"
            self._done[layer] = self._sizes.get(layer, 0)
        else:
            return False
        return True

    def progress(self) -> Progress:
        total = sum(self._sizes.values()) if self._known else 0
        return Progress(self._reference, sum(self._done.values()), total)

    def failure(self, said: str) -> Exception:
        failed = refusal(said)
        begun = self._begun and isinstance(failed, ImageRefused)
        return PullBroke(said, sum(self._done.values())) if begun else failed
