"""What is known of the patterns in a model, where a check could not run it: the claims about cases that it holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import onnx

from harness.case import load_cases
from harness.errors import HandledError, described
from harness.judge.explain import describe_recipe
from harness.models.check import ran
from harness.models.matches import Known
from harness.plan import Cell, claims_about
from harness.words import GOOD, PREDICATE, UNJUDGED, Class, Grade

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.case import Case, Expectation
    from harness.judge.cell import Judged
    from harness.matrix import Matrix
    from harness.models.matches import Match
    from harness.models.own import OwnModel

#: What an engine that was only built does not show.
_WHEN_RUN = frozenset({Class.LOAD_FAILED, Class.RUN_FAILED, Class.CRASHED, Class.INACCURATE, Class.TIMED_OUT})
_FINE = GOOD | UNJUDGED | {Class.API_REMOVED, Class.NEEDS_GPU_TO_BUILD}


def known(
    cases: Sequence[Case] | Path, matrix: Matrix, models: Sequence[OwnModel], judged: Sequence[Judged]
) -> Iterator[str]:
    """Yield what is measured or reported of the cases whose graphs the models hold, for what was not shown here.

    That is every failure where a target cannot run here, and those of running where an engine was only built. Where
    the folder of the cases cannot be read, that is the one line.
    """
    shown = [each for each in judged if not each.outcome.ran]
    if not shown:
        return
    try:
        patterns = Known(load_cases(cases) if isinstance(cases, Path) else cases, list(matrix))
    except HandledError as error:
        yield f"no hints at what is known to fail: {described(error)}; --cases names another folder"
        return
    for model in models:
        mine = [each for each in shown if each.cell.variant == model.variant]
        lines = [line for match in patterns.matches(_graph(model)) for line in _told(match, mine)]
        if lines:
            yield f"{model.label} holds what is known to fail, and did not run here:"
            yield from lines


def _graph(model: OwnModel) -> onnx.ModelProto:
    return onnx.load_model_from_string(model.variant.model_bytes())


def _told(match: Match, judged: Sequence[Judged]) -> Iterator[str]:
    """Yield a line for each way to fail of one case, with the targets where it is claimed."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for each in judged:
        claim = _surest(match, each)
        if claim is not None:
            link = claim.source.url if claim.source and claim.grade is not Grade.MEASURED else ""
            said = PREDICATE[claim.outcome], claim.graded, link
            found.setdefault(said, []).append(each.cell.target.name)
    if not found:
        return
    many = len(match.places)
    where = f"at {match.places[0][0]}" if many == 1 else f"{many} places from {match.places[0][0]}"
    recipe = describe_recipe(match.variant.recipe)
    yield f"  {match.case.name}.{match.variant.name} ({match.variant.title}; {recipe}), {where}"
    for (predicate, graded, link), names in found.items():
        yield f"    {predicate} on {', '.join(names)}: {' '.join(filter(None, (graded, link)))}"


def _surest(match: Match, each: Judged) -> Expectation | None:
    """Return the claim to tell about a target, None where there is none."""
    if ran(each) and each.classification.cls not in GOOD:
        return None
    bad = _WHEN_RUN if ran(each) else frozenset(Class) - _FINE
    cell = Cell("", match.case, match.variant, each.cell.target)
    claims = sorted(claims_about(cell), key=lambda claim: claim.grade is not Grade.MEASURED)
    # A measured good ending speaks against a reported failure, but shows nothing of a run.
    surest = [claim for claim in claims if claim.outcome in bad] if ran(each) else claims[:1]
    return next((claim for claim in surest if claim.outcome in bad), None)
