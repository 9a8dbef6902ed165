"""What was taken back counts no longer, and a list of it that says something else stops everything."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import HandledError
from harness.record.revoked import revoked

pytestmark = pytest.mark.unit


def listed(folder: Path, text: str) -> dict[str, str]:
    (folder / "revoked.yaml").write_text(text, encoding="utf-8")
    return revoked(folder)


def test_the_reasons_by_id(tmp_path: Path) -> None:
    """An id is text, also one of digits: read as a number, `1e10` or `0123` would be no submission's."""
    text = '# taken back\n0123456789ab: a patched driver\n123456789012: "7"\n1e10: why\n0123: two\n  lines\n'
    assert listed(tmp_path, text) == {
        "0123456789ab": "a patched driver",
        "123456789012": "7",
        "1e10": "why",
        "0123": "two lines",
    }


def test_where_nothing_was_revoked_there_is_no_file(tmp_path: Path) -> None:
    """Nor need the folder be there; other files in it say nothing."""
    assert revoked(tmp_path / "none") == {}
    (tmp_path / "accounts.yaml").write_text("a: b\n", encoding="utf-8")
    assert revoked(tmp_path) == {}
    assert listed(tmp_path, "{}\n") == {}


@pytest.mark.parametrize(
    "text",
    [
        "- 0123456789ab\n",
        "0123456789ab\n",
        "a: b\n0123456789ab:\n",
        'a: b\n0123456789ab: ""\n',
        'a: b\n0123456789ab: " "\n',
        "a: b\n0123456789ab: 7\n",
        "a: b\n0123456789ab: 2026-01-01\n",
        "a: b\n0123456789ab: [why]\n",
        "a: b\n0123456789ab: {why: x}\n",
        # Every reason is one, and yet it is not said which of two counts.
        "a: b\na: c\n",
        "a: 7\na: c\n",
        "a: !odd b\n",
    ],
)
def test_a_list_that_says_something_else_is_one_sentence(tmp_path: Path, text: str) -> None:
    with pytest.raises(HandledError) as caught:
        listed(tmp_path, text)
    assert str(caught.value) == (
        f"{tmp_path}/revoked.yaml: is no list of ids, each with a reason; write lines like `0123456789ab: why`"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ": is empty; it needs the ids of submissions, each with a reason: `0123456789ab: why`"),
        (
            "# nobody\n",
            ": is empty; it needs the ids of submissions, each with a reason: `0123456789ab: why`",
        ),
        ("a: b\n\tc: d\n", ":2: holds a tab, which YAML does not take as indentation; use spaces"),
        ("a: b\n? [\n", ":3: is not YAML: "),
    ],
)
def test_a_list_that_cannot_be_read_is_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    """With its line where one is at fault; an empty list may be one that was cut short."""
    with pytest.raises(HandledError) as caught:
        listed(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path}/revoked.yaml{said}")
    assert "\n" not in str(caught.value)
