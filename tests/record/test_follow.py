"""A store is followed while another process writes to it: each record once, whole, and with its log."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.record.follow import Follower
from harness.record.store import Store
from tests.record.test_store import outcome

pytestmark = pytest.mark.unit


def test_each_record_comes_once_when_it_is_whole(tmp_path: Path) -> None:
    follower = Follower(tmp_path)
    assert list(follower.new()) == []
    with Store(tmp_path) as store:
        first = store.append(outcome("a.v-t"), "the log")
        assert list(follower.new()) == [(first, "the log")]
        assert list(follower.new()) == []
        second = store.append(outcome("b.v-t"))
    (file,) = (tmp_path / "records").iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:-10])
    assert list(follower.new()) == []
    file.write_bytes(whole)
    with Store(tmp_path) as store:
        third = store.append(outcome("c.v-t"))
    # A file each, in the order of their names.
    assert list(follower.new()) == [(third, ""), (second, "")]


def test_a_record_waits_for_a_log_that_is_not_to_be_seen_yet(tmp_path: Path) -> None:
    """On a network file system the files of a folder need not come in their order."""
    follower = Follower(tmp_path)
    with Store(tmp_path) as store:
        kept = store.append(outcome(), "the log")
    (log,) = (tmp_path / "logs").rglob("*.gz")
    away = log.rename(tmp_path / "away")
    assert list(follower.new()) == []
    away.rename(log)
    assert list(follower.new()) == [(kept, "the log")]
