"""The driver API layer on a real GPU; without one, that its absence is told as such."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator

import pytest

from harness.agent import cuda

needs_gpu = pytest.mark.gpu


@pytest.fixture
def device() -> Iterator[cuda.Device]:
    if not cuda.device_facts():
        from tests import needs

        needs.gpu()
    with cuda.Device() as device:
        yield device


@needs_gpu
@pytest.mark.usefixtures("device")
def test_facts_name_the_device_in_the_fields_terms() -> None:
    facts = cuda.device_facts()[0]
    assert re.fullmatch(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", facts["gpu_uuid"])
    assert re.fullmatch(r"\d+\.\d", facts["compute_capability"])
    assert int(facts["gpu_memory_mib"]) > 1000
    assert facts["gpu"]


@needs_gpu
@pytest.mark.parametrize("size", [1, 4, 4096, 64 << 20])
def test_bytes_survive_the_way_to_the_device_and_back(device: cuda.Device, size: int) -> None:
    data = os.urandom(size)
    address = device.allocate(size)
    device.upload(address, data)
    assert device.download(address, size) == data


@needs_gpu
def test_clear_sets_every_byte(device: cuda.Device) -> None:
    address = device.allocate(1000)
    device.upload(address, bytes(1000))
    device.clear(address, 1000, 0xFF)
    device.synchronize()
    assert device.download(address, 1000) == b"\xff" * 1000


@needs_gpu
def test_an_event_after_work_is_later_than_one_before(device: cuda.Device) -> None:
    begin, end = device.event(), device.event()
    address = device.allocate(256 << 20)
    begin.record(device.stream)
    device.upload(address, bytes(256 << 20))
    end.record(device.stream)
    end.synchronize()
    # 256 MiB cannot cross any bus in less than a millisecond.
    assert 1 < end.milliseconds_since(begin) < 10_000
    begin.destroy()
    end.destroy()


@needs_gpu
def test_a_host_address_is_refused_in_cudas_own_words(device: cuda.Device) -> None:
    with pytest.raises(cuda.CudaError, match=r"cuMemFree_v2: CUDA_ERROR_INVALID_VALUE \(invalid argument\)"):
        device.driver.call("cuMemFree_v2", 0x1234)


@needs_gpu
def test_more_memory_than_there_is_is_refused_and_the_device_goes_on(device: cuda.Device) -> None:
    with pytest.raises(cuda.CudaError, match="CUDA_ERROR_OUT_OF_MEMORY"):
        device.allocate(1 << 45)
    address = device.allocate(4)
    device.upload(address, b"abcd")
    assert device.download(address, 4) == b"abcd"


@needs_gpu
@pytest.mark.usefixtures("device")
def test_a_second_context_manager_in_the_same_process_works() -> None:
    with cuda.Device() as other:
        address = other.allocate(4)
        other.upload(address, b"1234")
        assert other.download(address, 4) == b"1234"


@pytest.mark.unit
def test_a_missing_driver_is_no_device_not_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    assert cuda.device_facts() == []
    with pytest.raises(cuda.NoDriver, match="cannot open shared object"):
        cuda.Driver()
