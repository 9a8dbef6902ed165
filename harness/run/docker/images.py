"""Images: found, pulled, built."""

from __future__ import annotations

import re
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from harness.errors import InfraError
from harness.run.docker.client import DaemonRefused, Event, find, follow

#: Seconds for a build, and for a pull: some 10 GB over a slow line.
_BUILDING, _PULLING = 3600.0, 12 * 3600.0
#: The system's words, which the daemon passes on; it has no other sign of it.
_DISK_FULL = "no space left on device"
#: The first states of a layer in a pull, and those of one that is here.
_FIRST, _WHOLE = (
    ("Pulling fs layer", "Already exists"),
    ("Download complete", "Pull complete", "Already exists"),
)
#: The end of the daemon's words on a registry that wants a login: Docker 20.10 answers with 500, and no other sign
#: (translatePullError in distribution/errors.go of moby; https://github.com/artemkaxboy/docker-opener/issues/39).
_NO_LOGIN = re.compile(r"(?:^|: )(?:no basic auth credentials|unauthorized|denied)(?:: |$)")
#: The first status of HTTP of a daemon that could not do what it was asked for.
_SILENT = 500


class ImageRefused(Exception):
    """The registry or the build said no; the text is its own, on one line.

    `unreachable` tells that the registry did not answer, `begun` that a pull failed in its middle.
    """

    def __init__(self, text: str, *, unreachable: bool = False, begun: bool = False) -> None:
        super().__init__(text)
        self.unreachable = unreachable
        self.begun = begun


@dataclass(frozen=True)
class Image:
    """An image the daemon holds; `digest` is the registry's, or the id of an image from no registry."""

    id: str
    digest: str
    platform: str
    labels: dict[str, str]


def find_image(reference: str, platform: str, host: str = "") -> Image | None:
    """Return the image under this reference if the daemon holds it for `platform`, else None."""
    found = find(lambda api: api.inspect_image(canonical(reference)), host)  # type: ignore[no-untyped-call]
    if found is None:
        return None
    holds = f"{found.get('Os', 'linux')}/{found.get('Architecture', '')}"
    if holds != platform:
        return None
    digests = found.get("RepoDigests") or []
    digest = digests[0].partition("@")[2] if digests else found["Id"]
    return Image(found["Id"], digest, holds, dict((found.get("Config") or {}).get("Labels") or {}))


def canonical(reference: str) -> str:
    """Leave the tag out if there is a digest: the daemon files such an image under its digest alone."""
    name, at, digest = reference.partition("@")
    if not at:
        return reference
    path, colon, tag = name.rpartition(":")
    return f"{path if colon and '/' not in tag else name}@{digest}"


def pull_image(
    reference: str,
    platform: str,
    *,
    tell: Callable[[str], None] = lambda _: None,
    needed: Callable[[], bool] = lambda: True,
    host: str = "",
) -> Image:
    """Pull an image and `tell` how many of its layers are here, a line for each tenth of them.

    Raises ImageRefused when the registry says no, cannot be reached or breaks off, and InfraError when the daemon does,
    or when `needed` returns False: then the daemon gives the pull up as well.
    """
    layers: dict[str, str] = {}
    told: set[int] = set()

    def hear(event: Event) -> None:
        layer, state = event.get("id", ""), event.get("status", "")
        if state in _FIRST:
            layers[layer] = state
        elif layer in layers:
            layers[layer] = state
            whole = sum(state in _WHOLE for state in layers.values())
            if (tenth := whole * 10 // len(layers)) not in told:
                told.add(tenth)
                tell(f"pulling {reference}: {whole} of {len(layers)} layers")

    try:
        follow(
            lambda api: api.pull(canonical(reference), stream=True, decode=True, platform=platform),
            hear,
            host,
            _PULLING,
            needed,
        )
    except DaemonRefused as error:
        _refuse_full(str(error))
        # The daemon's own errors (5xx) come from a registry that is silent. Once events come, and with podman always,
        # the registry has answered.
        silent = error.status >= _SILENT
        if silent and _NO_LOGIN.search(str(error)):
            raise ImageRefused(f"{error}; its registry wants a `docker login`") from error
        raise ImageRefused(str(error), unreachable=silent, begun=bool(layers)) from error
    return _made(reference, platform, host)


def build_image(  # noqa: PLR0913  (all named; each is an option of `docker build`)
    tag: str,
    dockerfile: Path,
    *,
    platform: str,
    arguments: Mapping[str, str],
    labels: Mapping[str, str],
    context: Path | None = None,
    host: str = "",
) -> Image:
    """Build `dockerfile` on the contents of `context`; raises ImageRefused with the end of a failed log."""
    log: list[str] = []
    with tempfile.TemporaryFile() as archive:
        _write_context(archive, dockerfile, context)
        try:
            # By the classic builder: the library does not speak BuildKit's protocol, and no Dockerfile here needs that.
            follow(
                lambda api: api.build(
                    fileobj=archive,
                    custom_context=True,
                    decode=True,
                    rm=True,
                    forcerm=True,
                    platform=platform,
                    tag=tag,
                    buildargs=dict(arguments),
                    labels=dict(labels),
                ),
                lambda event: log.append(event.get("stream", "")),
                host,
                _BUILDING,
            )
        except DaemonRefused as error:
            said = " ".join(f"{''.join(log)} {error}".split())[-800:]
            _refuse_full(said)
            raise ImageRefused(said) from error
    return _made(tag, platform, host)


def _made(reference: str, platform: str, host: str) -> Image:
    image = find_image(reference, platform, host)
    if image is None:
        raise ImageRefused(f"it is an image for another platform than {platform}")
    return image


def _refuse_full(text: str) -> None:
    if _DISK_FULL in text:
        raise InfraError(f"the disk of the Docker daemon is full: {text}")


def _write_context(archive: IO[bytes], dockerfile: Path, context: Path | None) -> None:
    """Write the context as root's: files of a strict umask would be closed to the user that an image runs as.

    In GNU's format: `docker build` takes the first header of a PAX archive for a Dockerfile.
    """

    def owned_by_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.mode |= 0o555 if entry.isdir() or entry.mode & 0o100 else 0o444
        return entry

    with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as tar:
        if context is not None:
            tar.add(context, arcname=".", filter=owned_by_root)
        tar.add(dockerfile, arcname="Dockerfile", filter=owned_by_root)
    archive.seek(0)
