"""A cell is held to what it kept, asked for and took when it was accepted, and not to its class alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.case import Case, Graph, Link, Precision, Variant
from harness.case.floor import Asked
from harness.case.measured import Baseline, Measured, Result, with_measured
from harness.judge.cell import Judged, is_news, judge_cell
from harness.judge.verdict import accepted_ms, asked_of
from harness.matrix import load_matrix
from harness.plan import Cell
from harness.record.outcome import Accuracy, Combination, End, Latency, Layer, Node, Outcome, Stamps, Tactics
from harness.words import Class, Engine, Verdict

pytestmark = pytest.mark.unit

MATRIX = load_matrix(Path(__file__).parents[2] / "matrix.yaml")
H100 = {"gpu": "NVIDIA H100", "compute_capability": "9.0", "driver": "580"}
H200 = {**H100, "gpu": "NVIDIA H200"}
#: Nodes by name: the precision that the graph asks for, "" for none, and the one that each ran in.
Ran = dict[str, tuple[str, str]]
TWO: Ran = {"/a": ("int8", "int8"), "/b": ("int8", "int8")}
TWO_OF_THREE: Ran = {**TWO, "/c": ("int8", "fp16")}


def seen(ran: Ran, variant: Variant, ms: float = 1.0, **more: Any) -> tuple[Cell, Outcome]:
    """Return a record of nodes on an H100: each a convolution in a layer of its own."""
    case = Case("toy", "A toy", "", (Link("https://example.org"),), (variant,))
    target = MATRIX.target("trt106")
    outcome = Outcome(
        "toy.v-trt106",
        "toy",
        "v",
        "trt106",
        "done",
        end=End("finished"),
        ran=True,
        nodes=tuple(Node(name, "Conv", asks) for name, (asks, _) in ran.items()),
        layers=tuple(
            Layer(name, "Convolution", got, onnx_nodes=(name,)) for name, (_, got) in ran.items() if got
        ),
        stamps=Stamps(environment=H100, engine_version=target.version),
        latency=Latency(tuple(ms * (1 + at % 5 / 1000) for at in range(100)), 10, "cuda_events"),
    )
    return Cell("toy.v-trt106", case, variant, target), replace(outcome, **more)


BARE = Variant("v", "V", Graph("g").model)


def accepted(ran: Ran) -> Variant:
    """Return the variant after `accept` of such a record."""
    judged = judge_cell(*seen(ran, BARE))
    lost = tuple(each.node for each in judged.classification.lost)
    cls = judged.classification.cls
    result = Result(cls, None, lost, judged.classification.unverified, accepted_ms(cls, judged.outcome))
    measured = Measured(
        target="trt106",
        engine=Engine.TENSORRT,
        version=MATRIX.target("trt106").version,
        measured="2026-01-01",
        cells={("toy", "v"): result},
        compute_capability="9.0",
        product="NVIDIA H100",
    )
    asked = {("toy", "v"): asked_of(judged.outcome, judged.wished)}
    case = Case("toy", "A toy", "", (Link("https://example.org"),), (BARE,))
    (made,) = with_measured([case], Baseline((measured,), asked))
    return made.variants[0]


def again(before: Ran, now: Ran, **more: Any) -> Judged:
    return judge_cell(*seen(now, accepted(before), **more))


FP32 = ("", "fp32")
THREE: Ran = {**TWO, "/c": ("int8", "int8")}
RENAMED: Ran = {"conv_0": ("int8", "int8"), "conv_1": ("int8", "int8")}


@pytest.mark.parametrize(
    ("before", "now", "verdict", "said"),
    [
        pytest.param(TWO, TWO, Verdict.EXPECTED, "works, as measured", id="the same"),
        pytest.param(
            TWO,
            {"/a": FP32, "/b": FP32},
            Verdict.REGRESSED,
            "no longer asks for int8 of /a (Conv), /b (Conv); works",
            id="Q/DQ dropped",
        ),
        pytest.param(
            TWO,
            {"/a": ("int8", "int8")},
            Verdict.REGRESSED,
            "no longer asks for int8 of /b (Conv)",
            id="one node fewer",
        ),
        pytest.param(TWO_OF_THREE, TWO_OF_THREE, Verdict.KNOWN_FAILURE, "", id="accepted 2 of 3"),
        pytest.param(
            TWO_OF_THREE,
            {**TWO_OF_THREE, "/d": ("int8", "fp16")},
            Verdict.REGRESSED,
            "loses more than before: int8 of /d (Conv); loses precision",
            id="one more lost: 2 of 4",
        ),
        pytest.param(
            TWO_OF_THREE,
            {"/a": ("int8", "int8"), "/b": ("int8", "fp16"), "/c": ("int8", "int8")},
            Verdict.REGRESSED,
            "loses more than before: int8 of /b (Conv)",
            id="as many lost, but another",
        ),
        pytest.param(
            TWO, {"/a": ("fp16", "fp16"), "/b": ("int8", "int8")}, Verdict.REGRESSED, "", id="INT8 to FP16"
        ),
        pytest.param(TWO, RENAMED, Verdict.EXPECTED, "works, as measured", id="names changed"),
        pytest.param(
            TWO_OF_THREE,
            {**RENAMED, "conv_2": ("int8", "fp16")},
            Verdict.KNOWN_FAILURE,
            "",
            id="names changed, one lost as before",
        ),
        pytest.param(
            TWO_OF_THREE,
            {**RENAMED, "conv_1": ("int8", "fp16"), "conv_2": ("int8", "fp16")},
            Verdict.REGRESSED,
            "loses more than before: int8 of conv_2 (Conv)",
            id="names changed, one more lost",
        ),
        pytest.param(
            TWO,
            {"conv_0": ("int8", "int8"), "conv_1": FP32},
            Verdict.REGRESSED,
            "no longer asks for int8 of /b (Conv)",
            id="names changed, one not asked for",
        ),
        pytest.param(TWO, {"/a": ("int8", ""), "/b": ("int8", "int8")}, Verdict.EXPECTED, "", id="not told"),
        pytest.param(
            TWO, THREE, Verdict.EXPECTED, "; keeps more than was accepted: int8 of /c (Conv)", id="raised"
        ),
        pytest.param(
            {"/a": FP32},
            {"/a": ("int8", "int8")},
            Verdict.EXPECTED,
            "; keeps more than was accepted: int8 of /a (Conv)",
            id="Q/DQ put in",
        ),
        pytest.param(
            TWO_OF_THREE,
            {**TWO_OF_THREE, "/d": ("int8", "int8")},
            Verdict.KNOWN_FAILURE,
            "; keeps more than was accepted: int8 of /d (Conv)",
            id="one more kept beside a lost one",
        ),
        pytest.param(TWO_OF_THREE, THREE, Verdict.FIXED, "", id="the lost one kept"),
    ],
)
def test_what_was_kept_and_asked_for_is_part_of_what_was_accepted(
    before: Ran, now: Ran, verdict: Verdict, said: str
) -> None:
    judgement = again(before, now).judgement
    assert judgement.verdict is verdict
    assert said in judgement.sentence
    assert judgement.part == ("precision" if verdict is Verdict.REGRESSED else None)
    assert bool(judgement.gained) is ("keeps more" in judgement.sentence)


def test_a_record_that_tells_of_no_nodes_is_held_to_its_class_alone() -> None:
    assert again(TWO, {}).judgement.verdict is Verdict.EXPECTED


def test_accepting_what_was_raised_raises_the_floor() -> None:
    assert again(TWO, THREE).judgement.verdict is Verdict.EXPECTED
    assert again(THREE, TWO).judgement.verdict is Verdict.REGRESSED


def test_a_failure_that_asks_for_less_is_not_fixed() -> None:
    """Without its Q/DQ a graph builds that did not: that is no news about the engine."""
    broken = Case("toy", "A toy", "", (Link("https://example.org"),), (BARE,))
    measured = Measured(
        "trt106",
        Engine.TENSORRT,
        MATRIX.target("trt106").version,
        "2026-01-01",
        {("toy", "v"): Result(Class.BUILD_FAILED, None, ("/a",))},
        "9.0",
        "NVIDIA H100",
    )
    asked = {("toy", "v"): (Asked("/a", "Conv", Precision.INT8),)}
    (made,) = with_measured([broken], Baseline((measured,), asked))
    (variant,) = made.variants
    assert judge_cell(*seen({"/a": ("int8", "int8")}, variant)).judgement.verdict is Verdict.FIXED
    found = judge_cell(*seen({"/a": FP32}, variant)).judgement
    assert (found.verdict, found.part) == (Verdict.REGRESSED, "precision")


def tactics(int8_us: float) -> tuple[Tactics, ...]:
    """Return the tactics of a layer /b that took FP16 at 10 us."""
    made = [
        Combination("Half(64,8,1) -> Half(64,8,1)", 10.0, "fp16", timed=1),
        Combination("Int8(64,8,1) -> Int8(64,8,1)", int8_us, "int8", timed=1),
    ]
    return (Tactics(layer="/b", combinations=tuple(made)),)


@pytest.mark.parametrize(("int8_us", "verdict"), [(10.5, Verdict.VARIES), (30.0, Verdict.REGRESSED)])
def test_a_toss_up_that_tips_varies(int8_us: float, verdict: Verdict) -> None:
    now: Ran = {"/a": ("int8", "int8"), "/b": ("int8", "fp16")}
    layers = (
        Layer("/a", "Convolution", "int8", onnx_nodes=("/a",)),
        Layer("/b", "Convolution", "fp16", onnx_nodes=("/b",), tactic="fp16"),
    )
    found = again(TWO, now, layers=layers, tactics=tactics(int8_us))
    assert found.classification.cls is Class.PRECISION_LOST
    assert found.judgement.verdict is verdict
    assert found.failed is (verdict is Verdict.REGRESSED)
    assert is_news(found.cell, found.outcome) is (verdict is Verdict.REGRESSED)


@pytest.mark.parametrize(
    ("ms", "gpu", "verdict"),
    [
        (1.0, H100, Verdict.EXPECTED),
        # One machine does as much from run to run.
        (1.4, H100, Verdict.EXPECTED),
        (2.0, H100, Verdict.REGRESSED),
        (2.0, H200, Verdict.EXPECTED),
        (0.5, H100, Verdict.EXPECTED),
    ],
)
def test_latency_is_held_to_the_same_gpu_beyond_its_noise(
    ms: float, gpu: dict[str, str], verdict: Verdict
) -> None:
    stamps = Stamps(environment=gpu, engine_version=MATRIX.target("trt106").version)
    found = again(TWO, TWO, ms=ms, stamps=stamps)
    assert found.judgement.verdict is verdict
    if verdict is Verdict.REGRESSED:
        assert found.judgement.part == "latency"
        assert found.failed
        assert "slower than was accepted: median 1 ms → 2 ms, by 100% at least" in found.judgement.sentence


def test_a_noisy_or_wrong_run_is_no_slower_one() -> None:
    noisy = Latency((1.0, 9.0) * 50, 10, "cuda_events")
    assert again(TWO, TWO, latency=noisy).judgement.verdict is Verdict.EXPECTED
    graph = Latency((2.0,) * 100, 10, "cuda_graph")
    assert again(TWO, TWO, latency=graph).judgement.verdict is Verdict.EXPECTED
    wrong = (Accuracy("y", 1.0, 1.0, 0.0, shape_matches=False),)
    found = again(TWO, TWO, ms=2.0, accuracy=wrong).judgement
    assert (found.verdict, found.part) == (Verdict.REGRESSED, "class")
    assert "slower" not in found.sentence


def test_what_another_gpu_loses_is_new_and_what_the_model_no_longer_asks_for_is_not() -> None:
    stamps = Stamps(environment=H200, engine_version=MATRIX.target("trt106").version)
    lost = again(TWO_OF_THREE, {**TWO_OF_THREE, "/d": ("int8", "fp16")}, stamps=stamps)
    assert (lost.judgement.verdict, lost.failed) == (Verdict.NEW, True)
    assert again(TWO, {"/a": FP32}, stamps=stamps).judgement.verdict is Verdict.REGRESSED


def test_a_loss_that_was_accepted_without_its_nodes_is_held_to_its_class_alone() -> None:
    """An older measured.yaml has none, nor a column whose records are gone."""
    variant = accepted(TWO_OF_THREE)
    old = replace(variant, expectations=tuple(replace(each, nodes=()) for each in variant.expectations))
    assert judge_cell(*seen(TWO_OF_THREE, old)).judgement.verdict is Verdict.KNOWN_FAILURE
