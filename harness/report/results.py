"""Matrix, cases and outcomes -> `Results`: every cell, judged, and what that says of the versions."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import onnx

from harness.case import model_sha256
from harness.errors import HandledError, described
from harness.history import histories
from harness.history.runs import records, subject_of
from harness.judge.cell import judge_cell
from harness.judge.explain import describe_recipe
from harness.layers import asked, wished
from harness.plan import all_cells, inapplicable_because
from harness.record.outcome import Outcome
from harness.record.speaking import speaking
from harness.record.staleness import is_stale, todays
from harness.report.by_gpu import worth_telling
from harness.report.cell_view import NOT_RUN_YET, cell_view
from harness.report.compare import ranges
from harness.report.further import further_beside
from harness.report.graph import GraphView, graph_of
from harness.report.lines import with_lines
from harness.report.model import (
    CaseView,
    CellView,
    Change,
    Results,
    SentIn,
    Span,
    TargetView,
    VariantView,
)
from harness.report.reproduced import with_reproduced
from harness.report.runs import run_view
from harness.report.target_view import target_views
from harness.words import Typing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.case import Case, Variant
    from harness.history import CellHistory, RunRecord
    from harness.judge.cell import Judged
    from harness.matrix import Matrix
    from harness.plan import Cell
    from harness.record.staleness import Today
    from harness.record.store import Store
    from harness.words import Precision

    Commands = Mapping[str, Sequence[str]]
    #: Serialised models by case and variant.
    Models = Mapping[tuple[str, str], bytes]


class _Judging:
    """Judges a record once, which the history asks for and the report."""

    def __init__(self) -> None:
        # With its record, whose place in memory is the key.
        self._known: dict[int, Judged] = {}

    def of(self, cell: Cell, outcome: Outcome) -> Judged:
        """Return a cell's record with its conclusions."""
        known = self._known.get(id(outcome))
        if known is None:
            known = self._known[id(outcome)] = judge_cell(cell, outcome)
        return known


@dataclass(frozen=True)
class Recorded:
    """What a report is made from, read and built once: today's cells and serialised models, every outcome of a store.

    `commands` are the lines that make a target's container by hand, by target; `further` is what a check tried beyond
    its models as they are.
    """

    matrix: Matrix
    cases: Sequence[Case]
    cells: Sequence[Cell]
    models: Models
    today: Mapping[str, Today]
    outcomes: Sequence[Outcome]
    commands: Commands
    further: tuple[dict[str, Any], ...] = ()
    judging: _Judging = field(default_factory=_Judging)


def recorded(
    matrix: Matrix, cases: Sequence[Case], store: Store, commands: Commands | None = None
) -> Recorded:
    """Return what a store holds, beside today's matrix and cases."""
    found = _recorded(matrix, cases, tuple(store.outcomes()), commands)
    known = {cell.id for cell in found.cells}
    further = tuple(each for each in further_beside(store.path) if each["cell"] in known)
    return replace(found, further=further)


def _recorded(
    matrix: Matrix, cases: Sequence[Case], outcomes: Sequence[Outcome], commands: Commands | None
) -> Recorded:
    cells = all_cells(matrix, cases)
    models = {}
    for case in cases:
        for variant in case:
            # One that cannot be built has no model beside the report, and `todays` says why.
            with contextlib.suppress(HandledError):
                models[case.name, variant.name] = variant.model_bytes()
    return Recorded(matrix, cases, cells, models, todays(cells, models), outcomes, commands or {})


def results_of(found: Recorded, history: Sequence[RunRecord]) -> Results:
    """Return the results of the outcomes that speak for each cell, with the history of the runs."""
    outcomes = speaking(found.outcomes, lambda outcome: is_stale(outcome, found.today))
    return _assemble(found, outcomes, history)


def run_records(found: Recorded) -> tuple[RunRecord, ...]:
    """Return the history records of the runs that are recorded, of the cells whose model and recipe are today's.

    A run of another engine version than today's is part of the past: its stack says which it was. What somebody else
    sent in is not: the history is that of the project's own runs.
    """
    cells = {cell.id: cell for cell in found.cells}
    return records(
        found.judging.of(cells[outcome.cell], outcome)
        for outcome in found.outcomes
        if outcome.state == "done"
        and not outcome.stamps.account
        and outcome.cell in cells
        and not found.today[outcome.cell].of_another_subject(outcome)
    )


def assemble(
    matrix: Matrix,
    cases: Sequence[Case],
    outcomes: Mapping[str, Outcome | tuple[Outcome, ...]],
    history: Sequence[RunRecord] = (),
    commands: Commands | None = None,
) -> Results:
    """Return every cell of the matrix, judged; `outcomes` are by cell id, several where several speak.

    `history` is the oldest run first; `commands` are the lines that make a target's container by hand, by target.

    A cell without an outcome is `not_run` or `not_applicable`. An outcome of another model, recipe or engine version
    than today's is not shown: its cell is `not_run`, marked stale, and says why. Cells are in case, variant and target
    order.
    """
    speaks = {key: (found,) if isinstance(found, Outcome) else found for key, found in outcomes.items()}
    return _assemble(_recorded(matrix, cases, (), commands), speaks, history)


def _assemble(
    found: Recorded, outcomes: Mapping[str, Sequence[Outcome]], history: Sequence[RunRecord]
) -> Results:
    today = found.today
    rows = {
        cell.id: _rows(cell, outcomes.get(cell.id, ()), today[cell.id], found.judging.of)
        for cell in found.cells
    }
    rows, scripts = with_lines(found.cells, found.models, rows)
    past = _pasts(rows, today, history)
    cells = tuple(_joined(rows[cell.id], past[cell.id]) for cell in found.cells)
    targets = tuple(
        replace(target, commands=tuple(found.commands.get(target.id, ())))
        for target in target_views(found.matrix, cells)
    )
    views = tuple(_case(case, found.models, scripts) for case in found.cases)
    runs = tuple(map(run_view, history))
    whole = Results(
        targets,
        views,
        cells,
        runs=runs,
        submissions=_sent_in(found.outcomes),
        further=found.further,
        matrix_sha256=found.matrix.sha256(),
    )
    return with_reproduced(_with_ranges(whole), found.cells)


def _sent_in(outcomes: Sequence[Outcome]) -> tuple[SentIn, ...]:
    """Return of how many cells each account sent records in, by GPU and commit."""
    found: dict[tuple[str, str, str], set[str]] = {}
    for outcome in outcomes:
        stamps = outcome.stamps
        if stamps.account:
            key = (stamps.account, stamps.environment.get("gpu", ""), stamps.harness_commit)
            found.setdefault(key, set()).add(outcome.cell)
    return tuple(SentIn(*key, len(cells)) for key, cells in sorted(found.items()))


def _pasts(
    rows: Mapping[str, Sequence[CellView]], today: Mapping[str, Today], history: Sequence[RunRecord]
) -> dict[str, list[CellHistory | None]]:
    """Return the past of each row of a cell: that of its GPU."""
    subjects = {key: subject_of(now.model_sha256, now.recipe_sha256) for key, now in today.items()}
    found: dict[str, list[CellHistory | None]] = {key: [] for key in rows}
    for number in range(max(map(len, rows.values()), default=0)):
        shown = {key: every[number].stamps for key, every in rows.items() if number < len(every)}
        wanted = {key: subjects[key] for key in shown}
        pasts = histories(history, wanted, {key: stamps.run for key, stamps in shown.items() if stamps})
        for key in shown:
            found[key].append(pasts.get(key))
    return found


def _joined(rows: Sequence[CellView], pasts: Sequence[CellHistory | None]) -> CellView:
    """Return a cell as its worst row, with the results on all GPUs where any took part."""
    cells = [_with_history(row, past) for row, past in zip(rows, pasts, strict=True)]
    by_gpu = tuple(replace(each, flaky=cell.flaky) for cell in cells for each in cell.by_gpu)
    return replace(cells[0], by_gpu=by_gpu if any(each.key for each in by_gpu) else ())


def _with_history(cell: CellView, past: CellHistory | None) -> CellView:
    if past is None:
        return cell
    # An earlier engine version may have been flaky; that says nothing of today's.
    return replace(cell, history=past, flaky=() if cell.stale else past.flaky)


def _rows(
    cell: Cell,
    outcomes: Sequence[Outcome],
    today: Today,
    judge: Callable[[Cell, Outcome], Judged],
) -> list[CellView]:
    """Return a cell as each of its outcomes shows it, the worst first; of what is stale only that there is one."""
    because = today.stale_because(outcomes[0]) if outcomes else ""
    if because or not outcomes:
        outcomes, judge = (_blank(cell, because or today.unbuildable or NOT_RUN_YET),), judge_cell
    return [
        _view(judged, stale=bool(because) and judged.outcome.state != "not_applicable")
        for judged in worth_telling([judge(cell, outcome) for outcome in outcomes])
    ]


def _view(judged: Judged, *, stale: bool) -> CellView:
    try:
        return cell_view(judged, stale=stale)
    except Exception as error:  # noqa: BLE001  (one odd record must not cost the others their report)
        cell, reason = judged.cell, f"the harness could not show the record: {described(error)}"
        bare = replace(Outcome.blank(cell, "infra_error", reason), log_sha256=judged.outcome.log_sha256)
        return cell_view(judge_cell(cell, bare), stale=stale)


def _blank(cell: Cell, reason: str) -> Outcome:
    meaningless = inapplicable_because(cell)
    return Outcome.blank(cell, "not_applicable" if meaningless else "not_run", meaningless or reason)


def _case(case: Case, models: Models, scripts: Mapping[tuple[str, str], Sequence[str]]) -> CaseView:
    def variant_view(variant: Variant) -> VariantView:
        model = models.get((case.name, variant.name))
        graph = graph_of(model) if model else GraphView()
        return VariantView(
            case=case.name,
            name=variant.name,
            title=variant.title,
            role=variant.role,
            counterpart=variant.counterpart,
            wanted=_wanted(variant, model),
            recipe=variant.recipe.as_dict(),
            recipe_text=describe_recipe(variant.recipe),
            recipe_sha256=variant.recipe_sha256,
            model_sha256=model_sha256(model) if model else "",
            expectations=variant.expectations,
            tags=_tags(variant, graph),
            scripts=tuple(scripts.get((case.name, variant.name), ())),
            graph=graph,
        )

    return CaseView(case.name, case.title, case.summary, case.links, tuple(map(variant_view, case)))


def _wanted(variant: Variant, model: bytes | None) -> tuple[tuple[str, Precision], ...]:
    """Return what is wanted of a variant's nodes: what it says, else what its graph asks for."""
    if variant.precision is not None:
        return variant.precision
    return wished(variant, asked(onnx.load_model_from_string(model))) if model else ()


def _tags(variant: Variant, graph: GraphView) -> tuple[str, ...]:
    """Return a variant's own tags, and what its recipe and graph make it."""
    recipe = variant.recipe
    ops = {node.op for node in graph.nodes}
    told = {
        "qdq": bool(ops & {"QuantizeLinear", "DequantizeLinear"}),
        "calibrated": recipe.calibrator is not None,
        "plugin": recipe.plugin is not None,
        "fp16": "FP16" in recipe.flags,
        "strongly-typed": recipe.typing is Typing.STRONG,
    }
    return (*variant.tags, *(tag for tag, true in told.items() if true))


def _with_ranges(results: Results) -> Results:
    """Add to every variant how it fares along the versions, and to the results what changed between them."""
    by_row: dict[tuple[str, str], list[tuple[TargetView, CellView]]] = {}
    targets = {target.id: target for target in results.targets}
    for cell in results.cells:
        by_row.setdefault((cell.case, cell.variant), []).append((targets[cell.target], cell))
    changes: list[Change] = []
    cases = []
    for case in results.cases:
        variants = []
        for variant in case.variants:
            runs = ranges.by_series(by_row.get((variant.case, variant.name), []))
            found: list[Span] = ranges.spans(variant, runs)
            changes += [change for run in runs.values() for change in ranges.changes(variant, run)]
            variants.append(replace(variant, spans=tuple(found)))
        cases.append(replace(case, variants=tuple(variants)))
    return replace(results, cases=tuple(cases), changes=tuple(changes))
