"""The page of each step that people take: what breaks, what is fixed, what to use meanwhile, how sure that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harness.report.compare.choices import HEADS, NOBODY, choice
from harness.report.labels import KINDS
from harness.report.site import paths
from harness.report.site.material import Page

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.report.compare.rows import Row
    from harness.report.site.material import Material
    from harness.report.site.routes import Route


class Rows(NamedTuple):
    """Rows of one kind that have one cause; those of which all else is the same stand together."""

    cause: str
    signature: str
    number: int
    alike: tuple[tuple[Row, ...], ...]


class Part(NamedTuple):
    """All rows of one kind."""

    name: str
    meaning: str
    number: int
    causes: tuple[Rows, ...]


def upgrade_pages(material: Material) -> Iterator[Page]:
    """Yield the list of steps and the page of each."""
    families: dict[str, dict[str, list[Route]]] = {}
    for route in material.routes:
        family_of = families.setdefault(material.targets[route.before].product, {})
        family_of.setdefault(route.before, []).append(route)
    yield Page(
        paths.UPGRADES,
        "Upgrading TensorRT: what breaks and what is fixed from one version to another",
        f"{len(material.routes)} steps from one version or platform to another, each with what breaks, what is fixed "
        "and what to do meanwhile.",
        "From one version to another",
        "upgrades.html.j2",
        {"families": families, "heads": HEADS, "nobody": NOBODY, "choices": _choices(material)},
    )
    for route in material.routes:
        yield _upgrade(material, route)


def _choices(material: Material) -> dict[Route, tuple[str, ...]]:
    """Return what is known of each step forwards, to choose a version by."""
    return {route: choice(material.step(route)[0]) for route in material.routes if not route.across}


def _upgrade(material: Material, route: Route) -> Page:
    known, guessed = material.step(route)
    before, after = material.targets[route.before], material.targets[route.after]
    ask = "what differs" if route.across else "what breaks and what is fixed"
    shown = set(known.rows)
    return Page(
        paths.upgrade(route.before, route.after),
        f"{before.label} {'and' if route.across else 'to'} {after.label}: {ask}",
        f"{before.label} to {after.label}: {known.headline} {known.basis}".strip(),
        f"{before.label} → {after.label}",
        "upgrade.html.j2",
        {
            "route": route,
            "before": before,
            "after": after,
            "step": known,
            "tiles": [tile for tile in known.tiles() if tile.rows],
            "parts": _parts(known.rows),
            "guesses": _parts([row for row in guessed.rows if row not in shown]),
            "back": next((each for each in material.routes if each[:2] == (route.after, route.before)), None),
        },
        (("From one version to another", paths.UPGRADES),),
    )


def _parts(rows: Sequence[Row]) -> list[Part]:
    """Return rows by kind, in their order, and by cause."""
    found: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        found.setdefault(str(row.kind), {}).setdefault(row.cause, []).append(row)
    return [
        Part(
            *KINDS[kind],
            sum(map(len, by_cause.values())),
            tuple(
                Rows(cause, every[0].signature, len(every), _alike(every))
                for cause, every in sorted(by_cause.items(), key=lambda each: (not each[0], -len(each[1])))
            ),
        )
        for kind, by_cause in found.items()
    ]


def _alike(rows: Sequence[Row]) -> tuple[tuple[Row, ...], ...]:
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        found.setdefault((row.text, row.instead, row.sure, row.seen), []).append(row)
    return tuple(map(tuple, found.values()))
