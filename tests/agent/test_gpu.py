"""The timed run on a GPU; its loop; sensors, from NVML."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest

from harness.agent import gpu

pytestmark = pytest.mark.unit

RULE = {"warmup_s": 0.0, "iterations": 5, "window_s": 0.0, "most": 5, "budget_s": 10.0}


def test_sensors_are_read_before_and_after_the_runs_and_never_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A reading takes milliseconds and wakes the driver."""
    lines: list[str] = []

    def read(uuid: str) -> dict[str, str]:
        lines.append("sensors")
        return {"gpu": uuid, "line": str(len(lines))}

    def once() -> float:
        lines.append("run")
        return 1.5

    monkeypatch.setattr(gpu, "read_sensors", read)
    fields = gpu.latency(once, "GPU-1", RULE)
    assert lines == ["sensors", *["run"] * 6, "sensors"]
    assert (fields["before"]["line"], fields["after"]["line"]) == ("1", "8")
    assert fields["samples_ms"] == [1.5] * 5
    assert fields["warmup"] == 1


class Clock:
    """A clock that only work moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.calls = 0

    def work(self, seconds: float) -> Callable[[], float]:
        def once() -> float:
            self.now += seconds
            self.calls += 1
            return seconds * 1000

        return once


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    return clock


def timing(**changes: float) -> dict[str, Any]:
    rule = {"warmup_s": 0.2, "iterations": 100, "window_s": 0.1, "most": 500, "budget_s": 10.0}
    return {**rule, **changes}


@pytest.mark.parametrize(
    ("seconds", "samples"),
    [
        (0.000_01, 500),  # short runs: no more than `most`
        (0.000_5, 200),  # until the window is filled
        (0.01, 100),  # the least number, though the window was filled long before
        (0.25, 40),  # the budget cuts even the least number
        (60.0, 1),  # a run that outlasts the budget is one sample
    ],
)
def test_samples_end_where_the_rule_says(clock: Clock, seconds: float, samples: int) -> None:
    found, _ = gpu.sample(clock.work(seconds), timing())
    assert abs(len(found) - samples) <= 1
    assert set(found) == {round(seconds * 1000, 6)}


@pytest.mark.parametrize(
    ("seconds", "warmup_s", "calls"), [(0.001, 0.2, 200), (0.05, 0.2, 4), (3.0, 0.2, 1), (0.001, 0.0, 1)]
)
def test_warm_up_is_by_time_and_at_least_one_run(
    clock: Clock, seconds: float, warmup_s: float, calls: int
) -> None:
    """A count would end before a short run has raised the clocks."""
    found, warmup = gpu.sample(clock.work(seconds), timing(warmup_s=warmup_s))
    assert abs(warmup - calls) <= 1
    assert clock.calls == warmup + len(found)


@pytest.mark.parametrize("fails", [False, True])
def test_the_cycle_collector_rests_while_samples_are_taken(fails: bool) -> None:
    """It would put its pause into one sample of many; it comes back after a failure too."""
    states: set[bool] = set()

    def once() -> float:
        states.add(gc.isenabled())
        if fails:
            raise RuntimeError
        return 0.0

    assert gc.isenabled()
    with pytest.raises(RuntimeError) if fails else contextlib.nullcontext():
        gpu.sample(once, timing(warmup_s=0.0, window_s=0.0, iterations=5))
    assert states == {False}
    assert gc.isenabled()


UUID = "GPU-8f2b6d0e-1111-2222-3333-444455556666"
#: A pointer of 64 bits, which ctypes would cut if it were passed as an int.
HANDLE = 0x7F00_0000_0001
_NOT_SUPPORTED = 3


class Nvml:
    """libnvidia-ml with one device, which supports no function in `refuses`; those in `lacks` are not there."""

    def __init__(self, *, refuses: tuple[str, ...] = (), lacks: tuple[str, ...] = ()) -> None:
        self._refuses = refuses
        self._lacks = lacks

    def __getattr__(self, name: str) -> Any:
        if name in self._lacks:
            raise AttributeError(name)
        if name in self._refuses:
            return lambda *_: _NOT_SUPPORTED
        return ANSWERS[name]


def driver(text: Any, length: Any) -> int:
    assert length.value >= 80
    text.value = b"580.159.04"
    return 0


def handle(uuid: bytes, found: Any) -> int:
    found._obj.value = HANDLE
    return 0 if uuid == UUID.encode() else 6


def answer(values: dict[int, int] | int) -> Any:
    def read(device: Any, *rest: Any) -> int:
        assert device.value == HANDLE
        rest[-1]._obj.value = values[rest[0].value] if isinstance(values, dict) else values
        return 0

    return read


ANSWERS = {
    "nvmlInit_v2": lambda: 0,
    "nvmlSystemGetDriverVersion": driver,
    "nvmlDeviceGetHandleByUUID": handle,
    "nvmlDeviceGetClockInfo": answer({1: 1980, 2: 3201}),
    "nvmlDeviceGetTemperature": answer({0: 41}),
    "nvmlDeviceGetPowerUsage": answer(118_432),
    "nvmlDeviceGetCurrentClocksThrottleReasons": answer(0x4),
}


def there(monkeypatch: pytest.MonkeyPatch, library: Nvml | None) -> None:
    monkeypatch.setattr(ctypes, "CDLL", Mock(return_value=library, side_effect=None if library else OSError))


def test_nvml_is_read_in_the_units_of_the_names(monkeypatch: pytest.MonkeyPatch) -> None:
    there(monkeypatch, Nvml())
    assert gpu.read_sensors(UUID) == {
        "sm_clock_mhz": "1980",
        "memory_clock_mhz": "3201",
        "temperature_c": "41",
        "power_w": "118.4",
        "throttle": "power cap",
    }
    assert gpu.driver_version() == "580.159.04"


@pytest.mark.parametrize(
    ("library", "kept"),
    [
        # A slice of a GPU has no clocks of its own; that is no reason to lose the temperature.
        (Nvml(refuses=("nvmlDeviceGetClockInfo", "nvmlDeviceGetPowerUsage")), {"temperature_c", "throttle"}),
        # NVML renames functions; the old names go one day.
        (
            Nvml(lacks=("nvmlDeviceGetCurrentClocksThrottleReasons", "nvmlDeviceGetClockInfo")),
            {"temperature_c", "power_w"},
        ),
        (Nvml(refuses=("nvmlDeviceGetHandleByUUID",)), set()),
        (Nvml(refuses=("nvmlInit_v2",)), set()),
        (None, set()),
    ],
    ids=["a slice", "a newer NVML", "an unknown device", "no start", "no library"],
)
def test_a_reading_that_is_not_to_be_had_is_left_out(
    monkeypatch: pytest.MonkeyPatch, library: Nvml | None, kept: set[str]
) -> None:
    there(monkeypatch, library)
    assert gpu.read_sensors(UUID).keys() == kept


@pytest.mark.parametrize(
    ("bits", "words"),
    [
        (0, "none"),
        (0x1, "idle"),
        (0x4 | 0x20, "power cap, thermal slowdown"),
        (0x4000, "0x4000"),
        (1 << 40 | 0x1, "idle, 0x10000000000"),
    ],
)
def test_throttle_reasons_are_words(bits: int, words: str) -> None:
    assert gpu.throttle_words(bits) == words
