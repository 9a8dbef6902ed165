"""The reduction of a failing model: which failure stays, and how small the model gets, without any engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.case.model import serialise
from harness.errors import HandledError
from harness.judge.cell import Judged, judge_cell
from harness.models import reduce
from harness.models.graphs import copied, outside
from harness.models.reduce import Search, named, sought
from harness.record.outcome import Accuracy, ParserError
from tests.models.test_check import judged as lost

pytestmark = pytest.mark.unit

FLOAT = TensorProto.FLOAT


def value(name: str, shape: Sequence[int | str], kind: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def model(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    opset: int = 17,
    **constants: np.ndarray,
) -> onnx.ModelProto:
    given = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, given)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(made, full_check=True)
    return made


def chain(length: int, middle: str = "Softmax") -> onnx.ModelProto:
    """Return a chain with one odd node in its middle, and a branch round that."""
    ops = ["Relu" if index % 2 else "Neg" for index in range(length)]
    ops[length // 2] = middle
    nodes = [
        helper.make_node(op, [f"t{index}"], [f"t{index + 1}"], name=f"/n{index}")
        for index, op in enumerate(ops)
    ]
    nodes.append(helper.make_node("Add", [f"t{length}", f"t{length // 2}"], ["y"], name="/add"))
    return model(nodes, [value("t0", [1, 8, 16, 16])], [value("y", [1, 8, 16, 16])])


def ops(found: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in found.graph.node]


def holds(*wanted: str) -> Callable[[onnx.ModelProto], bool]:
    """Return a predicate: the model is valid, and has all of these operators in this order."""

    def shows(candidate: onnx.ModelProto) -> bool:
        onnx.checker.check_model(candidate, full_check=True)
        found = iter(ops(candidate))
        return all(op in found for op in wanted)

    return shows


def searched(
    start: onnx.ModelProto, shows: Callable[[onnx.ModelProto], bool], near: tuple[str, ...] = ()
) -> Search:
    search = Search(start, shows, near=near)
    assert search.run()
    return search


def test_the_weights_of_an_lstm_stay_as_they_are() -> None:
    """Neither checker nor inference looks at them, and an engine refuses what does not fit."""
    w, r = np.zeros((1, 64, 8), np.float32), np.zeros((1, 64, 16), np.float32)
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y"], name="/lstm", hidden_size=16)
    start = model([node], [value("x", [4, 2, 8])], [value("y", [4, 1, 2, 16])], w=w, r=r)
    best = searched(start, holds("LSTM")).best
    left = {tensor.name: tuple(tensor.dims) for tensor in best.graph.initializer}
    assert left == {"w": (1, 64, 8), "r": (1, 64, 16)}
    assert best.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 1


def test_weights_shrink_with_the_inputs() -> None:
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="/m")
    start = model([node], [value("x", [2, 64])], [value("y", [2, 48])], w=np.ones((64, 48), np.float32))
    (weight,) = searched(start, holds("MatMul")).best.graph.initializer
    assert tuple(weight.dims) == (1, 1)


def test_one_node_out_of_many_is_found_with_and_without_its_name() -> None:
    """With the name that the failure tells it takes a few tries, without it a halving; shapes go down to ones."""
    told, untold = searched(chain(200), holds("Softmax"), ("/n100",)), searched(chain(200), holds("Softmax"))
    for search in (told, untold):
        assert ops(search.best) == ["Softmax"]
        assert [dim.dim_value for dim in search.best.graph.input[0].type.tensor_type.shape.dim] == [
            1,
            1,
            1,
            1,
        ]
        assert [node.name for node in search.best.graph.node] == ["/n100"]
    assert told.tries < 10 < untold.tries < 60


def test_two_far_nodes_that_must_both_be_there_stay_and_nothing_between_them() -> None:
    start = chain(40)
    start.graph.node[3].op_type = "Sigmoid"
    assert ops(searched(start, holds("Sigmoid", "Softmax")).best) == ["Sigmoid", "Softmax"]


def quantised(channels: int = 8) -> onnx.ModelProto:
    """Return a quantised convolution whose weight is quantised in the graph."""
    node = helper.make_node
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["xq"], name="/q"),
        node("DequantizeLinear", ["xq", "s", "z"], ["xd"], name="/dq"),
        node("QuantizeLinear", ["w", "s", "z"], ["wq"], name="/wq"),
        node("DequantizeLinear", ["wq", "s", "z"], ["wd"], name="/wdq"),
        node("Conv", ["xd", "wd", "b"], ["c"], name="/conv", pads=[1, 1, 1, 1], group=channels),
        node("Relu", ["c"], ["y"], name="/relu"),
    ]
    rng = np.random.default_rng(0)
    weight = rng.random((channels, 1, 3, 3), np.float32)
    return model(
        nodes,
        [value("x", [1, channels, 32, 32])],
        [value("y", [1, channels, 32, 32])],
        s=np.array(0.01, np.float32),
        z=np.array(0, np.int8),
        w=weight,
        b=rng.random(channels, np.float32),
    )


def test_a_constant_that_is_cut_off_stays_a_constant() -> None:
    """A weight that is quantised in the graph becomes one that is stored so, and no network input."""
    found = searched(quantised(), holds("DequantizeLinear", "DequantizeLinear", "Conv")).best
    assert ops(found) == ["DequantizeLinear", "DequantizeLinear", "Conv"]
    assert [each.name for each in found.graph.input] == ["xq"]
    stored = {each.name: each for each in found.graph.initializer}
    assert stored["wq"].data_type == TensorProto.INT8
    assert set(stored) == {"s", "z", "wq", "b"}


def test_the_same_model_gives_the_same_bytes_in_the_same_tries() -> None:
    one, other = (searched(quantised(), holds("DequantizeLinear", "Conv")) for _ in range(2))
    assert serialise(one.best) == serialise(other.best)
    assert one.tries == other.tries


def test_no_invalid_model_reaches_the_predicate() -> None:
    """If the input alone shrinks, the weight no longer fits: `holds` checks each candidate that it is given."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="/m")]
    start = model(nodes, [value("x", [2, 3])], [value("y", [2, 4])], w=np.ones((3, 4), np.float32))
    shrunk = reduce.resized(start, 3, 2, 1)
    assert shrunk is not None
    with pytest.raises(onnx.shape_inference.InferenceError):
        onnx.checker.check_model(shrunk, full_check=True)
    searched(start, holds("MatMul"))


def test_no_invalid_model_is_tried_once_the_weights_fit_in() -> None:
    """As long as they lie beside it, no checker takes the model itself."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="/m")]
    start = model(nodes, [value("x", [2, 3])], [value("y", [2, 4])], w=np.ones((3, 4), np.float32))
    stored = onnx.TensorProto()
    stored.CopyFrom(start.graph.initializer[0])
    start.graph.initializer[0].ClearField("raw_data")
    start.graph.initializer[0].data_location = onnx.TensorProto.EXTERNAL
    start.graph.initializer[0].external_data.add(key="location", value="weights.bin")

    def shows(candidate: onnx.ModelProto) -> bool:
        if not outside(candidate):
            onnx.checker.check_model(candidate, full_check=True)
        return True

    def held(found: onnx.ModelProto) -> onnx.ModelProto:
        made = copied(found)
        if outside(made):
            made.graph.initializer[0].CopyFrom(stored)
        return made

    search = Search(start, shows, held=held)
    assert search.run()
    assert not outside(search.best)


def test_a_search_that_is_stopped_keeps_its_best_so_far() -> None:
    whole = searched(chain(50), holds("Softmax"))
    search = Search(chain(50), holds("Softmax"), tries=whole.tries // 2)
    assert not search.run()
    assert len(whole.best.graph.node) < len(search.best.graph.node) < 51


def failed(text: str, *, node: str = "/a", **fields: object) -> Judged:
    """Return a model that the parser refused with a text."""
    base = lost("int8", "int8", name="new")
    refusal = ParserError(
        text, code="UNSUPPORTED_NODE", node=node, operator="Conv" if node != "/r" else "Relu"
    )
    made = replace(base.outcome, failed_phase="parse", parser_errors=(refusal,), layers=(), **fields)  # type: ignore[arg-type]
    return judge_cell(base.cell, made)


def test_another_failure_is_not_taken_for_it() -> None:
    """Class, words and operator have to stay; the node, its name and numbers in the text may be others."""
    want = sought(failed("no 3 of that kind for /a"), "signature")
    assert want.shown_by(failed("no 17 of that kind for /b", node="/b"))
    assert not want.shown_by(failed("no 3 of that sort for /a"))
    assert not want.shown_by(failed("no 3 of that kind for /r", node="/r"))
    assert not want.shown_by(failed("no 3 of that kind for /a", state="infra_error"))
    assert not want.shown_by(lost("int8", "int8"))
    by_class = sought(failed("no 3 of that kind"), "class")
    assert by_class.shown_by(failed("anything"))


def test_a_known_cause_has_to_stay_with_its_operator() -> None:
    text = "Axis input must be an initializer"
    want = sought(failed(text), "signature")
    assert (want.signature, want.operator) == ("axes-not-constant", "Conv")
    assert want.shown_by(failed(text, node="/b"))
    assert not want.shown_by(failed(text, node="/r"))
    assert not want.shown_by(failed("something else"))


def test_of_a_lost_precision_the_operator_and_both_types_have_to_stay() -> None:
    want = sought(lost("fp32", "int8"), "signature")
    assert want.line == "Conv ran in fp32, not int8"
    assert want.shown_by(lost("int8", "fp32"))
    assert not want.shown_by(lost("fp16", "int8"))
    assert named(lost("fp32", "int8")) == ("/a",)


def test_wrong_numbers_may_not_become_no_numbers() -> None:
    off, nan = Accuracy("y", 9.0, 9.0, 0.1), Accuracy("y", 9.0, 9.0, 0.1, not_finite=3)
    want = sought(lost("int8", "int8", ran=True, accuracy=(off,)), "signature")
    assert want.shown_by(lost("int8", "int8", ran=True, accuracy=(replace(off, max_rel=7.0),)))
    assert not want.shown_by(lost("int8", "int8", ran=True, accuracy=(nan,)))


def test_what_works_is_refused() -> None:
    with pytest.raises(HandledError, match="builds on new: there is nothing to keep"):
        sought(lost("int8", "int8"), "signature")
