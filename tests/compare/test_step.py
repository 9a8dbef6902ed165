"""The changes of every variant in a step from one target to another, from outcomes on, with their basis."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.case import Expectation
from harness.compare.kinds import Kind
from harness.compare.step import Column, Step, StepRow, StepTrouble, step
from harness.known.model import GraphView, Layers, NodeView
from harness.record.outcome import Latency, Outcome
from harness.report.model import Results
from harness.words import Basis, Class, Engine, Precision
from tests.compare.handmade import FP16, INT8, known, variant
from tests.report import factory
from tests.report.factory import L4, T4

pytestmark = pytest.mark.unit

LOST = (factory.conv_layer("fp32"),)


def judged(*outcomes: Outcome, pair: tuple[str, str] = ("rtx16", "rtx17")) -> Step:
    made = {outcome.cell: outcome for outcome in outcomes}
    return between(factory.assemble(factory.matrix(), (factory.case(),), made), *pair)


def between(results: Results, before: str, after: str) -> Step:
    return step(results.column(before), results.column(after))


def rows(found: Step) -> list[tuple[str, str]]:
    return [(str(row.kind), row.variant) for row in found.rows]


def only(found: Step, variant: str = "qdq-between") -> StepRow:
    (row,) = (row for row in found.rows if row.variant == f"conv_silu.{variant}")
    return row


#: A variant without claims.
FREE = "qdq-between"


def on(gpu: str, outcome: Class, versions: str) -> Expectation:
    fields: Any = {"engine": Engine.TENSORRT, "compute_capability": "9.0", "product": gpu}
    return Expectation(outcome, versions, None, Basis.MEASURED, f"On an {gpu}.", **fields)


def test_measurements_made_before_are_compared_on_the_gpu_that_both_sides_had() -> None:
    """The worse one, of another GPU, is no failure that the new side mends."""
    claims = (
        on("H100", Class.OK, "==8.6.*"),
        on("H200", Class.INACCURATE, "==8.6.*"),
        on("H100", Class.OK, "==10.2.*"),
    )
    made = factory.case()
    variants = [replace(each, expectations=claims if each.name == FREE else ()) for each in made.variants]
    results = factory.assemble(factory.matrix(), (replace(made, variants=tuple(variants)),), {})
    cell = results.cell("conv_silu", FREE, "trt86")
    assert (cell.cls, cell.gpu) == (Class.INACCURATE, ("9.0", "H200"))
    found = between(results, "trt86", "trt102")
    assert (found.on, found.known) == ("Hopper (SM 9.0)", 1)
    assert not [row for row in found.rows if row.variant == f"conv_silu.{FREE}"]


def test_fixed_names_the_cause_that_is_gone() -> None:
    """The cause is that of the failure, which was before."""
    row = only(judged(factory.build_failure("qdq", "rtx16"), factory.outcome("qdq", "rtx17")), "qdq")
    assert row.cause.startswith("No implementation for ")
    assert row.instead == ()


def test_lost_precision_names_node_and_both_precisions() -> None:
    """The reader must not have to search for which layer it is."""
    row = only(judged(factory.outcome(FREE, "rtx16"), factory.outcome(FREE, "rtx17", layers=LOST)))
    assert row.text.endswith(f": {factory.CONV} in fp32 instead of int8")


def timed(on: str, level: float, **fields: Any) -> Outcome:
    return sampled(on, *(level * (1 + 0.001 * (index % 5)) for index in range(50)), **fields)


def sampled(on: str, *samples: float, clock: Any = "monotonic", **environment: str) -> Outcome:
    made = factory.ran("fp32", on, latency=Latency(samples, 5, clock))
    return replace(made, stamps=replace(made.stamps, environment={"cpu": "x", **environment}))


def test_slower_and_faster_on_one_stack() -> None:
    """The bounds of the change, by the intervals of both medians."""
    spread = [1 + 0.0107 * (index * 13 % 29 - 14) for index in range(100)]
    old, new = sampled("rtx16", *spread), sampled("rtx17", *(1.5 * value for value in spread))
    found = judged(old, new)
    assert rows(found) == [("slower", "conv_silu.fp32")]
    assert "38 to 63 %" in only(found, "fp32").text
    back = judged(sampled("rtx16", *(1.5 * value for value in spread)), sampled("rtx17", *spread))
    assert "27 to 39 %" in only(back, "fp32").text
    assert rows(back) == [("faster", "conv_silu.fp32")]


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_samples_that_are_no_time_are_not_compared(value: float) -> None:
    """A clock that is too coarse never divides by zero."""
    assert rows(judged(sampled("rtx16", *(value,) * 50), timed("rtx17", 1.0))) == []


def unasked(on: str, convolution: str) -> Outcome:
    """Return an outcome of a variant without a wanted precision: convolution and activation in a layer each."""
    act = replace(factory.activation_layer(), precision="fp32")
    return factory.outcome("int8-entropy", on, layers=(factory.conv_layer(convolution, fused=False), act))


@pytest.mark.parametrize(
    ("before", "after", "kind", "moved"),
    [
        ("int8", "fp32", Kind.WIDER, "int8 → fp32"),
        ("fp8", "fp16", Kind.WIDER, "fp8 → fp16"),
        ("int4", "int4_weights", Kind.WIDER, "int4 → int4 weights"),
        ("fp32", "int8", Kind.NARROWER, "fp32 → int8"),
    ],
)
def test_a_node_that_nobody_wished_for_is_told_and_fails_nothing(
    before: str, after: str, kind: Kind, moved: str
) -> None:
    """A lost INT8 is lost whether or not the node was listed; a variant without a wish gets no more than a row."""
    found = judged(unasked("rtx16", before), unasked("rtx17", after))
    row = only(found, "int8-entropy")
    assert (row.kind, row.measured, found.worse) == (kind, True, frozenset())
    assert row.text.endswith(f": {factory.CONV} {moved}")


def test_a_node_fused_with_a_wanted_one_follows_it_and_another_is_told_beside() -> None:
    """Else every lost convolution would name its activation too."""
    split = (factory.conv_layer("int8", fused=False), replace(factory.activation_layer(), precision="int8"))
    lost = (factory.conv_layer("fp32", fused=False), factory.activation_layer())
    fused = only(judged(factory.outcome(FREE, "rtx16"), factory.outcome(FREE, "rtx17", layers=lost)))
    apart = only(
        judged(factory.outcome(FREE, "rtx16", layers=split), factory.outcome(FREE, "rtx17", layers=lost))
    )
    assert (fused.kind, apart.kind) == (Kind.PRECISION_LOST, Kind.PRECISION_LOST)
    assert apart.text.startswith(fused.text)
    beside = apart.text.removeprefix(fused.text)
    assert [name in beside for name in ("/act/Mul", "/act/Sigmoid", "/conv/Conv")] == [True, True, False]


def test_only_what_was_measured_fails_a_judged() -> None:
    """A claim that something breaks is told, and is no failure."""
    assert judged(factory.outcome(FREE, "rtx16"), factory.build_failure(FREE, "rtx17")).worse
    assert judged(factory.outcome(FREE, "rtx16"), factory.outcome(FREE, "rtx17", layers=LOST)).worse
    assert not judged(factory.build_failure(FREE, "rtx16"), factory.outcome(FREE, "rtx17", layers=LOST)).worse
    assert not judged(factory.build_failure(FREE, "rtx16"), factory.outcome(FREE, "rtx17")).worse
    assert judged(timed("rtx16", 1.0), timed("rtx17", 2.0)).worse == {"latency"}
    nothing = between(factory.assemble(factory.matrix(), (factory.case(),), {}), "trt86", "trt102")
    assert nothing.rows
    assert not any(row.measured for row in nothing.rows)
    assert not nothing.worse


def test_a_broken_row_names_cause_and_a_workaround_that_works_after() -> None:
    """On the target that one goes to: measured ones, else untried ones."""
    broken = factory.outcome("qdq", "rtx16"), factory.build_failure("qdq", "rtx17")
    row = only(judged(*broken, factory.outcome(FREE, "rtx17")), "qdq")
    assert row.cause.startswith("No implementation for ")
    assert row.instead == ("conv_silu.qdq-between",)
    assert only(judged(*broken, factory.build_failure(FREE, "rtx17")), "qdq").instead == ()
    assert only(judged(*broken, factory.outcome(FREE, "rtx16")), "qdq").instead == ("conv_silu.qdq-between",)


@pytest.mark.parametrize(
    ("outcomes", "pair", "headline"),
    [
        ((), ("trt86", "trt102"), "Not measured: trt86 and trt102."),
        (
            (factory.outcome(FREE, "rtx16"), factory.build_failure(FREE, "rtx17")),
            ("rtx16", "rtx17"),
            "1 breaks, of 2 known",
        ),
        (
            (factory.outcome(FREE, "rtx16"), factory.outcome(FREE, "rtx17")),
            ("rtx16", "rtx17"),
            "Nothing breaks or loses precision, of ",
        ),
    ],
)
def test_the_headline_answers_first(
    outcomes: tuple[Outcome, ...], pair: tuple[str, str], headline: str
) -> None:
    """At most twenty words; nobody's run is never an all-clear."""
    found = judged(*outcomes, pair=pair)
    assert found.headline.startswith(headline)
    assert len(found.headline.split()) <= 20


def test_the_headline_counts_phenomena_and_says_of_how_many_models() -> None:
    """Two variants that break for one cause are one thing to look into."""
    both = ("qdq", FREE)
    old, new = (
        (factory.outcome(each, "rtx16") for each in both),
        (factory.build_failure(each, "rtx17") for each in both),
    )
    found = judged(*old, *new)
    assert found.headline.startswith("1 breaks (2 models), of ")
    assert (found.counts[Kind.BROKEN], [len(rows) for rows in found.phenomena(Kind.BROKEN)]) == (2, [2])


def test_what_people_use_comes_before_a_plugin_of_our_own() -> None:
    """And neither comes before what is worse."""
    cells = {name: known(Class.OK) for name in ("c.a", "c.b", "c.d")}
    rows = {f"c.{name}": variant(name) for name in ("a", "b", "d")}
    rows["c.a"] = replace(rows["c.a"], tags=("plugin",))
    failed = {name: known(Class.CRASHED) for name in cells}
    found = step(Column("A", rows, cells), Column("B", rows, {**failed, "c.d": known(Class.PRECISION_LOST)}))
    assert [each.variant for each in found.rows] == ["c.b", "c.a", "c.d"]


def test_a_measurement_of_another_gpu_of_the_generation_makes_it_vary() -> None:
    """One that was accepted into cases/measured.yaml: it lost its precision there on the version before, too."""
    old, new = on("H100", Class.OK, "==8.6.*"), on("H100", Class.PRECISION_LOST, "==10.2.*")
    for further, kinds in (
        ((), ["precision_lost"]),
        ((on("H200", Class.PRECISION_LOST, "==8.6.*"),), ["varies"]),
    ):
        claims = (old, new, *further)
        row = replace(variant(), claims=claims)
        sides = [
            known(
                each.outcome,
                gpu=("9.0", "H100"),
                claims=tuple(index for index, claim in enumerate(claims) if claim.versions == each.versions),
            )
            for each in (old, new)
        ]
        before, after = (
            Column(name, {row.id: row}, {row.id: cell}) for name, cell in zip("AB", sides, strict=True)
        )
        found = step(before, after)
        assert [str(each.kind) for each in found.rows] == kinds
        assert bool(found.worse) is (kinds == ["precision_lost"])


def test_what_a_variant_shows_is_not_named_again_among_reported_troubles() -> None:
    fails = factory.build_failure("qdq", "rtx17")
    results = factory.assemble(factory.matrix(), (factory.case(),), {fails.cell: fails})
    shown, other = (
        StepTrouble(name, "title", "advice", "seen") for name in ("no-implementation-qdq", "check-links")
    )
    found = step(results.column("rtx16"), results.column("rtx17"), [shown, other])
    assert found.troubles == (other,)


def test_a_failure_with_nothing_known_before_is_named_and_no_all_clear() -> None:
    same = factory.outcome("qdq", "rtx16"), factory.outcome("qdq", "rtx17")
    found = judged(*same, factory.build_failure(FREE, "rtx17"))
    assert [one.variant for one in found.alone] == ["conv_silu.qdq-between"]
    assert found.headline.endswith("; 1 fails, not known before.")


FAILS = factory.build_failure("qdq", "trt102")
WORKS = factory.ran("qdq", "trt102", layers=(factory.conv_layer(time_ms=0.02),))


def report(*outcomes: tuple[Outcome, dict[str, str]]) -> Results:
    found = tuple(factory.on_gpu(outcome, gpu) for outcome, gpu in outcomes)
    return factory.assemble(factory.matrix(), (factory.case(),), {found[0].cell: found})


def nights(before: Results, after: Results) -> Step:
    return step(before.column("trt102", "A"), after.column("trt102", "B"))


def test_each_gpu_is_compared_with_itself() -> None:
    """A cell that only one night had a GPU for is no change; of several that on which most is lost makes the row."""
    both, l4 = report((FAILS, T4), (WORKS, L4)), report((WORKS, L4))
    for found in (nights(both, l4), nights(l4, both)):
        assert found.rows == ()
    lost = nights(both, report((WORKS, T4), (FAILS, L4)))
    assert [(str(row.kind), row.measured, set(lost.worse)) for row in lost.rows] == [
        ("broken", True, {"class"})
    ]
    assert lost.rows[0].text.startswith("on NVIDIA L4: works")


def test_a_step_between_two_gpus_breaks_nothing() -> None:
    found = nights(report((WORKS, T4)), report((FAILS, L4)))
    assert [(str(row.kind), row.measured) for row in found.rows] == [("broken", False)]
    assert "different GPUs" in found.rows[0].sure
    assert not found.worse
    assert found.on == ""
    assert nights(report((WORKS, T4)), report((FAILS, T4))).on == "Turing (SM 7.5)"


def test_another_driver_is_the_same_gpu_and_a_build_without_one_is_the_same_question() -> None:
    assert nights(report((WORKS, T4)), report((FAILS, {**T4, "driver": "580.1"}))).worse
    bare = factory.assemble(factory.matrix(), (factory.case(),), {FAILS.cell: FAILS})
    assert nights(report((WORKS, T4)), bare).worse


def test_another_model_is_told_and_its_time_not_compared() -> None:
    old, new = (
        factory.assemble(factory.matrix(), (factory.case(),), {one.cell: one})
        for one in (timed("rtx16", 1.0), timed("rtx16", 2.0))
    )
    variants = tuple(replace(variant, model_sha256="other") for variant in old.cases[0].variants)
    older = replace(old, cases=(replace(old.cases[0], variants=variants),))
    assert [str(row.kind) for row in step(old.column("rtx16"), new.column("rtx16")).rows] == ["slower"]
    assert step(older.column("rtx16"), new.column("rtx16")).rows == ()


#: Nodes by name: the precision wanted, None for none, and the one that each ran in.
Ran = dict[str, tuple[Precision | None, str]]
OK, COARSE = Class.BUILT, Class.PRECISION_LOST
KEPT, GONE, FLOAT = (INT8, "int8"), (INT8, "fp16"), (None, "fp16")


def column(name: str, ran: Ran, cls: Class, *, demanded: bool = True, listed: bool = True) -> Column:
    wanted = {node: want for node, (want, _) in ran.items() if want}
    nodes = tuple(NodeView(node, "Conv", (), ()) for node in ran) if listed else ()
    row = replace(variant(**wanted), model_sha256=name, graph=GraphView(nodes))
    cell = known(cls, demanded=demanded)
    told = {node: Precision(got) for node, (want, got) in ran.items() if want and got}
    cell = replace(cell, precision=told, layers=Layers("", 1))
    return Column(name, {"c.v": row}, {"c.v": cell})


def altered(old: Ran, new: Ran, cls: tuple[Class, Class] = (OK, OK), **sides: bool) -> Step:
    return step(column("before", old, cls[0], **sides), column("after", new, cls[1], **sides))


@pytest.mark.parametrize(
    ("old", "new", "cls", "kind", "said"),
    [
        ({"a": KEPT}, {"a": KEPT}, (OK, OK), None, ""),
        ({"a": KEPT}, {"a": FLOAT}, (OK, OK), Kind.PRECISION_LOST, "no longer asks for int8 of a (Conv)"),
        (
            {"a": KEPT, "b": KEPT, "c": GONE},
            {"a": KEPT, "b": KEPT, "c": GONE, "d": GONE},
            (COARSE, COARSE),
            Kind.PRECISION_LOST,
            "loses more than before: int8 of d (Conv)",
        ),
        (
            {"a": KEPT, "b": GONE},
            {"a": KEPT},
            (COARSE, OK),
            Kind.PRECISION_LOST,
            "no longer asks for int8 of b",
        ),
        ({"a": KEPT}, {"x": KEPT}, (OK, OK), None, ""),
        ({"a": KEPT, "b": KEPT}, {"x": KEPT}, (OK, OK), Kind.PRECISION_LOST, "no longer asks for int8 of b"),
        ({"a": FLOAT}, {"a": KEPT}, (OK, OK), Kind.PRECISION_GAINED, ""),
        ({"a": KEPT}, {"a": KEPT, "b": KEPT}, (OK, OK), Kind.PRECISION_GAINED, ""),
        ({"a": KEPT}, {"a": (FP16, "fp16")}, (OK, OK), Kind.PRECISION_LOST, "no longer asks for int8 of a"),
        # It builds now, for it no longer asks for that which did not build.
        ({"a": (INT8, "")}, {"a": FLOAT}, (Class.BUILD_FAILED, OK), Kind.PRECISION_LOST, "no longer asks"),
        ({"a": KEPT}, {"a": FLOAT}, (OK, Class.BUILD_FAILED), Kind.BROKEN, ""),
    ],
)
def test_what_a_changed_model_no_longer_asks_for_or_keeps_is_lost(
    old: Ran, new: Ran, cls: tuple[Class, Class], kind: Kind | None, said: str
) -> None:
    found = altered(old, new, cls)
    assert [row.kind for row in found.rows] == ([kind] if kind else [])
    assert all(said in row.text and "model or recipe changed" in row.sure for row in found.rows)
    parts = {Kind.PRECISION_LOST: {"precision"}, Kind.BROKEN: {"class"}}
    assert found.worse == (parts.get(kind, set()) if kind else set())


def test_the_baseline_need_not_keep_a_precision() -> None:
    assert not altered({"a": KEPT}, {"a": FLOAT}, demanded=False).rows


def test_a_graph_too_large_to_be_listed_is_compared_by_its_wanted_nodes() -> None:
    (row,) = altered({"a": KEPT, "b": KEPT}, {"b": KEPT}, listed=False).rows
    assert row.kind is Kind.PRECISION_LOST
