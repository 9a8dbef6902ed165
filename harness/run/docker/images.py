"""Images: found, built, tried."""

from __future__ import annotations

import re
import tarfile
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from docker.errors import APIError, BuildError, ContainerError, ImageNotFound, NotFound

from harness.errors import InfraError
from harness.run.docker.client import connection, explanation
from harness.run.docker.options import USER

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import docker

#: Seconds of silence allowed in a pull or a build: one layer of an NGC image can take minutes to unpack.
TRANSFER_TIMEOUT = 900
_DISK_FULL = "no space left on device"
#: What the daemon says of a registry that does not answer, rather than of an image that is not there.
_UNREACHABLE = re.compile(
    r"dial tcp|no such host|i/o timeout|[Cc]onnection refused|TLS handshake|network is unreachable"
    r"|server misbehaving|Client\.Timeout|context deadline exceeded|unexpected EOF|\b50[0234]\b"
)


class ImageRefused(Exception):
    """The registry or the build said no; the text is its own, on one line.

    `unreachable` says that nobody said no: the registry did not answer.
    """

    def __init__(self, said: str) -> None:
        super().__init__(said)
        self.unreachable = bool(_UNREACHABLE.search(said))


@dataclass(frozen=True)
class Image:
    """An image the daemon holds; `digest` is the registry's, or the id where it came from none."""

    id: str
    digest: str
    platform: str
    labels: dict[str, str]


def find_image(reference: str, platform: str, host: str = "") -> Image | None:
    """Return the image under this reference if the daemon holds it for `platform`, else None."""
    with connection(host=host) as client:
        return _find(client, reference, platform)


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
    with tempfile.TemporaryFile() as archive, connection(TRANSFER_TIMEOUT, host) as client:
        _write_context(archive, dockerfile, context)
        try:
            client.images.build(
                fileobj=archive,
                custom_context=True,
                dockerfile="Dockerfile",
                tag=tag,
                platform=platform,
                buildargs=dict(arguments),
                labels=dict(labels),
                rm=True,
                forcerm=True,
            )
        except BuildError as error:
            log = " ".join(str(line.get("stream", "")).strip() for line in error.build_log)
            raise refusal(f"{error.msg}: {' '.join(log.split())[-800:]}") from error
        except APIError as error:
            raise refusal(explanation(error)) from error
        image = _find(client, tag, platform)
    if image is None:
        raise ImageRefused(f"the build made an image for another platform than {platform}")
    return image


def run_once(image: str, platform: str, argv: list[str], host: str = "") -> tuple[int, str]:
    """Run one command in a throw-away container with no network; returns its exit code and output."""
    with connection(host=host) as client:
        try:
            output = client.containers.run(
                image,
                entrypoint=argv[:1],
                command=argv[1:],
                platform=platform,
                network_mode="none",
                user=USER,
                remove=True,
                stderr=True,
            )
        except ContainerError as error:
            return error.exit_status, str(error)
        except APIError as error:
            return 125, explanation(error)  # as the docker command does for "the daemon could not run it"
    return 0, output.decode("utf-8", "replace")


def _find(client: docker.DockerClient, reference: str, platform: str) -> Image | None:
    try:
        found = client.images.get(canonical(reference))
    except (ImageNotFound, NotFound):
        return None
    attributes: dict[str, Any] = found.attrs or {}
    holds = f"{attributes.get('Os', 'linux')}/{attributes.get('Architecture', '')}"
    if holds != platform:
        return None
    digests = attributes.get("RepoDigests") or []
    digest = digests[0].partition("@")[2] if digests else str(found.id)
    return Image(id=str(found.id), digest=digest, platform=holds, labels=dict(found.labels))


def canonical(reference: str) -> str:
    """Leave the tag out where there is a digest: the daemon files such an image under its digest alone."""
    name, at, digest = reference.partition("@")
    if not at:
        return reference
    path, colon, tag = name.rpartition(":")
    return f"{path if colon and '/' not in tag else name}@{digest}"


def refusal(said: str) -> Exception:
    """Return the exception for what the daemon said of a pull or a build that failed."""
    return (
        InfraError(f"the disk of the Docker daemon is full: {said}")
        if _DISK_FULL in said
        else ImageRefused(said)
    )


def _write_context(archive: Any, dockerfile: Path, context: Path | None) -> None:  # noqa: ANN401
    def owned_by_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mode |= 0o555 if entry.isdir() or entry.mode & 0o100 else 0o444
        return entry

    with tarfile.open(fileobj=archive, mode="w") as tar:
        if context is not None:
            tar.add(context, arcname=".", filter=owned_by_root)
        tar.add(dockerfile, arcname="Dockerfile", filter=owned_by_root)
    archive.seek(0)
