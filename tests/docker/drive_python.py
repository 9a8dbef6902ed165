"""Registers the plugin in Python through real bindings; prints what it does with each attribute, and its copies.

    drive_python.py FOLDER

The bindings and the repository are on PYTHONPATH.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import sys
from pathlib import Path
from typing import Any

from tests.docker.drive_library import drive

if __name__ == "__main__":
    registry = ctypes.CDLL(str(Path(sys.argv[1]) / "libnvinfer.so"), ctypes.RTLD_GLOBAL)
    trt = importlib.import_module("tensorrt_bindings")
    api: Any = importlib.import_module("harness.agent.engines.tensorrt.api")
    identity: Any = importlib.import_module("harness.agent.engines.tensorrt.identity")
    plugins: Any = importlib.import_module("harness.agent.engines.tensorrt.plugins")
    engines: Any = importlib.import_module("harness.agent.engines")
    copies: list[list[Any]] = []

    class Driver:
        """A CUDA driver that notes its calls."""

        def call(self, *arguments: Any) -> None:
            """Note a call."""
            copies.append(list(arguments))

    api.trt, identity.Driver = trt, Driver
    try:
        plugins.load({"plugin": {"op": "CompatIdentity"}}, None, {})
    except engines.Unavailable as refusal:
        print(json.dumps({"unavailable": str(refusal)}))
    else:
        print(json.dumps({"seen": drive(registry), "copies": copies}))
