"""What CUDA's error codes mean to whoever runs an engine here; the runtime's numbers and the driver's are the same.

Meanings: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html, and for 35, the runtime's alone,
https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html.
"""

import re
from typing import Dict

#: The names, for a driver that does not say them itself.
NAMES: Dict[int, str] = {
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
_ADVICE: Dict[int, str] = {
    2: "the GPU has no memory left: end what holds it (nvidia-smi lists it), or set CUDA_VISIBLE_DEVICES to another",
    34: "libcuda.so.1 is the toolkit's stub and not the driver's: take the folder of stubs off the library path",
    35: "the driver is too old for this CUDA: update it, or take a version of the engine with an older CUDA",
    46: "the GPU is in exclusive-process or prohibited mode: end the process that holds it, or `nvidia-smi -c DEFAULT`",
    100: "the driver lists no GPU: CUDA_VISIBLE_DEVICES may hide it, or the container was given none",
    101: "CUDA_VISIBLE_DEVICES names a GPU that is not there",
    222: "the engine's code is of a newer CUDA than the driver can compile: update the driver",
    801: "the driver cannot do this here; on a Jetson a container needs NVIDIA's runtime, and the group render",
    802: "a service that the GPUs need is not up: with NVSwitch it is nvidia-fabricmanager, of the driver's version",
    803: "libcuda and the kernel's driver differ in version: restart, or take the other libcuda off the library path",
    804: "CUDA's forward compatibility is for data-centre GPUs: update the driver, or take its folder off the path",
    999: "often the driver was updated while in use: restart; on a Jetson a container needs the group render",
}
#: A code in the words of TensorRT and of CUDA's own tools.
_IN_TEXT = re.compile(
    r"(?:with error|cudaError|Cuda (?:Runtime|Driver)|CUDA error)\s*(?:[:(]\s*)?(\d{1,3})\b", re.IGNORECASE
)


def advice(code: int) -> str:
    """Return what to do about a code, "" for one that says nothing of the machine."""
    return _ADVICE.get(code, "")


def advice_in(text: str) -> str:
    """Return what to do about the first code that an engine's message names, "" where it names none of these."""
    codes = [int(found.group(1)) for found in _IN_TEXT.finditer(text)]
    return next((_ADVICE[code] for code in codes if code in _ADVICE), "")
