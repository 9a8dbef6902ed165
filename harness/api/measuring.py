"""`measure`: cells of the matrix, from Python; called so because `harness.run` is the package that runs them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from harness.case import load_cases
from harness.errors import HandledError
from harness.matrix import load_matrix
from harness.models.trying import How, run_models
from harness.plan import all_cells, select
from harness.record.store import Store
from harness.report import Results, build_report
from harness.run.commands import published_lines
from harness.run.prepared import PreparedVariants, with_models
from harness.shipped import looked_up

if TYPE_CHECKING:
    from harness.run.provision import Via


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

    `matrix` and `cases` are looked up here, and where they are not, taken from what comes with the harness. What cannot
    run here is recorded as not run, with the reason. Raises HandledError where no cell is selected.
    """
    found = load_matrix(looked_up(matrix, "matrix.yaml"))
    how, chosen = How(via, jobs), found.only(targets)
    folder = looked_up(cases, "cases")
    known = with_models(load_cases(folder), folder)
    cells = select(all_cells(chosen, known), expression)
    if not cells:
        raise HandledError(f"{expression!r} selects no cell; `trt-compat list` shows them all")
    with Store(Path(reports), run=uuid.uuid4().hex[:12]) as store:
        run_models(cells, PreparedVariants(), how, sink=store)
        return build_report(found, known, store, Path(reports), published_lines(found))
