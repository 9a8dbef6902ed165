"""The TensorRT module that is installed here, and its abilities."""

import contextlib
import importlib
from typing import Any, Callable, Dict, Iterator, List, Optional

from harness.agent.cuda import advice_in, note
from harness.agent.engines import Emit, Failed, MachineFault, MissingApi, machine_facts

#: The imported module; set once by `load`, before any fork.
trt: Any = None
_logger: Any = None
_builder: Any = None


def load(engine: str) -> Dict[str, str]:
    """Import the module and return its facts."""
    global trt  # noqa: PLW0603  (one engine a process, loaded before the first fork)
    trt = importlib.import_module(engine)
    return dict(machine_facts(), engine=engine, engine_version=str(trt.__version__))


def has(path: str) -> bool:
    """Tell whether this version has a name of the API, such as "IBuilderConfig.int8_calibrator"."""
    return _found(path) is not None


def need(path: str) -> Any:
    """Return the attribute of a dotted name, such as "BuilderFlag.INT8"; raises MissingApi if it is missing."""
    found = _found(path)
    if found is None:
        raise MissingApi(path)
    return found


def _found(path: str) -> Any:
    found = trt
    for part in path.split("."):
        found = getattr(found, part, None)
    return found


def has_weak_typing() -> bool:
    """Tell whether builder flags may decide precision.

    TensorRT 11 has lost `BuilderFlag.INT8`; TensorRT for RTX 1.4 still lists it and refuses to build with it, but has
    never had a calibrator to go with it.
    """
    return has("BuilderFlag.INT8") and has("IBuilderConfig.int8_calibrator")


def check_recipe(recipe: Dict[str, Any]) -> None:
    """Raise MissingApi for the first thing the recipe needs that this version lacks, before any work is done."""
    if recipe["typing"] == "strong" and has_weak_typing():
        need("NetworkDefinitionCreationFlag.STRONGLY_TYPED")
    if recipe["typing"] == "weak":
        for name in recipe["flags"]:
            need("BuilderFlag." + name)
    if recipe["calibrator"]:
        need("IBuilderConfig.int8_calibrator")
        if recipe["profiles"]:
            need("IBuilderConfig.set_calibration_profile")
    for name, _ in recipe["parser_flags"]:
        need("OnnxParserFlag." + name)


def logger_for(emit: Emit) -> Any:
    """Return this process's logger, made once; from now on it sends each message to this job as it comes.

    The library keeps the first logger that it is given, so one is never freed. `errors` are the errors of the job.
    """
    global _logger  # noqa: PLW0603  (one a process)
    if _logger is None:
        _logger = _make_logger()
    _logger.emit, _logger.errors = emit, []
    return _logger


def _make_logger() -> Any:
    class Logger(trt.ILogger):  # type: ignore[misc]
        emit: Emit
        errors: List[str]

        def __init__(self) -> None:
            trt.ILogger.__init__(self)

        def log(self, severity: Any, text: str) -> None:
            if severity.name in ("ERROR", "INTERNAL_ERROR"):
                self.errors.append(text)
                note(text)
            self.emit("message", severity=severity.name, text=text)

    return Logger()


@contextlib.contextmanager
def unheard() -> Iterator[None]:
    """Keep the logger from telling of what is tried here."""
    emit, errors = _logger.emit, _logger.errors
    _logger.emit, _logger.errors = (lambda *_, **__: None), []
    try:
        yield
    finally:
        _logger.emit, _logger.errors = emit, errors


def builder_for(logger: Any) -> Any:
    """Return this process's builder, made once; raises MachineFault. Making one takes TensorRT 8.6 nine seconds."""
    global _builder  # noqa: PLW0603  (one a process)
    if _builder is None:
        _builder = made(logger, "Builder", trt.Builder, logger)
    return _builder


def made(logger: Any, name: str, call: Callable[..., Any], *arguments: Any) -> Any:
    """Return an object of the library that needs no model; raises MachineFault if it cannot make one.

    The bindings show a null pointer as None, or as a TypeError of pybind11.
    """
    before = len(logger.errors)
    try:
        thing = call(*arguments)
    except Exception as error:
        raise _nothing(name, "%s: %s" % (type(error).__name__, error), logger.errors[before:]) from error
    if thing is None:
        raise _nothing(name, "it gave nothing", logger.errors[before:])
    return thing


def _nothing(name: str, what: str, errors: List[str]) -> MachineFault:
    said = errors[-1] if errors else ""
    parts = ["%s: %s" % (name, what), said, advice_in(said)]
    return MachineFault("; ".join(part for part in parts if part))


def network_flags(typing: str) -> int:
    """Return the flags of `create_network`: by name, because their numbers moved between 9.2, 10 and 11.

    A version without weak typing types every network strongly, with or without the flag for it.
    """
    # Without it a network of 8.x and 9.x has an implicit batch, which the ONNX parser refuses.
    wanted = ["EXPLICIT_BATCH"]
    if typing == "strong" or (typing == "graph" and not has_weak_typing()):
        wanted.append("STRONGLY_TYPED")
    flags = trt.NetworkDefinitionCreationFlag
    return sum(1 << int(getattr(flags, name)) for name in wanted if hasattr(flags, name))


def datatype_name(datatype: Any) -> str:
    """Return a DataType as the wire's word ("float32", "int8"); raises Failed for one the wire cannot carry."""
    words = {
        "FLOAT": "float32",
        "HALF": "float16",
        "BF16": "bfloat16",
        "INT8": "int8",
        "UINT8": "uint8",
        "INT32": "int32",
        "INT64": "int64",
        "BOOL": "bool",
        "FP8": "float8_e4m3fn",
        "INT4": "int4",
        "FP4": "float4_e2m1fn",
        "E8M0": "float8_e8m0fnu",
    }
    name: Optional[str] = words.get(datatype.name)
    if name is None:
        raise Failed("the harness has no means to carry DataType.%s" % datatype.name)
    return name
