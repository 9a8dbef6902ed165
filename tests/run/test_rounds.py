"""Cells in steps: what is built waits for a round, and what is doubted for the end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.errors import InfraError
from harness.run import rounds
from harness.run.gpus import Device
from harness.run.provision.cache import CACHE_VARIABLE, locked
from harness.run.rounds import Later, Recorded, Round, Steps, Wait, whole

pytestmark = pytest.mark.unit

Said = list[str]


@pytest.fixture(autouse=True)
def _locks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Said:
    lines: Said = []
    alone = Device.alone

    @contextlib.contextmanager
    def noting(device: Device) -> Iterator[None]:
        with alone(device):
            lines.append("hold")
            yield
            lines.append("let go")

    monkeypatch.setattr(Device, "alone", noting)
    return lines


def device(**fields: Any) -> Device:
    return Device("GPU-1", **{"needed": lambda: True, **fields})


def cell(name: str, said: Said, *, again: bool = False, where: Device | None = None) -> Steps:
    for soon in (False, True)[: 1 + again]:
        said.append(f"build {name}")
        yield Wait(where or device(), 1, soon)
        said.append(f"run {name}")
        yield None
        said.append(f"fold {name}")
        if again and not soon:
            yield Later.AT_THE_END
    made: Any = name
    return Recorded(made, "")


def ended(under_way: Round) -> list[Any]:
    return [recorded.outcome for _, recorded in under_way.ended()]


def begin(under_way: Round, steps: Steps) -> None:
    nameless: Any = None
    under_way.begin(nameless, steps)


def test_a_cell_alone_holds_its_device_for_its_run_and_for_nothing_else(said: Said) -> None:
    made: Any = whole(cell("a", said, again=True)).outcome
    assert made == "a"
    assert said == ["build a", "hold", "run a", "let go", "fold a"] * 2


def test_cells_are_run_one_behind_the_other_in_one_round_and_the_doubted_at_the_end(said: Said) -> None:
    under_way = Round()
    for name in "abc":
        begin(under_way, cell(name, said, again=name == "b"))
        assert not under_way.due
    under_way.hold()
    assert said[:8] == ["build a", "build b", "build c", "hold", "run a", "run b", "run c", "let go"]
    assert sorted(ended(under_way)) == ["a", "c"]
    assert not under_way.waits
    del said[:]
    assert under_way.resume()
    assert under_way.due
    under_way.hold()
    assert (said, ended(under_way)) == (["build b", "hold", "run b", "let go", "fold b"], ["b"])
    assert not under_way.resume()


@pytest.mark.parametrize("why", ["time", "size", "another"])
def test_a_round_is_due(said: Said, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    under_way = Round()
    assert not under_way.due
    begin(under_way, cell("a", said))
    with contextlib.ExitStack() as held:
        if why == "another":
            held.enter_context(locked("GPU-1-waiting", shared=True))
        else:
            monkeypatch.setattr(rounds, {"time": "_PATIENCE", "size": "_LARGE"}[why], 0)
        assert under_way.due


def test_a_device_that_is_not_to_be_had_is_each_cells_trouble(said: Said) -> None:
    def told(steps: Steps) -> Steps:
        try:
            return (yield from steps)
        except InfraError as error:
            made: Any = str(error)
            return Recorded(made, "")

    under_way, gone = Round(), device(needed=lambda: False)
    for name in "ab":
        begin(under_way, told(cell(name, said, where=gone)))
    with locked("GPU-1"):
        under_way.hold()
    found = ended(under_way)
    assert len(found) == 2
    assert all("was given up" in each for each in found)


def test_builds_share_a_device_and_stay_away_from_whoever_waits_for_it() -> None:
    few = device(memory_mib=2 * 4096)
    with few.among_builds() as others:
        assert others() == 0
        with few.among_builds() as theirs:
            assert (others(), theirs()) == (1, 1)
            with (
                pytest.raises(InfraError, match="given up"),
                device(needed=lambda: False, memory_mib=2 * 4096).among_builds(),
            ):
                pass
        assert not few.wanted()
        with pytest.raises(InfraError, match="given up"), device(needed=lambda: False).alone():
            pass
    with locked("GPU-1-waiting", shared=True):
        assert few.wanted()
    with (
        few.alone(),
        pytest.raises(InfraError, match="given up"),
        device(needed=lambda: False).among_builds(),
    ):
        pass
