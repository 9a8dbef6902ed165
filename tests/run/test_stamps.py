"""The commit that results are stamped with is that of the harness, and says where it was changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.run import stamps
from tests.share.measured import git

pytestmark = pytest.mark.unit


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(stamps, "TOP", tmp_path)
    stamps.harness_commit.cache_clear()
    yield tmp_path
    stamps.harness_commit.cache_clear()


def test_a_clean_checkout_gives_its_commit_and_a_changed_one_a_plus(checkout: Path) -> None:
    """A document may change; what decides results may not go unnoticed."""
    git(checkout, "init", "--quiet")
    for name in ("matrix.yaml", "README.md"):
        (checkout / name).write_text("a")
    git(checkout, "add", ".")
    git(checkout, "commit", "--quiet", "-m", "a")
    head = git(checkout, "rev-parse", "--short=12", "HEAD")
    (checkout / "README.md").write_text("b")
    assert stamps.harness_commit() == head
    stamps.harness_commit.cache_clear()
    (checkout / "matrix.yaml").write_text("b")
    assert stamps.harness_commit() == f"{head}+"


def test_an_installed_harness_has_none(checkout: Path) -> None:
    """Also inside somebody else's repository."""
    git(checkout.parent, "init", "--quiet")
    assert stamps.harness_commit() == ""
