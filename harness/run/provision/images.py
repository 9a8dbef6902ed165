"""A target's image: pulled if it is published, else built."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.errors import HandledError
from harness.matrix import Build, Target
from harness.run import docker
from harness.run.docker import PROJECT_LABEL, Image, ImageRefused
from harness.run.provision import packages
from harness.run.provision.cache import locked
from harness.run.provision.host import Host
from harness.run.provision.model import BrokenOff, Environment, NeedsPull, NotMade, Unavailable, Unreachable
from harness.run.provision.packages import shim_line, wheels_of
from harness.run.provision.requirements import architecture
from harness.shipped import installed, shipped

#: The base of package-index images, instead of matrix.yaml's: a reference that may hold {arch} (amd64, arm64)
#: and {python} (3.11). For a machine that reaches no public registry.
BASE_VARIABLE = "TRT_COMPAT_BASE_IMAGE"
#: Above how many GB (compressed, as they are transferred) an image is pulled only on request.
LARGE_GB = 2
#: Seconds to wait while others pull: a dozen images of several GB over a slow line. A lock ends with its holder.
PATIENCE = 24 * 3600.0
_DOCKERFILES = shipped("docker")
#: The plugin's sources: every image but those of packages compiles them.
_PLUGIN = _DOCKERFILES / "plugin"
_BASE_LABEL = f"{PROJECT_LABEL}.base"
_BASE_DIGEST_LABEL = f"{PROJECT_LABEL}.base-digest"


@dataclass(frozen=True)
class Pulling:
    """Whether large images are pulled in a run, and who hears of it.

    `large` allows images above `LARGE_GB`. `tell` is called as a pull goes on; it ends when `needed` returns False.
    """

    large: bool = False
    tell: Callable[[str], None] = lambda _: None
    needed: Callable[[], bool] = lambda: True


def prepare_image(target: Target, host: Host, pulling: Pulling, *, allow_build: bool) -> Environment:
    """Return an environment in a container; raises Unavailable when its image is not to be had."""
    if target.build is None:
        reference = target.pull_reference
        pins: tuple[str, ...] = ()
        image = obtain(target, pulling, host, allow_pull=allow_build)
        why = f"runs in {reference}"
    else:
        reference = planned_image(target)
        name = hashlib.sha256(reference.encode()).hexdigest()[:16]
        alone = locked(f"image-{name}", timeout=PATIENCE, needed=pulling.needed)
        # A look alone waits for no lock.
        with alone if allow_build else contextlib.nullcontext():
            under = functools.partial(obtain, target, pulling, host)
            image, pins = _built(target, target.build, reference, under, allow_build=allow_build)
        why = f"runs in {reference}, built here on {base_image(target)}"
    return Environment(
        via="docker",
        target=target.name,
        python="python3",
        image=reference,
        image_digest=image.digest if packaged(target) else image.labels.get(_BASE_DIGEST_LABEL, image.digest),
        packages=pins,
        note=f"{target.name} {why}.",
    )


def packaged(target: Target) -> bool:
    """Tell whether the image is made of packages; any other one that is built has its engine from the base."""
    return target.build is not None and target.build.kind == "packages"


def base_image(target: Target, *, here: bool = True) -> str:
    """Return the image that a build starts from: on this machine, or, if not `here`, on one with no variable set.

    Raises HandledError for an unreadable TRT_COMPAT_BASE_IMAGE.
    """
    chosen = os.environ.get(BASE_VARIABLE) if here else None
    if not (chosen and packaged(target)):
        return target.pull_reference
    try:
        return chosen.format(arch=architecture(target), python=target.python)
    except (KeyError, IndexError, ValueError) as error:
        raise HandledError(
            f"{BASE_VARIABLE}={chosen} cannot be read: only {{arch}} and {{python}} are filled in ({error})"
        ) from error


def planned_image(target: Target, *, here: bool = True) -> str:
    """Return the reference that the target's container is started from, without making or pulling anything.

    The tag of a built image is a hash of all it is made of, so a changed pin, base or Dockerfile is another
    image. `here` is as for `base_image`.
    """
    if target.build is None:
        return target.pull_reference
    text = _dockerfile(target.build).read_text(encoding="utf-8")
    made_of = [text, target.docker_platform, sorted(build_arguments(target, here=here).items())]
    if target.build.kind == "packages":
        made_of.append(packages.key(target))
    else:
        made_of += [path.read_text(encoding="utf-8") for path in sorted(_PLUGIN.iterdir())]
    tag = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:16]
    return f"{PROJECT_LABEL}/{target.build.kind}:{architecture(target)}-{tag}"


def build_arguments(target: Target, *, here: bool = True) -> dict[str, str]:
    """Return the build arguments of the target's Dockerfile, {} if its image is pulled.

    `here` is as for `base_image`.
    """
    if target.build is None:
        return {}
    python = {"PYTHON": target.python} if target.build.kind == "packages" else {}
    base = base_image(target, here=here)
    return {"BASE": base, "ENGINE_VERSION": target.version, **python, **dict(target.build.args)}


def image_command_lines(target: Target, *, here: bool = True) -> tuple[str, ...]:
    """Return the lines that get the target's image by hand, run from the repository's root.

    `here` is as for `base_image`: it also leaves out the target's host; if the harness is installed here, the lines
    hold in any folder.
    """
    program = docker.program(target.host if here else "")
    if target.build is None:
        return (shlex.join([*program, "pull", "--platform", target.docker_platform, target.pull_reference]),)
    build = [*program, "build", "--platform", target.docker_platform, "-t", planned_image(target, here=here)]
    folder = str(_DOCKERFILES) if here and installed() else "docker"
    build += ["-f", f"{folder}/{target.build.kind}.Dockerfile"]
    for name, value in build_arguments(target, here=here).items():
        build += ["--build-arg", f"{name}={value}"]
    if target.build.kind != "packages":
        return (shlex.join([*build, folder]),)
    context = packages.by_hand(target, "image")
    fill = ["uv", *packages.site_command(target, str(context / "site"))]
    path_file = f"echo {packages.ENGINE_FOLDER} > {shlex.quote(str(context / 'engine.pth'))}"
    shim = (shim_line(context / "site"),) if wheels_of(target.packages).shim else ()
    return (shlex.join(fill), *shim, path_file, shlex.join([*build, str(context)]))


def _built(
    target: Target, build: Build, tag: str, obtain_base: Callable[[], Image], *, allow_build: bool
) -> tuple[Image, tuple[str, ...]]:
    present = docker.find_image(base_image(target), target.docker_platform, target.host)
    image = docker.find_image(tag, target.docker_platform, target.host)
    # The image is out of date when its base was rebuilt under the same name, but not when the base was deleted.
    current = image is not None and (present is None or image.labels.get(_BASE_LABEL) == present.id)
    if not (current or allow_build):
        raise NotMade(f"needs image {tag} to be built, which was not allowed")
    made = packages.site(target, allow_build=allow_build) if build.kind == "packages" else None
    context, pins = made or (_DOCKERFILES, ())
    if image is None or not current:
        image = _build(target, build, tag, present or obtain_base(), context)
    return image, pins


def _build(target: Target, build: Build, tag: str, under: Image, context: Path) -> Image:
    try:
        return docker.build_image(
            tag,
            _dockerfile(build),
            platform=target.docker_platform,
            arguments=build_arguments(target),
            labels={PROJECT_LABEL: "image", _BASE_LABEL: under.id, _BASE_DIGEST_LABEL: under.digest},
            context=context,
            host=target.host,
        )
    except ImageRefused as error:
        raise Unavailable(f"needs image {tag}, which cannot be built: {error}") from error


def _dockerfile(build: Build) -> Path:
    return _DOCKERFILES / f"{build.kind}.Dockerfile"


def obtain(target: Target, pulling: Pulling, host: Host, *, allow_pull: bool = True) -> Image:
    """Return the target's image, or the base that it is built on; pull it if it is not here, one at a time.

    Raises NotMade if that is not allowed, NeedsPull if it is large and large ones were not asked for, and Unavailable
    if it is not to be had.
    """
    reference = base_image(target)
    find = functools.partial(docker.find_image, reference, target.docker_platform, target.host)
    if found := find():
        return found
    if not allow_pull:
        raise NotMade(f"needs image {reference} to be pulled, which was not allowed")
    if _is_large(target) and not pulling.large:
        raise NeedsPull(f"needs --pull ({size(target)})")
    with locked(f"pull-{host.machine}".rstrip("-"), timeout=PATIENCE, needed=pulling.needed):
        # Whoever had the lock before may have pulled this very image.
        return find() or _pulled(reference, target, pulling)


def size(target: Target) -> str:
    """Return the size of the target's image in words, as matrix.yaml declares it."""
    return "size unknown" if target.size_gb is None else f"{target.size_gb:g} GB"


def _is_large(target: Target) -> bool:
    """Tell whether an image is large, as one of unknown size is.

    The plain Python of package images is not: it has some 50 MB.
    """
    return not packaged(target) if target.size_gb is None else target.size_gb > LARGE_GB


def _pulled(reference: str, target: Target, pulling: Pulling) -> Image:
    try:
        return docker.pull_image(
            reference, target.docker_platform, tell=pulling.tell, needed=pulling.needed, host=target.host
        )
    except ImageRefused as error:
        needs = f"needs image {reference}"
        if error.begun:
            raise BrokenOff(f"{needs}, whose pull broke off: {error}") from error
        kind = Unreachable if error.unreachable else Unavailable
        raise kind(f"{needs}, which cannot be pulled: {error}") from error
