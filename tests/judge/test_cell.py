"""A record with all that is concluded from it: precision, class, diagnosis and verdict agree with one another."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.case import Case, Expectation, Graph, Link, Precision, Recipe, Variant
from harness.judge.cell import complaints, describe_recipe, failure_text, headline, judge_cell, pytest_command
from harness.judge.diagnosis import notes
from harness.judge.signatures import load_texts
from harness.matrix import load_matrix
from harness.plan import Cell
from harness.record.outcome import Accuracy, End, Layer, Message, Node, Outcome, ParserError, Stamps
from harness.words import Basis, Class, Engine, Verdict
from tests.near import SAME, near
from tests.run.test_key import RECIPE

pytestmark = pytest.mark.unit

MATRIX = load_matrix(Path(__file__).parents[2] / "matrix.yaml")
LINK = Link("https://github.com/NVIDIA/TensorRT/issues/1", "an issue")


def cell(target: str = "trt86", outcome: Class | None = None) -> Cell:
    """Return a cell that wants INT8 of its one node, with a claimed outcome if one is given."""
    claims = (Expectation.reported(outcome, "", LINK),) if outcome else ()
    variant = Variant("v", "V", Graph("g").model, precision=(("/conv", Precision.INT8),), expectations=claims)
    case = Case("toy", "A toy", "", (LINK,), (variant,))
    return Cell(f"toy.v-{target}", case, variant, MATRIX.target(target))


def record(cell: Cell, **changes: Any) -> Outcome:
    """Return a record of a cell whose node ran in FP32."""
    whole = Outcome(
        cell.id,
        "toy",
        "v",
        cell.target.name,
        "done",
        end=End("finished"),
        ran=True,
        nodes=(Node("/conv", "Conv"),),
        layers=(Layer("layer", "Convolution", "fp32", onnx_nodes=("/conv",)),),
    )
    return dataclasses.replace(whole, **changes)


def test_a_lost_precision_is_a_failure_on_tensorrt_and_none_on_the_baseline() -> None:
    """A node's precision is shown for both; ONNX Runtime is not held to it."""
    for target, cls, failed in (("trt86", Class.PRECISION_LOST, True), ("ort131", Class.OK, False)):
        here = cell(target)
        found = judge_cell(here, record(here))
        assert found.precision == {"/conv": Precision.FP32}
        assert (found.classification.cls, found.failed) == (cls, failed)


@pytest.mark.parametrize(
    ("claimed", "changes", "verdict", "failed"),
    [
        (None, {"failed_phase": "build"}, Verdict.NEW, True),
        (Class.BUILD_FAILED, {"failed_phase": "build"}, Verdict.KNOWN_FAILURE, True),
        (Class.OK, {"failed_phase": "build"}, Verdict.REGRESSED, True),
        (
            Class.BUILD_FAILED,
            {"layers": (Layer("l", "c", "int8", onnx_nodes=("/conv",)),)},
            Verdict.NOT_REPRODUCED,
            False,
        ),
        (Class.OK, {"layers": (Layer("l", "c", "int8", onnx_nodes=("/conv",)),)}, Verdict.EXPECTED, False),
        (Class.API_REMOVED, {"missing_api": "IBuilderConfig.int8_calibrator"}, Verdict.EXPECTED, False),
        # Whether a precision that was lost still is may be open; that is news, and no failure.
        (Class.PRECISION_LOST, {"layers": ()}, Verdict.NEW, False),
        (Class.OK, {"state": "not_run", "reason": "needs a GPU"}, Verdict.NOT_RUN, False),
        (Class.OK, {"state": "infra_error", "reason": "the agent went away"}, Verdict.INFRA, False),
    ],
)
def test_what_counts_as_failed(
    claimed: Class | None, changes: dict[str, Any], verdict: Verdict, failed: bool
) -> None:
    here = cell(outcome=claimed)
    found = judge_cell(here, record(here, **changes))
    assert (found.judgement.verdict, found.failed) == (verdict, failed)


@pytest.mark.parametrize(
    ("precision", "cls", "verdict"),
    [
        (None, Class.PRECISION_LOST, Verdict.NEW),
        ((), Class.OK, Verdict.EXPECTED),
        ((("/conv", Precision.INT8),), Class.PRECISION_LOST, Verdict.REGRESSED),
    ],
)
def test_a_wish_is_the_variants_or_else_the_graphs(
    precision: tuple[tuple[str, Precision], ...] | None, cls: Class, verdict: Verdict
) -> None:
    """A variant need not list nodes to get a lost INT8 reported; that alone makes no reported cell regress."""
    here = cell(outcome=Class.OK)
    here = dataclasses.replace(here, variant=dataclasses.replace(here.variant, precision=precision))
    found = judge_cell(here, record(here, nodes=(Node("/conv", "Conv", "int8"),)))
    assert (found.classification.cls, found.judgement.verdict) == (cls, verdict)
    assert found.wished == ({} if precision == () else {"/conv": Precision.INT8})
    old = judge_cell(here, record(here))
    assert old.classification.cls is (cls if precision else Class.OK)


@pytest.mark.parametrize(
    ("target", "flags", "held_to"),
    [
        ("trt86", ("INT8", "FP16"), "int8"),
        ("trt86", ("FP16", "PREFER_PRECISION_CONSTRAINTS"), "fp16"),
        ("trt86", (), "tf32"),
        # The baseline has no such flags to obey.
        ("ort131", ("INT8",), "tf32"),
    ],
)
def test_what_the_recipe_permits_sets_how_far_numbers_may_be_off(
    target: str, flags: tuple[str, ...], held_to: str
) -> None:
    """Without a layer that tells."""
    here = cell(target)
    variant = dataclasses.replace(here.variant, precision=(), recipe=Recipe(flags=flags))
    here = dataclasses.replace(here, variant=variant)
    found = judge_cell(here, record(here, layers=(), accuracy=(Accuracy("y", 9.0, 9.0, 1.0),)))
    assert found.classification.cls is Class.INACCURATE
    assert f"({held_to} may be off" in found.classification.reason


def test_a_record_that_cannot_be_judged_is_the_harness_s_fault_and_costs_no_other() -> None:
    here = cell(outcome=Class.OK)
    broken = record(here, nodes=(Node("/conv", "Conv", "int9"),))
    found = judge_cell(here, broken)
    reason = found.classification.reason
    assert "'int9'" in reason
    assert found.classification.cls is Class.INFRA_ERROR
    assert (found.judgement.verdict, found.judgement.sentence) == (Verdict.INFRA, reason)
    assert (found.outcome, found.failed, found.signature) == (broken, False, None)


def test_the_signature_is_the_diagnosis() -> None:
    here = cell()
    found = judge_cell(here, record(here, missing_api="IBuilderConfig.int8_calibrator"))
    assert found.signature == "implicit-int8-removed"
    assert found.diagnosis is not None
    for signature, verdict in (("weak-typing-removed", Verdict.NEW), (found.signature, Verdict.EXPECTED)):
        (claim,) = cell(outcome=Class.API_REMOVED).variant.expectations
        claims = (dataclasses.replace(claim, signature=signature),)
        claimed = dataclasses.replace(here, variant=dataclasses.replace(here.variant, expectations=claims))
        assert judge_cell(claimed, found.outcome).judgement.verdict is verdict
    unknown = judge_cell(
        here, record(here, failed_phase="build", messages=(Message("ERROR", "nobody knows"),))
    )
    assert (unknown.diagnosis, unknown.signature) == (None, None)


T4 = {"gpu": "Tesla T4", "compute_capability": "7.5", "driver": "535.1"}
RTX_2080 = {"gpu": "RTX 2080", "compute_capability": "7.5", "driver": "535.1"}
L4 = {"gpu": "NVIDIA L4", "compute_capability": "8.9", "driver": "535.1"}
NO_GPU: dict[str, str] = {}


def measured(outcome: Class, capability: str | None = None, product: str = "") -> Expectation:
    gpu: Any = {"compute_capability": capability, "product": product}
    return Expectation(outcome, "", None, Basis.MEASURED, f"measured on {product or 'no GPU'}", **gpu)


def held(
    on: dict[str, str], *claims: Expectation, works: bool = True, target: str = "trt86", **changes: Any
) -> tuple[str, str]:
    """Return the verdict on an outcome on a GPU that is held against claims, and its sentence."""
    plain = dataclasses.replace(cell(target), earlier=("trt85",))
    variant = dataclasses.replace(plain.variant, expectations=claims, precision=())
    here = dataclasses.replace(plain, variant=variant)
    failed: dict[str, Any] = {} if works else {"failed_phase": "build", "ran": False, "layers": ()}
    found = judge_cell(here, record(here, stamps=Stamps(environment=on), **failed, **changes))
    return str(found.judgement.verdict), found.judgement.sentence


def test_what_was_measured_on_one_architecture_is_held_against_no_other() -> None:
    """A T4 that worked makes no regression of an L4's failure."""
    on_t4 = measured(Class.OK, "7.5", "Tesla T4")
    assert held(T4, on_t4, works=False)[0] == "regressed"
    assert held(L4, on_t4, works=False)[0] == "new"
    assert held(NO_GPU, on_t4, works=False)[0] == "new"
    assert held(L4, measured(Class.OK), works=False)[0] == "regressed"


@pytest.mark.parametrize(("works", "verdict"), [(False, "regressed"), (True, "fixed")])
def test_another_product_of_the_architecture_contradicts_nothing(works: bool, verdict: str) -> None:
    """It is new, and says which product was measured and which this is."""
    claim = measured(Class.BUILD_FAILED if works else Class.OK, "7.5", "Tesla T4")
    assert held(T4, claim, works=works)[0] == verdict
    found, sentence = held(RTX_2080, claim, works=works)
    assert found == "new"
    assert all(name in sentence for name in ("RTX 2080", "Tesla T4"))
    agreeing = measured(Class.OK if works else Class.BUILD_FAILED, "7.5", "Tesla T4")
    assert held(RTX_2080, agreeing, works=works)[0] == ("expected" if works else "known_failure")


def test_the_nearest_measurement_is_held_against_an_outcome() -> None:
    """First the product's, then the architecture's, then the one without a GPU."""
    bare, t4 = measured(Class.INACCURATE), measured(Class.OK, "7.5", "Tesla T4")
    other = measured(Class.PRECISION_LOST, "7.5", "RTX 2080")
    for claims in ((bare, other, t4), (t4, other, bare)):
        assert "measured on Tesla T4" in held(T4, *claims)[1]
        assert "measured on no GPU" in held(L4, *claims)[1]
    assert "measured on RTX 2080" in held(T4, bare, other)[1]


def test_without_a_gpu_the_generation_counts_that_the_target_builds_for() -> None:
    """A measurement on a T4 is about it, though a contradiction to it is new; a build like this one is nearer."""
    engine: Any = {"engine": Engine.TENSORRT_RTX}
    t4 = dataclasses.replace(measured(Class.OK, "7.5", "Tesla T4"), **engine)
    bare = dataclasses.replace(measured(Class.BUILD_FAILED), **engine)
    verdict, sentence = held(NO_GPU, t4, works=False, target="rtx17-sm75")
    assert verdict == "new"
    assert sentence.startswith("on no GPU")
    assert held(NO_GPU, t4, works=False, target="rtx17")[1].startswith("nothing is claimed")
    for claims in ((t4, bare), (bare, t4)):
        assert held(NO_GPU, *claims, works=False, target="rtx17-sm75")[0] == "known_failure"


def test_that_a_build_needs_a_gpu_is_said_of_machines_without_one_alone() -> None:
    """The generation that a target builds for is no GPU of the machine."""
    asks = dataclasses.replace(measured(Class.NEEDS_GPU_TO_BUILD), engine=Engine.TENSORRT_RTX)
    assert held(NO_GPU, asks, target="rtx17-sm75")[0] == "fixed"
    assert held(T4, asks, target="rtx17")[1].startswith("nothing is claimed")


def test_what_failed_before_on_another_architecture_is_not_fixed_here() -> None:
    """On an earlier version, while only users report it for this one."""
    reported = Expectation.reported(Class.BUILD_FAILED, "", LINK)
    earlier = dataclasses.replace(
        measured(Class.BUILD_FAILED, "7.5", "Tesla T4"), versions="==8.5.1", targets=("trt85",)
    )
    assert held(T4, reported, earlier)[0] == "fixed"
    assert held(L4, reported, earlier)[0] == "not_reproduced"


def test_a_cell_that_was_not_run_shows_the_claims_about_every_gpu() -> None:
    here = cell()
    claims = (measured(Class.OK, "7.5", "Tesla T4"), measured(Class.BUILD_FAILED, "8.9", "NVIDIA L4"))
    here = dataclasses.replace(here, variant=dataclasses.replace(here.variant, expectations=claims))

    def shown(on: dict[str, str], **changes: Any) -> tuple[Expectation, ...]:
        return judge_cell(here, record(here, stamps=Stamps(environment=on), **changes)).claims

    assert shown(NO_GPU, state="not_run", reason="no GPU") == claims
    # The machine has one, and the cell was not tried on it.
    assert shown(T4, state="not_run", reason="no image") == claims
    assert shown(T4, state="infra_error", reason="lost") == claims[:1]
    assert (shown(T4), shown(L4), shown(NO_GPU)) == (claims[:1], claims[1:], ())


SAID = near(*(each.text.encode() for each in load_texts()))


@SAME
@given(st.lists(SAID, min_size=1, max_size=4), near(b""))
def test_whatever_an_engine_says_is_judged(said: list[bytes], native: bytes) -> None:
    texts = [each.decode("utf-8", "replace") for each in said]
    found = record(
        cell(),
        failed_phase="build",
        messages=tuple(Message("ERROR", text) for text in texts),
        parser_errors=(ParserError(texts[0]),),
        native_output=native.decode("utf-8", "replace"),
    )
    judged = judge_cell(cell(), found)
    assert judged.classification.cls is not Class.INFRA_ERROR, judged.classification.reason
    notes(found)


def test_a_failure_is_told_from_verdict_to_next_command() -> None:
    here = cell(outcome=Class.OK)
    messages = (Message("INFO", "all is well"), Message("ERROR", "it is\nnot"))
    refused = (ParserError("no such operator", node="/conv"), ParserError("", operator="Mish"))
    changes: Any = {"failed_phase": "build", "messages": messages, "parser_errors": refused}
    text = failure_text(
        judge_cell(here, record(here, missing_api="IBuilderConfig.int8_calibrator", **changes))
    )
    lines = [line.strip() for line in text.splitlines()]
    heads = [line.split()[0] for line in lines]
    assert heads[:5] == ["api_removed", "cell", "claim", "why", "known"]
    assert {"place", "cause", "advice", "see", "messages", "recipe", "again", "more"} <= {*heads}
    assert {"[ERROR] it is not", "[parser] /conv: no such operator", "[parser] Mish:"} <= {*lines}
    assert "all is well" not in text


def test_the_first_line_is_the_known_cause_and_its_place() -> None:
    """An unknown failure has only the engine's words."""
    here = cell()
    known, unknown = (
        ParserError("false", "UNSUPPORTED_NODE", "/s", "BitShift"),
        ParserError("what", "X", "/odd", "Odd"),
    )
    for error, place in ((known, "BitShift node '/s'"), (unknown, "Odd node '/odd'")):
        judged = judge_cell(here, record(here, failed_phase="parse", parser_errors=(error,)))
        assert place in headline(judged)
        assert (judged.diagnosis is None) is (error is unknown)


def test_where_the_engine_says_nothing_its_library_is_quoted() -> None:
    """The last lines of native output, such as an assertion's, stand in for messages."""
    here = cell()
    output = "\n".join(f"line {number}" for number in range(20))
    judged = judge_cell(here, record(here, end=End("signalled", signal="SIGABRT"), native_output=output))
    said = complaints(judged)
    assert said[said.index("messages") + 1 :] == [f"  line {number}" for number in range(12, 20)]


def test_of_what_works_nothing_is_quoted() -> None:
    """A warning-like ERROR of an engine that then did everything right is no evidence."""
    here = cell("ort131")
    judged = judge_cell(here, record(here, messages=(Message("ERROR", "no GPU here"),)))
    assert judged.classification.cls is Class.OK
    assert complaints(judged) == []


def test_a_flood_is_cut_off() -> None:
    here = cell()
    messages = tuple(Message("ERROR", f"{number} " + "x" * 1000) for number in range(50))
    text = failure_text(judge_cell(here, record(here, failed_phase="build", messages=messages)))
    said = [line for line in text.splitlines() if line.startswith("    ")]
    assert len(said) == 8
    assert max(map(len, said)) == len("    ") + 300


@pytest.mark.parametrize("field", [each.name for each in dataclasses.fields(Recipe)])
def test_the_line_tells_each_field_of_a_recipe(field: str) -> None:
    """Who adds one says in `describe_recipe` how it is told."""
    assert describe_recipe(Recipe(**{field: RECIPE[field]})) != describe_recipe(Recipe())


def test_the_lines_to_paste_name_only_what_is_not_usual() -> None:
    assert pytest_command("a.b-c") == ["pytest", "matrix.yaml::a.b-c"]
    elsewhere = ["pytest", "ci/m.yaml::a.b-c", "--cases=mine"]
    assert pytest_command("a.b-c", "ci/m.yaml", "mine") == elsewhere
    here = cell()
    told = failure_text(judge_cell(here, record(here, failed_phase="build")), cases="my cases").splitlines()
    assert [line.split(None, 1)[1] for line in told[-2:]] == [
        f"pytest matrix.yaml::{here.id} '--cases=my cases'",
        f"trt-compat show {here.id} '--cases=my cases'",
    ]
