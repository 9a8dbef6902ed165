"""repro.py makes the calls of the adapter on each recipe, on the real bindings of every version.

The stub cannot tell TensorRT's reaction to the calls; the layers that the file prints are those of a real build only on
TensorRT for RTX (tests/integration/test_by_hand.py).
"""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.case import load_cases
from harness.case.model import network_inputs
from harness.matrix import load_matrix
from harness.plan import Cell
from harness.plan.by_hand import PLUGIN, REPRO, asked_of
from tests.contract import bindings
from tests.contract.bindings import ROOT, VERSIONS, Bindings
from tests.contract.conftest import Probe

pytestmark = pytest.mark.contract

EVERY_VERSION = pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.id.replace(" ", ""))
#: The calls that decide which engine is built.
_ASKED = re.compile(
    r"Builder\.create_network$|IBuilderConfig\.(set_flag|set_memory_pool_limit|set_compute_capability)$"
    r"|IBuilderConfig\.(profiling_verbosity|int8_calibrator|num_compute_capabilities) =$"
    r"|OnnxParser\.(set|clear)_flag$|INetworkDefinition\.mark_output$|get_batch$"
)


def distinct() -> list[Cell]:
    """Return a cell for each distinct recipe of the cases, on a target to be changed."""
    target = load_matrix(ROOT / "matrix.yaml").target("trt86")
    found: dict[str, Cell] = {}
    for case in load_cases(ROOT / "cases"):
        for variant in case:
            found.setdefault(
                variant.recipe.sha256(), Cell(f"{case.name}.{variant.name}", case, variant, target)
            )
    return list(found.values())


def file_of(cell: Cell, version: Bindings, folder: Path) -> dict[str, Any]:
    engine = next(each for each in type(cell.target.engine) if each.value == version.engine)
    target = dataclasses.replace(cell.target, engine=engine, version=f"{version.version}.0")
    data = cell.variant.model_bytes()
    first = network_inputs(cell.variant.build())[0].name
    # The stub has one tensor: what a layer puts out, then what the calibrator is asked for.
    names = [*cell.variant.recipe.mark_outputs, first]
    path = folder / f"{cell.id}.json"
    path.write_text(json.dumps(asked_of(dataclasses.replace(cell, target=target), "model.onnx", data)))
    return {
        "name": cell.id,
        "text": REPRO.read_text().replace("main(sys.argv[1])", f"main({str(path)!r})"),
        "plugin": PLUGIN if cell.variant.recipe.plugin else "",
        "answers": {"ITensor.name": names},
    }


def asked(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return what was asked of the builder, in any order; objects without their numbers, batches by their count."""
    return sorted(
        (
            event["call"],
            *(re.sub(r"#\d+", "", text) for text in event["arguments"] if event["call"] != "get_batch"),
        )
        for event in result["trace"]
        if _ASKED.search(event["call"])
    )


@EVERY_VERSION
def test_a_file_asks_for_what_the_adapter_asks_for(
    version: Bindings, probe: Probe, stub: Path, tmp_path: Path
) -> None:
    """Or ends at the same name that the version lacks."""
    adapter = probe(version)["results"]
    files = [file_of(cell, version, tmp_path) for cell in distinct()]
    done = bindings.run_files(version, files, stub)
    assert len(done) == len(files) > 20
    for name, mine in done.items():
        theirs = adapter[f"build {name}"]
        if theirs["end"] == "missing_api":
            assert mine["end"] == "raised", (name, mine["detail"])
            assert mine["detail"].startswith("AttributeError: "), (name, mine["detail"])
            lacking = set(theirs["detail"].split("."))
            # For a parser without flags the call that sets one is looked up first.
            lacking |= {"set_flag", "clear_flag"} if "OnnxParserFlag" in lacking else set()
            assert lacking & set(re.findall(r"'(\w+)'", mine["detail"])), (name, mine["detail"])
        else:
            assert mine["end"] == theirs["end"] == "done", (name, mine["detail"], theirs["detail"])
            assert asked(mine) == asked(theirs), name
