"""The agent's TensorRT adapter touches only what each version's API has, or asks first.

The adapter runs, job by job, on the real Python bindings of every version, which stand on a stub of NVIDIA's libraries
(`stub.c`). The bindings themselves look every attribute up, choose the overload and convert the arguments: what they
refuse here they refuse everywhere. Every recipe of the cases is built, and every line of the adapter runs in some job
on some version, so nothing it touches goes unseen; the list of it in data/capabilities.tsv is what the wrapped bindings
noted.

The calls of a job with their arguments, CUDA's and TensorRT's callbacks among them, are its trace. `data/traces` keeps
those of some jobs, to be read in review: the adapter's requests in their order, the memory that they use, and how long
Python keeps it.

This cannot prove TensorRT's work behind a call, the objects it keeps alive there, a GPU's results, and that the real
libraries load. 8.5 and 9.2 have no published bindings: they are the next version's without what their public sources do
not define, so a default or a number that differs there is not seen.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from harness.case.model import BUILDER_FLAGS, PARSER_FLAGS
from harness.matrix import load_matrix
from harness.matrix.interface import interfaces, numbers
from harness.words import Engine
from tests import needs
from tests.contract import bindings, traces, written
from tests.contract.bindings import ROOT, VERSIONS, Bindings
from tests.contract.conftest import Probe
from tests.contract.scenarios import NOWHERE, Scenario
from tools.docs import stale
from tools.interface import python

pytestmark = pytest.mark.contract

#: The most characters of the pages of calls, all together.
MOST = 60_000

EVERY_VERSION = pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.id.replace(" ", ""))


def findings(report: Mapping[str, Any], jobs: Mapping[str, Scenario]) -> list[str]:
    """Return one sentence for every job that ended as it must not; empty for an adapter that keeps to the API.

    A job may end as its scenario says, or with the name of an API that is missing, if that name is really not there.
    Anything that Python or the bindings raise, and a crash, is a finding.
    """
    names = set(report["names"])
    found = []
    for name, result in report["results"].items():
        end, detail = result["end"], result["detail"]
        if end == "missing_api":
            if detail in names:
                found.append(f"{name}: says that {detail} is missing, and it is there")
        elif end == "impossible":
            # No such answer: DataType.FP8 where there is no such type.
            continue
        elif end != wanted_end(jobs[name], names):
            found.append(f"{name}: ended as {end}, not {wanted_end(jobs[name], names)}: {detail}")
    return found


def wanted_end(scenario: Scenario, names: set[str]) -> str:
    """Return how a job must end on a version that has what its recipe asks for."""
    lacked, end = scenario.lacking
    return end if lacked and lacked not in names else scenario.ends


@EVERY_VERSION
def test_adapter_keeps_to_the_api(version: Bindings, probe: Probe, jobs: Mapping[str, Scenario]) -> None:
    """Every job ends as it should, or with the exact name of an API that this version really lacks."""
    report = probe(version)
    assert len(report["results"]) == len(jobs)
    assert findings(report, jobs) == []


@EVERY_VERSION
def test_bindings_are_those_of_the_version(version: Bindings, probe: Probe) -> None:
    """The imported package names the version of its column."""
    if version.sources is None:
        assert f"{probe(version)['version']}.".startswith(f"{version.version}.")
    else:
        assert bindings.source_names(version.sources)["version"].startswith(version.version)


@pytest.mark.parametrize(
    "version", [version for version in VERSIONS if version.sources], ids=lambda version: version.id
)
def test_calls_have_the_arguments_of_the_sources(version: Bindings, probe: Probe) -> None:
    """The bindings that stand in for 8.5 and 9.2 have the same arguments for each call as the older sources."""
    arguments = bindings.source_names(version.sources or "")["arguments"]
    compared, differing = 0, {}
    for path, signature in probe(version)["signatures"].items():
        named = [names for names in arguments.get(path, []) if names]
        compared += bool(named)
        if named and not any(_overloads_name(signature, names) for names in named):
            differing[path] = (named, signature)
    assert differing == {}
    assert compared > 10


def _overloads_name(signature: str, names: list[str]) -> bool:
    """Tell whether an overload in a pybind11 docstring has these arguments after `self`."""
    heads = [line for line in signature.splitlines() if re.match(r"(\d+\. )?\w+\(", line)]
    return any(re.findall(r"(\w+): ", head.partition(") ->")[0])[1:] == names for head in heads)


@pytest.mark.long
def test_every_flag_of_every_version_may_be_named(probe: Probe) -> None:
    """A recipe is refused for a flag that no version has: the lists hold all there are, and nothing else."""
    names = {name for version in VERSIONS for name in probe(version)["names"]}
    for kind, listed in (("BuilderFlag", BUILDER_FLAGS), ("OnnxParserFlag", PARSER_FLAGS)):
        there = {
            name.removeprefix(f"{kind}.") for name in names if re.fullmatch(rf"{kind}\.[A-Z][A-Z0-9_]*", name)
        }
        assert there == listed


def test_missing_names_are_names(probe: Probe) -> None:
    """A name missing on one version exists on another: a misspelt guard would be missing everywhere."""
    reports = [probe(version) for version in VERSIONS]
    somewhere = {name for report in reports for name in report["names"]}
    asked = {
        (job, result["detail"])
        for report in reports
        for job, result in report["results"].items()
        if result["end"] == "missing_api" and job != NOWHERE
    }
    assert len(asked) > 10
    assert {(job, name) for job, name in asked if name not in somewhere} == set()


def test_every_line_of_the_adapter_runs(probe: Probe) -> None:
    """Every line of the adapter runs in some job on some version: what did not run was not checked."""
    ran: dict[str, set[int]] = {}
    for version in VERSIONS:
        for file, lines in probe(version)["lines"].items():
            ran.setdefault(file, set()).update(lines)
    silent = {
        f"{path.relative_to(ROOT)}:{line}"
        for path in bindings.adapter_files()
        for line in set(_lines(compile(path.read_text(encoding="utf-8"), str(path), "exec"))) - ran[str(path)]
    }
    assert silent == set()


def _lines(code: CodeType) -> Iterator[int]:
    yield from (line for _, _, line in code.co_lines() if line)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _lines(constant)


def test_only_the_adapter_touches_the_engine() -> None:
    """No other file of the agent imports TensorRT or takes the module that the adapter holds."""
    adapter = set(bindings.adapter_files())
    for path in (ROOT / "harness").rglob("*.py"):
        if path in adapter:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            imported = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not {"tensorrt", "tensorrt_rtx"} & set(imported), path


#: Releases whose bindings are not on the package index yet.
NO_BINDINGS = {"11.5"}


def test_every_target_of_the_matrix_is_checked() -> None:
    """Each TensorRT of matrix.yaml has its release among the versions that are checked."""
    checked = {(version.engine, version.version) for version in VERSIONS}
    for target in load_matrix(ROOT / "matrix.yaml").targets:
        if target.engine is not Engine.ONNXRUNTIME:
            release = ".".join(target.version.split(".")[:2])
            assert (target.module, release) in checked or release in NO_BINDINGS, target.name


def test_what_is_kept_of_the_probe_is_current(probe: Probe) -> None:
    """data/capabilities.tsv and the pages of calls are what `make docs` writes, and there are no others."""
    reports: list[tuple[Bindings, dict[str, Any]]] = [(version, probe(version)) for version in VERSIONS]
    pages = written.pages(reports)
    assert [sentence for name, text in pages.items() if (sentence := stale(name, text))] == []
    kept = {path.relative_to(ROOT).as_posix() for path in (ROOT / traces.FOLDER).iterdir()}
    assert kept <= set(pages), "a page of calls that is written no more: delete it"
    assert sum(len(text) for name, text in pages.items() if name in kept) < MOST, "too much to review"


@pytest.mark.parametrize("package", [python.PACKAGES[0], python.PACKAGES[-6], python.PACKAGES[-1]])
def test_the_table_has_the_names_of_the_bindings(package: str, stub: Path) -> None:
    needs.network()
    here = python.bindings(package, stub)
    known, version = interfaces()["python"], numbers(python.version_of(package))
    has = {name.full for name in known.names.values() if not name.lacking(version)}
    # What a base has now was the class's own.
    inherited = {full for full in has - {*here} if known.names[full].owner in here}
    assert {*here} <= has
    assert has - {*here} - inherited == set()
    assert len(inherited) < len(here) / 20
