"""Which steps from one version to another have a page of their own: those that people take."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from packaging.version import Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.report.model import TargetView

#: Versions of a series all of whose steps forwards have a page; of a longer one steps over 1, 2, 4, 8 .. versions do,
#: and each version's to the newest.
_ALL = 12


class Route(NamedTuple):
    """A step, by the ids of its targets; `across` says that it is between platforms or devices, not versions."""

    before: str
    after: str
    across: bool = False


def routes(targets: Sequence[TargetView]) -> tuple[Route, ...]:
    """Return the steps that have a page, each once, in the order of the targets.

    Within a series every step forwards, neighbours and longer jumps; and between targets of one version of one engine
    on different platforms or devices ("8.6 on x86" and "8.6 on Jetson"), from and to the first of them.
    """
    order = {target.id: at for at, target in enumerate(targets)}
    found = dict.fromkeys((*_forwards(targets), *_across(targets)))
    return tuple(sorted(found, key=lambda route: (order[route.before], route.across, order[route.after])))


def _forwards(targets: Sequence[TargetView]) -> Iterator[Route]:
    series: dict[str, list[TargetView]] = {}
    for target in targets:
        series.setdefault(target.series, []).append(target)
    for every in series.values():
        line = sorted(every, key=_version)
        for at, to in combinations(range(len(line)), 2):
            near = len(line) <= _ALL or to == len(line) - 1 or (to - at).bit_count() == 1
            if near and _version(line[at]) < _version(line[to]):
                yield Route(line[at].id, line[to].id)


def _version(target: TargetView) -> Version:
    return Version(target.version)


def _across(targets: Sequence[TargetView]) -> Iterator[Route]:
    alike: dict[tuple[str, str], list[TargetView]] = {}
    for target in targets:
        alike.setdefault((target.engine, target.short), []).append(target)
    for first, *others in alike.values():
        for other in others:
            if other.series != first.series:
                yield Route(first.id, other.id, across=True)
                yield Route(other.id, first.id, across=True)
