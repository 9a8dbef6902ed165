"""Nodes left in floating point, and workarounds on engines that are made up."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import onnx
import pytest

from harness.case import Profile, Recipe
from harness.judge.cell import Judged
from harness.known.further import Further
from harness.layers.asked import asked
from harness.models.answers import Answer, kept
from harness.models.further import Asking, Questions, quantised_nodes
from harness.models.own.model import Wanted, own_model
from harness.models.rewrites import REWRITES, unquantised
from harness.models.trying import Bench
from harness.models.workarounds import gain, workarounds
from harness.record.from_json import decode, plain
from harness.words import Precision
from tests.models.embedded import blocked, network
from tests.models.fake import Engine, judged, refused, unbuilt

pytestmark = pytest.mark.unit

CONVOLUTIONS = quantised_nodes(network("plain"))
TEXT = "CHECK(dtype == myelinTypeFloat || dtype == myelinTypeHalf || dtype == myelinTypeBF16) failed"


class Recorded:
    """In place of `Tries`: keeps what was asked of it."""

    def judged(self, _: onnx.ModelProto, target: object, recipe: Recipe, precision: object) -> object:
        return target, recipe.flags, recipe.profiles, precision


def test_what_is_made_of_a_model_is_asked_as_the_model_was() -> None:
    profiles = (Profile("x", (1,), (1,), (1,)),)
    recipe = Recipe(flags=("INT8", "TF32"), profiles=profiles)
    wishes = tuple((node, Precision.INT8) for node in CONVOLUTIONS[:2])
    model = network("plain")
    left = unquantised(model, CONVOLUTIONS[:1])
    assert left is not None
    bench = Bench(Recorded(), "there", recipe, ("TF32",), wishes)  # type: ignore[arg-type]
    plain = unquantised(model, [node.name for node in model.graph.node])
    assert plain is not None
    answers: list[object] = [bench(model), bench(left, ()), bench(plain), replace(bench, wishes=None)(plain)]
    assert answers == [
        ("there", ("INT8", "TF32"), profiles, wishes),
        ("there", ("INT8", "TF32"), (), wishes[1:]),
        ("there", ("TF32",), profiles, ()),
        ("there", ("TF32",), profiles, None),
    ]


def trial(engine: Engine) -> Callable[[onnx.ModelProto], Judged]:
    return lambda model: judged(model, **engine(model))


def refuses(*names: str) -> Engine:
    """Return an engine that builds no model in which one of these nodes is quantised."""
    return lambda model: unbuilt(TEXT) if set(names).intersection(quantised_nodes(model)) else {}


def loses(*names: str) -> Engine:
    """Return an engine that computes these nodes in FP32, whatever is asked."""

    def engine(model: onnx.ModelProto) -> dict[str, object]:
        layers = judged(model).outcome.layers
        return {
            "layers": tuple(
                replace(each, precision="fp32") if each.name in names else each for each in layers
            )
        }

    return engine


def test_each_workaround_is_tried_alone_and_what_helps_is_measured() -> None:
    model = network("concat", depth=4)

    def engine(part: onnx.ModelProto) -> dict[str, object]:
        """Lose the convolution behind a Concat of unlike scales."""
        return loses("/joined/Conv")(part) if any("unlike" in node.fed for node in asked(part)) else {}

    attempt = trial(engine)
    found, _ = workarounds(model, attempt(model), attempt)
    helping = {each.name: each for each in found.tried if each.gain}
    assert list(helping) == ["concat-after"]
    assert found.best == "concat-after"
    assert helping["concat-after"].gain.startswith("1 more")
    assert 0 < max(each.max_rel for each in helping["concat-after"].outputs) < 0.05
    assert [each.outputs for each in found.tried if not each.gain] == [()] * (len(found.tried) - 1)
    assert len(found.tried) + len(found.nothing_to_change) == len(REWRITES)


def test_where_none_helps_alone_they_are_tried_one_on_top_of_the_other() -> None:
    """Refuse the INT32 bias, then the dilated deconvolution, then nothing; TopK is what no rewrite helps with."""

    def engine(model: onnx.ModelProto, *, also_topk: bool = False) -> dict[str, object]:
        operators = {node.op_type: node for node in model.graph.node}
        if "/second/bias/DequantizeLinear" in {node.name for node in model.graph.node}:
            return refused(("/second/bias/DequantizeLinear", "DequantizeLinear", "odd"))
        if any(item.name == "dilations" for item in operators["ConvTranspose"].attribute):
            return unbuilt("Strided & Dilated Deconv")
        return unbuilt("ITopKLayer /TopK: K exceeds the maximum value allowed (3840)") if also_topk else {}

    attempt = trial(engine)
    found, _ = workarounds(blocked(), attempt(blocked()), attempt)
    assert found.best == "float-bias + zeros-in-kernel"
    best = found.tried[-1]
    costs = {each.name: each.cost for each in REWRITES}
    assert best.costs == costs["zeros-in-kernel"]
    assert costs["float-bias"] == "nothing"
    assert [each.max_rel < 1e-6 for each in best.outputs] == [True]
    attempt = trial(partial(engine, also_topk=True))
    assert workarounds(blocked(), attempt(blocked()), attempt)[0].best is None


def test_what_nobody_can_feed_is_compared_with_nothing() -> None:
    model = network("vector", depth=4)
    attempt = trial(
        lambda part: loses("/vector/Conv")(part) if any("vector" in n.fed for n in asked(part)) else {}
    )
    given = {"images": np.zeros((1, 3, 3, 3), np.float32)}
    found, _ = workarounds(model, attempt(model), attempt, inputs=given)
    assert found.best == "scalar-scale"
    (best,) = (each for each in found.tried if each.name == found.best)
    assert "reference evaluator failed" in best.uncompared


def test_no_gain_is_claimed_where_less_runs_in_what_it_is_asked_to() -> None:
    model = network("plain", depth=4)
    all_kept, one_lost = judged(model), judged(model, **loses("/front0a/Conv")(model))
    failed = judged(model, **unbuilt(TEXT))
    assert (kept(all_kept), kept(one_lost)) == (4, 3)
    assert gain(one_lost, all_kept).startswith("1 more")
    assert gain(all_kept, one_lost) == gain(one_lost, one_lost) == gain(failed, failed) == ""
    assert gain(failed, all_kept) == "builds"
    assert gain(failed, one_lost) == "builds, and loses 1"
    plain = unquantised(model, ["/front0a/Conv"])
    assert plain is not None
    assert gain(one_lost, judged(plain)).startswith("1 less")


class Engines:
    """In place of `Tries`: what becomes of a model is made up."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def judged(self, model: onnx.ModelProto, *_: object) -> Judged:
        return judged(model, **self.engine(model))


def asked_of(engine: Engine, questions: Questions) -> tuple[Further, ...]:
    own = own_model(network("plain", depth=4), "m.onnx", Wanted(), name="m")
    before = [Answer(Engines(engine).judged(own.variant.build()))]
    asking = Asking(own, before, questions, Engines(engine))  # type: ignore[arg-type]
    return tuple({each.target: each.further for _, found in asking.answers() for each in found}.values())


def test_blockers_of_targets_that_fail_alike_are_sought_once_and_within_the_time() -> None:
    """On the newest of them; the others have its answer, one of another first failure its own."""
    model, tried = network("plain", depth=4), []
    own = own_model(model, "m.onnx", Wanted(), name="m")

    class Counting(Engines):
        def judged(self, model: onnx.ModelProto, *rest: Any) -> Judged:
            tried.append(rest[0].version)
            return super().judged(model)

    def failing(version: str, node: str) -> Answer:
        each = judged(model, **refused((node, "Conv", "odd")))
        target = replace(each.cell.target, name=f"t{version}", version=version)
        return Answer(replace(each, cell=replace(each.cell, target=target)))

    same = [failing(version, "/front0a/Conv") for version in ("1.4", "1.6", "1.5")]
    engines = Counting(lambda _: {})
    asking = Asking(own, [*same, failing("1.7", "/front0b/Conv")], Questions(), engines)  # type: ignore[arg-type]
    ((_, answers),) = asking.answers()
    assert set(tried) == {"1.6", "1.7"}
    ends = {each.target: each.further.blockers.end for each in answers if each.further.blockers}
    assert list(ends) == ["t1.4", "t1.6", "t1.5", "t1.7"]
    assert ["sought on t1.6 alone" in end for end in ends.values()] == [True, True, True, False]
    late = Asking(own, same, Questions(), engines, most_seconds=-1.0)  # type: ignore[arg-type]
    ((_, answers),) = late.answers()
    for each in answers:
        assert each.further.blockers is not None
        assert [found.nodes for found in each.further.blockers.found] == [("/front0a/Conv",)]
        assert "--seconds" in each.further.blockers.end


ALL = Questions(leave_float=("/front0a/Conv",), workarounds=True)


def test_all_questions_are_answered_for_a_target_in_the_words_of_the_schema() -> None:
    (found,) = asked_of(refuses("/front0a/Conv"), ALL)
    entry = json.loads(json.dumps(plain(found)))
    assert decode(Further, entry) == found
    assert (entry["leave_float"]["nodes"], entry["leave_float"]["helps"]) == (["/front0a/Conv"], True)
    assert entry["workarounds"]["best"] in {each["name"] for each in entry["workarounds"]["tried"]}
    assert entry["blockers"]["tries"] == found.blockers.tries if found.blockers else False


def test_a_node_of_which_no_layer_tells_is_blamed_by_workarounds_too() -> None:
    """Those that change the nodes that are blamed alone have something to change."""

    def silent(model: onnx.ModelProto) -> dict[str, object]:
        return {
            "layers": tuple(each for each in judged(model).outcome.layers if each.name != "/front0a/Conv")
        }

    (found,) = asked_of(silent, Questions(workarounds=True))
    assert found.workarounds is not None
    assert "half-products" in {each.name for each in found.workarounds.tried}


def test_what_is_not_asked_or_needs_no_answer_is_null() -> None:
    assert asked_of(lambda _: {}, Questions(workarounds=True)) == ()
    assert asked_of(refuses("/front0a/Conv"), Questions(blockers=False)) == ()
