"""What a registry says of an image before it is pulled: its layers and their sizes."""

from __future__ import annotations

import json
import queue
import re
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import requests

if TYPE_CHECKING:
    from collections.abc import Collection

#: Digest of a layer -> its size in bytes, as it is transferred.
Layers = dict[str, int]

#: Seconds for all questions together, and for one answer to begin.
PATIENCE = 20.0
_ANSWER = 8.0
#: Bytes of an answer: a manifest is some kilobytes.
_MOST = 4 << 20
_INDEX = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_MANIFEST = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_HUB = "registry-1.docker.io"
#: As the daemon does: a registry of this machine needs no TLS.
_HERE = re.compile(r"(localhost|127(\.\d+){3}|\[::1\])(:\d+)?")


class Name(NamedTuple):
    """An image reference in the registry's words; `reference` is a tag or a digest."""

    registry: str
    repository: str
    reference: str


def layers_of(
    images: Collection[tuple[str, str]], patience: float = PATIENCE
) -> dict[tuple[str, str], Layers]:
    """Return the layers of images, each a reference and a platform, as far as registries tell in time.

    They are asked at the same time and anonymously; an image of which nothing is learnt is left out.
    """
    answers: queue.SimpleQueue[tuple[tuple[str, str], Layers | None]] = queue.SimpleQueue()
    for image in images:
        # A daemon thread: a registry that answers byte by byte must not hold up the end of this program.
        threading.Thread(
            target=lambda one: answers.put((one, _layers(*one))), args=(image,), daemon=True
        ).start()
    found: dict[tuple[str, str], Layers] = {}
    end = time.monotonic() + patience
    for _ in images:
        try:
            image, layers = answers.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            break
        if layers is not None:
            found[image] = layers
    return found


def parsed(reference: str) -> Name:
    """Return a reference as `docker pull` reads it: without a registry it is of Docker Hub, without a tag `latest`."""
    name, _, digest = reference.partition("@")
    first, slash, rest = name.partition("/")
    if slash and (first == "localhost" or "." in first or ":" in first):
        registry = first
    else:
        registry, rest = _HUB, name
    if registry in ("docker.io", "index.docker.io"):
        registry = _HUB
    repository, _, tag = rest.partition(":")
    if registry == _HUB and "/" not in repository:
        repository = f"library/{repository}"
    return Name(registry, repository, digest or tag or "latest")


def _layers(reference: str, platform: str) -> Layers | None:
    name = parsed(reference)
    scheme = "http" if _HERE.fullmatch(name.registry) else "https"
    manifests = f"{scheme}://{name.registry}/v2/{name.repository}/manifests"
    try:
        with requests.Session() as session:
            session.headers["Accept"] = ", ".join((*_INDEX, *_MANIFEST))
            manifest = _manifest(session, f"{manifests}/{name.reference}")
            if "manifests" in manifest:
                manifest = _manifest(session, f"{manifests}/{_of_platform(manifest, platform)}")
        return {str(layer["digest"]): int(layer["size"]) for layer in manifest["layers"]}
    except (requests.RequestException, ValueError, KeyError, TypeError, AttributeError):
        # What a registry answers may be of any shape, a proxy's page for example: then nothing is known.
        return None


def _of_platform(index: dict[str, Any], platform: str) -> str:
    for entry in index["manifests"]:
        of = entry.get("platform", {})
        if f"{of.get('os')}/{of.get('architecture')}" == platform:
            return str(entry["digest"])
    raise KeyError(platform)


def _manifest(session: requests.Session, address: str) -> dict[str, Any]:
    answer = session.get(address, timeout=_ANSWER, stream=True)
    if answer.status_code == requests.codes.unauthorized:
        session.headers["Authorization"] = f"Bearer {_token(session, answer.headers['WWW-Authenticate'])}"
        answer = session.get(address, timeout=_ANSWER, stream=True)
    return _json(answer)


def _token(session: requests.Session, challenge: str) -> str:
    """Return the token that the registry hands to anybody, from the place that its challenge names."""
    kind, _, rest = challenge.partition(" ")
    if kind.lower() != "bearer":
        raise ValueError(f"the registry asks for a log-in of kind {kind}")
    fields = dict(re.findall(r'(\w+)="([^"]*)"', rest))
    asked = {key: fields[key] for key in ("service", "scope") if key in fields}
    answer = _json(session.get(fields["realm"], params=asked, timeout=_ANSWER, stream=True))
    return str(answer.get("token") or answer["access_token"])


def _json(answer: requests.Response) -> dict[str, Any]:
    answer.raise_for_status()
    body = b""
    for chunk in answer.iter_content(1 << 16):
        body += chunk
        if len(body) > _MOST:
            raise ValueError("that is no manifest")
    read: dict[str, Any] = json.loads(body)
    return read
