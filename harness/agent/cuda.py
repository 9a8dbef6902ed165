"""ctypes on the CUDA driver API: memory, copies, a stream, events, device facts.

The driver API (libcuda.so.1) comes with the driver itself, on Jetson too, so it is there wherever a GPU is; libcudart
is missing from package-only installations and changes its name with each CUDA major version. TensorRT uses the
device's primary context, and so does this module.
"""

import ctypes
import os
import re
from ctypes import byref, c_char, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any, Callable, Dict, List

#: CUdevice_attribute numbers of the compute capability, fixed since CUDA 5.
_MAJOR, _MINOR = 75, 76

_SIGNATURES: Dict[str, List[Any]] = {
    "cuInit": [c_uint],
    "cuDriverGetVersion": [c_void_p],
    "cuDeviceGet": [c_void_p, c_int],
    "cuDeviceGetName": [c_char_p, c_int, c_int],
    "cuDeviceGetUuid": [c_void_p, c_int],
    "cuDeviceGetAttribute": [c_void_p, c_int, c_int],
    "cuDeviceTotalMem_v2": [c_void_p, c_int],
    "cuDevicePrimaryCtxRetain": [c_void_p, c_int],
    "cuDevicePrimaryCtxRelease_v2": [c_int],
    "cuCtxSetCurrent": [c_void_p],
    "cuMemAlloc_v2": [c_void_p, c_size_t],
    "cuMemFree_v2": [c_uint64],
    "cuMemcpyHtoDAsync_v2": [c_uint64, c_void_p, c_size_t, c_void_p],
    "cuMemcpyDtoHAsync_v2": [c_void_p, c_uint64, c_size_t, c_void_p],
    "cuMemsetD8Async": [c_uint64, ctypes.c_ubyte, c_size_t, c_void_p],
    "cuStreamCreate": [c_void_p, c_uint],
    "cuStreamDestroy_v2": [c_void_p],
    "cuStreamSynchronize": [c_void_p],
    "cuEventCreate": [c_void_p, c_uint],
    "cuEventRecord": [c_void_p, c_void_p],
    "cuEventSynchronize": [c_void_p],
    "cuEventElapsedTime": [c_void_p, c_void_p, c_void_p],
    "cuEventDestroy_v2": [c_void_p],
    "cuStreamBeginCapture_v2": [c_void_p, c_int],
    "cuStreamEndCapture": [c_void_p, c_void_p],
    "cuGraphInstantiateWithFlags": [c_void_p, c_void_p, c_uint64],
    "cuGraphLaunch": [c_void_p, c_void_p],
    "cuGraphDestroy": [c_void_p],
    "cuGraphExecDestroy": [c_void_p],
}

_NON_BLOCKING = 1
#: CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: an engine's other threads may go on.
_THREAD_LOCAL = 1

#: What to do about an error's code; the runtime's numbers and the driver's are the same, 35 is the runtime's alone:
#: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html.
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


#: An engine's own words on a call of CUDA that failed.
_FAILED = re.compile(r"cuda", re.IGNORECASE)
#: The driver's success, and that it was not initialised or has no current context.
_FINE = (0, 3, 201)
#: The errors of CUDA that this process has met since it was last asked for them.
errors: List[str] = []


class CudaError(Exception):
    """A driver call failed: the call, CUDA's code, its name and text; `advice` is the remedy, or ""."""

    advice = ""


class NoDriver(CudaError):
    """There is no NVIDIA driver here."""

    advice = "the container was given no GPU, or this machine has none"


class Driver:
    """libcuda with checked calls; raises NoDriver without one."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise NoDriver("no NVIDIA driver: %s" % error) from error
        for name, arguments in _SIGNATURES.items():
            if hasattr(self._library, name):
                # Without argtypes ctypes cuts a pointer to 32 bits.
                getattr(self._library, name).argtypes = arguments
        self.call("cuInit", 0)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a driver function; raises CudaError unless it is there and returns success."""
        function = getattr(self._library, name, None)
        if function is None:
            # Before CUDA 11.4 a driver captures no graph.
            raise CudaError("the driver has no %s: it is too old" % name)
        code = function(*arguments)
        if code:
            error = CudaError("%s: %s" % (name, self._describe(code)))
            error.advice = advice(code)
            errors.append(str(error))
            raise error

    def _describe(self, code: int) -> str:
        name, text = c_char_p(), c_char_p()
        self._library.cuGetErrorName(code, byref(name))
        self._library.cuGetErrorString(code, byref(text))
        return "%d %s (%s)" % (
            code,
            (name.value or b"unknown error").decode(),
            (text.value or b"no text").decode(),
        )

    def number(self, name: str, *arguments: Any, kind: Any = c_int) -> int:
        """Call a function whose first parameter receives a number, and return that."""
        result = kind()
        self.call(name, byref(result), *arguments)
        return int(result.value or 0)

    def uuid(self, device: int) -> str:
        """Return a device's UUID as nvidia-smi writes it."""
        raw = (c_char * 16)()
        self.call("cuDeviceGetUuid", byref(raw), device)
        text = bytes(raw).hex()
        return "GPU-" + "-".join([text[:8], text[8:12], text[12:16], text[16:20], text[20:]])

    def facts(self) -> Dict[str, str]:
        """Return facts of the first device as text: name, UUID, compute capability, memory, CUDA of the driver."""
        version = self.number("cuDriverGetVersion")
        device = self.number("cuDeviceGet", 0)
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, 256, device)
        capability = [self.number("cuDeviceGetAttribute", each, device) for each in (_MAJOR, _MINOR)]
        return {
            "gpu": name.value.decode(),
            "gpu_uuid": self.uuid(device),
            "compute_capability": "%d.%d" % tuple(capability),
            "gpu_memory_mib": str(self.number("cuDeviceTotalMem_v2", device, kind=c_size_t) >> 20),
            "cuda_driver_api": "%d.%d" % (version // 1000, version % 1000 // 10),
        }


class CudaEvent:
    """A point on a stream that can be timed."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.handle = c_void_p()
        driver.call("cuEventCreate", byref(self.handle), 0)

    def record(self, stream: int) -> None:
        """Put the event on a stream."""
        self._driver.call("cuEventRecord", self.handle, stream)

    def synchronize(self) -> None:
        """Wait until the event has happened."""
        self._driver.call("cuEventSynchronize", self.handle)

    def milliseconds_since(self, earlier: "CudaEvent") -> float:
        """Return the time from an earlier event to this one; both must have happened."""
        result = c_float()
        self._driver.call("cuEventElapsedTime", byref(result), earlier.handle, self.handle)
        return float(result.value)

    def destroy(self) -> None:
        """Free the event."""
        self._driver.call("cuEventDestroy_v2", self.handle)


class CudaDevice:
    """The first device, its primary context, one stream, and all memory taken: a context manager that frees them."""

    def __init__(self) -> None:
        self.driver = Driver()
        self._device = self.driver.number("cuDeviceGet", 0)
        context, stream = c_void_p(), c_void_p()
        self.driver.call("cuDevicePrimaryCtxRetain", byref(context), self._device)
        self.driver.call("cuCtxSetCurrent", context)
        self.driver.call("cuStreamCreate", byref(stream), _NON_BLOCKING)
        self.stream = int(stream.value or 0)
        self._memory: List[int] = []

    def __enter__(self) -> "CudaDevice":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free everything taken through this object; never raises.

        A context that a kernel has broken refuses to free too, and that was reported at its time.
        """
        frees = [("cuMemFree_v2", address) for address in self._memory]
        if self.stream:
            frees += [("cuStreamDestroy_v2", self.stream), ("cuDevicePrimaryCtxRelease_v2", self._device)]
        self._memory, self.stream = [], 0
        for name, what in frees:
            try:
                self.driver.call(name, what)
            except CudaError:
                continue

    def uuid(self) -> str:
        """Return the device's UUID."""
        return self.driver.uuid(self._device)

    def allocate(self, size: int) -> int:
        """Return the address of `size` bytes of device memory (at least one, so that empty tensors have an address)."""
        address = self.driver.number("cuMemAlloc_v2", max(1, size), kind=c_uint64)
        self._memory.append(address)
        return address

    def upload(self, address: int, data: bytes) -> None:
        """Copy bytes to the device and wait."""
        source = ctypes.create_string_buffer(data, len(data))
        self.driver.call("cuMemcpyHtoDAsync_v2", address, source, len(data), self.stream)
        self.synchronize()

    def download(self, address: int, size: int) -> bytes:
        """Copy bytes from the device and wait."""
        target = ctypes.create_string_buffer(size)
        self.driver.call("cuMemcpyDtoHAsync_v2", target, address, size, self.stream)
        self.synchronize()
        return target.raw

    def clear(self, address: int, size: int, value: int = 0) -> None:
        """Put a fill of device memory with one byte value on the stream, and do not wait for it."""
        # On this stream and not the default one, with which a non-blocking stream keeps no order.
        self.driver.call("cuMemsetD8Async", address, value, size, self.stream)

    def synchronize(self) -> None:
        """Wait for the stream; raises CudaError if work on it failed."""
        self.driver.call("cuStreamSynchronize", self.stream)

    def event(self) -> CudaEvent:
        """Return a new event."""
        return CudaEvent(self.driver)


class Stopwatch:
    """Two events on a device's stream around some work; a context manager that frees them."""

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        self._begin, self._end = device.event(), device.event()

    def __enter__(self) -> "Stopwatch":
        return self

    def __exit__(self, *_: object) -> None:
        self._begin.destroy()
        self._end.destroy()

    def time(self, work: Callable[[], None]) -> float:
        """Return the milliseconds on the stream of the work that `work` puts there, and wait for its end."""
        self._begin.record(self._device.stream)
        work()
        self._end.record(self._device.stream)
        self._end.synchronize()
        return self._end.milliseconds_since(self._begin)


class CudaGraph:
    """What `work` puts on a device's stream, captured to be launched as one; a context manager that frees it.

    Raises what `work` raises, and CudaError if it cannot be captured: the stream is as before.
    """

    def __init__(self, device: CudaDevice, work: Callable[[], None]) -> None:
        self._device, self._driver = device, device.driver
        self._runs = c_void_p()
        graph = c_void_p()
        self._driver.call("cuStreamBeginCapture_v2", device.stream, _THREAD_LOCAL)
        try:
            work()
        finally:
            # Until then nothing else can be done on the stream.
            self._driver.call("cuStreamEndCapture", device.stream, byref(graph))
        try:
            self._driver.call("cuGraphInstantiateWithFlags", byref(self._runs), graph, 0)
        finally:
            self._driver.call("cuGraphDestroy", graph)

    def __enter__(self) -> "CudaGraph":
        return self

    def __exit__(self, *_: object) -> None:
        self._driver.call("cuGraphExecDestroy", self._runs)

    def launch(self) -> None:
        """Put the work on the stream."""
        self._driver.call("cuGraphLaunch", self._runs, self._device.stream)


def note(text: str) -> None:
    """Take in an error message of an engine's, which may be of a call of CUDA."""
    if _FAILED.search(text):
        errors.append(text)


def left_behind() -> str:
    """Return the first error of CUDA since the last call, which the context's next user may meet, or "".

    A kernel that fails breaks its context for good: that is checked too, if this process has ever used CUDA.
    """
    try:
        library = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD)
    except OSError:
        pass
    else:
        code = library.cuCtxSynchronize()
        if code not in _FINE:
            errors.append("cuCtxSynchronize: %d" % code)
    found = errors[0] if errors else ""
    errors.clear()
    return found


def advice(code: int) -> str:
    """Return the remedy for a code, "" for one that is not about the machine."""
    return _ADVICE.get(code, "")


def advice_in(text: str) -> str:
    """Return the remedy for the first known code in an engine's message, or ""."""
    codes = [int(found.group(1)) for found in _IN_TEXT.finditer(text)]
    return next((_ADVICE[code] for code in codes if code in _ADVICE), "")
