"""The GPU of a job: whether it can be used, its sensors, and a timed run.

Sensors are read before and after a timed run and never during it. NVML (libnvidia-ml.so.1) comes with the driver; in a
container it is there with the driver capability "utility"; a Jetson has none of use. A reading that is not to be had is
left out: these are facts about a measurement, not a measurement.
"""

import ctypes
import gc
import time
from ctypes import byref, c_uint, c_ulonglong, c_void_p
from typing import Any, Callable, Dict, List, Optional, Tuple

from harness.agent.cuda import CudaDevice, CudaError, Driver, NoDriver, Stopwatch
from harness.agent.engines import Emit, MachineFault

#: nvmlClocksEventReasons* (nvml.h): bits that hold the clocks below the requested ones.
_REASONS = {
    0x1: "idle",
    0x2: "application clocks",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
    0x100: "display clocks",
}
_CLOCKS = {"sm_clock_mhz": 1, "memory_clock_mhz": 2}
_TEMPERATURE_GPU = 0
#: The data that go to the device and back before any engine is asked.
_PATTERN = bytes(range(256)) * 4096


def opened() -> CudaDevice:
    """Return the first device; raises MachineFault, in CUDA's words and with the remedy.

    No cell has begun yet: a refusal here meets every cell.
    """
    try:
        return CudaDevice()
    except CudaError as error:
        raise MachineFault(_with_advice(error)) from error


def check(emit: Emit, *, needed: bool) -> bool:
    """Use the first GPU once (memory, copies, a timed fill), report it as a fact, and tell whether it can be used.

    Trouble raises MachineFault if a GPU is needed. Else it is a fact too, `gpu_trouble`, except on a machine without a
    driver, as most are.
    """
    try:
        found = Driver().facts()
        with CudaDevice() as device:
            _use(device)
    except CudaError as error:
        if needed:
            raise MachineFault(_with_advice(error)) from error
        if not isinstance(error, NoDriver):
            emit("fact", facts={"gpu_trouble": _with_advice(error)})
        return False
    driver = driver_version()
    emit("fact", facts={**found, **({"driver": driver} if driver else {})})
    return True


def _use(device: CudaDevice) -> None:
    address = device.allocate(len(_PATTERN))
    device.upload(address, _PATTERN)
    if device.download(address, len(_PATTERN)) != _PATTERN:
        raise CudaError("the GPU gave back other bytes than it was given")
    with Stopwatch(device) as watch:
        watch.time(lambda: device.clear(address, len(_PATTERN)))


def _with_advice(error: CudaError) -> str:
    return "%s: %s" % (error, error.advice) if error.advice else str(error)


def latency(once: Callable[[], float], uuid: str, timing: Dict[str, Any]) -> Dict[str, Any]:
    """Return the fields of a `latency` event for `once`, which returns the milliseconds of one run.

    `before` and `after` are readings of the sensors of the GPU of this UUID.
    """
    before = read_sensors(uuid)
    samples, warmup = sample(once, timing)
    return {"samples_ms": samples, "warmup": warmup, "before": before, "after": read_sensors(uuid)}


def sample(once: Callable[[], float], timing: Dict[str, Any]) -> Tuple[List[float], int]:
    """Return the milliseconds that each call of `once` reports, in order, and how many calls warmed up before.

    The same loop for every engine, so that latencies differ by engine and not by how they were taken.
    `timing`: `warmup_s` seconds of warm-up; then at least `iterations` samples and `window_s` seconds of them, at most
    `most` samples and `budget_s` seconds, whichever comes first. A call that outlasts the budget is one sample.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        warmup = _warm_up(once, timing["warmup_s"])
        return _samples(once, timing), warmup
    finally:
        if collecting:
            gc.enable()


def _warm_up(once: Callable[[], float], seconds: float) -> int:
    # By time and not by count: clocks take their tens of milliseconds to rise however short a run is.
    until = time.monotonic() + seconds
    calls = 0
    while calls == 0 or time.monotonic() < until:
        once()
        calls += 1
    return calls


def _samples(once: Callable[[], float], timing: Dict[str, Any]) -> List[float]:
    samples: List[float] = []
    start = time.monotonic()
    while True:
        # To the nanosecond: below that there is no clock, only digits to store.
        samples.append(round(once(), 6))
        passed = time.monotonic() - start
        enough = len(samples) >= timing["iterations"] and passed >= timing["window_s"]
        if enough or len(samples) >= timing["most"] or passed >= timing["budget_s"]:
            return samples


def read_sensors(uuid: str) -> Dict[str, str]:
    """Return the readings of the sensors of the GPU of this UUID, by name with unit; empty without sensors."""
    library = _load()
    device = c_void_p()
    if library is None or not _answers(library, "nvmlDeviceGetHandleByUUID", uuid.encode(), byref(device)):
        return {}
    facts = {}
    number, reasons = c_uint(), c_ulonglong()
    for name, kind in _CLOCKS.items():
        if _answers(library, "nvmlDeviceGetClockInfo", device, c_uint(kind), byref(number)):
            facts[name] = str(number.value)
    if _answers(library, "nvmlDeviceGetTemperature", device, c_uint(_TEMPERATURE_GPU), byref(number)):
        facts["temperature_c"] = str(number.value)
    if _answers(library, "nvmlDeviceGetPowerUsage", device, byref(number)):
        facts["power_w"] = "%.1f" % (number.value / 1000.0)
    if _answers(library, "nvmlDeviceGetCurrentClocksThrottleReasons", device, byref(reasons)):
        facts["throttle"] = throttle_words(reasons.value)
    return facts


def driver_version() -> str:
    """Return the version of the NVIDIA driver, "" if unknown."""
    library = _load()
    if library is not None:
        text = ctypes.create_string_buffer(96)
        if _answers(library, "nvmlSystemGetDriverVersion", text, c_uint(len(text))):
            return text.value.decode("ascii", "replace")
    return ""


def _load() -> Optional[Any]:
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    return library if _answers(library, "nvmlInit_v2") else None


def _answers(library: Any, name: str, *arguments: Any) -> bool:
    """Call NVML; False for a function that this driver does not have, or that refuses this device."""
    try:
        return not getattr(library, name)(*arguments)
    except AttributeError:
        return False


def throttle_words(bits: int) -> str:
    """Return NVML's clock reasons in words, "none" for no bit, an unknown bit as its number."""
    set_bits = [1 << shift for shift in range(bits.bit_length()) if bits >> shift & 1]
    return ", ".join(_REASONS.get(bit, "0x%x" % bit) for bit in set_bits) or "none"
