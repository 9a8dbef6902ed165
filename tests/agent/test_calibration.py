"""Calibrators against bindings and a device that behave as the real ones do, as far as a calibrator can tell."""

from __future__ import annotations

import array
import ctypes
from typing import Any

import pytest

from harness.agent import calibration
from harness.agent.cuda import CudaError

pytestmark = pytest.mark.unit

ENTROPY = {"kind": "entropy", "batches": 4, "fault": None}
X = array.array("f", [1.0, -2.0, 0.5, 4.0, 8.0, -8.0]).tobytes()
SIDE = array.array("f", [3.0, 6.0]).tobytes()


class Base:
    """The bindings' class: its constructor must be called, and what Python raises is printed and forgotten.

    As python/src/infer/pyInt8.cpp of the 8.5 to 10.x sources does it.
    """

    def __init__(self) -> None:
        self.constructed = True

    def calibrate(self, names: list[str], device: Device) -> list[list[bytes]]:
        """Act as a builder; return the bytes it read at each address, batch by batch."""
        assert self.constructed
        calibrator: Any = self
        if calibrator.read_calibration_cache() is not None:
            return []
        batches = []
        while True:
            try:
                addresses = calibrator.get_batch(names)
            except Exception:  # noqa: BLE001  (what the trampoline does)
                addresses = None
            if not addresses:
                break
            assert len(addresses) == len(names)
            batches.append([device.memory[address] for address in addresses])
        calibrator.write_calibration_cache(memoryview(b"TRT-8601-EntropyCalibration2\nx: 3c010a14\n"))
        return batches


class Bindings:
    IInt8EntropyCalibrator2 = type("IInt8EntropyCalibrator2", (Base,), {})
    IInt8MinMaxCalibrator = type("IInt8MinMaxCalibrator", (Base,), {})


class Device:
    """Device memory by address, with the sizes that were asked for."""

    def __init__(self, *, fails_after: int | None = None) -> None:
        self.memory: dict[int, bytes] = {}
        self.sizes: dict[int, int] = {}
        self._left = fails_after

    def allocate(self, size: int) -> int:
        address = 0x7F00_0000_0000 + 512 * len(self.sizes)
        self.sizes[address] = size
        return address

    def upload(self, address: int, data: bytes) -> None:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                raise CudaError("cuMemcpyHtoDAsync_v2: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access)")
        assert len(data) == self.sizes[address]
        self.memory[address] = data


@pytest.fixture(autouse=True)
def raised(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    errors: list[BaseException] = []
    monkeypatch.setattr(calibration, "raised", errors)
    return errors


def make(recipe: dict[str, Any], device: Device) -> Any:
    inputs = {"x": X, "side": SIDE}
    return calibration.make_calibrator(Bindings, recipe, inputs, device)  # type: ignore[arg-type]


def floats(data: bytes) -> list[float]:
    return array.array("f", data).tolist()


@pytest.mark.parametrize(
    ("kind", "parent"), [("entropy", "IInt8EntropyCalibrator2"), ("minmax", "IInt8MinMaxCalibrator")]
)
def test_a_calibrator_is_of_its_kind_and_constructs_its_base(kind: str, parent: str) -> None:
    calibrator = make({**ENTROPY, "kind": kind}, Device())
    assert isinstance(calibrator, getattr(Bindings, parent))
    assert calibrator.constructed
    assert calibrator.get_batch_size() == 1


def test_every_input_has_memory_of_its_own_and_gets_contiguous_float32() -> None:
    """In the order in which the builder names them, which is not that of the model."""
    device = Device()
    batches = make(ENTROPY, device).calibrate(["side", "x"], device)
    assert len(batches) == 4
    assert batches[0] == [SIDE, X]
    assert list(device.sizes.values()) == [len(SIDE), len(X)]
    assert floats(batches[1][1]) == [value * 0.5 for value in floats(X)]


def test_the_cache_is_kept_and_a_second_build_reads_it() -> None:
    device = Device()
    calibrator = make(ENTROPY, device)
    assert calibrator.read_calibration_cache() is None
    calibrator.calibrate(["x"], device)
    assert calibrator.cache == b"TRT-8601-EntropyCalibration2\nx: 3c010a14\n"
    assert calibrator.calibrate(["x"], device) == []


def test_a_host_address_is_handed_over_on_purpose_and_stays_valid() -> None:
    """The negative control must fail in the product, not by freed memory of ours."""
    device = Device()
    addresses = make({**ENTROPY, "fault": "host_pointer"}, device).get_batch(["x"])
    assert device.sizes == {}
    assert bytes((ctypes.c_char * len(X)).from_address(addresses[0])) == X


def test_float64_is_twice_as_wide_as_it_is_read() -> None:
    device = Device()
    batches = make({**ENTROPY, "fault": "float64"}, device).calibrate(["x"], device)
    assert len(batches[0][0]) == 2 * len(X)
    assert floats(batches[0][0])[: len(floats(X))] != floats(X)


def test_every_second_element_is_half_of_what_is_read() -> None:
    device = Device()
    batches = make({**ENTROPY, "fault": "non_contiguous"}, device).calibrate(["x"], device)
    assert floats(batches[0][0]) == floats(X)[::2]


def test_a_right_calibration_blames_nobody(raised: list[BaseException]) -> None:
    device = Device()
    make(ENTROPY, device).calibrate(["x", "side"], device)
    assert calibration.blame(raised) is None


def test_what_the_calibrator_itself_gets_wrong_is_the_agents_fault(raised: list[BaseException]) -> None:
    """The bindings swallow it, and the build then fails as if the network could not be calibrated."""
    device = Device()
    assert make(ENTROPY, device).calibrate(["x", "not an input"], device) == []
    assert calibration.blame(raised) == ("agent", "the calibrator failed: KeyError: 'not an input'")


def test_a_cuda_error_during_calibration_is_the_engines(raised: list[BaseException]) -> None:
    """A copy fails after work on the device went wrong, and that work is not the agent's."""
    device = Device(fails_after=1)
    assert len(make(ENTROPY, device).calibrate(["x"], device)) == 1
    who, sentence = calibration.blame(raised) or ("", "")
    assert who == "engine"
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in sentence
