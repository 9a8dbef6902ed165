"""matrix.yaml -> Matrix; a fault of the file is one sentence with file, line and field."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from harness.document import Document, Form, Place, Problem, checked
from harness.engines import ENGINES, those_that
from harness.matrix.model import (
    Build,
    Matrix,
    Needs,
    Platform,
    Provider,
    Slurm,
    Source,
    Target,
    versions_agree,
)
from harness.text import did_you_mean
from harness.words import Engine

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
    for name, fields in _merged(document.data["targets"]).items():
        yield from _faults(document, name, fields)


def _faults(document: Document, name: str, fields: dict[str, Any]) -> Iterator[Problem]:
    """Yield the contradictions between the fields of one target, after inheritance."""

    def fault(field: str, sentence: str) -> Problem:
        parts = tuple(int(part) if part.isdigit() else part for part in field.split("."))
        place: Place = ("targets", name, *parts)
        line = document.line(place) if place in document.value_lines else document.key_line(place)
        return Problem(line, place, sentence)

    for field, sentence in (
        *_bad_image(fields),
        *_bad_needs(fields),
        *_bad_pins(fields),
        *_bad_provider(fields),
    ):
        yield fault(field, sentence)
    if "compute_capability" in fields and not ENGINES[Engine(fields["engine"])].for_generation:
        yield fault(
            "compute_capability",
            f"is only for {those_that('for_generation')}; {fields['engine']} builds for the GPU it finds, "
            "so delete it",
        )


def _bad_provider(fields: dict[str, Any]) -> Iterator[tuple[str, str]]:
    provider = fields.get("provider")
    if provider and not ENGINES[Engine(fields["engine"])].providers:
        yield "provider", f"is only for {those_that('providers')}; {fields['engine']} has none, so delete it"
    if provider == "cuda" and fields.get("needs", {}).get("gpu") is False:
        yield "needs.gpu", "is false, but provider cuda runs on a GPU alone; delete one of them"


def _bad_image(fields: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the faults that keep a target from having exactly one image."""
    build = fields.get("build")
    if "image" in fields and build:
        yield "image", "stands beside `build`; keep the one that makes this target's image"
    if not ("image" in fields or build or "packages" in fields):
        yield "image", "is missing, and so are `build` and `packages`; give one of them"
    if build and build["kind"] == "packages" and "packages" not in fields:
        yield "packages", "is missing; a build of kind packages needs the pins that it holds"
    if build and build["kind"] != "packages" and "base" not in build:
        yield "build.base", f"is missing; a build of kind {build['kind']} needs the image it starts from"
    if fields.get("digest") and not ("image" in fields or (build and "base" in build)):
        yield "digest", "pins nothing here; it goes with `image` or with the base of `build`"
    if "size_gb" in fields and not ("image" in fields or (build and "base" in build)):
        yield "size_gb", "is the size of nothing here; it goes with `image` or with the base of `build`"


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
        slurm=_slurm({**usual["slurm"], **fields["slurm"]}),
    )


def _slurm(fields: dict[str, Any]) -> Slurm:
    options = tuple((name, value) for name, value in fields.items() if name not in {"python", "cells"})
    return Slurm(options, fields.get("python", ""), fields.get("cells", 0))


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
