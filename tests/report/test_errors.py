"""The entry on an error text."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from harness.case import Class, Expectation, Link
from harness.judge.signatures import load_signatures
from harness.report.errors import ErrorEntry, Sighting, error_entries
from harness.words import Basis, Engine
from tests.report import factory

pytestmark = pytest.mark.unit


def entry(name: str, *claims: Expectation) -> ErrorEntry:
    """Return an entry of the hand-made results, with claims added to their first variant."""
    case = factory.case()
    first = case.variants[0]
    added = replace(first, expectations=(*first.expectations, *claims))
    results = factory.assemble(
        factory.matrix(), (replace(case, variants=(added, *case.variants[1:])),), factory.outcomes()
    )
    (found,) = (each for each in error_entries(results) if each.id == name)
    return found


def test_every_signature_has_an_entry_with_a_text() -> None:
    """Failures before warnings before harmless ones, and among failures those with most public threads first."""
    entries = error_entries(factory.results())
    assert sorted(each.id for each in entries) == sorted(each.id for each in load_signatures())
    assert all(each.title and each.advice for each in entries)
    # Those that ask the model print no text of their own.
    silent = {
        each.id
        for each in load_signatures()
        if all(one.where == "graph" or one.model is not None for one in each.patterns)
    }
    assert {each.id for each in entries if not each.texts} == silent
    kinds = [each.kind for each in entries]
    assert kinds == sorted(kinds, key=["failure", "warning", "harmless"].index)
    assert entries[0].id == "bindings-removed"
    harmless = {each.id for each in entries if each.kind == "harmless"}
    assert harmless == {each.id for each in load_signatures() if each.innocent}


def test_what_was_measured_is_told_with_its_versions_and_its_text() -> None:
    found = entry("no-implementation-qdq")
    measured = Sighting(Basis.MEASURED, "TensorRT for RTX 1.4 and 1.7", "measured, 2 cells,")
    assert found.seen == (measured,)
    assert [(one.case, one.variant, one.target) for one in found.reproducers] == [
        ("conv_silu", "qdq", "rtx14")
    ]
    assert found.reading
    assert not entry("negative-scale").reading


def test_a_text_that_onnx_runtime_printed_is_not_tensorrts() -> None:
    assert {text.seen for text in entry("runtime-opset").texts} == {"measured on ONNX Runtime"}
    assert [text.seen for text in entry("rotary-order").texts] == ["measured on TensorRT for RTX"]


def test_what_one_other_product_alone_prints_says_so() -> None:
    """TensorRT, the matrix's subject, is not named, nor is the product of a quoted text if unknown."""
    report = Link("https://github.com/NVIDIA/TensorRT/issues/1")
    onnx_runtime = Expectation.reported(
        Class.BUILD_FAILED, "", report, engine=Engine.ONNXRUNTIME, signature="rotary-order"
    )
    assert entry("rotary-order").only == "TensorRT for RTX"
    assert entry("runtime-opset").only == "ONNX Runtime"
    assert (
        entry("rotary-order", onnx_runtime).only
        == entry("check-links").only
        == entry("no-implementation-qdq").only
        == ""
    )


def test_what_is_reported_is_told_with_its_source() -> None:
    source = Link("https://github.com/NVIDIA/TensorRT/issues/1")
    name = "negative-scale"
    reported = Expectation.reported(Class.BUILD_FAILED, ">=8.5,<9", source, platform="jetson", signature=name)
    found = entry(name, reported)
    assert found.seen == (
        Sighting(Basis.REPORTED, "TensorRT on jetson >=8.5,<9", "reported by users", source.url, ends=True),
    )
    assert [(one.target, one.basis) for one in found.reproducers] == [("l4t86", Basis.REPORTED)]


def test_what_is_reported_of_versions_with_models_that_are_no_variant_is_told() -> None:
    found = entry("check-links")
    assert {(one.basis, "jetson" in one.where) for one in found.seen} == {
        (Basis.REPORTED, False),
        (Basis.REPORTED, True),
    }
    assert found.reproducers == ()


def test_a_range_that_ends_says_so_and_one_that_does_not_does_not() -> None:
    """Else "before 9" is read as mended in 9."""
    assert {one.ends for one in entry("no-low-precision-convolution").seen} == {True}
    assert {one.ends for one in entry("bindings-removed").seen} == {False}


def test_the_signatures_that_a_text_names_are_related() -> None:
    related = [each for each, _ in entry("no-implementation").related]
    assert sorted(related) == ["no-implementation-head", "no-implementation-qdq", "no-implementation-silu"]
    assert all(not each.related for each in error_entries(factory.results()) if each.id.endswith("-qdq"))


def test_a_proof_is_told_with_what_came_of_it_and_one_that_is_not_here_is_left_out() -> None:
    """The cases of the factory have one of the catalogue's proofs."""
    assert [proof.id for proof in entry("no-implementation-silu").proofs] == ["conv_silu.qdq"]
    assert entry("no-implementation-silu").proofs[0].known


def test_a_quoted_text_has_the_address_where_it_stands() -> None:
    texts = {each.text: each for each in entry("no-plugin-format").texts}
    (one,) = (each for text, each in texts.items() if "LayerNorm_4" in text)
    assert (one.seen, one.url) == ("quoted", "https://github.com/NVIDIA/TensorRT/issues/3844")


def test_no_entry_has_a_blank() -> None:
    for entry in error_entries(factory.results()):
        for text in (entry.title, entry.cause, entry.advice, entry.harmless):
            assert not re.search(r"<[a-z]+>|\{\w+\}", text), entry.id
