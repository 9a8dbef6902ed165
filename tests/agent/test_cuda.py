"""The driver API layer on a real GPU; without one, that its absence is told as such."""

from __future__ import annotations

import ctypes
import os
import re
import time
from collections.abc import Iterator

import pytest

from harness.agent import cuda, gpu
from harness.agent.engines import MachineFault
from harness.judge.classify import _MACHINE

needs_gpu = pytest.mark.gpu


@pytest.fixture
def device() -> Iterator[cuda.CudaDevice]:
    _skip_without_a_gpu()
    with cuda.CudaDevice() as device:
        yield device


def _skip_without_a_gpu() -> None:
    try:
        cuda.Driver().facts()
    except cuda.CudaError:
        from tests import needs

        needs.gpu()


@needs_gpu
@pytest.mark.usefixtures("device")
def test_facts_name_the_device_in_the_fields_terms() -> None:
    facts = cuda.Driver().facts()
    assert re.fullmatch(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", facts["gpu_uuid"])
    assert re.fullmatch(r"\d+\.\d", facts["compute_capability"])
    assert int(facts["gpu_memory_mib"]) > 1000
    assert facts["gpu"]
    assert re.fullmatch(r"\d+\.\d+(\.\d+)?", gpu.driver_version())
    assert re.fullmatch(r"\d+\.\d", facts["cuda_driver_api"])


@needs_gpu
@pytest.mark.parametrize("size", [1, 4, 4096, 64 << 20])
def test_bytes_survive_the_way_to_the_device_and_back(device: cuda.CudaDevice, size: int) -> None:
    data = os.urandom(size)
    address = device.allocate(size)
    device.upload(address, data)
    assert device.download(address, size) == data


@needs_gpu
def test_a_host_address_is_refused_in_cudas_own_words(device: cuda.CudaDevice) -> None:
    with pytest.raises(
        cuda.CudaError, match=r"cuMemFree_v2: 1 CUDA_ERROR_INVALID_VALUE \(invalid argument\)"
    ):
        device.driver.call("cuMemFree_v2", 0x1234)


@needs_gpu
def test_more_memory_than_there_is_is_refused_and_the_device_goes_on(device: cuda.CudaDevice) -> None:
    with pytest.raises(cuda.CudaError, match="CUDA_ERROR_OUT_OF_MEMORY"):
        device.allocate(1 << 45)
    address = device.allocate(4)
    device.upload(address, b"abcd")
    assert device.download(address, 4) == b"abcd"


@needs_gpu
def test_the_stopwatch_reads_a_known_duration(device: cuda.CudaDevice) -> None:
    """Filling memory takes time in proportion to its size, at a rate that some memory has; the host's clock agrees."""
    size = 2 << 30
    address = device.allocate(size)
    with cuda.Stopwatch(device) as watch:
        times = {}
        for part in (size // 2, size):
            taken = [watch.time(lambda part=part: device.clear(address, part)) for _ in range(20)]  # type: ignore[misc]
            times[part] = sorted(taken)[10]
        start = time.perf_counter()
        inside = sum(watch.time(lambda: device.clear(address, size)) for _ in range(20))
        outside = (time.perf_counter() - start) * 1000
    assert times[size] / times[size // 2] == pytest.approx(2, rel=0.2)
    assert 20 < size / 1e6 / times[size] < 20_000  # GB/s: an old Jetson, and more than any GPU has
    assert inside < outside < inside + 50


@needs_gpu
def test_a_graph_does_the_work_again_and_what_cannot_be_captured_leaves_the_stream(
    device: cuda.CudaDevice,
) -> None:
    address = device.allocate(4)
    with pytest.raises(cuda.CudaError, match="cuStream"):
        cuda.CudaGraph(device, device.synchronize)
    device.upload(address, b"abcd")
    with cuda.CudaGraph(device, lambda: device.clear(address, 2)) as graph:
        assert device.download(address, 4) == b"abcd"
        graph.launch()
        assert device.download(address, 4) == b"\0\0cd"


@needs_gpu
def test_the_sensors_know_the_device_that_cuda_names(device: cuda.CudaDevice) -> None:
    facts = gpu.read_sensors(device.uuid())
    assert {"sm_clock_mhz", "memory_clock_mhz", "temperature_c", "power_w", "throttle"} <= facts.keys()
    assert device.uuid() == cuda.Driver().facts()["gpu_uuid"]
    assert gpu.read_sensors("GPU-00000000-0000-0000-0000-000000000000").keys() <= {
        "temperature_c",
        "sm_clock_mhz",
    }


@needs_gpu
def test_clear_keeps_its_place_on_the_stream(device: cuda.CudaDevice) -> None:
    """A fill on the default stream could pass a copy on this one."""
    size = 256 << 20
    address, source = device.allocate(size), ctypes.create_string_buffer(b"\x01" * size, size)
    for _ in range(5):
        device.driver.call("cuMemcpyHtoDAsync_v2", address, source, size, device.stream)
        device.clear(address, size, 0xFF)
    assert device.download(address, 4096) == b"\xff" * 4096


@needs_gpu
def test_closing_twice_and_after_a_failure_raises_nothing() -> None:
    _skip_without_a_gpu()
    device = cuda.CudaDevice()
    device.allocate(16)
    with pytest.raises(cuda.CudaError):
        device.allocate(1 << 45)
    device.close()
    device.close()


@pytest.mark.unit
def test_a_missing_driver_is_no_device_not_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    with pytest.raises(cuda.NoDriver, match="cannot open shared object"):
        cuda.Driver()
    said: list[dict[str, str]] = []
    assert not gpu.check(lambda _kind, **fields: said.append(fields["facts"]), needed=False)
    assert said == []
    with pytest.raises(MachineFault, match=r"no NVIDIA driver: .*: the container was given no GPU"):
        gpu.check(lambda _kind: None, needed=True)


#: Codes and names of errors that say something of the machine; the runtime's 35 has none of the driver's.
CODES = {
    2: "CUDA_ERROR_OUT_OF_MEMORY",
    34: "CUDA_ERROR_STUB_LIBRARY",
    35: "cudaErrorInsufficientDriver",
    46: "CUDA_ERROR_DEVICE_UNAVAILABLE",
    100: "CUDA_ERROR_NO_DEVICE",
    101: "CUDA_ERROR_INVALID_DEVICE",
    222: "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    801: "CUDA_ERROR_NOT_SUPPORTED",
    802: "CUDA_ERROR_SYSTEM_NOT_READY",
    803: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
    804: "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
    999: "CUDA_ERROR_UNKNOWN",
}
#: Those that say something of the machine and yet may be an engine's own doing.
_EITHER = {2, 801}


@pytest.mark.unit
def test_every_code_of_the_machine_has_advice() -> None:
    assert all(cuda.advice(code) for code in CODES)
    assert cuda.advice(700) == ""


@pytest.mark.unit
@pytest.mark.parametrize(("code", "name"), CODES.items())
def test_a_code_in_an_engines_words_is_found(code: int, name: str) -> None:
    """The forms are those of TensorRT's logs and of this project's own sentences."""
    for text in (
        f"createInferBuilder: Error Code 6: API Usage Error (CUDA initialization failure with error: {code})",
        f"[defaultAllocator.cpp::allocate::54] Error Code 1: Cuda Runtime ({code})",
        f"In generateForCurrent at x.cpp:47: cudaError {code}",
    ):
        assert cuda.advice_in(text) == cuda.advice(code)
        assert bool(_MACHINE.search(text)) == (code not in _EITHER)
    if name.startswith("CUDA_ERROR"):
        assert bool(_MACHINE.search(f"cuInit: {code} {name} (text)")) == (code not in _EITHER)


@pytest.mark.unit
def test_a_text_of_a_megabyte_is_read_once() -> None:
    """An engine's log may be of any length; in time that grows with its square this would take hours."""
    assert cuda.advice_in("cudaError" + " " * 1_000_000) == ""
    assert not _MACHINE.search("cudaError" + " " * 1_000_000)


@pytest.mark.unit
@pytest.mark.parametrize(
    "text",
    ["", "Error Code 35: nothing of CUDA", "CUDA error 700", "cudaError 1000", "conv_46", "with error: 9990"],
)
def test_other_numbers_are_no_codes(text: str) -> None:
    assert cuda.advice_in(text) == ""
    assert not _MACHINE.search(text)
