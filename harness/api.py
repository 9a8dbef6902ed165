"""The Python interface: the command line's `check` and `run`, with results as frozen data.

    from harness import check, load_results, measure

    found = check("model.onnx", targets=["rtx16", "rtx17"])
    found["rtx16"].classification.cls, found["rtx16"].signature
    found.worse("rtx17", "rtx16")

Nothing is printed. A mistake raises `HandledError`, trouble of the machinery `InfraError`; the result of a model on a
target never raises: it is in the result.
"""

from __future__ import annotations

import html
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from harness.case import load_cases
from harness.errors import HandledError, InfraError
from harness.judge.cell import Judged
from harness.judge.findings import explain
from harness.matrix import Target, load_matrix
from harness.models.check import Change, Trouble, changes, coverage, median_ms, ran, troubles, worse
from harness.models.further import Asking, Further, Questions, as_json, latest
from harness.models.own.data import Given, OwnPrepared, built_with, fitted, read_libraries
from harness.models.own.model import OwnModel, Wanted, load_own, own_case, own_model
from harness.models.own.shapes import Shapes
from harness.models.static import Static, patterns, static_answers
from harness.models.trying import BuiltOrRun, Tries, run_models
from harness.plan import all_cells, select
from harness.record.store import Store
from harness.report.further import Row, further_rows
from harness.report.model import Results, load_results
from harness.report.writer import build_report
from harness.run.commands import published_lines
from harness.run.local import How
from harness.run.numbers.wire import Array
from harness.run.prepared import PreparedVariants, with_models
from harness.run.provision.model import Via
from harness.shipped import looked_up
from harness.text import did_you_mean
from harness.words import Typing

if TYPE_CHECKING:
    # No dependency of this project.
    import pandas as pd

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

_COLUMNS = (
    "target",
    "version",
    "class",
    "signature",
    "operator",
    "node",
    "precision",
    "kept",
    "wanted",
    "median_ms",
    "reason",
)


@dataclass(frozen=True, repr=False)
class Checked:
    """The results of one model on each target, in the matrix's order; `assumed` are sentences on assumptions.

    `further` are the answers of the tries beyond the model as it is, for each target that was asked anything.
    `static` has by target the facts known without running it: its `state`, and the `findings` that lead to it.
    """

    model: str
    results: tuple[Judged, ...]
    assumed: tuple[str, ...] = ()
    further: tuple[Further, ...] = ()
    static: Mapping[str, Static] = field(default_factory=dict)

    @cached_property
    def by_target(self) -> Mapping[str, Judged]:
        """Return the results by the targets' names."""
        return {each.cell.target.name: each for each in self.results}

    def __getitem__(self, target: str) -> Judged:
        try:
            return self.by_target[target]
        except KeyError:
            raise KeyError(f"{target!r} was not asked; {did_you_mean(target, self.by_target)}") from None

    def __repr__(self) -> str:
        told = ", ".join(f"{each.cell.target.name} {each.classification.cls}" for each in self.results)
        return f"<Checked {self.model}: {told or 'no target'}>"

    def __iter__(self) -> Iterator[Judged]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def ran(self, target: str) -> bool:
        """Tell whether a target answered: it can run here, and no machinery failed."""
        return ran(self[target])

    def troubles(self, target: str) -> frozenset[Trouble]:
        """Return the troubles on a target: "build", "int8-loss", "numbers"."""
        return troubles(self[target])

    def worse(self, before: str, after: str) -> frozenset[Trouble]:
        """Return the troubles that get worse from one target to another."""
        return worse(self[before], self[after])

    def changes(self, before: str, after: str) -> tuple[Change, ...]:
        """Return the nodes that run in another precision on the later target than on the earlier one."""
        return changes(self[before], self[after])

    def tried(self, target: str) -> Further:
        """Return the tries on a target beyond the model as it is; its fields are None where nothing was asked."""
        judged = self[target]
        return next((each for each in self.further if each.target == target), Further(judged))

    def further_json(self) -> list[dict[str, Any]]:
        """Return the further tries as plain data, as `results.json` has it under `further`."""
        return [as_json(each) for each in self.further]

    def rows(self) -> list[dict[str, Any]]:
        """Return a plain row for each target.

        `precision` is the narrow type that nodes are to run in, None where none is, and `kept` of `wanted` nodes do.
        `median_ms` is None where nothing was timed.
        """
        return [dict(zip(_COLUMNS, _row(each), strict=True)) for each in self.results]

    def to_frame(self) -> pd.DataFrame:
        """Return the rows as a data frame; raises ImportError where pandas is not installed."""
        import pandas as pd  # noqa: PLC0415  (no dependency of this project)

        return pd.DataFrame(self.rows(), columns=list(_COLUMNS))

    def _repr_html_(self) -> str:
        shown = _table(self.model, _COLUMNS, [row.values() for row in self.rows()])
        tried = further_rows(self.further_json())
        return shown + (_table("Tried further", Row._fields, tried) if tried else "")


def _table(caption: str, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    head = "".join(f"<th>{name}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><caption>{html.escape(caption)}</caption><tr>{head}</tr>{body}</table>"


def _row(judged: Judged) -> tuple[object, ...]:
    found, kept = judged.diagnosis, coverage(judged)
    return (
        judged.cell.target.name,
        judged.cell.target.version,
        str(judged.classification.cls),
        judged.signature,
        found.operator if found else "",
        found.node if found else "",
        str(kept[0]) if kept else None,
        kept[1] if kept else 0,
        kept[2] if kept else 0,
        median_ms(judged),
        judged.classification.reason,
    )


def _cell(value: object) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
    return f"<td>{html.escape(text)}</td>"


#: What an array-like may be.
Arrays = Mapping[str, "Array"]


def check(  # noqa: PLR0913  (each by its name, with a default)
    model: str | Path | onnx.ModelProto,
    *,
    targets: str | Iterable[str] = (),
    shapes: Mapping[str, Sequence[int]] | None = None,
    inputs: Arrays | None = None,
    expected: Arrays | None = None,
    calibration: Arrays | None = None,
    plugins: Iterable[str | Path] = (),
    max_rel: float | None = None,
    cosine: float | None = None,
    want: str = "auto",
    typing: str = "graph",
    flags: str | Iterable[str] = (),
    blockers: bool = True,
    leave_float: str | Iterable[str] = "",
    workarounds: bool = False,
    matrix: str | Path | None = None,
    via: Via = "auto",
    jobs: int | None = None,
) -> Checked:
    """Build a model on each target, run it where that can be, and return the results.

    `matrix` is that file, else matrix.yaml here, else the one that comes with the harness. `targets` are names of it,
    all where none is given. `shapes` are those of dynamic inputs, made up where none is given. `inputs` are arrays for
    all network inputs, made up where none is given; `expected` are outputs to hold the engine to, by default those of
    the ONNX reference evaluator. `max_rel` and `cosine` are how far an output may be off, by default by its precision.
    `calibration` are batches of each network input for an INT8 calibrator, along the first axis, and `plugins` compiled
    libraries. `want` is "auto" for the precision that the graph asks of each node, "none", or a pattern of node names.
    `blockers`, `leave_float` ("auto" or nodes) and `workarounds` are tries beyond the model as it is, as the command's
    options of these names do. Raises HandledError for a file that is no model, for a name that is none, and for data
    that do not fit.
    """
    how, whole = How(via, jobs), load_matrix(looked_up(matrix, "matrix.yaml"))
    chosen = whole.only(targets)
    wanted = _wanted(typing, (flags,) if isinstance(flags, str) else flags, want, shapes or {})
    wanted = replace(wanted, max_rel=max_rel, cosine=cosine)
    own = _own(model, wanted)
    floats = leave_float if isinstance(leave_float, str) else ",".join(leave_float)
    questions = Questions(blockers, floats, workarounds)
    questions.named(own)
    libraries = read_libraries(map(Path, plugins))
    arrays = _arrays(inputs), _arrays(expected), _arrays(calibration)
    given = fitted(own, Given(*arrays, libraries, own.weights))
    own = built_with(own, given)
    judged = run_models(all_cells(chosen, (own_case([own]),)), OwnPrepared({own.variant.name: given}), how)
    with Tries(via=via, prepared=BuiltOrRun(given)) as tries:
        asking = Asking(own, judged, questions, tries, wanted.flags, given)
        found = latest(asking.answers())
    known = patterns(looked_up(None, "cases"), whole)[0]
    answers = {target: each for (_, target), each in static_answers([own], judged, known).items()}
    return Checked(own.label, tuple(judged), own.assumed, found, answers)


def _wanted(typing: str, flags: Iterable[str], want: str, shapes: Mapping[str, Sequence[int]]) -> Wanted:
    if typing not in tuple(Typing):
        raise HandledError(f"typing {typing!r} is none; {did_you_mean(typing, list(map(str, Typing)))}")
    usual = {name: tuple(each) for name, each in shapes.items()}
    return Wanted(Typing(typing), tuple(flags), want, Shapes(optimum=usual))


def _arrays(given: Arrays | None) -> Arrays:
    return {name: np.asarray(each) for name, each in (given or {}).items()}


def _own(model: str | Path | onnx.ModelProto, wanted: Wanted) -> OwnModel:
    if not isinstance(model, onnx.ModelProto):
        return load_own(Path(model), wanted)
    if not model.graph.node:
        raise HandledError("the model has no node in its graph; give another")
    return own_model(model, model.graph.name or "model", wanted, name="model")


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

    `matrix` and `cases` are looked up here, and where they are not, taken from the harness. A cell that cannot
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
        try:
            run_models(cells, PreparedVariants(), how, sink=store)
        except BaseException:
            if store.holds_records:
                build_report(found, known, store, Path(reports), published_lines(found))
            raise
        return build_report(found, known, store, Path(reports), published_lines(found))
