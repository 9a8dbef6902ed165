"""The Python interface: the command line's `check` and `run`, with results as frozen data.

    from harness import check, load_results, measure

    found = check("model.onnx", targets=["rtx16", "rtx17"])
    found["rtx16"].classification.cls, found["rtx16"].signature
    found.worse("rtx17", "rtx16")

It prints no line. A mistake raises `HandledError`, trouble of the machinery `InfraError`; the result of a model on a
target never raises: it is in the result.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

from harness.case import load_cases
from harness.errors import HandledError, InfraError
from harness.judge.cell import Judged
from harness.judge.tables import explain
from harness.known.further import Further
from harness.known.listed import Static
from harness.matrix import Target, load_matrix
from harness.models.answers import Answer, ModelStep, NodeChange, Trouble, changes, coverage, median_ms
from harness.models.checking import Begun, Check, Event
from harness.models.own.model import OwnModel
from harness.models.trying import run_models
from harness.plan import all_cells, select
from harness.record.store import Store
from harness.report.model import Results, load_results
from harness.report.writer import build_report
from harness.run.commands import published_lines
from harness.run.local import How
from harness.run.prepared import PreparedVariants, with_models
from harness.run.provision.model import Via
from harness.shipped import looked_up
from harness.text import did_you_mean

__all__ = [
    "Checked",
    "HandledError",
    "InfraError",
    "Target",
    "check",
    "explain",
    "load_matrix",
    "load_results",
    "measure",
]


@dataclass(frozen=True, repr=False)
class Checked:
    """The answers for one model on each target, in the matrix's order; `assumed` are sentences on assumptions."""

    model: str
    answers: tuple[Answer, ...]
    assumed: tuple[str, ...] = ()

    @property
    def results(self) -> tuple[Judged, ...]:
        """Return the judged record of the model on each target."""
        return tuple(each.judged for each in self.answers)

    @property
    def static(self) -> Mapping[str, Static]:
        """Return by target the facts known without a run: a `state`, and the `findings` that lead to it."""
        return {each.target: each.static for each in self.answers}

    def answer(self, target: str) -> Answer:
        """Return the answer of a target; KeyError for one that was not asked."""
        found = {each.target: each for each in self.answers}
        if target not in found:
            raise KeyError(f"{target!r} was not asked; {did_you_mean(target, found)}")
        return found[target]

    def __getitem__(self, target: str) -> Judged:
        return self.answer(target).judged

    def __repr__(self) -> str:
        told = ", ".join(f"{each.target} {each.judged.classification.cls}" for each in self.answers)
        return f"<Checked {self.model}: {told or 'no target'}>"

    def __iter__(self) -> Iterator[Judged]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.answers)

    def ran(self, target: str) -> bool:
        """Tell whether a target answered: it can run here, and no machinery failed."""
        return self.answer(target).ran

    def troubles(self, target: str) -> frozenset[Trouble]:
        """Return the troubles on a target, without a run too: "build", "int8-loss", "numbers"."""
        return self.answer(target).troubles

    def worse(self, before: str, after: str) -> frozenset[Trouble]:
        """Return the troubles that get worse from one target to another."""
        return ModelStep(self.answer(before), self.answer(after)).worse

    def changes(self, before: str, after: str) -> tuple[NodeChange, ...]:
        """Return the nodes that run in another precision on the later target than on the earlier one."""
        return changes(self[before], self[after])

    def tried(self, target: str) -> Further:
        """Return the tries on a target beyond the model as it is; a field is None if its question was not asked."""
        return self.answer(target).further

    def rows(self) -> list[dict[str, Any]]:
        """Return a plain row for each target.

        `precision` is the narrow type that nodes are to run in, None for no such node, and `kept` of `wanted` nodes do.
        `median_ms` is None without timed runs.
        """
        return list(map(_row, self.results))


def _row(judged: Judged) -> dict[str, Any]:
    found, kept = judged.diagnosis, coverage(judged)
    return {
        "target": judged.cell.target.name,
        "version": judged.cell.target.version,
        "class": str(judged.classification.cls),
        "signature": judged.signature,
        "operator": found.operator if found else "",
        "node": found.node if found else "",
        "precision": str(kept[0]) if kept else None,
        "kept": kept[1] if kept else 0,
        "wanted": kept[2] if kept else 0,
        "median_ms": median_ms(judged),
        "reason": judged.classification.reason,
    }


_Options = ParamSpec("_Options")


def _checked(make: Callable[_Options, Check]) -> Callable[_Options, Checked]:
    """Return the function that runs a check of one model; its arguments are those of `Check`."""

    @wraps(make)
    def check(*model: _Options.args, **options: _Options.kwargs) -> Checked:
        models: list[OwnModel] = []

        def tell(event: Event) -> None:
            if isinstance(event, Begun):
                models.extend(event.models)
                if len(models) > 1:
                    raise HandledError(f"{len(models)} models are named; check them one by one")

        answers = make(*model, **options).run(tell)
        return Checked(models[0].label, tuple(answers), models[0].assumed)

    check.__name__ = check.__qualname__ = "check"
    return check


#: Build a model on each target, run it if that can be, and return the results; see `Check`.
check = _checked(Check)


def measure(  # noqa: PLR0913  (each by its name, with a default)
    expression: str = "",
    *,
    targets: str | Iterable[str] = (),
    matrix: str | Path | None = None,
    cases: str | Path | None = None,
    reports: str | Path = "reports",
    via: Via = "auto",
    jobs: int | None = None,
) -> Results:
    """Run the cells that pytest's `-k EXPRESSION` would select, record them, write the report and return it.

    `matrix` and `cases` are looked up here, else taken from the harness. A cell that cannot
    run here is recorded as not run, with the reason. Raises HandledError if no cell is selected.
    """
    found = load_matrix(looked_up(matrix, "matrix.yaml"))
    how, chosen = How(via, jobs), found.only(targets)
    folder = looked_up(cases, "cases")
    known = with_models(load_cases(folder), folder)
    cells = select(all_cells(chosen, known), expression)
    if not cells:
        raise HandledError(f"{expression!r} selects no cell; `trt-compat list` shows them all")
    with Store(Path(reports), run=uuid.uuid4().hex[:12]) as store:
        try:
            run_models(cells, PreparedVariants(), how, sink=store)
        finally:
            if store.holds_records:
                results = build_report(found, known, store, Path(reports), published_lines(found))
        return results
