"""The timed run on a GPU: sensors, samples, sensors again, then the copies to the device on their own."""

from typing import Any, Callable, Dict, List

from harness.agent import sensors
from harness.agent.cuda import Device, Stopwatch
from harness.agent.timed import sample

#: How copies are timed: they are of one size and one path, and say what they have to say sooner than a run does.
_COPIES = {"warmup_s": 0.01, "iterations": 20, "window_s": 0.0, "most": 20, "budget_s": 1.0}


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
