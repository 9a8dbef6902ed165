"""Every way round that is offered, put to what was measured: none may fail where it is offered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from harness.case import load_cases
from harness.case.measured import read
from harness.judge.signatures import load_signatures
from harness.known.model import Known, VariantView
from harness.report.model import Results, load_results
from harness.report.results import with_ways
from harness.words import GOOD, UNJUDGED, Class

pytestmark = pytest.mark.unit

TOP = Path(__file__).parents[2]


@cache
def published() -> Results:
    """Return the published results with the counterparts, the signatures and the ways round of today."""
    results = load_results(TOP / "reports" / "published" / "results.json.xz")
    reads = {
        (case.name, variant.name): variant.counterpart
        for case in load_cases(TOP / "cases")
        for variant in case
    }
    cases = tuple(
        replace(
            case,
            variants=tuple(
                replace(variant, counterpart=reads[case.name, variant.name]) for variant in case.variants
            ),
        )
        for case in results.cases
    )
    causes = {
        (f"{case}.{variant}-{each.target}", each.product): signature
        for each in read(TOP / "cases" / "measured.yaml").measured
        for (case, variant), (_, signature, *_) in each.cells.items()
    }
    cells = (
        replace(cell, signature=now, diagnosis=None)
        if (now := _cause(cell, causes)) != cell.signature
        else cell
        for cell in results.cells
    )
    return with_ways(replace(results, cases=cases, cells=tuple(cells)))


def _cause(cell: Known, causes: dict[tuple[str, str], str | None]) -> str | None:
    return causes.get((cell.id, cell.gpu[1] if cell.gpu else ""), cell.signature)


@cache
def ends() -> dict[tuple[str, str], tuple[Class, ...]]:
    """Return what each variant was measured to end as on a target, on any GPU."""
    found: dict[tuple[str, str], tuple[Class, ...]] = {}
    for each in read(TOP / "cases" / "measured.yaml").measured:
        for (case, variant), (cls, *_) in each.cells.items():
            key = f"{case}.{variant}", each.target
            found[key] = (*found.get(key, ()), cls)
    return found


def failing() -> Iterator[tuple[VariantView, Known]]:
    for variant, row in published().rows():
        for cell in row:
            if cell.stands is not None and cell.stands not in GOOD | UNJUDGED:
                yield variant, cell


def test_a_way_round_that_is_offered_was_measured_to_work_there() -> None:
    """On the columns that were measured nothing else is offered, be it `instead` or a proof of the advice."""
    offered = 0
    for _, cell in failing():
        proofs = cell.diagnosis.proofs if cell.diagnosis else ()
        if cell.instead_tried:
            assert not proofs, cell.id
            continue
        assert set(proofs) <= set(cell.instead), cell.id
        for name in cell.instead:
            offered += 1
            classes = ends().get((name, cell.target), ())
            assert classes, (cell.id, name)
            assert set(classes) <= GOOD, (cell.id, name, classes)
    assert offered > 200


def test_a_way_round_tried_elsewhere_failed_on_no_version_of_the_engine() -> None:
    engines = {target.id: target.engine for target in published().targets}
    offered = 0
    for _, cell in failing():
        if not cell.instead_tried.startswith("tried on "):
            continue
        for name in cell.instead:
            assert (name, cell.target) not in ends(), (cell.id, name)
            classes = {
                cls
                for (variant, target), every in ends().items()
                if variant == name and engines.get(target) == engines[cell.target]
                for cls in every
            } - {Class.API_REMOVED, Class.NEEDS_GPU_TO_BUILD}
            offered += 1
            assert classes, (cell.id, name)
            assert classes <= GOOD, (cell.id, name, classes)
    assert offered


def test_no_entry_names_a_proof_that_fails_where_its_text_is_seen() -> None:
    """An entry's page shows its proofs for all versions: one that fails beside the failure proves nothing."""
    seen = {
        (signature, each.target)
        for each in read(TOP / "cases" / "measured.yaml").measured
        for _, signature, *_ in each.cells.values()
    }
    wrong = [
        (signature.id, target, name)
        for signature in load_signatures()
        for target in ("trt86", "trt106")
        if (signature.id, target) in seen
        for name in signature.advice_variants
        if not set(ends().get((name, target), ())) <= GOOD | {Class.API_REMOVED}
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("cell", "way"),
    [
        ("q_plugin_dq.q-plugin-dq-int8-trt106", "q_plugin_dq.q-plugin-dq-int8-strong"),
        ("q_plugin_dq.q-plugin-dq-int8-fp32-trt106", "q_plugin_dq.q-plugin-dq-int8-strong"),
        ("depthwise_qdq.qdq-c3-trt86", "depthwise_qdq.qdq-c4"),
        ("attention.op-fp16-trt106", "attention.fp16"),
        ("attention.op-fp32-trt86", "attention.fp32"),
        ("exporters.swish-op-trt106", "exporters.swish-written-out"),
        ("norms.groupnorm-op-trt106", "norms.groupnorm-written-out"),
    ],
)
def test_what_was_measured_to_help_is_told(cell: str, way: str) -> None:
    found = {each.id: each for each in published().cells}[cell]
    assert way in found.instead
