"""The whole matrix, each cell with its known: `results.json`, schema 2, as frozen data, written and read."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.bounded import parse_json, read_bytes
from harness.case import Expectation
from harness.compare.kinds import Steps
from harness.compare.step import Column, Step, StepTrouble, step
from harness.compare.versions import Change
from harness.engines import ENGINES
from harness.errors import HandledError
from harness.judge.names import Removed, removed
from harness.known.cell import general_advice, not_yet
from harness.known.claim import says, seen_by, source
from harness.known.further import Further
from harness.known.model import Advice, CaseView, Known, TargetView, VariantView
from harness.record.from_json import OutdatedError, check_schema, decode, fields_of
from harness.record.outcome import Stamps
from harness.record.store import decompress
from harness.report.labels import examples, filled
from harness.words import UNJUDGED, Basis, Class, Engine, Verdict

#: Raised when the meaning of a field of results.json changes.
RESULTS_SCHEMA = 2
RESULTS = "results.json"
_PACKED = ".xz"


@dataclass(frozen=True)
class RanOn:
    """A target in a run, of which it measured `cells`, and the stamps that those share: no hash, time or run."""

    target: str
    cells: int
    stamps: Stamps = field(default_factory=Stamps)


@dataclass(frozen=True)
class RunView:
    """A run: its id, the UTC time of its first cell, and the stamps of each target that it measured."""

    id: str
    when: str
    on: tuple[RanOn, ...] = ()


@dataclass(frozen=True)
class SentIn:
    """The number of cells that an account sent records for, measured on one GPU with one commit of the harness."""

    account: str
    gpu: str = ""
    commit: str = ""
    cells: int = 0


@dataclass(frozen=True)
class Reported:
    """A signature that is reported of a target's version, by its id, and who reports it."""

    signature: str
    seen: str


@dataclass(frozen=True, repr=False)
class Results:
    """The whole matrix; cells are in case, variant, target order, runs from the oldest on.

    `matrix_sha256` is the hash of all that matrix.yaml decides of targets. `troubles` are, by target, the
    signatures that are reported of its version. `files` lie beside the report, by their place.
    """

    targets: tuple[TargetView, ...]
    cases: tuple[CaseView, ...]
    cells: tuple[Known, ...]
    changes: tuple[Change, ...] = ()
    runs: tuple[RunView, ...] = ()
    matrix_sha256: str = ""
    submissions: tuple[SentIn, ...] = ()
    troubles: dict[str, tuple[Reported, ...]] = field(default_factory=dict)
    #: The tries of a check beyond its models as they are.
    further: tuple[Further, ...] = ()
    steps: Steps = field(default_factory=Steps)

    def __repr__(self) -> str:
        measured = sum(cell.measured for cell in self.cells)
        return f"<Results: {len(self.cells)} cells on {len(self.targets)} targets, {measured} measured>"

    @property
    def variants(self) -> tuple[VariantView, ...]:
        """Return the rows."""
        return tuple(variant for case in self.cases for variant in case.variants)

    def cell(self, case: str, variant: str, target: str) -> Known:
        """Return one cell; KeyError if the matrix has no such cell."""
        for cell in self.cells:
            if (cell.case, cell.variant, cell.target) == (case, variant, target):
                return cell
        raise KeyError(f"{case}.{variant}-{target}")

    def rows(self) -> list[tuple[VariantView, tuple[Known, ...]]]:
        """Return each variant with its cells, in the order of the targets."""
        width = len(self.targets)
        return [
            (variant, self.cells[at * width : (at + 1) * width]) for at, variant in enumerate(self.variants)
        ]

    def column(self, target: str, name: str = "") -> Column:
        """Return one target's column; `name` tells it apart if two reports have a target of this id."""
        return Column(
            name or target,
            {variant.id: variant for variant in self.variants},
            {f"{cell.case}.{cell.variant}": cell for cell in self.cells if cell.target == target},
        )

    def step(self, before: str, after: str) -> Step:
        """Return the step from one target to another, with the troubles that are reported of its version alone."""
        gone = self.removed(before, after)
        return step(self.column(before), self.column(after), self._troubles_after(before, after, gone), gone)

    def removed(self, before: str, after: str) -> tuple[Removed, ...]:
        """Return the names that TensorRT's Python interface loses from one target to another; () of other engines."""
        sides = {target.id: target for target in self.targets}
        old, new = sides[before], sides[after]
        known = all(ENGINES[Engine(each.engine)].interface_known for each in (old, new))
        return removed(old.version, new.version) if known else ()

    def _troubles_after(self, before: str, after: str, gone: Sequence[Removed]) -> list[StepTrouble]:
        known = {one.signature for one in self.troubles.get(before, ())}
        return [
            StepTrouble(one.signature, *_in_full(advice, gone), one.seen)
            for one in self.troubles.get(after, ())
            if one.signature not in known and (advice := general_advice(one.signature))
        ]

    def to_json(self) -> dict[str, Any]:
        """Return results.json by key, with dataclasses in it, of which `fields_of` makes plain data."""
        return {
            "schema": RESULTS_SCHEMA,
            "matrix_sha256": self.matrix_sha256,
            "targets": [_target(target, self.troubles.get(target.id, ())) for target in self.targets],
            "cases": [
                {**fields_of(case), "variants": [_variant(variant) for variant in case.variants]}
                for case in self.cases
            ],
            "changes": self.changes,
            "runs": self.runs,
            "submissions": self.submissions,
            "steps": {name: list(value) for name, value in fields_of(self.steps).items()},
            "cells": map(_cell, self.cells),
            **({"further": self.further} if self.further else {}),
        }

    @staticmethod
    def from_json(data: Any) -> Results:  # noqa: ANN401  (JSON)
        """Rebuild what `to_json` returned.

        Raises ValueError for another schema and for cells that are no grid, TypeError for a missing or wrong field.
        """
        check_schema(data, RESULTS_SCHEMA)
        fields = dict(data)
        for key, change in (("cells", _cell_fields), ("cases", _case_fields)):
            if isinstance(data.get(key), list):
                fields[key] = list(map(change, data[key]))
        if isinstance(data.get("targets"), list):
            known = [each for each in data["targets"] if isinstance(each, dict)]
            fields["troubles"] = {each.get("id"): each.get("troubles", ()) for each in known}
        results = decode(Results, fields)
        _check(results)
        rows = (with_yet(variant, cells, results.targets) for variant, cells in results.rows())
        return replace(results, cells=tuple(itertools.chain(*rows)))


def with_yet(
    variant: VariantView, cells: Sequence[Known], targets: Sequence[TargetView]
) -> tuple[Known, ...]:
    """Return the cells of a row with what their version does not have yet, by today's tables."""
    every = ((cell, not_yet(cell, variant, target)) for cell, target in zip(cells, targets, strict=True))
    return tuple(cell if yet == cell.not_yet else replace(cell, not_yet=yet) for cell, yet in every)


def _target(target: TargetView, troubles: tuple[Reported, ...]) -> dict[str, Any]:
    baseline = ENGINES[Engine(target.engine)].baseline
    return {
        **fields_of(target),
        "name": target.name,
        "product": target.product,
        "baseline": baseline,
        "troubles": troubles,
    }


def _variant(variant: VariantView) -> dict[str, Any]:
    fields = fields_of(variant)
    del fields["case"]
    return {**fields, "wanted": dict(variant.wanted), "claims": [_claim(claim) for claim in variant.claims]}


#: The fields of a claim that are left out if empty.
SELDOM = frozenset({"untold", "ms", "graph"})


def _claim(claim: Expectation) -> dict[str, Any]:
    """Return a claim with its words for readers."""
    basis = "measured" if claim.basis is Basis.MEASURED else "reported"
    fields = fields_of(claim)
    return {
        **{name: value for name, value in fields.items() if value or name not in SELDOM},
        "basis": basis,
        "says": says(claim),
        "stands": claim.stands,
        "seen": seen_by(claim),
        "title": source(claim),
        "where": f"{ENGINES[claim.engine].product} {claim.on_versions}",
    }


def _case_fields(data: Any) -> Any:  # noqa: ANN401  (JSON)
    if not (isinstance(data, dict) and isinstance(data.get("variants"), list)):
        return data
    return {**data, "variants": [_variant_fields(data.get("name"), each) for each in data["variants"]]}


def _variant_fields(case: Any, data: Any) -> Any:  # noqa: ANN401  (JSON)
    if not (isinstance(data, dict) and isinstance(data.get("wanted"), dict)):
        return data
    return {**data, "case": case, "wanted": list(data["wanted"].items())}


#: The fields that every cell has.
ALWAYS = frozenset(
    (
        *("id", "case", "variant", "target", "class", "verdict", "basis", "reason", "text", "signature"),
        *("precision", "accuracy", "latency_ms", "phases", "claims", "by_gpu", "stamps", "layers"),
    )
)
NAMES = {"cls": "class", "latency": "latency_ms"}
_USUAL = fields_of(Known("", "", "", "", Class.NOT_RUN, Verdict.NOT_RUN))


def _cell(cell: Known) -> dict[str, Any]:
    """Return a cell; fields beside those of `ALWAYS` are left out if they have their default."""
    found = {}
    for name, value in fields_of(cell).items():
        key = NAMES.get(name, name)
        if key in ALWAYS or value != _USUAL[name]:
            found[key] = value
    if cell.by_gpu:
        found["by_gpu"] = [
            {NAMES.get(name, name): value for name, value in fields_of(each).items()} for each in cell.by_gpu
        ]
    if cell.stands is cell.cls or cell.stands is None:
        found.pop("stands", None)
    return found


def _cell_fields(data: Any) -> Any:  # noqa: ANN401  (JSON)
    if not isinstance(data, dict):
        return data
    known = data.get("basis") is not None and data.get("class") not in UNJUDGED
    fields = {"stands": data.get("class") if known else None, **data}
    fields |= {name: data.get(key) for name, key in NAMES.items()}
    if isinstance(data.get("accuracy"), list):
        fields["accuracy"] = [_figures(each) for each in data["accuracy"]]
    if isinstance(data.get("by_gpu"), list):
        fields["by_gpu"] = [
            {**each, "cls": each.get("class")} if isinstance(each, dict) else each for each in data["by_gpu"]
        ]
    return fields


def _figures(data: Any) -> Any:  # noqa: ANN401  (JSON)
    """Return figures with a NaN for each null, which stands for one that is not finite; a count is none."""
    if not isinstance(data, dict):
        return data
    return {key: math.nan if value is None and key != "differing" else value for key, value in data.items()}


def _check(results: Results) -> None:
    """Raise ValueError unless cells and steps are each variant on each target, and name existing claims."""
    every = itertools.product(results.variants, results.targets)
    names = [(variant.case, variant.name, target.id) for variant, target in every]
    if names != [(cell.case, cell.variant, cell.target) for cell in results.cells]:
        raise ValueError("its cells are not each variant on each target, in their order")
    _check_steps(results)
    for variant, cells in results.rows():
        for cell in cells:
            if not {*cell.claims} <= {*range(len(variant.claims))}:
                raise ValueError(f"cell {cell.id!r:.120} names a claim that is not there")


def _check_steps(results: Results) -> None:
    steps = results.steps
    if [len(row.known) for row in steps.variants] != [len(results.targets)] * len(results.variants):
        raise ValueError("its steps are not each variant on each target")
    if not {kind[-1] for row in steps.variants for kind in row.kinds} <= {*range(len(steps.details))}:
        raise ValueError("a step names a detail that is not there")


def results_file(folder: Path) -> Path:
    """Return the place of a folder's results.json, in the form that it has."""
    plain, packed = folder / RESULTS, folder / (RESULTS + _PACKED)
    return packed if packed.is_file() and not plain.exists() else plain


def content(path: Path) -> bytes:
    """Return the bytes of a file, unpacked if its name ends in .xz."""
    return decompress(path) if path.suffix == _PACKED else read_bytes(path)


def _in_full(advice: Advice, gone: Sequence[Removed]) -> tuple[str, str]:
    """Return title and advice; of a signature of names that are gone, with those that go in the step."""
    by_remedy: dict[str, list[str]] = {}
    for each in gone:
        if each.signature == advice.id:
            by_remedy.setdefault(each.now, []).append(each.name)
    if not by_remedy:
        values = examples(advice.id)
        return filled(advice.title, values), filled(advice.advice, values)
    names = ", ".join(name for some in by_remedy.values() for name in some)
    return f"gone: {names}", "; ".join(f"{', '.join(some)}: {now}" for now, some in by_remedy.items() if now)


def load_results(path: Path | str) -> Results:
    """Return the results of a results.json, packed or not, or of the folder that holds one.

    Raises HandledError if it cannot be read.
    """
    path = Path(path)
    path = results_file(path) if path.is_dir() else path
    try:
        return Results.from_json(parse_json(content(path)))
    except OSError as error:
        raise HandledError(
            f"{path}: cannot be read ({error.strerror}); `trt-compat run` makes one"
        ) from error
    except OutdatedError as error:
        raise HandledError(f"{path}: is of {error}; run again") from error
    except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise HandledError(
            f"{path}: not a results.json that this harness can read ({error}); "
            "write it with `trt-compat report`"
        ) from error
