"""The page of each target: what it needs, what was measured on it, and what breaks there by cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.report.page.columns import gpus_of
from harness.report.site import paths
from harness.report.site.causes import causes
from harness.report.site.material import Page, guesses, told

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.report.model import TargetView
    from harness.report.site.facts import Fact
    from harness.report.site.material import Material


def target_pages(material: Material) -> Iterator[Page]:
    """Yield the list of targets and the page of each."""
    targets = material.results.targets
    yield Page(
        paths.TARGETS,
        "Versions of TensorRT, TensorRT for RTX and ONNX Runtime that are compared",
        f"{len(targets)} versions and platforms: what each needs, what was measured on it and what is only reported.",
        "Targets",
        "targets.html.j2",
        {"rows": [(target, counted(material.by_target[target.id])) for target in targets]},
    )
    for target in targets:
        yield _target(material, target)


def counted(facts: list[Fact]) -> dict[str, int]:
    """Return how many variants are measured, reported and guessed on a target, and of how many nothing is known."""
    return {
        "measured": sum(each.measured for each in facts),
        "reported": sum(not each.measured for each in told(facts)),
        "guessed": len(guesses(facts)),
        "unknown": sum(each.cls is None for each in facts),
    }


def _target(material: Material, target: TargetView) -> Page:
    facts = material.by_target[target.id]
    known = told(facts)
    failing = [each for each in known if not each.good]
    measured = sum(each.measured for each in failing)
    many = f"{measured} measured, {len(failing) - measured} reported"
    stamps = target.stamps
    return Page(
        paths.target(target.id),
        f"{target.label}: what fails and why ({many})" if failing else f"{target.label}: no failure known",
        f"{target.label} ({target.version}, {target.platform}): {len(failing)} of {len(known)} known cases fail or "
        f"lose precision ({many}), grouped by cause, with what to do.",
        target.label,
        "target.html.j2",
        {
            "target": target,
            "counted": counted(facts),
            "causes": causes(known),
            "working": [each for each in known if each.good],
            "guesses": guesses(facts),
            "gpus": sorted({gpu for each in facts if each.cell.measured for gpu in gpus_of(each.cell)}),
            "environment": stamps.environment if stamps else {},
            "onward": [route for route in material.routes if route.before == target.id],
            "hither": [route for route in material.routes if route.after == target.id],
        },
        (("Targets", paths.TARGETS),),
    )
