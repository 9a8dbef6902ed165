"""Inputs and outputs of every element type and odd shape on real engines: each ends in the engine's own answer."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from harness.agent.tensors import ELEMENTS
from harness.case import Case, Link, Variant
from harness.matrix import load_matrix
from harness.plan import all_cells
from tests import needs
from tests.integration.runs import ROOT, Result, run

pytestmark = [pytest.mark.integration, pytest.mark.contract]

TARGETS = ("ort117", "ort131", "rtx17")
FLOATS = helper.make_tensor_type_proto(TensorProto.FLOAT, [2, 3])

EIGHT_BITS = [word for word, element in ELEMENTS.items() if 17 <= element.onnx <= 20]
PACKED = [word for word, element in ELEMENTS.items() if element.bits < 8]
#: The element types whose Identity ONNX Runtime 1.31 has no kernel for; it casts all but FP4.
NO_KERNEL = [*PACKED, "float8_e8m0fnu"]
#: The element types that the parser of TensorRT for RTX 1.7 takes.
PARSED = [
    *("float32", "float16", "bfloat16", "float64", "float8_e4m3fn", "float4_e2m1fn"),
    *("uint8", "int8", "int32", "int64", "bool", "int4"),
]


def model(
    op: str, given: onnx.TypeProto, result: onnx.TypeProto, *, version: int = 19, **attributes: Any
) -> onnx.ModelProto:
    """Return a model of one node; the first version of ONNX that has its types, for the oldest engine's sake."""
    graph = helper.make_graph(
        [helper.make_node(op, ["x"], ["y"], name="/op", **attributes)],
        "g",
        [onnx.ValueInfoProto(name="x", type=given)],
        [onnx.ValueInfoProto(name="y", type=result)],
    )
    opsets = [helper.make_opsetid("", version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=helper.find_min_ir_version_for(opsets))


def _version(number: int) -> int:
    if number <= TensorProto.FLOAT8E5M2FNUZ:
        return 19
    return 21 if number <= TensorProto.INT4 else 25


def identity(number: int, shape: tuple[int, ...] = (2, 3)) -> onnx.ModelProto:
    """Return a model that gives back what it gets; of packed elements the last byte is not full."""
    proto = helper.make_tensor_type_proto(number, shape)
    return model("Identity", proto, proto, version=_version(number))


def cast(number: int, to: int) -> onnx.ModelProto:
    """Return a cast of five elements."""
    given, result = (helper.make_tensor_type_proto(each, [5]) for each in (number, to))
    return model("Cast", given, result, version=_version(max(number, to)), to=to)


BUILDS: dict[str, Callable[[], onnx.ModelProto]] = {
    **{word: functools.partial(identity, element.onnx) for word, element in ELEMENTS.items()},
    **{f"{word}-in": functools.partial(cast, ELEMENTS[word].onnx, TensorProto.FLOAT) for word in NO_KERNEL},
    # Of truth values, 0 and 1: of others it is not agreed what a cast to so few bits gives.
    **{
        f"{word}-out": functools.partial(cast, TensorProto.BOOL, ELEMENTS[word].onnx)
        for word in ("bfloat16", *EIGHT_BITS, *PACKED)
    },
    "scalar": functools.partial(identity, TensorProto.FLOAT, ()),
    "empty": functools.partial(identity, TensorProto.FLOAT, (0, 3)),
    "strings-out": functools.partial(cast, TensorProto.FLOAT, TensorProto.STRING),
    "sequence-out": functools.partial(
        model, "SequenceConstruct", FLOATS, helper.make_sequence_type_proto(FLOATS)
    ),
    "optional-out": functools.partial(model, "Optional", FLOATS, helper.make_optional_type_proto(FLOATS)),
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    """The outcome of each cell."""
    needs.network()
    variants = tuple(Variant(name, name, build) for name, build in BUILDS.items())
    case = Case("types", "Types", "", (Link("https://onnx.ai/onnx/"),), variants)
    cells = [
        cell for cell in all_cells(load_matrix(ROOT / "matrix.yaml"), [case]) if cell.target.name in TARGETS
    ]
    return run(cells, "venv", tmp_path_factory.mktemp("types"))


def ended(results: dict[str, Result], target: str) -> dict[str, str]:
    """Return the class of each variant on a target."""
    return {name: results[f"types.{name}-{target}"].cls for name in BUILDS}


def test_the_newest_onnx_runtime_is_fed_all_that_it_has_a_kernel_for(results: dict[str, Result]) -> None:
    refused = {*NO_KERNEL, "float4_e2m1fn-in", "float4_e2m1fn-out"}
    assert ended(results, "ort131") == {name: "parse_failed" if name in refused else "ok" for name in BUILDS}


def test_an_old_onnx_runtime_that_cannot_be_fed_says_so(results: dict[str, Result]) -> None:
    """Its session takes bfloat16 and FP8, and its Python has no way to hand them over; packed types are newer."""
    unfed = {"bfloat16", *EIGHT_BITS}
    refused = {name for name in BUILDS if name.partition("-")[0] in NO_KERNEL}
    found = ended(results, "ort117")
    assert {name for name, cls in found.items() if cls == "not_run"} == unfed
    assert {name for name, cls in found.items() if cls == "parse_failed"} == refused
    assert {name for name, cls in found.items() if cls == "ok"} == set(BUILDS) - unfed - refused
    for name in unfed:
        reason = results[f"types.{name}-ort117"].judged.classification.reason
        assert reason.startswith(f"needs an ONNX Runtime whose Python takes {name} inputs"), reason


def test_tensorrt_for_rtx_answers_for_every_type(results: dict[str, Result]) -> None:
    """A build needs no values: what the parser takes is built, the rest refused in its own words."""
    found = ended(results, "rtx17")
    assert {name for name in ELEMENTS if found[name] == "built"} == set(PARSED)
    assert {name for name in ELEMENTS if found[name] == "parse_failed"} == set(ELEMENTS) - set(PARSED)
    assert (found["scalar"], found["empty"]) == ("built", "built")
    assert set(found.values()) == {"built", "parse_failed", "build_failed"}


def test_what_came_back_is_what_was_sent(results: dict[str, Result]) -> None:
    """Nothing is lost on the way in either direction: of the packed types too, whose last byte is not full."""
    for target in ("ort117", "ort131"):
        for name in BUILDS:
            result = results[f"types.{name}-{target}"]
            if result.cls != "ok":
                continue
            outcome = result.judged.outcome
            assert outcome.latency is not None, result.judged.cell.id
            if name in ("strings-out", "sequence-out", "optional-out"):
                assert outcome.ran
                assert outcome.accuracy == ()
            else:
                (accuracy,) = outcome.accuracy
                assert (accuracy.shape_matches, accuracy.max_abs) == (True, 0), result.judged.cell.id


def test_outputs_that_are_not_compared_are_named(results: dict[str, Result]) -> None:
    for name, kind in (("strings-out", "tensor(string)"), ("sequence-out", "seq(tensor(float))")):
        messages = results[f"types.{name}-ort131"].judged.outcome.messages
        assert f"output y is {kind}: not compared" in [message.text for message in messages]
