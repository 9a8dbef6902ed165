"""Images: found, pulled, built, tried."""

from __future__ import annotations

import json
import re
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from harness.errors import InfraError
from harness.run.docker.client import DaemonRefused, ask
from harness.run.docker.container import USER

#: Seconds for a build, and for a pull: some 10 GB over a slow line.
_BUILDING, _PULLING = 3600.0, 12 * 3600.0
_DISK_FULL = "no space left on device"
#: The daemon's words for a registry that does not answer, in contrast to an image that is not there.
_UNREACHABLE = re.compile(
    r"dial tcp|no such host|i/o timeout|[Cc]onnection refused|TLS handshake|network is unreachable"
    r"|server misbehaving|Client\.Timeout|context deadline exceeded|unexpected EOF|\b50[0234]\b"
)
#: A line of `docker pull` about one layer.
_LAYER = re.compile(r"^([0-9a-f]{12}): (.*)$", re.MULTILINE)
_WHOLE = ("Download complete", "Pull complete", "Already exists")


class ImageRefused(Exception):
    """The registry or the build said no; the text is its own, on one line.

    `unreachable` tells that the registry did not answer, `begun` that a pull failed in its middle.
    """

    def __init__(self, text: str, *, begun: bool = False) -> None:
        super().__init__(text)
        self.unreachable = bool(_UNREACHABLE.search(text))
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
    try:
        text = ask("image", "inspect", "--format", "{{json .}}", canonical(reference), host=host)
    except DaemonRefused as error:
        if "no such image" in str(error).lower():
            return None
        raise
    found = json.loads(text)
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
    last = -1

    def hear(text: str) -> None:
        nonlocal last
        layers.update(_LAYER.findall(text))
        whole = sum(state in _WHOLE for state in layers.values())
        if layers and whole * 10 // len(layers) > last:
            last = whole * 10 // len(layers)
            tell(f"pulling {reference}: {whole} of {len(layers)} layers")

    words = ("pull", "--platform", platform, canonical(reference))
    try:
        ask(*words, host=host, seconds=_PULLING, needed=needed, hear=hear)
    except DaemonRefused as error:
        raise _refusal(str(error), begun=bool(layers)) from error
    image = find_image(reference, platform, host)
    if image is None:
        raise ImageRefused(f"the registry has it for another platform than {platform}")
    return image


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
    words = ["build", "--force-rm", "--platform", platform, "--tag", tag]
    for name, value in arguments.items():
        words += ["--build-arg", f"{name}={value}"]
    for name, value in labels.items():
        words += ["--label", f"{name}={value}"]
    with tempfile.TemporaryFile() as archive:
        _write_context(archive, dockerfile, context)
        try:
            ask(*words, "-", host=host, seconds=_BUILDING, stdin=archive)
        except DaemonRefused as error:
            raise _refusal(" ".join(f"{error.out} {error}".split())[-800:]) from error
    image = find_image(tag, platform, host)
    if image is None:
        raise ImageRefused(f"the build made an image for another platform than {platform}")
    return image


def run_once(image: str, platform: str, argv: list[str], host: str = "") -> str:
    """Run one command in a throw-away container with no network and return its output; raises if it fails."""
    words = ["run", "--rm", "--pull", "never", "--platform", platform, "--network", "none", "--user", USER]
    return ask(*words, "--entrypoint", argv[0], image, *argv[1:], host=host)


def _refusal(text: str, *, begun: bool = False) -> Exception:
    """Return the exception for a pull or a build that failed."""
    if _DISK_FULL in text:
        return InfraError(f"the disk of the Docker daemon is full: {text}")
    return ImageRefused(text, begun=begun)


def _write_context(archive: IO[bytes], dockerfile: Path, context: Path | None) -> None:
    """Write the context as root's: files of a strict umask would be closed to the user that an image runs as.

    In GNU's format: `docker build` takes the first header of a PAX archive for a Dockerfile.
    """

    def owned_by_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mode |= 0o555 if entry.isdir() or entry.mode & 0o100 else 0o444
        return entry

    with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as tar:
        if context is not None:
            tar.add(context, arcname=".", filter=owned_by_root)
        tar.add(dockerfile, arcname="Dockerfile", filter=owned_by_root)
    archive.seek(0)
