"""A variant that cannot be made ready costs its own cells: the others get their models, and each its sentence."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from harness.case import Variant, load_cases
from harness.case.model import Unbuildable
from harness.errors import HandledError
from harness.run import prepared as module
from harness.run.child import stream
from harness.run.prepared import UNEVALUATED, PreparedVariants, Refused, with_models
from tests.run.bench import relu
from tests.run.prepared import prepare_variant

pytestmark = pytest.mark.integration

MODULE = '''
"""Builders that fail, between two that do not."""

import ctypes

from harness.case import Case, Graph, Link, Variant


def relu():
    g = Graph("relu")
    g.node("Relu", [g.input("x", [1, 4])], name="/act", output="y")
    g.output("y", [1, 4])
    return g.model()


def raises():
    raise KeyError("weights")


def garbage():
    return "a model"


def crashes():
    ctypes.string_at(0)


CASE = Case(
    name="odd",
    title="Odd builders",
    summary="For tests.",
    links=(Link("https://example.org/1"),),
    variants=(
        Variant("first", "Works", relu),
        *(Variant(each.__name__, "Fails", each) for each in (raises, garbage, crashes)),
        Variant("last", "Works", relu),
    ),
)
'''

SENTENCES = {
    "raises": "odd.py:17: the model of variant 'raises' cannot be built: KeyError: 'weights'",
    "garbage": "odd.py:20: the model of variant 'garbage' cannot be built: TypeError: a model is an onnx.ModelProto, "
    "and this is a str",
    "crashes": "the model of variant odd.crashes cannot be built: its process was killed by SIGSEGV",
}


def test_each_builder_fails_alone(tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(MODULE)
    cases = load_cases(tmp_path)
    (case,) = with_models(cases, tmp_path, seconds=3)
    assert [variant.name for variant in case] == [variant.name for variant in cases[0]]
    said = {}
    for variant in case:
        try:
            onnx.load_model_from_string(variant.model_bytes())
        except HandledError as error:
            said[variant.name] = str(error)
    assert said.keys() == SENTENCES.keys()
    for name, sentence in SENTENCES.items():
        assert sentence in said[name]


def endless() -> onnx.ModelProto:
    """Return a Loop of 2^62 trips, which the reference evaluator would walk."""
    i, go = (
        helper.make_tensor_value_info(name, kind, [])
        for name, kind in (("i", TensorProto.INT64), ("go", TensorProto.BOOL))
    )
    on = helper.make_tensor_value_info("on", TensorProto.BOOL, [])
    body = helper.make_graph([helper.make_node("Identity", ["go"], ["on"])], "body", [i, go], [on])
    loop = helper.make_node("Loop", ["trips", "go"], [], name="loop", body=body)
    same = helper.make_node("Relu", ["x"], ["y"], name="act")
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("x", "y")]
    constants = [
        helper.make_tensor("trips", TensorProto.INT64, [], [1 << 62]),
        helper.make_tensor("go", TensorProto.BOOL, [], [True]),
    ]
    graph = helper.make_graph([same, loop], "endless", tensors[:1], tensors[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def test_a_subject_from_a_child_is_the_one_made_here_and_is_made_once() -> None:
    calls = []

    def build() -> onnx.ModelProto:
        calls.append(1)
        return relu()

    variant, prepared = Variant("v", "V", build), PreparedVariants()
    found = prepared.of(variant)
    assert prepared.of(variant) is found
    assert len(calls) == 1
    here = prepare_variant(variant)
    assert (found.model, found.sha256, found.nodes) == (here.model, here.sha256, here.nodes)
    assert np.array_equal(found.inputs["x"], here.inputs["x"])
    assert found.reference == UNEVALUATED
    evaluated = prepared.evaluated(variant, found)
    assert pickle.dumps(evaluated.reference) == pickle.dumps(here.reference)
    assert prepared.evaluated(variant, found) is evaluated
    assert prepared.evaluated(variant, evaluated) is evaluated


def test_a_reference_without_end_is_that_variants_refusal() -> None:
    prepared = PreparedVariants(seconds=2)
    variant = Variant("endless", "E", endless)
    ready = prepared.of(variant)
    for _ in range(2):
        with pytest.raises(Refused) as refused:
            prepared.evaluated(variant, ready)
        assert refused.value.state == "infra_error"
        assert refused.value.reason == (
            "variant 'endless' cannot be made ready: its process was not done after 2 s"
        )
    assert prepared.of(Variant("relu", "R", relu)).inputs.keys() == {"x"}


def test_those_that_follow_are_made_in_the_same_child_and_fail_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    def counted(*arguments: Any, **bounds: Any) -> Iterator[Any]:
        started.append(arguments)
        return stream(*arguments, **bounds)

    monkeypatch.setattr(module, "stream", counted)
    sound = [Variant(f"v{at}", "V", relu) for at in range(3)]
    nothing = Variant("nothing", "N", Unbuildable("its builder raised"))
    large = Variant("large", "L", lambda: relu(1 << 40))
    order = [sound[0], nothing, large, sound[1], sound[2]]
    prepared = PreparedVariants(order)
    for variant in sound:
        assert prepared.of(variant).inputs.keys() == {"x"}
    for variant, sentence in ((nothing, "its builder raised"), (large, "1099511627776 elements")):
        with pytest.raises(Refused, match=sentence):
            prepared.of(variant)
    assert len(started) == 1


def test_one_that_ends_the_child_is_refused_and_the_next_are_made() -> None:
    sound = [Variant(f"v{at}", "V", relu) for at in range(2)]
    wanting = Variant("wanting", "W", lambda: relu(1 << 26))
    prepared = PreparedVariants([sound[0], wanting, sound[1]], memory_mib=64)
    assert prepared.of(sound[0]).inputs.keys() == {"x"}
    with pytest.raises(
        Refused, match="variant 'wanting' cannot be made ready: its process needs more than 64 MiB"
    ):
        prepared.of(wanting)
    assert prepared.of(sound[1]).inputs.keys() == {"x"}


def test_what_nobody_waits_for_any_more_is_not_kept_as_a_refusal() -> None:
    prepared, variant = PreparedVariants(), Variant("relu", "R", relu)
    other = Variant("endless", "E", endless)
    with pytest.raises(Refused):
        prepared.evaluated(other, prepared.of(other), needed=lambda: False)
    try:
        prepared.of(variant, needed=lambda: False)
    except Refused:
        assert prepared.of(variant).inputs.keys() == {"x"}
