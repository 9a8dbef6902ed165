"""What the report tells of each target: what it is, what it needs, when it last ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.case import Link
from harness.known.claim import gpus_said
from harness.known.model import TargetView
from harness.text import capital

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from harness.matrix import Matrix, Target
    from harness.record.outcome import Stamps


def target_views(matrix: Matrix, latest: Mapping[str, Stamps]) -> tuple[TargetView, ...]:
    """Return a view of each target of a matrix; `latest` are the stamps of its last run, by its name."""
    versions: dict[str, set[str]] = {}
    for target in matrix:
        versions.setdefault(_series(target), set()).add(target.version)
    short = {series: short_versions(every) for series, every in versions.items()}
    return tuple(
        _target(target, short[_series(target)][target.version], latest.get(target.name)) for target in matrix
    )


def short_versions(versions: Iterable[str]) -> dict[str, str]:
    """Return for each version its shortest prefix, of two parts or more, that no other one shares."""
    every = dict.fromkeys(versions)
    return {version: _shortest(version, every) for version in every}


def _shortest(version: str, every: Collection[str]) -> str:
    parts = version.split(".")
    for length in range(2, len(parts)):
        prefix = parts[:length]
        if sum(other.split(".")[:length] == prefix for other in every) == 1:
            return ".".join(prefix)
    return version


def _target(target: Target, short: str, latest: Stamps | None) -> TargetView:
    unsourced = "" if latest else target.unsourced
    return TargetView(
        id=target.name,
        label=target.label,
        family=target.group,
        series=_series(target),
        engine=str(target.engine),
        version=target.version,
        short=short,
        platform=target.platform,
        image=target.pull_reference if target.image or target.needs.gpu else " ".join(target.packages),
        needs=_needs(target),
        notes=" ".join(filter(None, (unsourced and f"{capital(unsourced)}.", target.notes))),
        stamps=latest,
        gpus=_gpus(target),
        compute_capability=target.needs.compute_capability,
        driver=target.needs.driver,
        cuda=target.cuda,
        jetpack=target.jetpack,
        released=target.released,
        sources=tuple(Link(source.url, source.says) for source in target.sources),
    )


def _gpus(target: Target) -> str:
    return gpus_said(target.needs.compute_capability, jetson=target.platform == "jetson")


def _series(target: Target) -> str:
    """Name what can be compared: one product on one platform, for one GPU generation where that is chosen."""
    parts = ["Jetson" if target.platform == "jetson" else target.traits.short]
    if target.platform == "linux/arm64":
        parts.append("arm64")
    if target.compute_capability:
        parts.append(f"SM {target.compute_capability}")
    if target.provider == "cuda":
        parts.append("CUDA")
    return ", ".join(parts)


def _needs(target: Target) -> str:
    needs = target.needs
    jetson = target.platform == "jetson"
    parts: list[str] = [_gpus(target) or "a Jetson" if jetson else needs.architecture]
    if needs.l4t:
        parts.append(f"Jetson Linux {needs.l4t}")
    if needs.gpu and not jetson:
        generation = f" of compute capability {needs.compute_capability}" if needs.compute_capability else ""
        parts.append(f"an NVIDIA GPU{generation}")
        if _gpus(target):
            parts[-1] += f": {_gpus(target)}"
    if needs.driver:
        parts.append(f"driver {needs.driver}")
    return ", ".join(parts)
