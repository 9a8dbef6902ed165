"""The Python interface: the command line's `check` and `run`, with results as frozen data.

    from harness import check, load_results, measure

    found = check("model.onnx", targets=["rtx16", "rtx17"])
    found["rtx16"].known.cls, found["rtx16"].judged.signature
    found.worse("rtx17", "rtx16")

It prints no line. A mistake raises `HandledError`, trouble of the machinery `InfraError`; the result of a model on a
target never raises: it is in the result.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import ParamSpec

from harness.case import load_cases
from harness.errors import HandledError, InfraError
from harness.judge.tables import explain
from harness.matrix import Target, load_matrix
from harness.models.answers import Answer, ModelStep, Trouble
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


@dataclass(frozen=True)
class Checked:
    """The answer for one model by target, in the matrix's order; `assumed` are sentences on assumptions."""

    model: str
    answers: Mapping[str, Answer] = field(repr=False)
    assumed: tuple[str, ...] = ()

    def __getitem__(self, target: str) -> Answer:
        if target not in self.answers:
            raise KeyError(f"{target!r} was not asked; {did_you_mean(target, self.answers)}")
        return self.answers[target]

    def worse(self, before: str, after: str) -> frozenset[Trouble]:
        """Return the troubles that get worse from one target to another: "build", "int8-loss", "numbers"."""
        return ModelStep(self[before], self[after]).worse


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

        answers = {each.target: each for each in make(*model, **options).run(tell)}
        return Checked(models[0].label, answers, models[0].assumed)

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
