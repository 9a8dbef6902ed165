"""Matrix, Target and their parts: frozen data, and the rule by which two version strings agree."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from harness.engines import ENGINES, Traits
from harness.errors import HandledError
from harness.text import did_you_mean
from harness.words import Engine

Platform = Literal["linux/amd64", "linux/arm64", "jetson"]
BuildKind = Literal["ngc", "tarball", "l4t", "packages"]
#: The execution provider of ONNX Runtime; "" for the other engines.
Provider = Literal["", "cpu", "cuda"]

#: Fields of a target that do not affect a run.
_SAID = frozenset(
    (
        *("label", "group", "sources", "notes", "line"),
        *("size_gb", "cuda", "jetpack", "released", "slurm", "host", "untrusted"),
    )
)
#: Fewer components than this say too little: "10" is every release of a major.
_LEAST_COMPONENTS = 3


@dataclass(frozen=True)
class Build:
    """An image made here: docker/<kind>.Dockerfile on `base`, with `args` as build arguments."""

    kind: BuildKind
    base: str
    args: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Needs:
    """The needs of a target from a machine; each text is a version specifier, "" for any.

    gpu: False if the target builds without a GPU.
    driver: of the NVIDIA driver.
    compute_capability: of the GPU that runs the engine.
    l4t: of Jetson Linux.
    recommended: of the driver too, but never a reason to refuse one.
    """

    gpu: bool
    architecture: Literal["x86_64", "aarch64"]
    driver: str = ""
    compute_capability: str = ""
    l4t: str = ""
    recommended: str = ""

    def driver_fits(self, driver: str) -> bool:
        """Tell whether a driver version such as "550.54.15" meets the floor."""
        return SpecifierSet(self.driver).contains(driver, prereleases=True)

    def is_recommended(self, driver: str) -> bool:
        """Tell whether a driver version is one that the engine's release notes recommend."""
        return SpecifierSet(self.recommended).contains(driver, prereleases=True)

    def compute_capability_fits(self, capability: str) -> bool:
        """Tell whether a GPU of a compute capability such as "8.9" can run this target."""
        return SpecifierSet(self.compute_capability).contains(capability, prereleases=True)

    def l4t_fits(self, release: str) -> bool:
        """Tell whether a Jetson Linux release such as "36.4.3" can host this target's image."""
        return SpecifierSet(self.l4t).contains(release, prereleases=True)


@dataclass(frozen=True)
class Source:
    """The source of a fact about the image or the pins."""

    url: str
    says: str = ""


@dataclass(frozen=True)
class Slurm:
    """The way that a Slurm cluster runs a target.

    options: long options of sbatch with their values: "" for a bare one, None for one that is left out.
    python: runs the harness on the nodes, "" for the Python that runs here.
    cells: the number of cells in a task, 0 for all of the target's.
    """

    options: tuple[tuple[str, str | None], ...] = ()
    python: str = ""
    cells: int = 0


@dataclass(frozen=True)
class Target:
    """One engine version on one platform; exactly one of `image` and `build` is set.

    image: the container image to pull.
    build: the container image to make here.
    digest: pins `image`, or the base of `build` ("sha256:...").
    packages: exact pins for a build of kind "packages" and for a virtual environment; () if no index has the engine.
    compute_capability: the GPU generation to build for, None for the engine's own default.
    timeout_s: for one cell.
    memory_mib: for the container.
    sources: tell the image's content.
    line: of its entry in matrix.yaml.
    size_gb: the transfer of a pull of the image or base, None if not known.
    released: the day of the engine's release; "" if not known, as `cuda` and `jetpack`.
    host: the machine whose daemon runs it, `ssh://...`; "" for the daemon that Docker's own variables name.
    untrusted: each cell has a container of its own, and virtual environments are not used.
    """

    name: str
    label: str
    group: str
    engine: Engine
    version: str
    platform: Platform
    image: str | None
    build: Build | None
    digest: str | None
    python: str
    packages: tuple[str, ...]
    needs: Needs
    compute_capability: str | None
    timeout_s: float
    memory_mib: int
    sources: tuple[Source, ...]
    notes: str
    line: int
    provider: Provider = ""
    size_gb: float | None = None
    cuda: str = ""
    jetpack: str = ""
    released: str = ""
    slurm: Slurm = Slurm()
    host: str = ""
    untrusted: bool = False

    @property
    def traits(self) -> Traits:
        """Return its engine's names and abilities."""
        return ENGINES[self.engine]

    @property
    def module(self) -> str:
        """Return the name of the Python module to import."""
        return self.engine.value

    @property
    def docker_platform(self) -> str:
        """Return the platform to ask Docker for; a Jetson is linux/arm64."""
        return "linux/arm64" if self.platform == "jetson" else self.platform

    @property
    def pull_reference(self) -> str:
        """Return the image to pull, or the base of the build, with the digest if known."""
        name = self.image if self.build is None else self.build.base
        return f"{name}@{self.digest}" if self.digest else str(name)

    @property
    def unsourced(self) -> str:
        """Return a sentence if neither a source nor a pin tells the content of its image, else ""."""
        if self.sources or not (self.image or (self.build and self.build.kind in ("ngc", "l4t"))):
            return ""
        return f"no source says which {self.traits.product} this image holds; a run will"

    def deciding(self) -> dict[str, Any]:
        """Return all that decides the run, as JSON data; labels, notes, hosts and trust may change freely."""
        facts = {key: value for key, value in asdict(self).items() if key not in _SAID}
        del facts["needs"]["recommended"]
        return facts

    def runs_version(self, reported: str) -> bool:
        """Tell whether the version an engine reports is the one declared."""
        return versions_agree(self.version, reported)


@dataclass(frozen=True)
class Matrix:
    """All targets, in the order in which matrix.yaml lists them and the report shows them."""

    targets: tuple[Target, ...]
    path: Path

    def __iter__(self) -> Iterator[Target]:
        return iter(self.targets)

    def sha256(self) -> str:
        """Return a hash of all that decides the run."""
        targets = [target.deciding() for target in self.targets]
        return hashlib.sha256(json.dumps(targets, sort_keys=True).encode()).hexdigest()

    def target(self, name: str) -> Target:
        """Return a target by name; raises HandledError, with the nearest, for one that is not in matrix.yaml."""
        for target in self.targets:
            if target.name == name:
                return target
        names = [target.name for target in self.targets]
        several = set(name.split(",")) <= set(names)
        hint = "name each of them alone" if several else did_you_mean(name, names)
        raise HandledError(f"{self.path} has no target {name!r}; {hint}")

    def only(self, names: str | Iterable[str]) -> Matrix:
        """Return the matrix of the targets of these names, in its own order; all of it without a name.

        Raises HandledError as `target` does.
        """
        wanted = {self.target(name).name for name in ([names] if isinstance(names, str) else names)}
        return replace(self, targets=tuple(each for each in self if not wanted or each.name in wanted))


def versions_agree(declared: str, reported: str) -> bool:
    """Tell whether two version strings name the same release.

    They agree if they are equal component by component. A shorter one must have at least three components and begin the
    longer one (the wheel of build 10.2.0.19 reports "10.2.0"). Post, dev and local parts are packaging and do not count
    (the wheel of 9.2.0.5 is 9.2.0.post12.dev5); a pre-release agrees only with its own text.
    """
    if declared == reported:
        return True
    try:
        one, other = Version(declared), Version(reported)
    except InvalidVersion:
        return False
    if one.pre or other.pre or one.epoch != other.epoch:
        return False
    shorter = min(len(one.release), len(other.release))
    if one.release == other.release:
        return True
    return shorter >= _LEAST_COMPONENTS and one.release[:shorter] == other.release[:shorter]
