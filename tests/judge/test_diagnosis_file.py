"""diagnosis.yaml as it is read: a bad entry is one sentence with file and number."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import HandledError
from harness.judge.diagnosis import SIGNATURES, load_signatures

pytestmark = pytest.mark.unit

GOOD_ENTRY = """
- id: a-b
  patterns:
    - errors: 'x(?P<n>y)'
  title: t
  cause: c {n}
  advice: a
"""


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("id: a-b", "id: A b"), "an id is"),
        (("title: t", "title: ''"), "title wants a text"),
        (("advice: a", ""), "advice wants a text"),
        (("advice: a", "advice: a\n  colour: red"), "no field 'colour'"),
        (("errors:", "errror:"), "a pattern is one of"),
        (("'x(?P<n>y)'", "'x('"), "no regular expression"),
        (("'x(?P<n>y)'", "7"), "no regular expression"),
        (("{n}", "{m}"), "uses {m}"),
        (("advice: a", "advice: a\n  generic: maybe"), "generic wants true or false"),
        (("advice: a", "advice: a\n  links: here"), "links wants a list"),
        (("advice: a", "advice: a\n  standard_op: true"), "standard_op needs"),
        (("    - errors: 'x(?P<n>y)'", "    []"), "patterns wants a list"),
    ],
)
def test_a_bad_entry_is_named(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    """One sentence with file, entry number and what is wrong."""
    path = tmp_path / "d.yaml"
    path.write_text(GOOD_ENTRY)
    assert load_signatures(path)[0].id == "a-b"
    load_signatures.cache_clear()
    path.write_text(GOOD_ENTRY.replace(*change))
    with pytest.raises(HandledError, match=r"d\.yaml: entry 1") as caught:
        load_signatures(path)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["a: [", "a: b", "- text"])
def test_a_file_that_is_no_list_of_entries(tmp_path: Path, text: str) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(text)
    with pytest.raises(HandledError, match=r"d\.yaml"):
        load_signatures(path)
    with pytest.raises(HandledError, match="cannot be read"):
        load_signatures(tmp_path / "none.yaml")


def test_two_entries_of_one_name(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(GOOD_ENTRY * 2)
    with pytest.raises(HandledError, match="two entries are called 'a-b'"):
        load_signatures(path)


def test_the_shipped_file_is_the_one_that_is_read() -> None:
    assert SIGNATURES.is_file()
