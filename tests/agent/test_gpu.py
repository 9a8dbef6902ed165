"""The timed run on a GPU, with a device that only keeps a diary."""

from __future__ import annotations

from typing import Any

import pytest

from harness.agent import gpu, sensors

pytestmark = pytest.mark.unit

RULE = {"warmup_s": 0.0, "iterations": 5, "window_s": 0.0, "most": 5, "budget_s": 10.0}


class Diary:
    """A device whose copies take 0.25 ms each by its events."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.freed = 0
        self._clock = 0.0

    stream = 7

    def uuid(self) -> str:
        return "GPU-1"

    def allocate(self, size: int) -> int:
        return 1000 + size

    def pin(self, data: bytes) -> int:
        return 2000 + len(data)

    def copy_pinned(self, address: int, pinned: int, size: int) -> None:
        self.lines.append(f"copy {address} {pinned} {size}")
        self._clock += 0.25

    def event(self) -> Any:
        diary = self

        class Event:
            at = 0.0

            def record(self, stream: int) -> None:
                assert stream == diary.stream
                self.at = diary._clock

            def synchronize(self) -> None:
                pass

            def milliseconds_since(self, earlier: Event) -> float:
                return self.at - earlier.at

            def destroy(self) -> None:
                diary.freed += 1

        return Event()


@pytest.fixture
def diary(monkeypatch: pytest.MonkeyPatch) -> Diary:
    diary = Diary()

    def read(uuid: str) -> dict[str, str]:
        diary.lines.append("sensors")
        return {"gpu": uuid, "line": str(len(diary.lines))}

    monkeypatch.setattr(sensors, "read", read)
    return diary


def run(diary: Diary, inputs: list[bytes]) -> dict[str, Any]:
    def once() -> float:
        diary.lines.append("run")
        return 1.5

    device: Any = diary
    return gpu.latency(once, device, RULE, inputs)


def test_sensors_are_read_before_and_after_the_runs_and_never_between(diary: Diary) -> None:
    """A reading takes milliseconds and wakes the driver."""
    fields = run(diary, [])
    assert diary.lines == ["sensors", *["run"] * 6, "sensors"]
    assert (fields["before"]["line"], fields["after"]["line"]) == ("1", "8")
    assert fields["samples_ms"] == [1.5] * 5
    assert fields["warmup"] == 1


def test_all_inputs_are_copied_together_and_apart_from_the_runs(diary: Diary) -> None:
    fields = run(diary, [b"four", b"eight by"])
    assert fields["upload_ms"] == [0.5] * 20
    copies = diary.lines[diary.lines.index("sensors", 1) + 1 :]
    assert copies[:2] == ["copy 1004 2004 4", "copy 1008 2008 8"]
    assert set(copies) == set(copies[:2])
    assert diary.freed == 2


@pytest.mark.parametrize("inputs", [[], [b""]])
def test_a_network_without_input_data_has_no_copies(diary: Diary, inputs: list[bytes]) -> None:
    assert run(diary, inputs)["upload_ms"] == []
