"""Matrix, cases and outcomes -> `Results`: every cell, judged, and the changes from version to version."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from harness.case import Case
from harness.compare.kinds import row_steps
from harness.compare.step import instead
from harness.compare.versions import by_series, changes, spans
from harness.errors import HandledError, described
from harness.history.changes import CellHistory, histories
from harness.history.runs import RunRecord, records, subject_of
from harness.judge.cell import Judged, judge_cell
from harness.judge.signatures import load_signatures
from harness.known.cell import NOT_RUN_YET, general_advice, known_of, layers_file, worst_first
from harness.known.claim import seen_by
from harness.known.model import CaseView, Known, TargetView
from harness.matrix import Matrix
from harness.plan import Cell, all_cells, inapplicable_because
from harness.plan.by_hand import by_hand
from harness.plan.cells import reproduced_on, reproduced_said
from harness.record.outcome import Outcome, Stamps
from harness.record.speaking import Today, is_stale, speaking, todays
from harness.record.store import Store
from harness.report.further import further_beside
from harness.report.model import RanOn, Reported, Results, RunView, SentIn, Steps
from harness.report.views import target_views, variant_view
from harness.words import Class, Engine, Role

Commands = Mapping[str, Sequence[str]]
#: Serialised models by case and variant.
Models = Mapping[tuple[str, str], bytes]

#: The problems that the project began with, in the order of the page.
SEEDS = ("mish", "conv_silu", "instance_norm", "depthwise_qdq", "q_plugin_dq")


@dataclass(frozen=True)
class Recorded:
    """The sources of a report, each read and built once: today's cells and models, every outcome of a store.

    `commands` are the lines that make a target's container by hand, by target; `further` is plain data on models that a
    check rewrote or cut.
    """

    matrix: Matrix
    cases: Sequence[Case]
    cells: Sequence[Cell]
    models: Models
    today: Mapping[str, Today]
    outcomes: Sequence[Outcome]
    commands: Commands
    further: tuple[dict[str, Any], ...] = ()
    #: By the record's place in memory: history and report judge the same records.
    _judged: dict[int, Judged] = field(default_factory=dict)

    @cached_property
    def speaking(self) -> Mapping[str, Sequence[Outcome]]:
        """Return the outcomes that speak for each cell, by its id."""
        return speaking(self.outcomes, lambda outcome: is_stale(outcome, self.today))

    def judge(self, cell: Cell, outcome: Outcome) -> Judged:
        """Return a cell's record with its conclusions, judged at the first call."""
        known = self._judged.get(id(outcome))
        if known is None:
            known = self._judged[id(outcome)] = judge_cell(cell, outcome)
        return known


def recorded(
    matrix: Matrix, cases: Sequence[Case], store: Store, commands: Commands | None = None
) -> Recorded:
    """Return the records of a store beside today's matrix and cases."""
    found = of_outcomes(matrix, cases, tuple(store.outcomes()), commands)
    known = {cell.id for cell in found.cells}
    further = tuple(entry for entry in further_beside(store.path) if entry["cell"] in known)
    return replace(found, further=further)


def of_outcomes(
    matrix: Matrix, cases: Sequence[Case], outcomes: Sequence[Outcome], commands: Commands | None = None
) -> Recorded:
    """Return outcomes beside today's matrix and cases."""
    cells = all_cells(matrix, cases)
    models = {}
    for case in cases:
        for variant in case:
            # One that cannot be built has no model beside the report, and `todays` says why.
            with contextlib.suppress(HandledError):
                models[case.name, variant.name] = variant.model_bytes()
    return Recorded(matrix, cases, cells, models, todays(cells, models), outcomes, commands or {})


def layer_files(found: Recorded) -> dict[str, bytes]:
    """Return the layers of the outcomes that speak, as JSON, by their hashes, as `Layers.sha256` names them."""
    every = (outcome for outcomes in found.speaking.values() for outcome in outcomes)
    return dict(layers_file(outcome.layers) for outcome in every if outcome.layers)


def run_records(found: Recorded) -> tuple[RunRecord, ...]:
    """Return the history records of the runs that are recorded, of the cells whose model and recipe are today's.

    A run of another engine version than today's is part of the past: its stack says which it was. A record that
    somebody else sent in is not: the history is that of the project's own runs.
    """
    cells = {cell.id: cell for cell in found.cells}
    return records(
        found.judge(cells[outcome.cell], outcome)
        for outcome in found.outcomes
        if outcome.state == "done"
        and not outcome.stamps.account
        and outcome.cell in cells
        and not found.today[outcome.cell].of_another_subject(outcome)
    )


def results_of(
    found: Recorded,
    history: Sequence[RunRecord],
    outcomes: Mapping[str, Sequence[Outcome]] | None = None,
) -> Results:
    """Return every cell of the matrix, judged; `outcomes` are by cell, else those of `found` that speak.

    `history` is the oldest run first. A cell without an outcome is as its nearest claim has it, else `not_run` or
    `not_applicable`. An outcome of another model, recipe or engine version than today's is not shown: its cell is
    marked stale, and says why. Cells are in case, variant and target order.
    """
    outcomes = found.speaking if outcomes is None else outcomes
    today = found.today
    judged = {cell.id: _judged(cell, outcomes.get(cell.id, ()), found) for cell in found.cells}
    pasts = _pasts(judged, today, history)
    cells = []
    for cell in found.cells:
        stale = bool(_stale_because(cell.id, outcomes.get(cell.id, ()), today))
        cells.append(_known(cell, judged[cell.id], pasts[cell.id], found, stale=stale))
    seen = {cell.id: {each.classification.cls for each in judged[cell.id]} for cell in found.cells}
    targets = target_views(found.matrix, _latest_stamps(judged), found.commands)
    views, known, moved, steps = [], [], [], []
    width, at = len(targets), 0
    for case in found.cases:
        rows = []
        for variant in case:
            of_row = slice(at, at := at + width)
            view = variant_view(case, variant, found.models.get((case.name, variant.name)), cells[of_row])
            runs = by_series(list(zip(targets, cells[of_row], strict=True)))
            where = reproduced_said(reproduced_on(found.cells[of_row], seen))
            rows.append(replace(view, sentences=tuple(spans(runs)), reproduced=where))
            moved += [change for run in runs.values() for change in changes(view, run)]
            steps.append(row_steps(view, cells[of_row]))
            known += cells[of_row]
        seed = SEEDS.index(case.name) if case.name in SEEDS else None
        views.append(CaseView(case.name, case.title, case.summary, case.links, tuple(rows), seed))
    whole = Results(
        targets=targets,
        cases=tuple(views),
        cells=tuple(known),
        changes=tuple(moved),
        runs=_runs(history, judged),
        matrix_sha256=found.matrix.sha256(),
        submissions=_sent_in(found.outcomes),
        troubles={target.id: _troubles(target) for target in targets},
        further=found.further,
        steps=Steps.of(steps),
    )
    # Among reproducers alone, as in a suite of thousands of models, nothing is to be used instead.
    plain = all(variant.role is Role.REPRODUCER for variant in whole.variants)
    return whole if plain else _with_instead(whole)


def _judged(cell: Cell, outcomes: Sequence[Outcome], found: Recorded) -> list[Judged]:
    """Return a cell's judged outcomes, the worst first; of stale ones only that there is one."""
    today = found.today[cell.id]
    because = _stale_because(cell.id, outcomes, found.today)
    if because or not outcomes:
        return [judge_cell(cell, _blank(cell, because or today.unbuildable or NOT_RUN_YET))]
    return worst_first([found.judge(cell, outcome) for outcome in outcomes])


def _stale_because(cell: str, outcomes: Sequence[Outcome], today: Mapping[str, Today]) -> str:
    return today[cell].stale_because(outcomes[0]) if outcomes else ""


def _blank(cell: Cell, reason: str) -> Outcome:
    meaningless = inapplicable_because(cell)
    return Outcome.blank(cell, "not_applicable" if meaningless else "not_run", meaningless or reason)


def _known(
    cell: Cell, judged: Sequence[Judged], pasts: Sequence[CellHistory | None], found: Recorded, *, stale: bool
) -> Known:
    lines = _by_hand(cell, found.models, judged[0])
    try:
        known = known_of(judged, pasts, lines)
    except Exception as error:  # noqa: BLE001  (one odd record must not cost the others their report)
        bare = Outcome.blank(
            cell, "infra_error", f"the harness could not show the record: {described(error)}"
        )
        broken = judge_cell(cell, replace(bare, log_sha256=judged[0].outcome.log_sha256))
        known = known_of([broken], by_hand=lines)
    if not stale:
        return known
    # An earlier engine version may have been flaky; that says nothing of today's.
    return replace(known, stale=known.cls is not Class.NOT_APPLICABLE, flaky=())


def _by_hand(cell: Cell, models: Models, judged: Judged) -> tuple[str, ...]:
    data = models.get((cell.case.name, cell.variant.name))
    # One odd model must not cost the others their report.
    with contextlib.suppress(Exception):
        return by_hand(cell, data, judged.outcome.stamps.image_digest).lines if data else ()
    return ()


def _pasts(
    judged: Mapping[str, Sequence[Judged]], today: Mapping[str, Today], history: Sequence[RunRecord]
) -> dict[str, list[CellHistory | None]]:
    """Return the past of each outcome of a cell: that of its GPU."""
    subjects = {key: subject_of(now.model_sha256, now.recipe_sha256) for key, now in today.items()}
    found: dict[str, list[CellHistory | None]] = {key: [] for key in judged}
    for number in range(max(map(len, judged.values()), default=0)):
        shown = {
            key: every[number].outcome.stamps.run for key, every in judged.items() if number < len(every)
        }
        wanted = {key: subjects[key] for key in shown}
        pasts = histories(history, wanted, {key: run for key, run in shown.items() if run})
        for key in shown:
            found[key].append(pasts.get(key))
    return found


def _latest_stamps(judged: Mapping[str, Sequence[Judged]]) -> dict[str, Stamps]:
    """Return the stamps of each target's latest measured cell."""
    unmeasured = (Class.NOT_RUN, Class.NOT_APPLICABLE, Class.INFRA_ERROR)
    found: dict[str, Stamps] = {}
    for first, *_ in judged.values():
        stamps, target = first.outcome.stamps, first.cell.target.name
        if stamps.when and first.classification.cls not in unmeasured:
            found[target] = max(found.get(target, stamps), stamps, key=lambda each: each.when)
    return found


def _runs(history: Sequence[RunRecord], judged: Mapping[str, Sequence[Judged]]) -> tuple[RunView, ...]:
    """Return the runs of the history, then others that cells are of, each oldest first, with the stamps of targets."""
    whens = {record.run: record.when for record in history}
    on: dict[str, dict[str, RanOn]] = {}
    counted: Counter[tuple[str, str]] = Counter()
    for every in judged.values():
        for each in every:
            stamps, target = each.outcome.stamps, each.cell.target.name
            if each.outcome.state != "done" or not stamps.run:
                continue
            counted[stamps.run, target] += 1
            whens.setdefault(stamps.run, stamps.when)
            shared = replace(stamps, model_sha256="", recipe_sha256="", when="", run="")
            on.setdefault(stamps.run, {}).setdefault(target, RanOn(target, 0, shared))
    runs = []
    for run, when in whens.items():
        ran = (replace(each, cells=counted[run, each.target]) for each in on.get(run, {}).values())
        runs.append(RunView(run, when, tuple(ran)))
    # A cell's past points into the runs of the history by their numbers; what was sent in comes after them.
    return (*runs[: len(history)], *sorted(runs[len(history) :], key=lambda run: (run.when, run.id)))


def _sent_in(outcomes: Sequence[Outcome]) -> tuple[SentIn, ...]:
    """Return of how many cells each account sent records in, by GPU and commit."""
    found: dict[tuple[str, str, str], set[str]] = {}
    for outcome in outcomes:
        stamps = outcome.stamps
        if stamps.account:
            key = (stamps.account, stamps.environment.get("gpu", ""), stamps.harness_commit)
            found.setdefault(key, set()).add(outcome.cell)
    return tuple(SentIn(*key, len(cells)) for key, cells in sorted(found.items()))


def _troubles(target: TargetView) -> tuple[Reported, ...]:
    """Return the signatures that are reported of a target's version."""
    where = {"target": target.id, "version": target.version, "platform": target.platform}
    found = []
    for signature in load_signatures():
        claims = [
            claim for claim in signature.reported if claim.covers(engine=Engine(target.engine), **where)
        ]
        if claims:
            found.append(Reported(signature.id, "; ".join(map(seen_by, claims))))
    return tuple(found)


def _with_instead(results: Results) -> Results:
    """Return the results with the variants to use in place of each that does not work."""
    rows = results.rows()
    columns = [
        {variant.id: (variant, cells[at]) for variant, cells in rows} for at in range(len(results.targets))
    ]
    cells = [
        replace(cell, instead=found)
        if (found := instead(columns[at], variant, cell, _proofs(cell)))
        else cell
        for variant, row in rows
        for at, cell in enumerate(row)
    ]
    return replace(results, cells=tuple(cells))


def _proofs(cell: Known) -> tuple[str, ...]:
    if cell.diagnosis:
        return cell.diagnosis.proofs
    advice = general_advice(cell.signature)
    return advice.proofs if advice else ()
