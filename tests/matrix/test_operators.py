"""The operator tables are read as NVIDIA wrote them."""

from __future__ import annotations

import pytest

from harness.matrix.operators import operator_tables, restrictions, tables_around

pytestmark = pytest.mark.unit


def test_a_cell_says_what_it_takes_and_a_dash_that_there_is_no_importer() -> None:
    tables = {table.release: table.importers for table in operator_tables()}
    assert list(tables) == ["8.5", "8.6", "9.2", "9.3", "10.0", "10.1", "10.15"]
    assert tables["8.6"]["DequantizeLinear"].types == {"INT8"}
    assert tables["10.1"]["DequantizeLinear"].types == {"INT8", "FP8", "INT4"}
    assert tables["10.1"]["TopK"].restrictions == ("sorted", "k-limit")
    assert next(name for name, each in tables.items() if "LayerNormalization" in each) == "8.6"
    assert not any("BitShift" in each for each in tables.values())


def test_every_restriction_of_a_cell_has_words() -> None:
    named = {
        name for table in operator_tables() for each in table.importers.values() for name in each.restrictions
    }
    assert named == set(restrictions())


@pytest.mark.parametrize(
    ("version", "around"),
    [
        ("8.4.1", (None, "8.5")),
        ("8.6.1", ("8.6", "8.6")),
        ("10.3.0.26", ("10.1", "10.15")),
        ("11.2.1.2", ("10.15", None)),
    ],
)
def test_a_version_stands_at_a_table_or_between_two(
    version: str, around: tuple[str | None, str | None]
) -> None:
    assert tuple(each and each.release for each in tables_around(version)) == around
