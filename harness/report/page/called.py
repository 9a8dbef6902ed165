"""What readers call columns by: GPUs and their generations, Jetson boards and JetPack releases."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from harness.report.products import GENERATIONS, Generation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.report.model import Results, TargetView

#: The TensorRT that a JetPack release holds, as the sources of matrix.yaml's Jetson targets say.
JETPACKS = {"5.1": "8.5", "6.0": "8.6", "6.1": "10.3", "6.2": "10.3"}
_SERIES = re.compile(r"(RTX|GTX) (\d\d)")


class Called(NamedTuple):
    """Words, as a pattern that both languages read alike, what they stand for, and the columns that are of it."""

    pattern: str
    said: str
    columns: tuple[int, ...]


def called(results: Results) -> list[Called]:
    """Return the words that may be asked for, the longer of two that begin alike first."""
    found: list[Called] = []
    for generation in GENERATIONS:
        columns = tuple(number for number, target in enumerate(results.targets) if _is_of(target, generation))
        said = f"compute capability {generation.capability}"
        found += [Called(pattern, said, columns) for pattern in _patterns(generation)]
    jetson = [
        (number, target) for number, target in enumerate(results.targets) if target.platform == "jetson"
    ]
    for release, version in JETPACKS.items():
        columns = tuple(number for number, target in jetson if _has(target, version))
        said = f"TensorRT {version} on Jetson"
        plain = release.replace(".", r"\.")
        found.append(Called(rf"jetpack {plain}(?:\.\d+)*", said, columns))
    for major in ("5", "6"):
        versions = [version for release, version in JETPACKS.items() if release.startswith(major)]
        columns = tuple(
            number for number, target in jetson if any(_has(target, version) for version in versions)
        )
        found.append(Called(f"jetpack {major}", f"JetPack {major} on Jetson", columns))
    found.append(Called("jetpack|jetson", "a Jetson", tuple(number for number, _ in jetson)))
    return sorted(_merged(found), key=lambda each: -len(each.pattern))


def _merged(found: list[Called]) -> Iterator[Called]:
    """Yield each pattern once: an architecture may have several compute capabilities."""
    by_pattern: dict[str, list[Called]] = {}
    for each in found:
        by_pattern.setdefault(each.pattern, []).append(each)
    for pattern, every in by_pattern.items():
        said = " or ".join(dict.fromkeys(each.said for each in every)).replace(
            " or compute capability", " or"
        )
        yield Called(pattern, said, tuple(sorted({number for each in every for number in each.columns})))


def _patterns(generation: Generation) -> Iterator[str]:
    if not generation.jetson:
        yield generation.architecture.lower()
    for name in generation.examples.split(", "):
        series = _SERIES.fullmatch(name)
        if series:
            yield rf"(?:geforce )?{series[1].lower()} ?{series[2]}(?:\d\d)?(?: ti| super)*"
        else:
            board = name.removeprefix("Jetson ").lower()
            yield rf"(?:jetson )?(?:agx )?{board}" if generation.jetson else board


def _has(target: TargetView, version: str) -> bool:
    return f"{target.version}.".startswith(f"{version}.")


def _is_of(target: TargetView, generation: Generation) -> bool:
    """Tell whether a column is about this generation: built for it, measured on it, or of its board."""
    if target.platform == "jetson":
        return generation.examples == "Jetson Orin"
    measured = target.stamps.environment.get("compute_capability") if target.stamps else None
    return f"SM {generation.capability}" in target.series.split(", ") or measured == generation.capability
