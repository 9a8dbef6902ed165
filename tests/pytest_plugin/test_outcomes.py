"""Which of pytest's outcomes a verdict gets."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from harness.pytest_plugin.cells import CellItem, pytest_runtest_makereport
from harness.words import Verdict

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("verdict", [Verdict.KNOWN_FAILURE, Verdict.FAILS_WHEN_RUN])
def test_what_is_known_to_fail_is_no_pass(verdict: Verdict) -> None:
    """Nor is what was only built here and is known to fail when it is run."""
    judged: Any = SimpleNamespace(judgement=SimpleNamespace(verdict=verdict, sentence="as reported"))
    item = object.__new__(CellItem)
    item.judged = judged
    report: Any = SimpleNamespace(outcome="passed")
    call: Any = SimpleNamespace(when="call")
    made = pytest_runtest_makereport(item, call)
    next(made)
    with pytest.raises(StopIteration):
        made.send(report)
    assert (report.outcome, report.wasxfail) == ("skipped", "as reported")
