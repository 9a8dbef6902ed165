"""Keeps every call of a job with its arguments, as text that says what they mean: names of things, not addresses.

`TRACE` is the process's one trace. It notes nothing until it is begun, and holds nothing alive that it notes.
"""

from __future__ import annotations

import ctypes
import gc
import json
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Json = dict[str, Any]

#: Whose end is noted too: what another object or the GPU may still use.
_LIVES = (
    *("Builder", "INetworkDefinition", "IBuilderConfig", "IOptimizationProfile", "OnnxParser"),
    *("Runtime", "ICudaEngine", "IExecutionContext", "EngineInspector"),
    *("ILogger", "IProfiler", "IInt8EntropyCalibrator2", "IInt8MinMaxCalibrator"),
    *("IPluginCreator", "IPluginCreatorV3One"),
)
#: Bytes up to this many are kept, of more their length.
_KEPT = 32
#: A number from here on is no size and no count: it is the address of something that is not the device's.
_ADDRESSES = 1 << 40


class Words(str):
    """Text that is a value's meaning already."""

    __slots__ = ()


class Trace:
    """The calls of a job in their order, those within a call deeper than it."""

    def __init__(self) -> None:
        self.events: list[Json] = []
        self.classes: dict[type, str] = {}
        self._on = False
        self._depth = 0
        self._counts: Counter[str] = Counter()
        self._objects: dict[int, tuple[str, Any]] = {}
        self._blocks: list[tuple[int, int, str]] = []

    def begin(self, classes: dict[type, str]) -> None:
        """Note from now on; `classes` are those of the bindings by their names.

        An object then ends where its last reference does, at the same call each time: there are no collections.
        """
        gc.disable()
        self.classes, self._on = classes, True

    def name_block(self, kind: str, address: int, size: int = 1) -> str:
        """Give a name to what lies at an address, and return it."""
        name = self._numbered(kind)
        self._blocks.append((address, size, name))
        return name

    def call(self, call: str, on: Any, work: Callable[[], Any], *arguments: Any) -> Any:
        """Note a call on a thing, or on None, and return what `work` does."""
        if not self._on:
            return work()
        with self.noting(call, on, *arguments) as event:
            result = work()
            event["result"] = "" if result is None else self.text(result)
        return result

    @contextmanager
    def noting(self, call: str, on: Any, *arguments: Any) -> Iterator[Json]:
        """Note a call whose result the block writes into the event."""
        event: Json = {
            "depth": self._depth,
            "on": "" if on is None else self.text(on),
            "call": call,
            "arguments": [self.text(argument) for argument in arguments],
            "result": "",
        }
        if self._on:
            self.events.append(event)
        self._depth += 1
        try:
            yield event
        except BaseException as error:
            event["result"] = f"raises {type(error).__name__}"
            raise
        finally:
            self._depth -= 1

    def text(self, value: Any) -> str:
        """Return a value by its meaning."""
        if isinstance(value, (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_float)):
            value = value.value or 0
        if value is None or isinstance(value, (bool, float, Words)):
            return str(value)
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(map(self.text, value))}]"
        if isinstance(value, (bytes, bytearray, memoryview, ctypes.Array)):
            return repr(bytes(value)) if 0 < len(value) <= _KEPT else f"<{len(value)} bytes>"
        return json.dumps(value) if isinstance(value, str) else self._named(value)

    def _named(self, value: Any) -> str:
        return self._number(value) if isinstance(value, int) else self._thing(value)

    def _number(self, value: int) -> str:
        for start, size, name in self._blocks:
            if start <= value < start + size:
                return name if value == start else f"{name}+{value - start}"
        return str(value) if value < _ADDRESSES else "host"

    def _thing(self, value: Any) -> str:
        kind = next((each for each in type(value).__mro__ if each in self.classes), None)
        if kind is None:
            return type(value).__name__
        if hasattr(kind, "__members__"):
            return f"{self.classes[kind]}.{value.name}"
        if kind.__name__ in ("Dims", "Dims2", "Dims3", "Dims4"):
            return self.text(list(value))
        if id(value) not in self._objects:
            name = self.classes[kind]
            # There is one, of which each look-up may make a new object.
            name = name if name == "IPluginRegistry" else self._numbered(name)
            key = id(value)
            self._objects[key] = (name, weakref.ref(value, lambda _: self._ended(key)))
        return self._objects[id(value)][0]

    def _ended(self, key: int) -> None:
        name, _ = self._objects.pop(key)
        if name.partition("#")[0] in _LIVES:
            self.events.append(
                {"depth": self._depth, "on": "", "call": "freed", "arguments": [name], "result": ""}
            )

    def _numbered(self, kind: str) -> str:
        self._counts[kind] += 1
        return f"{kind}#{self._counts[kind]}"


TRACE = Trace()
