"""matrix.yaml as frozen data: its targets, how it is read, and the rule by which two version strings agree.

A fault of the file is one sentence with file, line and field.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from harness.document import Document, Form, Place, Problem, checked
from harness.engines import ENGINES, Traits, those_that
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

    @cached_property
    def strong_alone(self) -> bool:
        """Tell whether it takes strongly typed networks alone, and precision from the graph alone."""
        return Version(self.version) >= Version(self.traits.strong_alone_from)

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


# ---- how the file is read

FORM = Form(Path(__file__).with_name("matrix.schema.json"))
#: The fields of a target that neither it nor `defaults` sets.
_USUAL: dict[str, Any] = {
    "timeout_s": 600.0,
    "memory_mib": 8192,
    "python": "3.11",
    "base": "python:3.11-slim",
    "untrusted": False,
    "slurm": {},
}


def load_matrix(path: Path) -> Matrix:
    """Read and check matrix.yaml.

    Raises HandledError with the first fault in file order, "file:line: field: fault; cure", and
    the number of further faults.
    """
    document = checked(path, FORM, _inheritance_problems, _field_problems)
    usual = {**_USUAL, **document.data.get("defaults", {})}
    targets = tuple(
        _target(name, fields, usual, document.key_line(("targets", name)))
        for name, fields in _merged(document.data["targets"]).items()
    )
    return Matrix(targets, path)


def _inheritance_problems(document: Document) -> Iterator[Problem]:
    above: list[str] = []
    for name, fields in document.data["targets"].items():
        parent = fields.get("extends")
        if parent is not None and parent not in above:
            place = ("targets", name, "extends")
            if parent in document.data["targets"]:
                sentence = f"{parent!r} stands further down; move it above {name}"
            else:
                sentence = f"there is no target {parent!r} above; {did_you_mean(parent, above)}"
            yield Problem(document.line(place), place, sentence)
        above.append(name)


def _merged(targets: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Give every target the fields of the one it extends; one that it gives itself, `needs` too, replaces the whole.

    `label` and `group` are not handed down, as two columns of one name would confuse a reader; nor is the release day
    of another version.
    """
    merged: dict[str, dict[str, Any]] = {}
    for name, fields in targets.items():
        inherited = {
            key: value
            for key, value in merged.get(fields.get("extends", ""), {}).items()
            if key not in {"label", "group", "released"}
        }
        merged[name] = {**inherited, **fields}
    return merged


def _field_problems(document: Document) -> Iterator[Problem]:
    """Yield the contradictions between the fields of each target, after inheritance."""
    for name, fields in _merged(document.data["targets"]).items():
        for check in (_bad_image, _bad_pull, _bad_needs, _bad_pins, _bad_provider, _bad_generation):
            for field, sentence in check(fields):
                parts = tuple(int(part) if part.isdigit() else part for part in field.split("."))
                place: Place = ("targets", name, *parts)
                line = document.line(place) if place in document.value_lines else document.key_line(place)
                yield Problem(line, place, sentence)


def _bad_generation(fields: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if "compute_capability" in fields and not ENGINES[Engine(fields["engine"])].for_generation:
        engine = fields["engine"]
        only = f"is only for {those_that('for_generation')}"
        yield "compute_capability", f"{only}; {engine} builds for the GPU it finds, so delete it"


def _bad_provider(fields: dict[str, Any]) -> Iterator[tuple[str, str]]:
    provider = fields.get("provider")
    if provider and not ENGINES[Engine(fields["engine"])].providers:
        yield "provider", f"is only for {those_that('providers')}; {fields['engine']} has none, so delete it"
    if provider == "cuda" and fields.get("needs", {}).get("gpu") is False:
        yield "needs.gpu", "is false, but provider cuda runs on a GPU alone; delete one of them"


def _bad_image(fields: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the faults that keep a target from having exactly one image."""
    given = {name for name in ("image", "build", "packages") if fields.get(name)}
    if {"image", "build"} <= given:
        yield "image", "stands beside `build`; keep the one that makes this target's image"
    if not given:
        yield "image", "is missing, and so are `build` and `packages`; give one of them"
    build = fields.get("build") or {"kind": ""}
    if build["kind"] == "packages" and "packages" not in given:
        yield "packages", "is missing; a build of kind packages needs the pins that it holds"
    if build["kind"] not in ("", "packages") and "base" not in build:
        yield "build.base", f"is missing; a build of kind {build['kind']} needs the image it starts from"


def _bad_pull(fields: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what is told of an image to pull, where none is."""
    pulled = "image" in fields or "base" in (fields.get("build") or {})
    for field, words in (("digest", "pins nothing"), ("size_gb", "is the size of nothing")):
        if fields.get(field) and not pulled:
            yield field, f"{words} here; it goes with `image` or with the base of `build`"


def _bad_needs(fields: dict[str, Any]) -> Iterator[tuple[str, str]]:
    needs = fields.get("needs", {})
    for key, example in (
        ("driver", ">=525"),
        ("recommended", ">=545"),
        ("compute_capability", ">=7.5,<=9.0"),
        ("l4t", ">=36.2,<37"),
    ):
        if not _is_specifier(needs.get(key, "")):
            yield f"needs.{key}", f'{needs[key]!r} is not a version specifier; write it like "{example}"'
    if needs.get("l4t") and fields.get("platform") != "jetson":
        yield "needs.l4t", "is only for platform jetson; delete it or set the platform"


def _is_specifier(text: str) -> bool:
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        return False
    return True


def _bad_pins(fields: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Find a pin of the engine itself to another version, as a half-edited copy of a target has."""
    module = canonicalize_name(fields["engine"])
    for index, pin in enumerate(fields.get("packages", [])):
        try:
            requirement = Requirement(pin)
        except InvalidRequirement:
            yield f"packages.{index}", f"{pin!r} is not a version that pip knows; write it like numpy==1.26.4"
            continue
        name = canonicalize_name(requirement.name)
        # tensorrt-cu12 is the engine tensorrt; tensorrt-rtx-cu12 is not.
        own = name == module or name.startswith((f"{module}-cu", f"{module}-gpu"))
        pinned = str(requirement.specifier).removeprefix("==")
        if own and not versions_agree(fields["version"], pinned):
            yield f"packages.{index}", f"pins {pin}, but version is {fields['version']!r}; make them agree"


def _target(name: str, own: dict[str, Any], usual: dict[str, Any], line: int) -> Target:
    fields = {**usual, **own}
    engine = Engine(fields["engine"])
    platform: Platform = fields.get("platform", "linux/amd64")
    slurm = {**usual["slurm"], **fields["slurm"]}
    options = tuple((name, value) for name, value in slurm.items() if name not in {"python", "cells"})
    return Target(
        name=name,
        label=fields.get("label") or _label(engine, platform, fields),
        group=fields.get("group") or _group(engine, platform, fields["version"]),
        engine=engine,
        version=fields["version"],
        platform=platform,
        image=fields.get("image"),
        build=_build(fields),
        digest=fields.get("digest"),
        python=fields["python"],
        packages=tuple(fields.get("packages", ())),
        needs=_needs(engine, platform, fields),
        compute_capability=fields.get("compute_capability"),
        provider=_provider(engine, fields),
        timeout_s=float(fields["timeout_s"]),
        memory_mib=fields["memory_mib"],
        sources=tuple(Source(source["url"], source.get("says", "")) for source in fields.get("sources", ())),
        notes=" ".join(fields.get("notes", "").split()),
        line=line,
        size_gb=fields.get("size_gb"),
        cuda=fields.get("cuda", ""),
        jetpack=fields.get("jetpack", ""),
        released=fields.get("released", ""),
        host=fields.get("host", ""),
        untrusted=fields["untrusted"],
        slurm=Slurm(options, slurm.get("python", ""), slurm.get("cells", 0)),
    )


def _build(fields: dict[str, Any]) -> Build | None:
    if "image" in fields:
        return None
    build = fields.get("build", {"kind": "packages"})
    args = tuple(sorted(build.get("args", {}).items()))
    return Build(kind=build["kind"], base=build.get("base", fields["base"]), args=args)


def _provider(engine: Engine, fields: dict[str, Any]) -> Provider:
    provider: Provider = fields.get("provider", next(iter(ENGINES[engine].providers), ""))
    return provider


def _needs(engine: Engine, platform: Platform, target: dict[str, Any]) -> Needs:
    fields = target.get("needs", {})
    return Needs(
        gpu=fields.get("gpu", ENGINES[engine].needs_gpu or _provider(engine, target) == "cuda"),
        architecture="x86_64" if platform == "linux/amd64" else "aarch64",
        driver=fields.get("driver", ""),
        compute_capability=fields.get("compute_capability", ""),
        l4t=fields.get("l4t", ""),
        recommended=fields.get("recommended", ""),
    )


def _label(engine: Engine, platform: Platform, fields: dict[str, Any]) -> str:
    """Name a column: a Jetson by its exact release, everything else by major and minor."""
    product = ENGINES[engine].product
    parts = fields["version"].split(".")
    if platform == "jetson":
        return f"Jetson, {product} {'.'.join(parts[:3])}"
    label = f"{product} {'.'.join(parts[:2])}"
    if platform == "linux/arm64":
        label += ", arm64"
    if "compute_capability" in fields:
        label += f", SM {fields['compute_capability']}"
    if _provider(engine, fields) == "cuda":
        label += ", CUDA"
    return label


def _group(engine: Engine, platform: Platform, version: str) -> str:
    if platform == "jetson":
        return "Jetson"
    product = ENGINES[engine].product
    return f"{product} {version.partition('.')[0]}" if ENGINES[engine].by_major else product
