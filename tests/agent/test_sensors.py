"""What the sensors say, from NVML as it answers and from a Jetson's files; nothing where there is neither."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pytest

from harness.agent import sensors

pytestmark = pytest.mark.unit

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


def there(monkeypatch: pytest.MonkeyPatch, library: Nvml) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: library)


def test_nvml_is_read_in_the_units_of_the_names(monkeypatch: pytest.MonkeyPatch) -> None:
    there(monkeypatch, Nvml())
    assert sensors.read(UUID) == {
        "sm_clock_mhz": "1980",
        "memory_clock_mhz": "3201",
        "temperature_c": "41",
        "power_w": "118.4",
        "throttle": "power cap",
    }
    assert sensors.driver_version() == "580.159.04"


def test_what_a_device_cannot_tell_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice of a GPU has no clocks of its own; that is no reason to lose the temperature."""
    there(monkeypatch, Nvml(refuses=("nvmlDeviceGetClockInfo", "nvmlDeviceGetPowerUsage")))
    assert sensors.read(UUID) == {"temperature_c": "41", "throttle": "power cap"}


def test_a_function_that_a_driver_lacks_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """NVML renames functions; the old names go one day."""
    there(monkeypatch, Nvml(lacks=("nvmlDeviceGetCurrentClocksThrottleReasons",)))
    assert "throttle" not in sensors.read(UUID)
    assert sensors.read(UUID)["power_w"] == "118.4"


def test_a_device_that_nvml_does_not_know_is_read_as_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    there(monkeypatch, Nvml())
    monkeypatch.setattr(sensors, "_files", lambda _top: {})
    assert sensors.read("GPU-00000000-0000-0000-0000-000000000000") == {}


def test_without_nvml_nothing_is_read_and_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    monkeypatch.setattr(sensors, "_files", lambda _top: {})
    assert sensors.read(UUID) == {}


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
    assert sensors.throttle_words(bits) == words


def test_a_jetsons_files_are_read(tmp_path: Path) -> None:
    """As on an Orin: zones named by their part, the GPU's clock in hertz, an idle zone that cannot be read."""
    zones = tmp_path / "class" / "thermal"
    for index, (kind, value) in enumerate(
        [("cpu-thermal", "52000"), ("gpu-thermal", "47531"), ("cv0-thermal", "")]
    ):
        folder = zones / f"thermal_zone{index}"
        folder.mkdir(parents=True)
        (folder / "type").write_text(kind + "\n")
        (folder / "temp").write_text(value + "\n")
    for name, clock in (("17000000.ga10b", "1300500000"), ("15340000.vic", "115200000")):
        device = tmp_path / "class" / "devfreq" / name
        device.mkdir(parents=True)
        (device / "cur_freq").write_text(clock + "\n")
    assert sensors._files(str(tmp_path)) == {"temperature_c": "47.5", "sm_clock_mhz": "1300"}
    assert sensors._files(str(tmp_path / "nothing")) == {}
