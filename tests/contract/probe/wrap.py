"""The bindings, wrapped: what the adapter looks up, calls and sets is noted, and answered where the stub cannot."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from types import BuiltinFunctionType, FrameType, ModuleType
from typing import Any

from tests.contract.engine import ANSWERS, DERIVED, Answer, derived
from tests.contract.trace import TRACE, Words

#: Objects that the bindings make by themselves of a call's argument.
_MADE_OF_ARGUMENTS = ("FallbackString", "Dims")


class Touched:
    """The names that the adapter's files asked for; what the answers in `engine.py` use is not the adapter's."""

    def __init__(self, files: list[str]) -> None:
        self._files = files
        self.names: set[str] = set()

    def asks(self) -> bool:
        """Tell whether the caller, the first one outside this file, is the adapter."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename == __file__:
            frame = frame.f_back
        return frame is not None and frame.f_code.co_filename in self._files

    def note(self, name: str) -> bool:
        """Note a name that the adapter has asked for; tells whether it is the one that asks."""
        asks = self.asks()
        if asks:
            self.names.add(name)
        return asks


class Member:
    """A method, property or enum member in a class of the bindings: notes its use, then lets the real one work."""

    def __init__(self, path: str, real: Any, probe: Probe) -> None:
        self.path = path
        self.real = real
        self.probe = probe

    def __get__(self, instance: Any, owner: type) -> Any:
        asked = self.probe.touched.note(self.path)
        value = self.real.__get__(instance, owner) if hasattr(type(self.real), "__get__") else self.real
        if instance is None or isinstance(self.real, property) or not callable(value):
            return self.probe.answer(self.path, value, instance)

        def work(*arguments: Any, **keywords: Any) -> Any:
            return self.probe.answer(self.path, value(*arguments, **keywords), instance, *arguments)

        def call(*arguments: Any, **keywords: Any) -> Any:
            noted = self.probe.by_meaning(self.path, [*arguments, *keywords.values()])
            return TRACE.call(self.path, instance, lambda: work(*arguments, **keywords), *noted)

        # A class asks for `ILogger.__init__` as a plain function: `instance` is then None, and handled above.
        return call if asked else work


class Property(Member):
    """A property that can be set: reads back what was set, as the real one does."""

    def __get__(self, instance: Any, owner: type) -> Any:
        value = super().__get__(instance, owner)
        was_set = self.probe.values.get((id(instance), self.path), lambda: None)()
        return value if was_set is None else was_set

    def __set__(self, instance: Any, value: Any) -> None:
        def work() -> None:
            self.real.__set__(instance, value)

        if self.probe.touched.note(self.path):
            TRACE.call(f"{self.path} =", instance, work, value)
        else:
            work()
        self.probe.values[id(instance), self.path] = _weakly(value)


def _weakly(value: Any) -> Callable[[], Any]:
    """Return what gives the value, as long as something else keeps it."""
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: value


class Module(ModuleType):
    """The bindings under the name by which the agent imports them; notes what is taken from them."""

    def __init__(self, name: str, real: ModuleType, touched: Touched) -> None:
        super().__init__(name)
        self._real = real
        self._touched = touched

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._real, name)
        if name.startswith("_") or not self._touched.note(name) or not isinstance(value, BuiltinFunctionType):
            return value
        return lambda *arguments: TRACE.call(name, None, lambda: value(*arguments), *arguments)


class Probe:
    """The bindings, wrapped; `answers` are those of the scenario that runs."""

    def __init__(self, module: ModuleType, name: str, keep: set[str] | None, files: list[str]) -> None:
        if keep is not None:
            prune(module, keep)
        self.names = names(module)
        self.touched = Touched(files)
        self.values: dict[tuple[int, str], Callable[[], Any]] = {}
        self.answers: dict[str, Any] = {}
        self.signatures: dict[str, str] = {}
        self.module = module
        self.classes = {owner: path for path, owner in classes(module)}
        for owner, path in self.classes.items():
            self._wrap(path, owner)
            self._wrap_constructor(path, owner)
        sys.modules[name] = Module(name, module, self.touched)

    def _wrap(self, path: str, owner: type) -> None:
        for name, real in list(vars(owner).items()):
            # A class's own property (pybind11_static_property) would take the wrapper for a new value.
            static = isinstance(real, property) and type(real) is not property
            if name.startswith("_") or isinstance(real, type) or static:
                continue
            full = f"{path}.{name}"
            getter = real.fget if isinstance(real, property) else real
            self.signatures[full] = (getattr(getter, "__doc__", None) or "").strip()
            settable = isinstance(real, property) and real.fset is not None
            setattr(owner, name, (Property if settable else Member)(full, real, self))

    def _wrap_constructor(self, path: str, owner: Any) -> None:
        if "__init__" not in vars(owner) or hasattr(owner, "__members__") or path in _MADE_OF_ARGUMENTS:
            return
        real, touched = owner.__init__, self.touched

        def construct(instance: Any, *arguments: Any, **keywords: Any) -> None:
            if not touched.asks():
                real(instance, *arguments, **keywords)
                return
            with TRACE.noting(path, None, *arguments, *keywords.values()) as event:
                real(instance, *arguments, **keywords)
                event["result"] = TRACE.text(instance)

        owner.__init__ = construct

    def by_meaning(self, path: str, arguments: list[Any]) -> list[Any]:
        """Return a call's arguments for the trace, the flags of a new network by their names: their numbers moved."""
        if path != "Builder.create_network" or not all(type(number) is int for number in arguments):
            return arguments
        flags = self.module.NetworkDefinitionCreationFlag
        by_bit = {int(flag): name for name, flag in flags.__members__.items()}
        return [
            Words(
                " | ".join(
                    by_bit.get(bit, f"bit {bit}") for bit in range(number.bit_length()) if number >> bit & 1
                )
            )
            for number in arguments
        ]

    def answer(self, path: str, value: Any, instance: Any, *arguments: Any) -> Any:
        """Return what the scenario, else ANSWERS, else the stub has to say."""
        if path in self.answers:
            left = self.answers[path]
            return left.pop(0) if len(left) > 1 else left[0]
        if path in ANSWERS and instance is not None:
            return ANSWERS[path](self.module, value, *arguments)
        return value


def classes(module: ModuleType) -> list[tuple[str, type]]:
    """Return every class of the bindings with its path, nested ones too."""
    found: dict[type, str] = {}

    def walk(prefix: str, owner: Any) -> None:
        for name, value in sorted(vars(owner).items()):
            # Logger.Severity is ILogger.Severity: one class, one path.
            if (
                isinstance(value, type)
                and not name.startswith("_")
                and value.__name__ == name
                and value not in found
            ):
                found[value] = prefix + name
                walk(f"{prefix}{name}.", value)

    walk("", module)
    return [(path, owner) for owner, path in found.items()]


def names(module: ModuleType) -> list[str]:
    """Return the path of every class, member, enum value and function."""
    paths = {name for name in vars(module) if not name.startswith("_")}
    for path, owner in classes(module):
        paths.add(path)
        paths.update(f"{path}.{name}" for name in dir(owner) if not name.startswith("_"))
    return sorted(paths)


def prune(module: ModuleType, keep: set[str]) -> None:
    """Take away every class, member, enum value and function that is not in `keep`."""
    for path, owner in reversed(classes(module)):
        for name in [name for name in vars(owner) if not name.startswith("_")]:
            if f"{path}.{name}" not in keep:
                delattr(owner, name)
    for name, value in list(vars(module).items()):
        # Plain Python of the package is not in the sources that were read.
        if isinstance(value, (type, BuiltinFunctionType)) and not name.startswith("_") and name not in keep:
            delattr(module, name)


def note_instances(module: ModuleType) -> None:
    """Note every object that the adapter makes of a class it derives from the bindings'."""
    for name in DERIVED:
        if hasattr(module, name):
            owner = getattr(module, name)
            owner.__init__ = noting(owner.__init__)


def noting(real: Answer) -> Answer:
    """Return a constructor that notes the object."""

    def construct(self: Any) -> None:
        real(self)
        derived.append(weakref.ref(self))

    return construct
