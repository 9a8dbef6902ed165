"""The plugin case puts Q and DQ where its titles say, and keeps the plugin's contract."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from cases.q_plugin_dq import CASE, DOMAIN, NODE, OP, POOL, SCALE
from harness.case import Role, Typing
from harness.run.numbers import DequantizeLinear, make_inputs, reference

pytestmark = pytest.mark.unit

Array = npt.NDArray[Any]
VARIANTS = {variant.name: variant for variant in CASE}
WITH_PLUGIN = [variant.name for variant in CASE if variant.recipe.plugin]
STRONG = [variant.name for variant in CASE if variant.recipe.typing is Typing.STRONG]


class CompatIdentity(OpRun):
    """The plugin's contract for the reference evaluator: a copy of the first input."""

    op_domain = DOMAIN

    def _run(self, x: Array, *_ignored: Array, **_attributes: Any) -> tuple[Array]:
        return (x,)


def plugin_node(model: onnx.ModelProto) -> onnx.NodeProto:
    found: onnx.NodeProto = next(node for node in model.graph.node if node.op_type == OP)
    return found


def neighbours(model: onnx.ModelProto, name: str) -> tuple[str, str]:
    middle = next(node for node in model.graph.node if node.name == name)
    before = next(node.op_type for node in model.graph.node if middle.input[0] in node.output)
    after = next(node.op_type for node in model.graph.node if middle.output[0] in node.input)
    return before, after


@pytest.mark.parametrize("name", WITH_PLUGIN)
def test_the_node_carries_what_the_plugin_library_reads(name: str) -> None:
    """The op, its name and its attributes are the documented contract, and agree with the recipe."""
    variant = VARIANTS[name]
    node = plugin_node(variant.build())
    attributes = {entry.name: onnx.helper.get_attribute_value(entry).decode() for entry in node.attribute}
    plugin = variant.recipe.plugin
    assert plugin is not None
    assert (node.name, node.domain, node.op_type) == (NODE, DOMAIN, plugin.op)
    assert attributes == {
        "plugin_version": "2" if name.endswith("-v3") else "1",
        "plugin_namespace": "",
        "formats": plugin.formats,
    }


@pytest.mark.parametrize("name", WITH_PLUGIN)
def test_the_plugin_stands_where_the_title_says(name: str) -> None:
    """`q-dq-plugin-q-dq` hands the plugin FP32, everything else INT8 from Q itself."""
    around = (
        ("DequantizeLinear", "QuantizeLinear")
        if name.startswith("q-dq-")
        else ("QuantizeLinear", "DequantizeLinear")
    )
    assert neighbours(VARIANTS[name].build(), NODE) == around


def test_the_native_stand_ins_have_the_plugins_placement() -> None:
    """The MaxPool variants mirror both placements of the plugin."""
    assert neighbours(VARIANTS["q-native-dq"].build(), POOL) == ("QuantizeLinear", "DequantizeLinear")
    assert neighbours(VARIANTS["q-dq-native-q-dq"].build(), POOL) == ("DequantizeLinear", "QuantizeLinear")


def test_the_reported_failure_has_the_reported_node_names_and_rank() -> None:
    """Issue 3844's error names LayerNorm_4, after QuantizeLinear_3 and before DequantizeLinear_5, in 3-D."""
    model = VARIANTS["q-plugin-dq-int8-vectorised"].build()
    assert [node.name for node in model.graph.node] == [
        "QuantizeLinear_3",
        "LayerNorm_4",
        "DequantizeLinear_5",
    ]
    assert len(model.graph.input[0].type.tensor_type.shape.dim) == 3


def test_the_vectorised_control_has_whole_vectors_of_channels() -> None:
    """CHW32 needs a channel dimension; the control gives it a multiple of 32."""
    model = VARIANTS["q-plugin-dq-int8-vectorised-4d"].build()
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    assert len(shape) == 4
    assert shape[1] % 32 == 0


def test_all_four_kinds_of_plugin_are_tried_straight_between_q_and_dq() -> None:
    """Each set of formats has a variant of the advised placement."""
    tried = {
        variant.recipe.plugin.formats
        for variant in CASE
        if variant.recipe.plugin and variant.name.startswith("q-plugin-dq")
    }
    assert tried == {"int8_linear", "int8_vectorised", "fp32", "int8_fp32"}


@pytest.mark.parametrize("name", ["int8-constant-v2", "int8-constant-v3"])
def test_the_int8_constant_feeds_the_plugin_without_a_dequantizelinear(name: str) -> None:
    """The plugin's second input is an INT8 initialiser itself."""
    model = VARIANTS[name].build()
    weight = plugin_node(model).input[1]
    types = {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    assert types[weight] == TensorProto.INT8


@pytest.mark.parametrize("name", STRONG)
def test_strong_variants_are_their_counterparts_graph_without_flags(name: str) -> None:
    """Strong typing is the only difference; a precision flag is an error in a strongly typed network."""
    variant = VARIANTS[name]
    assert variant.counterpart is not None
    assert variant.role is Role.TWIN
    assert variant.recipe.flags == ()
    assert variant.model_bytes() == VARIANTS[variant.counterpart].model_bytes()


@pytest.mark.parametrize("name", WITH_PLUGIN)
def test_by_contract_the_plugin_leaves_the_quantised_input(name: str) -> None:
    """With an identity in the plugin's place the model gives back its input, rounded to the scale's steps."""
    model = VARIANTS[name].build()
    inputs = make_inputs(model)
    evaluator = ReferenceEvaluator(model, new_ops=[CompatIdentity, DequantizeLinear])
    [output] = map(np.asarray, evaluator.run(None, inputs))
    np.testing.assert_allclose(output, inputs["x"], atol=SCALE / 2 + 1e-6)
    assert len(np.unique(output)) >= 20


@pytest.mark.parametrize("name", ["layernorm-native", "layernorm-decomposed"])
def test_both_layer_norms_compute_a_layer_norm(name: str) -> None:
    """The decomposed form and the op give the same numbers, up to one quantisation step."""
    outputs = [
        reference(VARIANTS[n].build(), make_inputs(VARIANTS[n].build())).outputs
        for n in (name, "layernorm-native")
    ]
    first, second = (next(iter(found.values())) for found in outputs if found is not None)
    np.testing.assert_allclose(first, second, atol=SCALE + 1e-6)
    assert 0.8 < float(np.std(first)) < 1.2
