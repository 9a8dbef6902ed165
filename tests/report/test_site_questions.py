"""The questions' page: answers are made of results, alike ones together, and of no guess."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.case.questions import Question
from harness.report.results import assemble
from harness.report.site import paths, site_files
from harness.report.site.material import Beside, Material
from harness.report.site.question_pages import answered
from harness.words import Engine
from tests.report import factory
from tests.report.crawl import dead, pages

pytestmark = pytest.mark.unit


def question(*names: str, engine: Engine = Engine.TENSORRT_RTX) -> Question:
    rows = tuple(("conv_silu", name) for name in names)
    return Question("loss", "Is INT8 <lost>?", engine, rows, ("https://github.com/a/b/issues/7",), "To know.")


def test_an_answer_is_told_along_the_versions_of_its_engine() -> None:
    """Of no other engine, though the variant has results there too."""
    found = answered(question("qdq-between"), Material(factory.results()))
    (answer,) = found.answers
    (line,) = answer.lines
    assert line.product == "TensorRT for RTX"
    assert [clause.versions for clause in line.clauses] == ["1.4", "1.5 to 1.6", "1.7"]


def test_variants_that_are_known_alike_are_one_answer() -> None:
    """The answer that the most share comes first; what is guessed alone says nothing."""
    results = factory.results()
    names = [variant.name for variant in results.cases[0].variants]
    found = answered(question(*names), Material(results))
    sizes = [len(answer.variants) for answer in found.answers]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(sizes) + len(found.open) == len(names)
    lines = [answer.lines for answer in found.answers]
    told = [[(line.product, [c.first.said for c in line.clauses]) for line in each] for each in lines]
    assert len(told) == len({str(each) for each in told})
    assert not [c for each in lines for line in each for c in line.clauses if c.first.guessed]
    nothing = answered(question(*names), Material(assemble(factory.matrix(), (factory.case(),), {})))
    # Of `qdq` there is a claim that was measured before.
    assert [each.name for each in nothing.open] == names[1:]


def test_sizes_are_told_of_engines_that_were_built() -> None:
    """Version by version, with the time to parse and build; a dash where there is no engine."""
    asked = replace(question("qdq", "qdq-between", "gone"), sizes=True)
    found = answered(asked, Material(factory.results())).sizes
    assert found is not None
    cells = {cell.id: cell for cell in factory.results().cells}
    for variant, row in found.rows:
        for target, built in zip(found.targets, row, strict=True):
            cell = cells[f"conv_silu[{variant.name}]-{target.id}"]
            assert (built.size if built else None) == (cell.engine_bytes if cell.measured else None)
    assert any(built and built.seconds for _, row in found.rows for built in row)
    assert {target.engine for target in found.targets} == {"tensorrt_rtx"}
    page = site_files(factory.results(), {}, "", Beside(questions=(asked,)))[paths.QUESTIONS].decode()
    assert " kB<br>" in page


def test_the_page_is_linked_and_escapes_what_is_asked() -> None:
    """From every page and from the first one by each question; and there is none where nobody asks."""
    files = site_files(factory.results(), {}, "", Beside(questions=(question("qdq-between", "gone"),)))
    files = {**files, paths.REPORT: b"", paths.DATA: b"", paths.SCHEMA: b""}
    assert [link for link in dead(files) if "questions" in str(link)] == []
    page = pages(files)[paths.QUESTIONS]
    assert "loss" in page.ids
    assert "https://github.com/a/b/issues/7" in page.outside
    text = files[paths.QUESTIONS].decode()
    assert "Is INT8 &lt;lost&gt;?" in text
    assert "a/b #7" in text
    assert 'href="questions/index.html#loss"' in files[paths.ENTRY].decode()
    assert paths.QUESTIONS not in site_files(factory.results())
    assert b"questions/" not in site_files(factory.results())[paths.ENTRY]
