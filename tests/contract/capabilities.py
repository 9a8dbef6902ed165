"""The table of what the adapter can do on each version, as the contract test's probe found it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.contract import bindings
from tests.contract.bindings import VERSIONS, Bindings
from tests.contract.scenarios import FEATURES

Reports = Sequence[tuple[Bindings, dict[str, Any]]]
#: Its path from the top of the repository.
FILE = "tests/contract/data/capabilities.tsv"

#: Jobs that are rows beside the recipes' features.
_JOBS = {"engine for compute capability 8.9": "build for 8.9"}
#: Names that cases and their recipes turn on, whether the adapter uses them or not.
_ASKED_FOR = (
    *("BuilderFlag.DISABLE_TIMING_CACHE", "BuilderFlag.EDITABLE_TIMING_CACHE", "DataType.BF16"),
    *("DataType.FP8", "DataType.INT4", "DataType.INT64", "IBuilderConfig.hardware_compatibility_level"),
    *("ICudaEngine.create_engine_inspector", "ILayer.precision", "INetworkDefinition.add_plugin_v2"),
    *("INetworkDefinition.add_plugin_v3", "INetworkDefinition.mark_debug"),
    *("IPluginRegistry.load_library", "IProfiler"),
    *("ITensor.set_dynamic_range", "ParserError.node_name"),
)
_HEAD = """# Written by `make docs`; a test fails when it is out of date. Real bindings on a stub of NVIDIA's libraries.
# A recipe: "yes", the adapter makes every call for it; "-", the cell is api_removed, and the last column has the names.
# A name: whether the bindings have it. Names that every version has are left out.
{sources}"""


def table(reports: Reports) -> str:
    """Return the table for the probe's reports, one for each version."""
    missing = {name for _, report in reports for name in _missing_names(report)}
    there = {name for _, report in reports for name in report["names"]}
    touched = {name for _, report in reports for name in report["touched"]} | (missing & there)
    named = touched | set(_ASKED_FOR)
    jobs = [(f"recipe: {name}", f"feature {name}") for name in FEATURES]
    jobs += [(f"recipe: {name}", job) for name, job in _JOBS.items()]
    rows = [["name", *(version.id for version, _ in reports), "missing there"]]
    rows += [_job_row(label, job, reports) for label, job in jobs]
    rows += [
        [name, *("yes" if name in report["names"] else "-" for _, report in reports), ""]
        for name in sorted(named)
        if not all(name in report["names"] for _, report in reports)
    ]
    return _HEAD.format(sources=_sources()) + "".join("\t".join(row) + "\n" for row in rows)


def _sources() -> str:
    lines = []
    for version in VERSIONS:
        if version.sources:
            source = bindings.source_names(version.sources)
            lines.append(
                f"# {version.id} is {version.package} without what the sources of {source['version']} lack: "
                f"{source['source']}\n"
            )
    return "".join(lines)


def _missing_names(report: dict[str, Any]) -> set[str]:
    return {result["detail"] for result in report["results"].values() if result["end"] == "missing_api"}


def _job_row(label: str, job: str, reports: Reports) -> list[str]:
    results = [report["results"][job] for _, report in reports]
    cells = ["yes" if result["end"] == "done" else "-" for result in results]
    names = sorted({result["detail"] for result in results if result["end"] == "missing_api"})
    return [label, *cells, ", ".join(names)]
