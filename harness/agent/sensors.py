"""What a GPU's sensors say: clocks, temperature, power, why the clocks are held down.

Read before and after a timed run and never during it. NVML (libnvidia-ml.so.1) comes with the driver; in a container it
is there with the driver capability "utility". A Jetson has no NVML of use: its thermal zones and clocks are files.
What cannot be read is left out: these are facts about a measurement, not a measurement.
"""

import ctypes
import glob
import os
from ctypes import byref, c_uint, c_ulonglong, c_void_p
from typing import Any, Dict, Optional

#: nvmlClocksEventReasons* (nvml.h): bits that hold the clocks below what was asked for.
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


def read(uuid: str) -> Dict[str, str]:
    """Return what the sensors of the GPU of this UUID say now, by name with unit; empty where nothing can be read."""
    facts = _nvml(uuid)
    return facts or _files("/sys")


def driver_version() -> str:
    """Return the version of the NVIDIA driver, "" where it cannot be told."""
    library = _load()
    if library is not None:
        text = ctypes.create_string_buffer(96)
        if _answers(library, "nvmlSystemGetDriverVersion", text, c_uint(len(text))):
            return text.value.decode("ascii", "replace")
    return _line("/sys/module/nvidia/version")


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


def _nvml(uuid: str) -> Dict[str, str]:
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


def throttle_words(bits: int) -> str:
    """Return NVML's clock reasons in words, "none" for no bit, an unknown bit as its number."""
    words = []
    for shift in range(bits.bit_length()):
        bit = 1 << shift
        if bits & bit:
            words.append(_REASONS.get(bit, "0x%x" % bit))
    return ", ".join(words) or "none"


def _files(top: str) -> Dict[str, str]:
    """Read a Jetson's GPU: the thermal zone that is named for it, and the clock of its devfreq device."""
    facts = {}
    for zone in sorted(glob.glob(os.path.join(top, "class/thermal/thermal_zone*"))):
        kind, value = _line(os.path.join(zone, "type")).lower(), _line(os.path.join(zone, "temp"))
        if kind.startswith("gpu") and value.isdigit():
            facts["temperature_c"] = "%.1f" % (int(value) / 1000.0)
    for device in sorted(glob.glob(os.path.join(top, "class/devfreq/*"))):
        value = _line(os.path.join(device, "cur_freq"))
        # 17000000.ga10b on Orin, 17000000.gv11b on Xavier, 57000000.gpu on older boards.
        if os.path.basename(device).endswith(("ga10b", "gv11b", "gp10b", "gpu")) and value.isdigit():
            facts["sm_clock_mhz"] = str(int(value) // 1000000)
    return facts


def _line(path: str) -> str:
    try:
        with open(path) as file:
            return file.readline().strip()
    except (OSError, UnicodeDecodeError):
        return ""
