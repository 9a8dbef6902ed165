"""Text that is nearly what an engine prints, and a megabyte of it, is read in seconds.

Each took the square or the cube of its length once: hours, with a pattern for a whole line or a search to the end.
"""

from __future__ import annotations

import json

import pytest

from benchmarks.parser_growth import NODES
from harness.layers import LayerReport, Source, parse_layers

pytestmark = [pytest.mark.unit, pytest.mark.timeout(60)]

LENGTH = 1_000_000
TENSOR = "{ Name: x, Dimensions: [1,8], Datatype: Half"


def filled(unit: str, before: str = "", after: str = "") -> str:
    return before + unit * (LENGTH // len(unit)) + after


@pytest.mark.parametrize(
    "unit",
    [
        "Layer(Conv): a, Tactic: 0x0, ",
        ", Tactic: 1, ",
        "x[Float(1,2)] -> ",
        ")] -> ",
        "x[Float(1,2)]",
        "y (Half[1,",
        "[Float(1)], ",
        *" (a1",
    ],
)
def test_a_line_of_an_8_x_log_that_is_nearly_one(unit: str) -> None:
    assert parse_layers("log_8x", filled(unit, "Layer(Conv): a, Tactic: 0x0, "), nodes=NODES).unparsed == 1
    parse_layers("log_8x", filled(unit, "Layer(Conv): a, Tactic: 0x0, ", "z[Int8(1)]"), nodes=NODES)


@pytest.mark.parametrize(
    "unit",
    [
        f"Name: a, LayerType: conv, Inputs: [ {TENSOR}\n",
        f"{TENSOR}",
        ", Dimensions: [1,8], Datatype: Half",
        ", LayerType: conv, ",
        "Name: a\n",
        *" \n,a1",
    ],
)
def test_layers_of_a_verbose_log_that_are_nearly_some(unit: str) -> None:
    for before in ("", f"Name: a, LayerType: conv, Inputs: [{TENSOR[:12]}"):
        assert parse_layers("verbose_log", filled(unit, f"Layers:\n{before}", "\n. LayerType: ")).unparsed


def test_a_white_space_that_has_no_end_in_a_verbose_log() -> None:
    whole = f"Name: a, LayerType: conv, Inputs: [], Outputs: [{TENSOR} }}]"
    report = parse_layers("verbose_log", filled(" ", f"Layers:\n{whole}", "."))
    assert [layer.name for layer in report.layers] == ["a"]


@pytest.mark.parametrize(
    "unit", ["{ForeignNode[", "...", "a...", "w...)", "{ForeignNode[w...", " + ", "a || "]
)
@pytest.mark.parametrize("region", [False, True])
def test_a_layers_name_that_is_nearly_one_of_nodes(unit: str, *, region: bool) -> None:
    name = filled(unit, "{ForeignNode[", "]}") if region else filled(unit)
    assert len(inspect(name).layers) == 1


def test_sizes_that_no_tensor_has_are_not_multiplied() -> None:
    constant = {"Name": "w", "Datatype": "Int8", "Dimensions": [10**18] * (LENGTH // 20)}
    report = inspect("a", LayerType="convolution", Inputs=[constant], Constants=[constant])
    assert report.layers[0].precision == "int8"
    assert inspect("a", Inputs=[{**constant, "Dimensions": [10**4000]}]).unparsed == 1


@pytest.mark.parametrize(
    "said", ["[" * LENGTH, '{"Layers": ' * (LENGTH // 11), '{"Layers": [' + "1" * LENGTH]
)
def test_json_that_has_no_end_is_not_understood(said: str) -> None:
    assert parse_layers("inspector", said).unparsed == 1


def test_a_size_without_end_is_not_understood() -> None:
    said = '{"Layers": [{"Name": "a", "Inputs": [{"Name": "x", "Dimensions": [1e999]}]}]}'
    assert parse_layers("inspector", said).unparsed == 1


def inspect(name: str, **fields: object) -> LayerReport:
    source: Source = "inspector"
    return parse_layers(source, json.dumps({"Layers": [{"Name": name, **fields}]}), nodes=NODES)
