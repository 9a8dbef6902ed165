"""What changed between versions is told once for all variants that it happened to."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from harness.report.compare.grouped import grouped
from harness.report.exports.markdown import summary
from harness.report.model import Change
from harness.report.page.html import render
from tests.report import factory

FIXED = "fails to build before, builds after"
BROKEN = "builds before, fails to build after"


def change(variant: str, shared: str = FIXED, detail: str = "", **fields: Any) -> Change:
    plain = Change("conv_silu", variant, "RTX", "rtx16", "rtx17", "class", True, "1.6 to 1.7", shared, detail)
    return replace(plain, **fields)


def test_variants_of_one_change_are_one_group_with_their_own_precision() -> None:
    """The result is shared; the precision behind it is each variant's own."""
    changes = [change("a", detail="INT8 1/1"), change("b", detail="kept 4/4"), change("c")]
    (group,) = grouped(changes, 10)
    assert group.head == "RTX 1.6 to 1.7: 3 variants"
    assert group.kind == "result, better"
    assert group.text == "fails to build before, builds after"
    assert [(one.variant, one.detail) for one in group.named] == [
        ("a", "INT8 1/1"),
        ("b", "kept 4/4"),
        ("c", ""),
    ]


def test_a_group_differs_by_series_versions_what_direction_and_result() -> None:
    """Two variants stand together only where one sentence is true of both."""
    changes = [
        change("a"),
        change("b", series="RTX, SM 7.5"),
        change("c", versions="1.5 to 1.7"),
        change("d", versions="1.6 to 1.7 (1.65 not run)"),
        change("e", "crashes before, builds after"),
        change("f", BROKEN, better=False),
        change("g", "", "/conv fp32 → int8", what="precision"),
    ]
    groups = grouped(changes, 10)
    assert len(groups) == len(changes)
    assert groups[0].kind == "result, worse"
    assert groups[-1].kind == "precision, better"
    assert "1.6 to 1.7 (1.65 not run)" in {group.versions for group in groups}


def test_nodes_and_layers_are_told_of_each_variant() -> None:
    """Their texts have a node's name in them, so that no two are alike."""
    texts = [
        "6 → 7 layers",
        "6 → 4 layers; /a was alone in fp32, now fused with /b in fp32",
    ]
    changes = [change(str(at), "", text, what="layers", better=None) for at, text in enumerate(texts)]
    (group,) = grouped(changes, 10)
    assert (group.kind, group.text) == ("layers", "")
    assert [one.detail for one in group.named] == texts


def test_no_more_are_named_than_asked_for_and_all_are_counted() -> None:
    """The page stays small; the worst are named first."""
    changes = [change(str(at)) for at in range(5)] + [
        change(str(at), BROKEN, better=False) for at in range(3)
    ]
    groups = grouped(changes, 4)
    assert [(group.kind, group.count, len(group.named)) for group in groups] == [
        ("result, worse", 3, 3),
        ("result, better", 5, 1),
    ]
    assert [len(group.named) for group in grouped(changes, 2)] == [2, 0]


def test_every_change_of_a_matrix_is_in_one_group() -> None:
    """What the ranges find is told, each once."""
    changes = factory.results().changes
    groups = grouped(changes, len(changes))
    assert sorted(id(one) for group in groups for one in group.named) == sorted(map(id, changes))
    assert all(re.fullmatch(r"1\.\d to 1\.\d( \(.* not run\))?", group.versions) for group in groups)
    assert {group.kind for group in groups} <= {
        f"{what}{way}" for what in ("result", "precision", "layers") for way in ("", ", better", ", worse")
    }


def test_page_and_summary_tell_a_change_once() -> None:
    """Dozens of lines that say the same are one line, with a link for each variant, and "class" is not said."""
    names = ("qdq", "qdq-between", "fp32")
    changes = tuple(change(name, detail="INT8 1/1") for name in names)
    results = replace(factory.results(), changes=changes)
    page = render(results)
    section = page[page.index('id="changes"') : page.index('id="recent"')]
    assert section.count("fails to build before, builds after") == 1
    assert section.count("<details") == 1
    assert "RTX 1.6 to 1.7: 3 variants" in section
    assert "result, better" in section
    assert "class, better" not in page
    for name in names:
        link = f'href="#conv_silu.{name}-rtx17" data-vs="rtx16">conv_silu.{name}</a>'
        assert f"{link} INT8 1/1" in section
    text = summary(results)
    assert (
        "## Changed between versions (3)\n\n- **RTX 1.6 to 1.7: 3 variants**, result, better: fails to"
        in text
    )
    assert "  - INT8 1/1: `conv_silu.qdq`, `conv_silu.qdq-between`, `conv_silu.fp32`\n" in text


def test_summary_counts_what_it_does_not_name() -> None:
    """A job page that is read every morning is short."""
    changes = tuple(change(f"v{at}") for at in range(47))
    text = summary(replace(factory.results(), changes=changes))
    (line,) = (line for line in text.splitlines() if "`conv_silu.v0`" in line)
    assert line.endswith("`conv_silu.v11` and 35 more")
