"""What the repository holds of generated pages is what its code writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tools import docs

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("name", docs.PAGES)
def test_a_page_is_up_to_date(name: str) -> None:
    assert not docs.stale(name, docs.PAGES[name]())


def test_a_stale_page_is_told_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docs, "TOP", tmp_path)
    (tmp_path / "a.md").write_text("old\n", encoding="utf-8")
    assert docs.stale("a.md", "new\n") == ("a.md is out of date: run `make docs` and commit what it writes")
    assert docs.stale("gone.md", "new\n").startswith("gone.md is out of date")
    assert docs.stale("a.md", "old\n") == ""
