"""Runs the Python files that people are given on the wrapped bindings, each in a child; writes what came of each."""

from __future__ import annotations

import ctypes
import faulthandler
import functools
import importlib
import json
import os
import sys
from typing import Any

from tests.contract.probe.cuda import load_library
from tests.contract.probe.jobs import Json, in_child, log_slot, spoken
from tests.contract.probe.wrap import Probe, note_instances
from tests.contract.trace import TRACE

#: The name of a file while it runs: the wrapper notes the requests from there.
_FILE = "by hand"


def main() -> None:
    """Read the order, run its files, write the report."""
    faulthandler.enable()
    report = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    order = json.load(sys.stdin)
    module = importlib.import_module(order["module"])
    keep = order["keep"]
    probe = Probe(module, order["name"], None if keep is None else set(keep), [_FILE])
    note_instances(module)
    cdll = ctypes.CDLL
    ctypes.c_int.in_dll(cdll("./stub.so"), "log_slot").value = log_slot(order["name"], module.__version__)
    results = {}
    for file in order["files"]:
        # Of the image that the plugin is compiled in there is the stub.
        ctypes.CDLL = _with_plugin(load_library(cdll, driver=True, fails=""), cdll, file["plugin"])  # type: ignore[misc]
        results[file["name"]] = in_child(functools.partial(_result, file, probe, module))["result"]
    json.dump({"results": results}, report)
    report.close()
    os._exit(0)


def _with_plugin(load: Any, cdll: Any, plugin: str) -> Any:
    return lambda name: cdll("./stub.so") if plugin and name == plugin else load(name)


def _result(file: Json, probe: Probe, module: Any) -> Json:
    return {"result": run(file, probe, module)}


def run(file: Json, probe: Probe, module: Any) -> Json:
    """Run one file and return how it ended, and its calls."""
    probe.answers = {path: spoken(module, value) for path, value in file["answers"].items()}
    end = {"end": "done", "detail": ""}
    TRACE.begin(probe.classes)
    try:
        exec(compile(file["text"], _FILE, "exec"), {"__name__": "__main__"})  # noqa: S102
    except SystemExit as error:
        end = {"end": "exit", "detail": str(error)}
    except Exception as error:  # noqa: BLE001  (whatever comes out is the finding)
        end = {"end": "raised", "detail": f"{type(error).__name__}: {error}"}
    return {**end, "trace": TRACE.events}


if __name__ == "__main__":
    main()
