"""The text of docs/capabilities.md: what the adapter can do on each version, as the contract test's probe found it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tests.contract import bindings
from tests.contract.bindings import VERSIONS, Bindings
from tests.contract.scenarios import FEATURES

Reports = Sequence[tuple[Bindings, dict[str, Any]]]

#: Jobs that are rows beside the recipes' features.
_JOBS = {"engine for compute capability 8.9": "build for 8.9"}

#: What a case or a later harness may want to ask for, by the names that it stands for.
_ASKED_FOR = {
    "INT64 tensors": "DataType.INT64",
    "BF16 tensors": "DataType.BF16",
    "FP8 tensors": "DataType.FP8",
    "INT4 tensors": "DataType.INT4",
    "node and operator of a parser error": "ParserError.node_name",
    "engine inspector": "ICudaEngine.create_engine_inspector",
    "layer profiler": "IProfiler",
    "no timing cache": "BuilderFlag.DISABLE_TIMING_CACHE",
    "editable timing cache": "BuilderFlag.EDITABLE_TIMING_CACHE",
    "precision of a layer": "ILayer.precision",
    "dynamic range of a tensor": "ITensor.set_dynamic_range",
    "plugin library into a registry": "IPluginRegistry.load_library",
    "V2 plugin in a network": "INetworkDefinition.add_plugin_v2",
    "V3 plugin in a network": "INetworkDefinition.add_plugin_v3",
    "V2 plugin in Python": "IPluginV2DynamicExt",
    "V3 plugin in Python": "IPluginV3",
    "tensors watched without marking them": "INetworkDefinition.mark_debug",
    "hardware-compatible engine": "IBuilderConfig.hardware_compatibility_level",
}

_HEAD = """# What each TensorRT lets the agent do

Written by `make docs`; a test fails when it is out of date. Do not edit.

The agent's adapter (`harness/agent/engines/tensorrt`, `harness/agent/calibration.py`) is run on the real Python
bindings of each version, which stand on a stub of NVIDIA's libraries: no GPU, no TensorRT. So this page is about names,
signatures and argument types. It says nothing of what TensorRT does behind them.

8.5 and 9.2 have no bindings on the package index:

{sources}

## What a recipe can ask for

`yes`: the adapter makes every call for it. `-`: the cell becomes `api_removed`, and the last column has the names that
are then reported as missing. A flag that can be set may still be refused: TensorRT for RTX 1.4 has the flags of weak
typing and builds with none of them.

"""

_NAMES = """
## Names that differ

Names that the adapter touched on some version, or asked for, and that not every version has.

"""

_ASKED = """
## More that differs

Not all of it is used by the adapter; it is what cases and their recipes turn on.

"""

_ALWAYS = """
## Names that every version has

The adapter touches these as well, with the arguments that all of the versions take.

"""


def page(reports: Reports) -> str:
    """Return the page for the probe's reports, one for each version."""
    labels = {version: version.id for version, _ in reports}
    missing = {name for _, report in reports for name in _missing_names(report)}
    there = {name for _, report in reports for name in report["names"]}
    touched = {name for _, report in reports for name in report["touched"]} | (missing & there)
    everywhere = {name for name in touched if all(name in report["names"] for _, report in reports)}
    rows = [(f"{name}", f"feature {name}") for name in FEATURES] + list(_JOBS.items())
    said = [_job_row(label, job, reports) for label, job in rows]
    differing = [_name_row(f"`{name}`", name, reports) for name in sorted(touched - everywhere)]
    asked = [_name_row(f"{label} (`{name}`)", name, reports) for label, name in _ASKED_FOR.items()]
    columns = list(labels.values())
    return "".join(
        [
            _HEAD.format(sources=_sources()),
            _table(["recipe", *columns, "missing there"], said),
            _NAMES,
            _table(["name", *columns], differing),
            _ASKED,
            _table(["capability", *columns], asked),
            _ALWAYS,
            "".join(f"- `{name}`\n" for name in sorted(everywhere)),
        ]
    )


def _sources() -> str:
    lines = []
    for version in VERSIONS:
        if version.sources:
            table = bindings.source_names(version.sources)
            lines.append(
                f"- {version.id} is checked as `{version.package}` without what the sources of {table['version']}\n"
                f"  do not define: <{table['source']}>"
            )
    return "\n".join(lines)


def _missing_names(report: dict[str, Any]) -> set[str]:
    return {result["detail"] for result in report["results"].values() if result["end"] == "missing_api"}


def _job_row(label: str, job: str, reports: Reports) -> list[str]:
    results = [report["results"][job] for _, report in reports]
    cells = ["yes" if result["end"] == "done" else "-" for result in results]
    names = sorted({f"`{result['detail']}`" for result in results if result["end"] == "missing_api"})
    return [label, *cells, ", ".join(names)]


def _name_row(label: str, name: str, reports: Reports) -> list[str]:
    return [label, *("yes" if name in report["names"] else "-" for _, report in reports)]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
