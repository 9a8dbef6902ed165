"""A child that does many cells: whatever one of them does, its neighbours' records are those of a run without it."""

from __future__ import annotations

import dataclasses
import os
import re
import signal
from typing import Any

import pytest

from harness.case import Plugin
from harness.plan import Cell
from harness.record.outcome import Outcome
from harness.words import Class
from tests.run.bench import Bench, cell, classified, target

pytestmark = pytest.mark.integration

#: MiB: a child that keeps more than three quarters of it, less the agent's part, does no other cell.
MEMORY = 1200


def observed(outcome: Outcome) -> dict[str, Any]:
    """Return a record without what no two runs share."""
    assert outcome.end is not None
    end = dataclasses.replace(outcome.end, peak_rss_bytes=None, jobs_before=0)
    stamps = dataclasses.replace(outcome.stamps, when="", environment={})
    fields = dataclasses.replace(outcome, end=end, stamps=stamps, phases={}, log_sha256=None).to_json()
    # The frames of a child that hangs are those of the moment.
    native = re.sub(r"(?m)^(?:  File|Current thread) .*\n?", "", fields["native_output"])
    fields["native_output"] = re.sub(r"0x\w+", "0x", native)
    fields["messages"] = [message for message in fields["messages"] if "process " not in message["text"]]
    return fields


def jobs_before(outcome: Outcome) -> int:
    assert outcome.end is not None
    return outcome.end.jobs_before


def process(outcome: Outcome) -> int:
    (found,) = re.findall(r"process (\d+)", " ".join(message.text for message in outcome.messages))
    return int(found)


def toy(do: str = "") -> Any:
    return target(memory_mib=MEMORY, timeout_s=3 if do == "hang" else 60)


def test_cells_share_a_child_and_their_records_say_so(bench: Bench) -> None:
    runner = bench.runner(toy())
    found = [runner.run(cell("who", runner.target))[0] for _ in range(3)]
    assert len({process(outcome) for outcome in found}) == 1
    assert [jobs_before(outcome) for outcome in found] == [0, 1, 2]
    assert [outcome.end and outcome.end.peak_rss_bytes for outcome in found[1:]] == [None, None]
    assert observed(found[0]) == observed(found[2])


@pytest.mark.parametrize("bench", ["venv"], indirect=True)
def test_a_process_a_cell_can_be_asked_for(bench: Bench) -> None:
    runner = bench.runner(toy(), isolated=True)
    found = [runner.run(cell("who", runner.target))[0] for _ in range(3)]
    assert len({process(outcome) for outcome in found}) == 3
    assert [jobs_before(outcome) for outcome in found] == [0, 0, 0]


@pytest.mark.parametrize(
    "do",
    [
        *("segfault", "abort", "exit", "hang", "eat", "raise", "leak", "break_cuda", "set_variable"),
        *("orphan", "flood"),
    ],
)
def test_an_accident_in_a_shared_child_costs_its_own_cell(bench: Bench, do: str) -> None:
    """Both neighbours: the one before, in the same child, and the one after, for which the child is another."""
    alone = observed(bench.runner(toy(do)).run(cell("lean", toy(do)))[0])
    accident = observed(bench.runner(toy(do)).run(cell(do, toy(do)))[0])
    runner = bench.runner(toy(do))
    before, between, after = (runner.run(cell(each, runner.target))[0] for each in ("lean", do, "lean"))
    assert observed(before) == alone
    assert observed(between) == accident
    assert observed(after) == alone
    assert jobs_before(after) == (0 if do != "flood" else 2)
    assert len(bench.agents) == 3


def test_plugins_are_registered_in_a_child_of_their_own(bench: Bench) -> None:
    """The cells of a plugin share it, and no other cell is done in it."""
    runner = bench.runner(toy())
    plugged = cell("register", runner.target, plugin=Plugin("CompatIdentity", "int8_linear"))
    outcomes = [runner.run(each)[0] for each in (plugged, plugged, cell("lean", runner.target), plugged)]
    assert [jobs_before(each) for each in outcomes] == [0, 1, 0, 0]
    assert [bool(each.error) for each in outcomes] == [False, True, True, False]


def test_news_is_run_again_in_a_fresh_child_and_that_record_counts(bench: Bench) -> None:
    """Nobody saw what the first cell left; but that the second fails is news."""

    def is_news(_: Cell, outcome: Outcome) -> bool:
        return bool(outcome.error)

    runner = bench.runner(toy(), is_news=is_news)
    assert classified(runner.run(cell("who", runner.target))[0]).cls is Class.BUILT
    outcome, log = runner.run(cell("first", runner.target))
    assert (classified(outcome).cls, jobs_before(outcome)) == (Class.BUILT, 0)
    assert "[run again] news" in log
    # The child of the second try goes on, and a failure that is no news is taken as it is.
    runner._is_news = lambda *_: False
    outcome, _ = runner.run(cell("first", runner.target))
    assert (outcome.error, jobs_before(outcome)) == ("somebody was here before", 1)


@pytest.mark.parametrize("bench", ["venv"], indirect=True)
def test_a_shared_child_that_is_killed_loses_nothing(bench: Bench) -> None:
    """In the middle of a cell, which is run again; between two cells, where nobody notices until the next."""
    runner = bench.runner(toy())
    child = process(runner.run(cell("who", runner.target))[0])
    bench.during(lambda: os.kill(child, signal.SIGKILL))
    outcome, log = runner.run(cell("nap", runner.target))
    assert (classified(outcome).cls, jobs_before(outcome)) == (Class.BUILT, 0)
    assert "(killed by SIGKILL)" in log
    child = process(runner.run(cell("who", runner.target))[0])
    os.kill(child, signal.SIGKILL)
    outcome = runner.run(cell("who", runner.target))[0]
    assert (process(outcome) != child, jobs_before(outcome)) == (True, 0)
