"""Reads the order from standard input, runs its scenarios and writes the report."""

from __future__ import annotations

import ctypes
import faulthandler
import importlib
import json
import os
import sys

from tests.contract.probe.cuda import load_library
from tests.contract.probe.jobs import Json, Lines, in_child, log_slot, run
from tests.contract.probe.wrap import Probe, note_instances


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
