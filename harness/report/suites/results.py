"""The records of a suite -> `SuiteResults`: judged, grouped and compared; pure but for reading."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from itertools import permutations
from typing import TYPE_CHECKING

from packaging.version import Version

from harness.errors import described
from harness.history.suites import SuiteRun, before
from harness.judge.classify import Classification, classify
from harness.judge.diagnosis import Diagnosis, diagnose, in_general, load_signatures
from harness.known.model import Advice
from harness.record.speaking import latest
from harness.report.suites.compare import compare
from harness.report.suites.model import Ending, Pair, SuiteModel, SuiteResults, SuiteTarget
from harness.text import clip, visible
from harness.words import Class

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from harness.matrix import Matrix, Target
    from harness.record.outcome import Outcome
    from harness.record.suites import Kept

#: Characters of a reason; the record has all of it.
_LONGEST = 220


def suite_results(
    matrix: Matrix, kept: Sequence[Kept], history: Iterable[SuiteRun] = ()
) -> SuiteResults | None:
    """Return what the records of one suite say, None where none is of a version that the matrix has.

    `history` are its earlier runs, the oldest first. A record of another engine version than its target's is left out.
    """
    targets = {target.name: target for target in matrix}
    current = [each for each in kept if _is_current(each.outcome, targets)]
    if not current:
        return None
    newest = max(current, key=lambda each: each.outcome.stamps.when).about
    speaks = latest(each.outcome for each in current)
    places = {each.outcome.variant: each.place for each in current} | newest.items
    endings: dict[Ending, int] = {}
    ended: dict[str, dict[str, int]] = {}
    for outcome in speaks.values():
        ending = _judged(outcome)
        ended.setdefault(outcome.variant, {})[outcome.target] = endings.setdefault(ending, len(endings))
    order = [name for name in targets if any(name in each for each in ended.values())]
    models = tuple(
        SuiteModel(model, *places[model], {name: each[name] for name in order if name in each})
        for model, each in sorted(ended.items())
    )
    found = SuiteResults(
        name=newest.name,
        title=newest.title,
        source=newest.source,
        recipe=newest.recipe,
        link=newest.link,
        targets=tuple(
            _column(targets[name], current, speaks.values(), models, tuple(endings)) for name in order
        ),
        models=models,
        endings=tuple(endings),
        advice=_advice({ending.signature for ending in endings if ending.signature}),
    )
    return _compared(found, [targets[name] for name in order], tuple(history))


def suite_runs(found: SuiteResults) -> tuple[SuiteRun, ...]:
    """Return how the models ended on each target, as the history keeps it."""
    return tuple(
        SuiteRun(target.id, target.version, target.run, target.when, found.ended_on(target.id))
        for target in found.targets
    )


def _is_current(outcome: Outcome, targets: Mapping[str, Target]) -> bool:
    target = targets.get(outcome.target)
    return target is not None and target.runs_version(outcome.stamps.engine_version)


def judge_item(outcome: Outcome) -> tuple[Classification, Diagnosis | None]:
    """Return class and known cause of a model, as of a cell; nothing is asked of its precision."""
    try:
        classification = classify(outcome, got={})
        return classification, diagnose(outcome, classification)
    except Exception as error:  # noqa: BLE001  (an engine's text, of any shape: one record must not cost the rest)
        reason = f"the harness could not judge the record: {described(error)}"
        return Classification(Class.INFRA_ERROR, reason), None


def _judged(outcome: Outcome) -> Ending:
    classification, known = judge_item(outcome)
    # ONNX names the nodes of a function after the test: without that, messages that are alike are one.
    named = re.compile(rf"test_{re.escape(outcome.variant)}(?=_)", re.IGNORECASE)
    reason = clip(" ".join(named.sub("…", visible(classification.reason)).split()), _LONGEST)
    return Ending(classification.cls, reason, known.id if known else None)


def _advice(ids: Collection[str]) -> dict[str, Advice]:
    """Return the known causes by id, of no model in particular."""
    every = (in_general(signature) for signature in load_signatures() if signature.id in ids)
    return {
        known.id: Advice(known.id, known.title, known.cause, known.advice, known.advice_variants, known.links)
        for known in sorted(every, key=lambda known: known.id)
    }


def _column(
    target: Target,
    kept: Iterable[Kept],
    speaks: Iterable[Outcome],
    models: Iterable[SuiteModel],
    endings: Sequence[Ending],
) -> SuiteTarget:
    mine = [outcome for outcome in speaks if outcome.target == target.name]
    last = max(mine, key=lambda outcome: outcome.stamps.when)
    whens = sorted(
        each.outcome.stamps.when
        for each in kept
        if each.outcome.target == target.name and each.outcome.stamps.run == last.stamps.run
    )
    counts = Counter(endings[model.ended[target.name]].cls for model in models if target.name in model.ended)
    return SuiteTarget(
        id=target.name,
        label=target.label,
        short=".".join(target.version.split(".")[:2]),
        version=last.stamps.engine_version,
        via=last.stamps.via,
        device=last.stamps.environment.get("gpu", ""),
        run=last.stamps.run,
        when=last.stamps.when,
        seconds=round(_seconds(whens[0], whens[-1]), 1),
        peak_mib=max((outcome.end.peak_rss_bytes or 0) >> 20 for outcome in mine if outcome.end),
        unparsed=sum(outcome.unparsed_layers for outcome in mine),
        counts={str(cls): counts[cls] for cls in Class if counts[cls]},
    )


def _seconds(first: str, last: str) -> float:
    # Python 3.10 reads less of what follows the milliseconds than 3.11 does.
    begin, end = (dt.datetime.fromisoformat(when[: len("2026-01-01T00:00:00.000")]) for when in (first, last))
    return (end - begin).total_seconds()


def _compared(found: SuiteResults, targets: Sequence[Target], history: Sequence[SuiteRun]) -> SuiteResults:
    sides = {target.name: found.ended_on(target.name) for target in targets}
    versions = tuple(
        Pair(one.name, other.name, compare(sides[one.name], sides[other.name]))
        for one, other in permutations(targets, 2)
        if _is_step(one, other, targets)
    )
    runs = []
    for fresh in suite_runs(found):
        earlier = before(history, fresh)
        if earlier is not None:
            side = f"{earlier.when[:10]} ({earlier.version})"
            step = compare(earlier.ended, fresh.ended)
            runs.append(Pair(side, f"{fresh.when[:10]} ({fresh.version})", step, fresh.target))
    return SuiteResults(**{**vars(found), "versions": versions, "runs": tuple(runs)})


def _is_step(one: Target, other: Target, targets: Sequence[Target]) -> bool:
    """Tell whether people go from one target to another: to a later version, or to another generation of its own."""
    if one.engine is not other.engine:
        return False
    if _line(one) == _line(other):
        return Version(one.version) < Version(other.version)
    return one.version == other.version and targets.index(one) < targets.index(other)


def _line(target: Target) -> tuple[object, ...]:
    return target.platform, target.compute_capability, target.provider
