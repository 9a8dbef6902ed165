"""libcuda with one device, whose memory is the host's, as the adapter's CUDA calls meet it in the probe."""

from __future__ import annotations

import ctypes
import itertools
from pathlib import Path
from typing import Any

from tests.contract.engine import Answer, made
from tests.contract.trace import TRACE

#: CUDA_ERROR_ILLEGAL_ADDRESS.
_ILLEGAL_ADDRESS = 700
#: The addresses of handles: no number of an honest size or count.
_HANDLES = itertools.count(0xD0000000)


class FakeCuda:
    """Every call but `fails` succeeds, and is noted in the trace.

    With "silently" before its name, a call succeeds and does nothing.
    """

    def __init__(self, fails: str) -> None:
        self._fails = fails

    def __getattr__(self, name: str) -> Any:
        def function(*arguments: Any) -> int:
            given = [argument for argument in arguments if not _is_result(argument)]
            with TRACE.noting(name, None, *given) as event:
                code = self._do(name, arguments)
                results = [argument._obj for argument in arguments if _is_result(argument)]
                event["result"] = f"error {code}" if code else ", ".join(map(TRACE.text, results))
            return code

        setattr(self, name, function)
        return function

    def _do(self, name: str, arguments: tuple[Any, ...]) -> int:
        if name == self._fails:
            return _ILLEGAL_ADDRESS
        if f"silently {name}" != self._fails and name in _DOES:
            _DOES[name](*arguments)
        return 0


def _is_result(argument: Any) -> bool:
    """Tell whether an argument is `byref`'s, by which a call returns something."""
    return hasattr(argument, "_obj")


def _allocator(kind: str) -> Answer:
    def allocate(result: Any, wanted: Any, *_: Any) -> None:
        size = int(getattr(wanted, "value", wanted))
        memory = (ctypes.c_char * size)()
        made.append(memory)
        address = ctypes.addressof(memory)
        TRACE.name_block(kind, address, size)
        ctypes.cast(result, ctypes.POINTER(ctypes.c_void_p))[0] = address

    return allocate


def _handle(kind: str) -> Answer:
    def make(result: Any, *_: Any) -> None:
        handle = next(_HANDLES)
        TRACE.name_block(kind, handle)
        ctypes.cast(result, ctypes.POINTER(ctypes.c_void_p))[0] = handle

    return make


def _count(result: Any) -> None:
    ctypes.cast(result, ctypes.POINTER(ctypes.c_int))[0] = 1


def _copy(to: Any, source: Any, size: Any, _stream: Any = None) -> None:
    ctypes.memmove(to, source, size)


_DOES: dict[str, Answer] = {
    "cuDeviceGetCount": _count,
    "cuMemAlloc_v2": _allocator("device"),
    "cuDevicePrimaryCtxRetain": _handle("context"),
    "cuStreamCreate": _handle("stream"),
    "cuEventCreate": _handle("event"),
    "cuStreamEndCapture": lambda _stream, result: _handle("graph")(result),
    "cuGraphInstantiateWithFlags": _handle("graph"),
    "cuMemcpyHtoDAsync_v2": _copy,
    "cuMemcpyHtoD_v2": _copy,
    "cuMemcpyDtoHAsync_v2": _copy,
    "cuMemsetD8Async": lambda to, value, size, _: ctypes.memset(to, value, size),
}


def load_library(real: Answer, *, driver: bool, fails: str) -> Answer:
    """Return `ctypes.CDLL` with libcuda replaced, or missing."""

    def load(name: Any, *arguments: Any, **keywords: Any) -> Any:
        if str(name).startswith("libcuda"):
            if not driver:
                raise OSError(f"{name}: cannot open shared object file")
            return FakeCuda(fails)
        if Path(str(name)).is_absolute():
            with TRACE.noting("CDLL", None, Path(str(name)).name):
                return real(name, *arguments, **keywords)
        return real(name, *arguments, **keywords)

    return load
