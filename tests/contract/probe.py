"""Runs the agent's TensorRT adapter against real Python bindings that stand on `stub.c`; a program of its own.

It is started with the bindings, the agent's code and the stub on its paths, reads one JSON object from standard input
and writes one to standard output. It needs the standard library and `harness.agent` alone, as the agent does.

Every look-up, overload and argument conversion is done by the bindings themselves. Only afterwards, where the stub's
own answer would be of no use (a count of 65537 layers, uninitialised dimensions), a call or property answers by
`engine.ANSWERS` or by the scenario. Each member is wrapped for this, and the wrapper notes its name.
"""

from __future__ import annotations

import ctypes
import faulthandler
import importlib
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import BuiltinFunctionType, FrameType, ModuleType
from typing import Any

from tests.contract.engine import ANSWERS, DERIVED, Answer, made

Json = dict[str, Any]

#: CUDA_ERROR_ILLEGAL_ADDRESS.
_ILLEGAL_ADDRESS = 700


class Touched:
    """The names that the adapter's files asked for; what the answers in `engine.py` use is not the adapter's."""

    def __init__(self, files: list[str]) -> None:
        self._files = files
        self.names: set[str] = set()

    def note(self, name: str) -> None:
        """Note a name that the caller, the first one outside this file, has asked for."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename == __file__:
            frame = frame.f_back
        if frame is not None and frame.f_code.co_filename in self._files:
            self.names.add(name)


class Member:
    """A method, property or enum member in a class of the bindings: notes its use, then lets the real one work."""

    def __init__(self, path: str, real: Any, probe: Probe) -> None:
        self.path = path
        self.real = real
        self.probe = probe

    def __get__(self, instance: Any, owner: type) -> Any:
        self.probe.touched.note(self.path)
        value = self.real.__get__(instance, owner) if hasattr(type(self.real), "__get__") else self.real
        if instance is None or isinstance(self.real, property) or not callable(value):
            return self.probe.answer(self.path, value, instance)

        def call(*arguments: Any, **keywords: Any) -> Any:
            return self.probe.answer(self.path, value(*arguments, **keywords), instance, *arguments)

        # A class asks for `ILogger.__init__` as a plain function: `instance` is then None, and handled above.
        return call


class Property(Member):
    """A property that can be set: reads back what was set, as the real one does."""

    def __get__(self, instance: Any, owner: type) -> Any:
        value = super().__get__(instance, owner)
        return self.probe.values.get((id(instance), self.path), value)

    def __set__(self, instance: Any, value: Any) -> None:
        self.probe.touched.note(self.path)
        self.real.__set__(instance, value)
        self.probe.values[id(instance), self.path] = value


class Module(ModuleType):
    """The bindings under the name by which the agent imports them; notes what is taken from them."""

    def __init__(self, name: str, real: ModuleType, touched: Touched) -> None:
        super().__init__(name)
        self._real = real
        self._touched = touched

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._real, name)
        if not name.startswith("_"):
            self._touched.note(name)
        return value


class Probe:
    """The bindings, wrapped; `answers` are those of the scenario that runs."""

    def __init__(self, module: ModuleType, name: str, keep: set[str] | None, files: list[str]) -> None:
        if keep is not None:
            prune(module, keep)
        self.names = names(module)
        self.touched = Touched(files)
        self.values: dict[tuple[int, str], Any] = {}
        self.answers: dict[str, Any] = {}
        self.signatures: dict[str, str] = {}
        self.module = module
        for path, owner in classes(module):
            self._wrap(path, owner)
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
        # What is plain Python in the package is not in the sources that were read.
        if isinstance(value, (type, BuiltinFunctionType)) and not name.startswith("_") and name not in keep:
            delattr(module, name)


class FakeCuda:
    """libcuda with one device, whose memory is the host's; every call but `fails` succeeds.

    With "silently" before its name, a call succeeds and does nothing.
    """

    def __init__(self, fails: str) -> None:
        self._fails = fails

    def __getattr__(self, name: str) -> Any:
        def function(*arguments: Any) -> int:
            if name == self._fails:
                return _ILLEGAL_ADDRESS
            if f"silently {name}" != self._fails and name in _DOES:
                _DOES[name](*arguments)
            return 0

        setattr(self, name, function)
        return function


def _allocate(result: Any, size: int, *_: Any) -> None:
    memory = (ctypes.c_char * size)()
    made.append(memory)
    ctypes.cast(result, ctypes.POINTER(ctypes.c_void_p))[0] = ctypes.addressof(memory)


def _count(result: Any) -> None:
    ctypes.cast(result, ctypes.POINTER(ctypes.c_int))[0] = 1


_DOES: dict[str, Answer] = {
    "cuDeviceGetCount": _count,
    "cuMemAlloc_v2": _allocate,
    "cuMemHostAlloc": _allocate,
    "cuMemcpyHtoDAsync_v2": lambda to, source, size, _: ctypes.memmove(to, source, size),
    "cuMemcpyDtoHAsync_v2": lambda to, source, size, _: ctypes.memmove(to, source, size),
    "cuMemcpyDtoDAsync_v2": lambda to, source, size, _: ctypes.memmove(to, source, size),
    "cuMemsetD8Async": lambda to, value, size, _: ctypes.memset(to, value, size),
}


def load_library(real: Answer, *, driver: bool, fails: str) -> Answer:
    """Return `ctypes.CDLL` with libcuda replaced, or missing."""

    def load(name: Any, *arguments: Any, **keywords: Any) -> Any:
        if not str(name).startswith("libcuda"):
            return real(name, *arguments, **keywords)
        if not driver:
            raise OSError(f"{name}: cannot open shared object file")
        return FakeCuda(fails)

    return load


class Lines:
    """Notes the lines that run in the adapter's files."""

    def __init__(self, files: list[str]) -> None:
        self.seen: dict[str, set[int]] = {file: set() for file in files}

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> Lines | None:
        seen = self.seen.get(frame.f_code.co_filename)
        if seen is None:
            return None
        if event == "line":
            seen.add(frame.f_lineno)
        return self

    def report(self) -> dict[str, list[int]]:
        """Return the lines by file."""
        return {file: sorted(seen) for file, seen in self.seen.items()}

    def add(self, lines: dict[str, list[int]]) -> None:
        """Add what another process noted."""
        for file, numbers in lines.items():
            self.seen[file].update(numbers)


def run(adapter: Any, api: Any, scenario: Json, probe: Probe) -> Json:
    """Run one job through the adapter and return how it ended and what it said."""
    events: list[str] = []
    end: Json = {"end": "done", "detail": ""}

    def emit(kind: str, _body: bytes = b"", **fields: Any) -> None:
        json.dumps(fields)  # as the agent does to send it
        events.append(kind)
        if kind in ("missing_api", "failed", "unavailable", "agent_fault"):
            end.update(end=kind, detail=fields.get("name") or fields.get("text"))

    parts = {name: bytes(data, "latin-1") for name, data in scenario["parts"].items()}
    job = dict(scenario["job"], parts=[[name, len(data)] for name, data in parts.items()])
    if "numpy" in scenario["without"]:
        sys.modules["numpy"] = None  # type: ignore[assignment]  # makes an import fail
    try:
        probe.answers = {path: spoken(api.trt, value) for path, value in scenario["answers"].items()}
    except AttributeError as error:
        return {"end": "impossible", "detail": str(error), "events": []}
    try:
        adapter.run(job, b"".join(parts.values()), emit)
    except Exception as error:  # noqa: BLE001  (whatever the adapter lets out is the finding)
        where = traceback.extract_tb(error.__traceback__)[-1]
        end.update(end="raised", detail=f"{type(error).__name__}: {error} ({Path(where.filename).name})")
    return dict(end, events=events)


def in_child(work: Callable[[], Json]) -> Json:
    """Return what `work` returns in a forked child, as each job of the agent has one; a crash is an end too."""
    inward, outward = os.pipe()
    pid = os.fork()
    if pid == 0:
        with os.fdopen(outward, "w") as pipe:
            json.dump(work(), pipe)
        # Objects of the stub have no destructors worth running.
        os._exit(0)
    os.close(outward)
    with os.fdopen(inward) as pipe:
        said = pipe.read()
    _, status = os.waitpid(pid, 0)
    if status or not said:
        return {
            "result": {"end": "crashed", "detail": f"wait status {status}", "events": []},
            "touched": [],
            "lines": {},
        }
    found: Json = json.loads(said)
    return found


def spoken(trt: Any, value: Any) -> list[Any]:
    """Return a scenario's answers in their order, the last for ever: JSON as it is, or `{"enum": "DataType.FP8"}`."""
    if isinstance(value, list):
        return [spoken(trt, each)[0] for each in value]
    if isinstance(value, dict):
        owner, _, name = value["enum"].partition(".")
        return [getattr(getattr(trt, owner), name)]
    return [value]


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
        made.append(self)

    return construct


def log_slot(engine: str, version: str) -> int:
    """Return where a logger has `log` in its table: after four functions of a base class since TensorRT 11, RTX 1.5."""
    based = (1, 5) if engine == "tensorrt_rtx" else (11, 0)
    return 4 if tuple(map(int, version.split(".")[:2])) >= based else 0


def main() -> None:
    """Read the order, run its scenarios, write the report."""
    faulthandler.enable()
    # Bindings and stub may print; the report must stay alone on the real standard output.
    report = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    order = json.load(sys.stdin)
    module = importlib.import_module(order["module"])
    keep = order["keep"]
    probe = Probe(module, order["name"], None if keep is None else set(keep), order["files"])
    note_instances(module)
    cdll = ctypes.CDLL
    lines = Lines(order["files"])
    sys.settrace(lines)
    adapter = importlib.import_module("harness.agent.engines.tensorrt")
    api = importlib.import_module("harness.agent.engines.tensorrt.api")
    plugins = importlib.import_module("harness.agent.engines.tensorrt.plugins")
    adapter.preload(order["name"])
    results, touched = {}, probe.touched.names
    for scenario in order["scenarios"]:
        driver = "driver" not in scenario["without"]
        ctypes.CDLL = load_library(cdll, driver=driver, fails=scenario["fails"])  # type: ignore[assignment,misc]
        vars(plugins)["FOLDER"] = scenario["plugins"]
        stub = cdll("./stub.so")
        (ctypes.c_char * 64).in_dll(stub, "null_factory").value = scenario["null"].encode()
        ctypes.c_int.in_dll(stub, "log_slot").value = log_slot(order["name"], module.__version__)

        def work(scenario: Json = scenario) -> Json:
            result = run(adapter, api, scenario, probe)
            return {"result": result, "touched": sorted(probe.touched.names), "lines": lines.report()}

        child = in_child(work)
        results[scenario["name"]] = child["result"]
        touched.update(child["touched"])
        lines.add(child["lines"])
    sys.settrace(None)
    said = {
        "version": module.__version__,
        "names": probe.names,
        "touched": sorted(touched),
        "signatures": {path: probe.signatures.get(path, "") for path in sorted(touched)},
        "results": results,
        "lines": lines.report(),
    }
    json.dump(said, report)
    report.close()
    os._exit(0)


if __name__ == "__main__":
    main()
