"""Matrix, cases and outcomes -> `Results`: every cell, judged, and the changes from version to version."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import count

import onnx

from harness.case import Case
from harness.compare.kinds import steps_of
from harness.compare.step import OnTarget, tried_elsewhere, ways_round
from harness.compare.versions import Change, by_series, changes, spans
from harness.errors import HandledError, described
from harness.history import CellHistory, RunRecord, histories, records, subject_of
from harness.judge.cell import Judged, judge_cell
from harness.judge.signatures import load_signatures
from harness.known.cell import NOT_RUN_YET, general_advice, known_of, layers_file, worst_first
from harness.known.claim import seen_by
from harness.known.further import Further
from harness.known.listed import Objection, StaticModel
from harness.known.model import NOT_THERE_YET, CaseView, Known, TargetView, VariantView
from harness.matrix import Matrix
from harness.plan import Cell, all_cells, reproduced_on, reproduced_said
from harness.plan.by_hand import by_hand
from harness.record.outcome import Outcome, Stamps, State
from harness.record.speaking import Today, is_stale, speaking, todays
from harness.report.model import RanOn, Reported, Results, RunView, SentIn, with_yet
from harness.report.views import target_views, variant_view
from harness.words import Class, Engine, Role

Commands = Mapping[str, Sequence[str]]
#: Serialised models by case and variant.
Models = Mapping[tuple[str, str], bytes]


@dataclass(frozen=True)
class ReportSources:
    """The sources of a report, each read and built once: today's cells and models, every outcome of a store.

    commands: the lines that make a target's container by hand, by target.
    further: all tries of a check beyond its models.
    listed: findings without a run by cell; None has today's models held against the tables.
    """

    matrix: Matrix
    cases: Sequence[Case]
    cells: Sequence[Cell]
    models: Models
    today: Mapping[str, Today]
    outcomes: Sequence[Outcome]
    commands: Commands
    further: tuple[Further, ...] = ()
    listed: Mapping[str, Objection] | None = None
    #: By the record's place in memory: history and report judge the same records.
    _judged: dict[int, Judged] = field(default_factory=dict)

    @cached_property
    def speaking(self) -> Mapping[str, Sequence[Outcome]]:
        """Return the outcomes that speak for each cell, by its id."""
        return speaking(self.outcomes, lambda outcome: is_stale(outcome, self.today))

    @cached_property
    def columns(self) -> tuple[TargetView, ...]:
        """Return the targets, without the facts from a run."""
        return target_views(self.matrix, {}, {})

    def judge(self, cell: Cell, outcome: Outcome) -> Judged:
        """Return a cell's record with its conclusions, judged at the first call."""
        known = self._judged.get(id(outcome))
        if known is None:
            known = self._judged[id(outcome)] = judge_cell(cell, outcome)
        return known


def of_outcomes(
    matrix: Matrix, cases: Sequence[Case], outcomes: Sequence[Outcome], commands: Commands | None = None
) -> ReportSources:
    """Return outcomes beside today's matrix and cases."""
    cells = all_cells(matrix, cases)
    models = {}
    for case in cases:
        for variant in case:
            # One that cannot be built has no model beside the report, and `todays` says why.
            with contextlib.suppress(HandledError):
                models[case.name, variant.name] = variant.model_bytes()
    return ReportSources(matrix, cases, cells, models, todays(cells, models), outcomes, commands or {})


def layer_files(found: ReportSources) -> dict[str, bytes]:
    """Return the layers of the outcomes that speak, as JSON, by their hashes, as `Layers.sha256` names them."""
    every = (outcome for outcomes in found.speaking.values() for outcome in outcomes)
    return dict(layers_file(outcome.layers) for outcome in every if outcome.layers)


def run_records(found: ReportSources, history: Sequence[RunRecord] = ()) -> tuple[RunRecord, ...]:
    """Return the history records of the runs that are recorded, of the cells whose model and recipe are today's.

    Left out are runs of which `history` has every cell that was done.

    A run of another engine version than today's is part of the past: its stack says which it was. A record that
    somebody else sent in is not: the history is that of the project's own runs.
    """
    cells = {cell.id: cell for cell in found.cells}
    done = [each for each in found.outcomes if each.cell in cells and _is_own(each, found.today[each.cell])]
    ran: dict[str, set[str]] = {}
    for outcome in done:
        ran.setdefault(outcome.stamps.run, set()).add(outcome.cell)
    whole = {record.run for record in history if record.cells.keys() >= ran.get(record.run, {""})}
    return records(
        found.judge(cells[outcome.cell], outcome) for outcome in done if outcome.stamps.run not in whole
    )


def _is_own(outcome: Outcome, today: Today) -> bool:
    done = outcome.state == "done" and not outcome.stamps.account
    return done and not today.of_another_subject(outcome)


def results_of(found: ReportSources, history: Sequence[RunRecord]) -> Results:
    """Return every cell of the matrix, judged, by its outcomes that speak; `history` is the oldest run first.

    A cell without an outcome follows its nearest claim, else is `not_run` or `not_applicable`. An outcome of another
    model, recipe or engine version than today's is not shown: its cell is marked stale, with the reason. Cells are in
    case, variant and target order.
    """
    judged = {cell.id: _judged(cell, found) for cell in found.cells}
    pasts = _pasts(judged, found.today, history)
    known = tuple(_known(cell, judged[cell.id], pasts[cell.id], found) for cell in found.cells)
    cases, known, moved = _in_rows(found, judged, known)
    targets = target_views(found.matrix, _latest_stamps(known, found.speaking), found.commands)
    whole = Results(
        targets=targets,
        cases=cases,
        cells=known,
        changes=moved,
        runs=_runs(history, found.speaking, found.today),
        matrix_sha256=found.matrix.sha256(),
        submissions=_sent_in(found.outcomes),
        troubles={target.id: _troubles(target) for target in targets},
        further=found.further,
    )
    whole = replace(whole, steps=steps_of(whole.rows()))
    # Reproducers alone, as in a suite of thousands of models, have no workaround.
    plain = all(variant.role is Role.REPRODUCER for variant in whole.variants)
    return whole if plain else with_ways(whole)


def _in_rows(
    found: ReportSources, judged: Mapping[str, Sequence[Judged]], known: Sequence[Known]
) -> tuple[tuple[CaseView, ...], tuple[Known, ...], tuple[Change, ...]]:
    """Return the cases with their rows, and along the rows the cells and the changes from version to version."""
    seen = {key: {each.classification.cls for each in every} for key, every in judged.items()}
    targets = found.columns
    cases: list[CaseView] = []
    every: list[Known] = []
    moved: list[Change] = []
    starts = count(step=len(targets))
    for case in found.cases:
        rows = []
        for variant, start in zip(case, starts, strict=False):
            row = known[start : start + len(targets)]
            view = variant_view(case, variant, found.models.get((case.name, variant.name)), row)
            row = tuple(map(_as_not_yet, with_yet(view, row, targets)))
            every += row
            runs = by_series(list(zip(targets, row, strict=True)))
            where = reproduced_said(reproduced_on(found.cells[start : start + len(targets)], seen))
            rows.append(replace(view, sentences=tuple(spans(runs)), reproduced=where))
            moved += [change for run in runs.values() for change in changes(view, run)]
        cases.append(CaseView(case.name, case.title, case.summary, case.links, tuple(rows), case.seed))
    return tuple(cases), tuple(every), tuple(moved)


def _as_not_yet(cell: Known) -> Known:
    """Return a cell in the words of what came later, where a call is not there that no version removed."""
    return replace(cell, text=NOT_THERE_YET) if cell.not_yet and cell.cls is Class.API_REMOVED else cell


def _judged(cell: Cell, found: ReportSources) -> list[Judged]:
    """Return a cell's judged outcomes, the worst first; of stale ones only that there is one."""
    today, outcomes = found.today[cell.id], found.speaking.get(cell.id, ())
    because = _stale_because(cell.id, found)
    if because or not outcomes:
        return [judge_cell(cell, _blank(cell, because or today.unbuildable or NOT_RUN_YET))]
    return worst_first([found.judge(cell, outcome) for outcome in outcomes])


def _stale_because(cell: str, found: ReportSources) -> str:
    outcomes = found.speaking.get(cell, ())
    return found.today[cell].stale_because(outcomes[0]) if outcomes else ""


def _blank(cell: Cell, reason: str) -> Outcome:
    state: State = "not_applicable" if cell.inapplicable else "not_run"
    return Outcome.blank(cell, state, cell.inapplicable or reason)


def _known(
    cell: Cell, judged: Sequence[Judged], pasts: Sequence[CellHistory | None], found: ReportSources
) -> Known:
    lines = _by_hand(cell, found.models, judged[0])
    try:
        known = known_of(judged, pasts, lines, _static(cell, found, judged[0]))
    except Exception as error:  # noqa: BLE001  (one odd record must not cost the others their report)
        bare = Outcome.blank(
            cell, "infra_error", f"the harness could not show the record: {described(error)}"
        )
        broken = judge_cell(cell, replace(bare, log_sha256=judged[0].outcome.log_sha256))
        known = known_of([broken], by_hand=lines)
    if not _stale_because(cell.id, found):
        return known
    # An earlier engine version's flakiness does not concern today's.
    return replace(known, stale=known.cls is not Class.NOT_APPLICABLE, flaky=())


def _by_hand(cell: Cell, models: Models, judged: Judged) -> tuple[str, ...]:
    data = models.get((cell.case.name, cell.variant.name))
    # One odd model must not cost the others their report.
    with contextlib.suppress(Exception):
        return by_hand(cell, data, judged.outcome.stamps.image_digest).lines if data else ()
    return ()


def _static(cell: Cell, found: ReportSources, judged: Judged) -> Objection | None:
    """Return the finding on a cell that was given; else one of a cell without result and claim that is drawn."""
    if found.listed is not None:
        return found.listed.get(cell.id)
    data = found.models.get((cell.case.name, cell.variant.name))
    unknown = judged.classification.cls is Class.NOT_RUN and not judged.claims
    if data is None or not unknown or not cell.target.traits.tabled:
        return None
    recipe = cell.variant.recipe
    # One odd model must not cost the others their report.
    with contextlib.suppress(Exception):
        return _held(data, bool(recipe.plugin or recipe.libraries)).drawn_on(cell.target)
    return None


#: The cells of a variant come one after the other.
@lru_cache(maxsize=1)
def _held(data: bytes, plugins: bool) -> StaticModel:  # noqa: FBT001  (positional: a key of the cache)
    return StaticModel(onnx.load_model_from_string(data), plugins=plugins)


def _pasts(
    judged: Mapping[str, Sequence[Judged]], today: Mapping[str, Today], history: Sequence[RunRecord]
) -> dict[str, list[CellHistory | None]]:
    """Return the past of each outcome of a cell: that of its GPU."""
    subjects = {key: subject_of(today[key].model_sha256, today[key].recipe_sha256) for key in judged}
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


def _latest_stamps(cells: Sequence[Known], speak: Mapping[str, Sequence[Outcome]]) -> dict[str, Stamps]:
    """Return the stamps of each target's latest measured cell."""
    found: dict[str, Stamps] = {}
    for cell in cells:
        if cell.when and cell.measured:
            shown = (outcome.stamps for outcome in speak[cell.id])
            stamps = next(each for each in shown if (each.run, each.when) == (cell.stamps, cell.when))
            found[cell.target] = max(found.get(cell.target, stamps), stamps, key=lambda each: each.when)
    return found


def _runs(
    history: Sequence[RunRecord], speak: Mapping[str, Sequence[Outcome]], today: Mapping[str, Today]
) -> tuple[RunView, ...]:
    """Return the runs of the history, then others that cells are of, each oldest first, with the stamps of targets."""
    whens = {record.run: record.when for record in history}
    on: dict[str, dict[str, RanOn]] = {}
    counted: Counter[tuple[str, str]] = Counter()
    current = ((now, each) for key, now in today.items() for each in speak.get(key, ()))
    for now, outcome in current:
        stamps, target = outcome.stamps, now.target.name
        if outcome.state == "done" and stamps.run and not now.stale_because(outcome):
            counted[stamps.run, target] += 1
            whens.setdefault(stamps.run, stamps.when)
            shared = replace(stamps, model_sha256="", recipe_sha256="", when="", run="")
            on.setdefault(stamps.run, {}).setdefault(target, RanOn(target, 0, shared))
    runs = []
    for run, when in whens.items():
        ran = (replace(each, cells=counted[run, each.target]) for each in on.get(run, {}).values())
        runs.append(RunView(run, when, tuple(ran)))
    # A cell's past points into the runs of the history by their numbers; submitted runs come after them.
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


def with_ways(results: Results) -> Results:
    """Return the results with the variants to use in place of each that does not work."""
    rows = results.rows()
    columns: list[OnTarget] = [
        {variant.id: (variant, cells[at]) for variant, cells in rows} for at in range(len(results.targets))
    ]
    elsewhere = tried_elsewhere(results.targets, rows)
    tried = [elsewhere.get(target.engine, {}) for target in results.targets]
    cells = [
        _with_ways(columns[at], variant, cell, tried[at])
        for variant, row in rows
        for at, cell in enumerate(row)
    ]
    return replace(results, cells=tuple(cells))


def _with_ways(
    column: OnTarget, variant: VariantView, cell: Known, elsewhere: Mapping[str, Sequence[str]]
) -> Known:
    signature = cell.diagnosis.id if cell.diagnosis else cell.signature
    advice = general_advice(signature)
    proofs = advice.proofs if advice else ()
    ids, tried = ways_round(column, variant, cell, proofs, elsewhere)
    found = replace(cell, instead=ids, instead_tried=tried) if ids or cell.instead else cell
    if found.diagnosis is None:
        return found
    held = () if tried else tuple(name for name in ids if name in proofs)
    return replace(found, diagnosis=replace(found.diagnosis, proofs=held))
