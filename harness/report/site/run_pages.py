"""The pages of runs and of contributors, and the entry page."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from harness.report.advice import general_advice
from harness.report.site import paths
from harness.report.site.facts import signatures
from harness.report.site.material import Page, guesses, newest, told

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.report.model import Advice, TargetView
    from harness.report.site.facts import Fact
    from harness.report.site.material import Material

#: Errors that the entry page names.
_MET = 12


def run_pages(material: Material) -> Iterator[Page]:
    """Yield the page of the runs and that of the contributors."""
    runs, sent = material.results.runs, material.results.submissions
    yield Page(
        paths.RUNS,
        "Runs of the TensorRT compatibility matrix",
        f"{len(runs)} runs: when, which engine versions, on which GPU, how many cells.",
        "Runs",
        "runs.html.j2",
        {"runs": runs[::-1]},
    )
    yield Page(
        paths.CONTRIBUTORS,
        "Who measured: contributors to the TensorRT compatibility matrix",
        f"{sum(not each.revoked for each in sent)} submissions of measurements by others, and how to send one in.",
        "Contributors",
        "contributors.html.j2",
        {"sent": sent},
    )


def _met(facts: Sequence[Fact]) -> list[tuple[Advice, int]]:
    """Return the errors that are measured or reported most often, with how often."""
    seen = Counter(each.advice.id for each in facts if each.advice)
    told = ((general_advice(name), many) for name, many in seen.most_common(_MET))
    return [(advice, many) for advice, many in told if advice]


def entry_page(material: Material) -> Page:
    """Return the page that the site begins with: an error text in hand, or a step to take."""
    results = material.results
    facts = [each for every in material.facts.values() for each in every]
    known = told(facts)
    measured = sum(each.measured for each in known)
    products: dict[str, list[TargetView]] = {}
    for target in results.targets:
        products.setdefault(target.product, []).append(target)
    return Page(
        paths.ENTRY,
        "TensorRT compatibility: errors, versions, INT8 layers, upgrades",
        f"Which ONNX models build on which version of TensorRT and keep their INT8: {measured} results measured, "
        f"{len(known) - measured} reported. {len(signatures())} error messages explained, "
        f"{len(material.routes)} upgrades compared.",
        "TensorRT compatibility",
        "index.html.j2",
        {
            "results": results,
            "measured": measured,
            "reported": len(known) - measured,
            "guessed": len(guesses(facts)),
            "newest": newest(results),
            "errors": _met(known),
            "signatures": signatures(),
            "products": products,
            "routes": material.routes,
        },
    )
