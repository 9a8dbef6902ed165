"""The TensorRT module that is installed here, and what it can do."""

import importlib
from typing import Any, Dict, Optional

from harness.agent.engines import Emit, MissingApi, machine_facts

#: The imported module; set once by `load`, before any fork.
trt: Any = None


def load(engine: str) -> Dict[str, str]:
    """Import the module and return its facts."""
    global trt  # noqa: PLW0603  (one engine a process, loaded before the first fork)
    trt = importlib.import_module(engine)
    return dict(machine_facts(), engine=engine, engine_version=str(trt.__version__))


def need(owner: Any, label: str, name: str) -> Any:
    """Return an attribute of the API; raises MissingApi("IBuilderConfig.int8_calibrator") where it is not."""
    if not hasattr(owner, name):
        raise MissingApi("%s.%s" % (label, name))
    return getattr(owner, name)


def has_weak_typing() -> bool:
    """Tell whether builder flags may decide precision.

    TensorRT 11 has lost `BuilderFlag.INT8`; TensorRT for RTX 1.4 still lists it and refuses to build with it, but has
    never had a calibrator to go with it.
    """
    return hasattr(trt.BuilderFlag, "INT8") and hasattr(trt.IBuilderConfig, "int8_calibrator")


def check_recipe(recipe: Dict[str, Any]) -> None:
    """Raise MissingApi for the first thing the recipe needs that this version lacks, before any work is done."""
    if recipe["typing"] == "strong":
        need(trt.NetworkDefinitionCreationFlag, "NetworkDefinitionCreationFlag", "STRONGLY_TYPED")
    if recipe["typing"] == "weak":
        for name in recipe["flags"]:
            need(trt.BuilderFlag, "BuilderFlag", name)
    if recipe["calibrator"]:
        need(trt.IBuilderConfig, "IBuilderConfig", "int8_calibrator")
    for name, _ in recipe["parser_flags"]:
        need(need(trt, trt.__name__, "OnnxParserFlag"), "OnnxParserFlag", name)


def make_logger(emit: Emit) -> Any:
    """Return a logger that sends each message on as it comes."""

    class Logger(trt.ILogger):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.ILogger.__init__(self)

        def log(self, severity: Any, text: str) -> None:
            emit("message", severity=severity.name, text=text)

    return Logger()


def network_flags(typing: str) -> int:
    """Return the flags of `create_network`: by name, because their numbers moved between 9.2, 10 and 11."""
    names = trt.NetworkDefinitionCreationFlag
    flags = 0
    if hasattr(names, "EXPLICIT_BATCH"):
        flags |= 1 << int(names.EXPLICIT_BATCH)
    if typing == "strong":
        flags |= 1 << int(need(names, "NetworkDefinitionCreationFlag", "STRONGLY_TYPED"))
    elif typing == "graph" and not has_weak_typing() and hasattr(names, "STRONGLY_TYPED"):
        flags |= 1 << int(names.STRONGLY_TYPED)
    return flags


def datatype_name(datatype: Any) -> str:
    """Return a DataType as the wire's word ("float32", "int8"); raises MissingApi for one the wire cannot carry."""
    words = {
        "FLOAT": "float32",
        "HALF": "float16",
        "BF16": "bfloat16",
        "INT8": "int8",
        "UINT8": "uint8",
        "INT32": "int32",
        "INT64": "int64",
        "BOOL": "bool",
    }
    name: Optional[str] = words.get(datatype.name)
    if name is None:
        raise MissingApi("a wire form of DataType.%s" % datatype.name)
    return name
