"""The operator tables are read as NVIDIA wrote them."""

from __future__ import annotations

import pytest
from packaging.version import Version

from harness.judge.names import read_since
from harness.matrix.operators import ChangelogLine, changelog, operator_tables, restrictions, tables_around

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


@pytest.mark.parametrize("line", changelog(), ids=lambda line: f"{line.operator}-{line.what}")
def test_a_line_of_a_changelog_agrees_with_names_and_tables(line: ChangelogLine) -> None:
    """No table before the release has what it brought, and each from then on has it."""
    release = Version(line.release)
    tables = operator_tables()
    if line.what == "imports":
        for table in tables:
            assert (line.operator in table.importers) == (Version(table.release) >= release), table.release
        assert read_since(line.operator)["first"] == f"from {line.release} on"
        return
    facts = [fact for fact in tables[-1].importers[line.operator].facts if line.release in fact.words]
    assert facts, "no fact of operators.tsv says that this release ended it"
    assert all(fact.last < release == fact.ended for fact in facts)


def test_no_operator_is_told_to_be_read_by_no_version_that_a_changelog_names() -> None:
    """Swish and DFT were, though 11.0 and 11.2 read them."""
    named = {line.operator: line.release for line in changelog() if line.what == "imports"}
    assert {"Swish", "DFT", "RotaryEmbedding", "Attention"} <= set(named)
    assert all("no version" not in read_since(operator)["first"] for operator in named)
