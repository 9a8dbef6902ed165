"""A report says whose measurements it shows, and which were taken back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.record.outcome import Outcome
from harness.record.store import Store
from harness.report import build_report, verify_report
from harness.report.contributions import Contribution, contributions
from tests.report import factory

pytestmark = pytest.mark.unit

L4 = {"gpu": "NVIDIA <L4>", "compute_capability": "8.9", "gpu_hash": "0" * 24}


def sent(who: str, *, on: str = "trt102", day: int = 20) -> Outcome:
    """Return what somebody sent in; "" is the project."""
    found = factory.on_gpu(factory.ran("qdq", on), L4, run=who or "own", day=day)
    return replace(found, stamps=replace(found.stamps, submission=who and f"id-{who}", account=who))


def test_submissions_are_counted_and_those_taken_back_told_with_the_reason() -> None:
    outcomes = [sent("bob", day=21), sent("alice"), sent("alice", on="trt86"), sent("")]
    assert contributions(outcomes, {"id-carol": "why"}) == (
        Contribution(
            "id-alice", "alice", "trt102, trt86", "NVIDIA <L4>", "8.9", "0" * 24, 2, outcomes[1].stamps.when
        ),
        Contribution("id-bob", "bob", "trt102", "NVIDIA <L4>", "8.9", "0" * 24, 1, outcomes[0].stamps.when),
        Contribution("id-carol", revoked="why"),
    )
    assert contributions([sent("")], {}) == ()


def test_the_page_names_them_and_what_was_revoked_is_in_no_file(tmp_path: Path) -> None:
    matrix, cases = factory.matrix(), (factory.case(),)
    with Store(tmp_path) as store:
        for who in ("", "alice", "bob"):
            store.append(sent(who))
    build_report(matrix, cases, Store(tmp_path), tmp_path)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert (
        '<th scope="row">alice</th><td>1 cells of <code>trt102</code></td><td>NVIDIA &lt;L4&gt; (8.9)' in page
    )
    # What others sent is no part of the project's own past.
    assert [path.name for path in (tmp_path / "history").iterdir() if "own" not in path.name] == []
    (tmp_path / "submissions").mkdir()
    (tmp_path / "submissions" / "revoked.yaml").write_text("id-alice: a patched <driver>\n", encoding="utf-8")
    results = build_report(matrix, cases, Store(tmp_path), tmp_path)
    assert [each.id for each in results.submissions] == ["id-bob", "id-alice"]
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert ("alice</th>" in page, "a patched &lt;driver&gt;" in page) == (False, True)
    assert verify_report(matrix, cases, Store(tmp_path), tmp_path) == []
    assert {outcome.stamps.account for outcome in Store(tmp_path).outcomes()} == {"", "bob"}


def test_a_report_without_submissions_says_nothing_of_them(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.append(sent(""))
    build_report(factory.matrix(), (factory.case(),), Store(tmp_path), tmp_path)
    assert "Whose measurements" not in (tmp_path / "index.html").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["submissions"] == []
