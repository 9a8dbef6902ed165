"""Patterns that mean the same in Python and in JavaScript, and the refusal of others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.errors import HandledError
from harness.judge.signatures import Unportable, javascript, load_signatures

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        (r"(?P<x>a)b", r"(?<x>a)b"),
        (r"\Aa\Z", r"(?<![\s\S])a(?![\s\S])"),
        (r"a.b$", r"a[^\n]b(?=\n?(?![\s\S]))"),
        (r"\s\S", r"[ \t\n\r\f\v][^ \t\n\r\f\v]"),
        (r"[^\s(]", r"[^ \t\n\r\f\v\(]"),
        (r"[\s\S]*", r"[\s\S]*"),
        (r"[a\[[b\--]", r"[a\[\[b\--]"),
        (r"a]b}\-\"", r'a\]b\}-"'),
        (r"(?:a|b)+?c{2,}", r"(?:a|b)+?c{2,}"),
        (r"(?<!\w)(?!x)\x41", r"(?<!\w)(?!x)\x41"),
    ],
)
def test_what_differs_is_rewritten(pattern: str, said: str) -> None:
    assert javascript(pattern) == said


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(?i)a", "'(?i' is not in the subset"),
        ("(?s:a)", "'(?s' is not in the subset"),
        ("(?>a)", "'(?>' is not in the subset"),
        ("(?#a)", "'(?#' is not in the subset"),
        ("(a)(?(1)b|c)", "'(?(' is not in the subset"),
        ("(?P<x>a)(?P=x)", "'(?P' is not in the subset"),
        (r"(a)\1", r"'\\1' is not in the subset"),
        (r"\N{DASH}", r"'\\N' is not in the subset"),
        ("a++", "'++' never gives back what it took; write '+'"),
        ("a{2}+", "'{2}+' never gives back what it took"),
        ("(?:(?P<x>a)|b)*", "a group is captured in a part that is repeated"),
        ("(?!(?P<x>a))", "a group is captured in what must not be there"),
        ("(?:a?)*", "'(?:a?)' is repeated and may be empty"),
        (r"[^\S]", r"'\\S' in a class is not in the subset"),
        ("a{b", "'{' stands alone"),
        ("a\\", r"a backslash with nothing behind it ends the pattern; write '\\' for one"),
        # Python warns of these, and a warning is no sentence with a line.
        ("[[a]", "'[[' may mean a set of sets one day"),
        ("[^[a]", "'[^[' may mean a set of sets one day"),
        ("[ab--c]", "'--' may mean a set of sets one day"),
        ("[a&&b]", "'&&' may mean a set of sets one day"),
    ],
)
def test_what_has_no_counterpart_is_refused(pattern: str, said: str) -> None:
    with pytest.raises(Unportable, match=re.escape(said)):
        javascript(pattern)


def test_a_group_that_may_be_left_out_may_capture() -> None:
    assert javascript(r"a(?:\.(?P<x>\w+))?") == r"a(?:\.(?<x>\w+))?"


def test_a_file_with_such_a_pattern_is_refused_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "d.yaml"
    file.write_text("- id: a\n  patterns:\n    - errors: '(?i)x'\n  title: t\n  cause: c\n  advice: a\n")
    with pytest.raises(
        HandledError, match=r"d\.yaml:3: \[0\]\.patterns\[0\]\.errors: '\(\?i' is not in the subset"
    ):
        load_signatures(file)


def test_classes_of_characters_are_those_of_ascii() -> None:
    """In JavaScript they are so in any case."""
    for signature in load_signatures():
        assert all(pattern.regex.flags & re.ASCII for pattern in signature.patterns)
