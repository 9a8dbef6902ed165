"""What an engine's account says of each node, and the rules where there is none."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto

from harness.case import Graph, load_cases
from harness.case.explicit import explicit
from harness.convert.wishes import Account, as_it_ran, by_rules, kept_in_fp32, read_account, read_scales
from harness.errors import HandledError
from harness.layers.asked import asked
from harness.layers.precision import node_precision
from harness.record.outcome import Layer
from harness.share.submission import read
from harness.words import Precision

pytestmark = pytest.mark.unit

TOP = Path(__file__).parents[2]
CACHE = "TRT-100600-EntropyCalibration2\nimages: 3c010a14\n/a: b: 3f800000\n"
#: Beyond the inspector's object, in the log of a record.
_INSPECTED = re.compile(
    r"^\[inspector\] .*?(?=^\[(?:phase|end|calibration cache)\b)", re.MULTILINE | re.DOTALL
)


def norm() -> onnx.ModelProto:
    """Build a normalisation that is written out, behind a convolution."""
    g = Graph("norm", opset=17)
    x = g.conv(g.input("x", [1, 8, 4, 4]), g.weight("w", (8, 8, 1, 1)), name="conv", kernel=1)
    mean = g.node("ReduceMean", [x], name="mean", axes=[-1])
    centred = g.node("Sub", [x, mean], name="sub")
    var = g.node(
        "ReduceMean", [g.node("Pow", [centred, g.weight("two", (1,))], name="pow")], name="var", axes=[-1]
    )
    root = g.node("Sqrt", [g.node("Add", [var, g.weight("eps", (1,))], name="add")], name="sqrt")
    g.output(g.node("Div", [centred, root], name="div"), [1, 8, 4, 4])
    return g.model()


def test_a_calibration_cache_has_its_scales_as_bits_of_a_float() -> None:
    assert read_scales(CACHE) == {"images": pytest.approx(1 / 127, rel=1e-2), "/a: b": 1.0}
    assert read_scales(f"[VERBOSE] x\n[calibration cache]\n{CACHE}[end] finished") == read_scales(CACHE)
    assert read_scales("images: 3c010a14\n") == {}


@pytest.mark.parametrize("text", ["", "no log", '{"Layers": []}', '{"a"', "[V] [TRT] Layers:\n"])
def test_a_text_without_layers_is_refused_by_name(text: str) -> None:
    with pytest.raises(HandledError, match=r"^old\.log: "):
        read_account(text, asked(norm()), "old.log")


def test_names_alone_are_no_account_of_types() -> None:
    with pytest.raises(HandledError, match="profilingVerbosity"):
        read_account("Layers:\nconv\nsub\n", asked(norm()), "old.log")


def test_an_account_of_another_model_is_refused() -> None:
    listed = "Layer(CaskConvolution): other, Tactic: 0x1, x (Half[1,8,4,4]) -> y (Half[1,8,4,4])"
    account = read_account(listed, asked(norm()), "old.log")
    with pytest.raises(HandledError):
        as_it_ran(norm(), account)


def test_a_log_before_10_lists_a_layer_a_line() -> None:
    lines = (
        "Layer(Reformat): Reformatting CopyNode for Input Tensor 0 to conv, Tactic: 0x0, x (Float[8]) -> r (Half[8])",
        "[01/01/2026-10:00:00] [V] [TRT] Layer(CaskConvolution): conv, Tactic: 0x2, r (Half[1,8]) -> c (Half[1,8])",
        "Layer(Myelin): {ForeignNode[mean...div]}, Tactic: 0x0, c (Half[1,8,4,4]) -> y (Float[1,8,4,4])",
    )
    wishes = as_it_ran(norm(), read_account("\n".join(lines), asked(norm()), "old.log"))
    assert wishes.ran["conv"] is Precision.FP16
    assert wishes.types.nodes["conv"] is Precision.FP16
    # The inside of a region is not told: it goes by the rules, as the engine had FP16.
    assert wishes.ran["sqrt"] is Precision.UNKNOWN
    assert wishes.types.nodes["sqrt"] is Precision.FP32
    assert "sqrt" in wishes.notes


def test_a_node_of_integers_in_a_kernel_of_fp16_ran_in_no_float() -> None:
    g = Graph("indices", opset=17)
    x, ids = g.input("x", [4, 8]), g.input("ids", [2], TensorProto.INT64)
    twice = g.node("Add", [ids, ids], name="twice")
    g.output(g.node("Gather", [x, twice], name="rows"), [2, 8])
    kernel = Layer("rows+twice", "kgen", "fp16", onnx_nodes=("rows", "twice"))
    wishes = as_it_ran(g.model(), Account((kernel,), {}))
    assert (wishes.ran["rows"], "twice" in wishes.ran) == (Precision.FP16, False)


def test_tensors_get_scales_where_a_layer_of_int8_reads_and_where_one_that_does_not_multiply_gives_it() -> (
    None
):
    g = Graph("edges", opset=17)
    weight = g.weight("w", (8, 8, 1, 1))
    first = g.conv(g.input("x", [1, 8, 4, 4]), weight, name="first", kernel=1)
    act = g.node("Sigmoid", [first], name="act")
    second = g.node("Relu", [g.conv(act, weight, name="second", kernel=1)], name="relu")
    g.output(g.node("Add", [act, second], name="sum"), [1, 8, 4, 4])
    tensors = ["x", *(f"{name}_output_0" for name in ("first", "act", "second", "relu"))]
    cache = "TRT-8601-MinMaxCalibration\n" + "".join(f"{name}: 3c010a14\n" for name in tensors)
    lines = (
        "Layer(CaskConvolution): first, Tactic: 0x1, x (Int8[8]) -> first_output_0 (Int8[8])",
        "Layer(PointWiseV2): PWN(act), Tactic: 0x1, first_output_0 (Int8[8]) -> act_output_0 (Int8[8])",
        "Layer(CaskConvolution): second + relu, Tactic: 0x1, act_output_0 (Int8[8]) -> relu_output_0 (Int8[8])",
        cache,
    )
    account = read_account("\n".join(lines), asked(g.model()), "old.log")
    # Nothing reads the last convolution's end in INT8, and what is inside its layer is nobody else's.
    assert as_it_ran(g.model(), account).types.scales.keys() == {*tensors[:3]}


def test_by_rules_norms_stay_in_fp32_with_all_that_stands_between() -> None:
    types = by_rules(norm(), Precision.BF16).types.nodes
    assert {name for name, kind in types.items() if kind is Precision.BF16} == {"conv", "sub", "div"}
    assert types["add"] is Precision.FP32


def test_a_scalar_of_shapes_is_no_norm_and_a_large_constant_is_beyond_fp16() -> None:
    g = Graph("rules", opset=17)
    x = g.input("x", [1, 8])
    root = g.node(
        "Sqrt", [g.node("Cast", [g.node("Shape", [x], name="shape")], name="cast", to=1)], name="sqrt"
    )
    y = g.node("Div", [x, g.node("ReduceMax", [root], name="max", keepdims=0)], name="div")
    g.output(g.node("Mul", [y, g.weight("large", (8,), spread=1e6)], name="mul"), [1, 8])
    types = by_rules(g.model(), Precision.FP16).types.nodes
    assert (types["sqrt"], types["div"], types["mul"]) == (Precision.FP16, Precision.FP16, Precision.FP32)
    assert by_rules(g.model(), Precision.BF16).types.nodes["mul"] is Precision.BF16


def test_a_pattern_keeps_nodes_in_fp32() -> None:
    wishes = by_rules(norm(), Precision.FP16)
    assert kept_in_fp32(wishes, "^con").types.nodes["conv"] is Precision.FP32
    for pattern in ("(", "nothing-like-it"):
        with pytest.raises(HandledError, match="--keep-fp32"):
            kept_in_fp32(wishes, pattern)


def test_every_published_engine_is_read_alike_from_its_log_and_typed_as_it_ran() -> None:
    """No node of an engine of 10.6.0 that ran narrow is typed wider; Q/DQ that is there already is kept."""
    variants = {(case.name, each.name): each for case in load_cases(TOP / "cases") for each in case}
    archives = [
        read(path) for path in sorted((TOP / "reports" / "published" / "evidence").glob("trt106*.xz"))
    ]
    missed, told = [], 0
    for archive, outcome in ((each, outcome) for each in archives for outcome in each.records):
        log = archive.log(str(outcome.log_sha256))
        model = onnx.load_model_from_string(variants[outcome.case, outcome.variant].model_bytes())
        nodes = asked(model)
        ran = node_precision(nodes, outcome.layers)
        if not ran:
            continue
        assert node_precision(nodes, read_account(_INSPECTED.sub("", log), nodes, "").layers) == ran
        if any(node.op == "QuantizeLinear" for node in nodes):
            continue
        made = explicit(model, as_it_ran(model, Account(outcome.layers, read_scales(log))).types)
        onnx.checker.check_model(made.model)
        told += len(ran)
        missed += [
            (outcome.cell, name, kind)
            for name, kind in ran.items()
            if kind in (Precision.FP16, Precision.BF16, Precision.INT8) and made.typed.get(name) != kind
        ]
    assert told > 200
    assert missed == []
