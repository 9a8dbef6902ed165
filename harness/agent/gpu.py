"""The GPU of a job: whether it can be used, and a timed run on it with sensors on both sides and the copies apart."""

from typing import Any, Callable, Dict, List

from harness.agent import sensors
from harness.agent.cuda import CudaError, Device, Driver, NoDriver, Stopwatch
from harness.agent.engines import Emit, MachineFault
from harness.agent.timed import sample

#: How copies are timed: all are of one size over one path, so fewer samples than of a run are enough.
_COPIES = {"warmup_s": 0.01, "iterations": 20, "window_s": 0.0, "most": 20, "budget_s": 1.0}
#: What goes to the device and back before any engine is asked.
_PATTERN = bytes(range(256)) * 4096


def opened() -> Device:
    """Return the first device; raises MachineFault, in CUDA's words and with what to do.

    Nothing of a cell has happened yet: whatever is refused here is refused to every one.
    """
    try:
        return Device()
    except CudaError as error:
        raise MachineFault(_with_advice(error)) from error


def check(emit: Emit, *, needed: bool) -> bool:
    """Use the first GPU once (memory, copies, a timed fill), report it as a fact, and tell whether it can be used.

    What is in the way raises MachineFault where a GPU is needed. Else it is a fact too, `gpu_trouble`, except
    where there is no driver at all, as on most machines.
    """
    try:
        found = Driver().devices()[:1]
        with Device() as device:
            _use(device)
    except CudaError as error:
        if needed:
            raise MachineFault(_with_advice(error)) from error
        if not isinstance(error, NoDriver):
            emit("fact", facts={"gpu_trouble": _with_advice(error)})
        return False
    emit("fact", facts=found[0])
    return True


def _use(device: Device) -> None:
    address = device.allocate(len(_PATTERN))
    device.upload(address, _PATTERN)
    if device.download(address, len(_PATTERN)) != _PATTERN:
        raise CudaError("the GPU gave back other bytes than it was given")
    with Stopwatch(device) as watch:
        watch.time(lambda: device.clear(address, len(_PATTERN)))


def _with_advice(error: CudaError) -> str:
    return "%s: %s" % (error, error.advice) if error.advice else str(error)


def latency(
    once: Callable[[], float], device: Device, timing: Dict[str, Any], inputs: List[bytes]
) -> Dict[str, Any]:
    """Return the fields of a `latency` event for `once`, which returns the milliseconds of one run.

    `upload_ms` are the milliseconds that all inputs together take from page-locked host memory to the device, by
    events on the device's stream; they are no part of the samples. `before` and `after` are what the sensors said.
    """
    uuid = device.uuid()
    before = sensors.read(uuid)
    samples, warmup = sample(once, timing)
    after = sensors.read(uuid)
    return {
        "samples_ms": samples,
        "warmup": warmup,
        "upload_ms": upload_times(device, inputs),
        "before": before,
        "after": after,
    }


def upload_times(device: Device, inputs: List[bytes]) -> List[float]:
    """Return the milliseconds of each copy of all inputs to the device; empty where there is nothing to copy."""
    if not any(inputs):
        return []
    copies = [(device.allocate(len(data)), device.pin(data), len(data)) for data in inputs]

    def upload() -> None:
        for copy in copies:
            device.copy_pinned(*copy)

    with Stopwatch(device) as watch:
        return sample(lambda: watch.time(upload), _COPIES)[0]
