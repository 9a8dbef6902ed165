"""questions.yaml names variants, and a mistake in it is one sentence with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.case import Case, Graph, Link, Variant, load_cases
from harness.case.questions import FILE, Question, load_questions
from harness.errors import HandledError
from harness.words import Engine

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
TOY = Case(
    "toy",
    "A toy",
    "",
    (Link("https://example.org"),),
    (Variant("one", "One", Graph("g").model), Variant("two", "Two", Graph("g").model)),
)
TEXT = """\
schema: 1
questions:
  build:
    asks: Does it build?
    engine: tensorrt_rtx
    links: [https://example.org/1]
    variants: ["toy[two]", "toy[*]"]
"""


def asked(folder: Path, text: str) -> tuple[Question, ...]:
    (folder / FILE).write_text(text)
    return load_questions(folder, (TOY,))


def test_a_question_names_each_variant_once_in_its_own_order(tmp_path: Path) -> None:
    """`[*]` stands for all of a case."""
    rows = (("toy", "two"), ("toy", "one"))
    link = ("https://example.org/1",)
    assert asked(tmp_path, TEXT) == (Question("build", "Does it build?", Engine.TENSORRT_RTX, rows, link),)


def test_without_the_file_nobody_asks(tmp_path: Path) -> None:
    """A folder of cases needs none."""
    assert load_questions(tmp_path, (TOY,)) == ()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (TEXT.replace("toy[two]", "toy[too]"), r":7: .*'toy\[too\]' is no variant; .*toy\[two\]"),
        (TEXT.replace("toy[*]", "tory[*]"), r":7: .*is no variant; .*toy\[\*\]"),
        (TEXT.replace("tensorrt_rtx", "tensorrtx"), ":5: .*engine"),
        (TEXT.replace("https:", "http:"), ":6: .*write an address that begins with https://"),
        (TEXT.replace("  build:", "  Build it:"), ":3: .*use lower-case letters"),
        (TEXT.replace('["toy[two]", "toy[*]"]', "[]"), ":7: "),
        (TEXT.replace("    asks: Does it build?\n", ""), "asks"),
        ("", "schema"),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    """With file and line, and what to do."""
    with pytest.raises(HandledError, match=sentence) as raised:
        asked(tmp_path, text)
    assert str(raised.value).startswith(str(tmp_path / FILE))
    assert "\n" not in str(raised.value)


def test_ours_can_be_read() -> None:
    """Each names variants that are there, or this raises."""
    assert load_questions(ROOT / "cases", load_cases(ROOT / "cases"))
