"""What readers call columns by: GPUs and their generations, Jetson boards and JetPack releases."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from harness.report.products import GENERATIONS, Generation, gpus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.report.model import Results, TargetView

#: A release of JetPack; those that differ in the third number hold one TensorRT.
_RELEASE = re.compile(r"(?<![\d.])(\d+)\.\d+")
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
        major, minor = generation.capability.split(".")
        found.append(Called(rf"sm[ _]?{major}{minor}", said, columns))
        found.append(Called(rf"(?:sm|compute capability) {major}\.{minor}", said, columns))
    jetson = [
        (number, target) for number, target in enumerate(results.targets) if target.platform == "jetson"
    ]
    for number, target in jetson:
        for release in _RELEASE.finditer(target.jetpack):
            plain, major = release[0].replace(".", r"\."), release[1]
            found.append(
                Called(rf"jetpack {plain}(?:\.\d+)*", f"TensorRT {target.short} on Jetson", (number,))
            )
            found.append(Called(f"jetpack {major}", f"JetPack {major} on Jetson", (number,)))
    found.append(Called("jetpack|jetson", "a Jetson", tuple(number for number, _ in jetson)))
    return sorted(_merged(found), key=lambda each: -max(map(len, each.pattern.split("|"))))


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


def _is_of(target: TargetView, generation: Generation) -> bool:
    """Tell whether a column is about this generation: it runs on it, was built for it or measured on it."""
    if generation in gpus(target.compute_capability, jetson=target.platform == "jetson"):
        return True
    measured = target.stamps.environment.get("compute_capability") if target.stamps else None
    return f"SM {generation.capability}" in target.series.split(", ") or measured == generation.capability
