"""A dozen variants on real engines: containers and virtual environments agree, and both with what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from harness.plan import Cell
from harness.run.provision.model import Via
from harness.words import Class, Precision
from tests import needs
from tests.integration.runs import ROOT, Result, project_cells, run

pytestmark = [pytest.mark.integration, pytest.mark.docker]

TARGETS = ("rtx14", "rtx16", "rtx17", "rtx17-sm75", "ort131")
#: At least two of each case: what builds, what does not parse, what does not build, what an API no longer has.
VARIANTS = (
    *("conv_silu.fp32", "conv_silu.qdq", "conv_silu.int8-entropy", "mish.qdq", "mish.fp32"),
    *("depthwise_qdq.qdq", "depthwise_qdq.qdq-c3", "depthwise_qdq.fp16", "instance_norm.fp32-native"),
    *("instance_norm.fp16-fp32-scale", "q_plugin_dq.layernorm-native", "q_plugin_dq.q-native-dq"),
)
EMULATED = ("conv_silu.fp32", "mish.qdq")

Results = dict[str, dict[str, Result]]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The outcome of each cell, by way of running and cell id."""
    needs.network()
    needs.base_image()
    cells = [cell for cell in project_cells() if cell.target.name in TARGETS and row(cell) in VARIANTS]
    assert len(cells) == len(TARGETS) * len(VARIANTS)
    ways: tuple[Via, ...] = ("venv", "docker")
    return {via: run(cells, via, tmp_path_factory.mktemp(via)) for via in ways}


def row(cell: Cell) -> str:
    """Return `case.variant` of a cell."""
    return f"{cell.case.name}.{cell.variant.name}"


def test_containers_and_virtual_environments_agree(results: Results) -> None:
    by_venv, by_docker = ({name: result.claim for name, result in each.items()} for each in results.values())
    assert by_docker == by_venv
    assert {result.judged.outcome.stamps.via for result in results["docker"].values()} >= {"docker"}
    assert {result.judged.outcome.stamps.via for result in results["venv"].values()} >= {"venv"}


def test_both_agree_with_what_was_measured(results: Results) -> None:
    measured = yaml.safe_load((ROOT / "cases" / "measured.yaml").read_text())
    for name, result in results["docker"].items():
        # An inapplicable cell, or one that could not run, is no measurement.
        cell = result.judged.cell
        expected = measured[cell.target.name]["cells"].get(cell.case.name, {}).get(cell.variant.name, "")
        said = result.claim if result.cls not in ("not_applicable", "not_run") else ""
        # The nodes to blame follow in a list.
        assert said == (expected if isinstance(expected, str) else expected[0]), name


def test_the_matrix_tells_versions_apart(results: Results) -> None:
    """Not every cell ends alike: an engine that is never asked would pass the other tests."""
    classes = {result.cls for result in results["venv"].values()}
    assert classes >= {"ok", "built", "parse_failed", "build_failed", "api_removed", "not_applicable"}


def test_stamps_name_the_engine_that_answered(results: Results) -> None:
    for results_of_one_way in results.values():
        for result in results_of_one_way.values():
            outcome, cell = result.judged.outcome, result.judged.cell
            if outcome.state != "done":
                continue
            assert cell.target.runs_version(outcome.stamps.engine_version)
            assert outcome.stamps.packages
            assert outcome.stamps.environment["engine_version"] == outcome.stamps.engine_version


def test_the_baseline_runs_is_timed_and_agrees_with_the_reference(results: Results) -> None:
    for results_of_one_way in results.values():
        ran = {
            name: result
            for name, result in results_of_one_way.items()
            if result.judged.cell.target.name == "ort131" and result.cls == "ok"
        }
        assert len(ran) >= 5
        for name, result in ran.items():
            outcome = result.judged.outcome
            assert outcome.latency is not None, name
            assert outcome.latency.samples_ms, name
            assert all(0 < sample < 1000 for sample in outcome.latency.samples_ms), name
            assert outcome.accuracy, name
            assert all(each.cosine > 0.98 and not each.not_finite for each in outcome.accuracy), name


def test_an_emulated_platform_ends_as_it_was_measured(tmp_path: Path) -> None:
    needs.base_image("arm64")
    needs.emulation("arm64")
    needs.network()
    cells = [cell for cell in project_cells() if cell.target.name == "rtx17-arm64" and row(cell) in EMULATED]
    measured = yaml.safe_load((ROOT / "cases" / "measured.yaml").read_text())["rtx17-arm64"]["cells"]
    found = run(cells, "docker", tmp_path)
    assert {row(result.judged.cell): result.claim for result in found.values()} == {
        name: measured[case][variant] for name in EMULATED for case, _, variant in [name.partition(".")]
    }
    convolution = found["conv_silu.fp32-rtx17-arm64"]
    assert convolution.judged.outcome.stamps.environment["machine"] == "aarch64"
    assert convolution.judged.classification.cls is Class.BUILT
    assert Precision.FP32 in convolution.judged.precision.values()
