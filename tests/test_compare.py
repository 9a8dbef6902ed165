"""The upgrade view: what breaks, is fixed, loses precision, gets slower, and what cannot be said."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.compare import Comparison, column, compare
from harness.report.writer import results_json
from tests.report import factory

pytestmark = pytest.mark.unit

CONV = factory.CONV
QDQ = ("conv_silu", "qdq")


def report() -> Any:
    """Return results.json of the factory's outcomes, as JSON."""
    return json.loads(results_json(factory.results()))


def between(before: str, after: str, results: Any = None) -> Comparison:
    """Compare two targets."""
    found = results or report()
    return compare(column(found, before), column(found, after))


def cell(results: Any, variant: str, target: str) -> Any:
    """Return one cell, to be changed."""
    return next(each for each in results["cells"] if (each["variant"], each["target"]) == (variant, target))


def variants(comparison: Comparison, kind: str) -> list[str]:
    """Return the variants to which that happened."""
    return [found.variant for found in comparison.of(kind)]


def test_what_breaks_says_why_and_what_to_do() -> None:
    """rtx17 finds no implementation where rtx16 built."""
    found = between("rtx16", "rtx17")
    assert variants(found, "broken") == ["qdq", "qdq-between"]
    broken = found.of("broken")[0]
    assert broken.text.startswith("built -> build_failed: ")
    assert broken.advice
    assert variants(between("rtx17", "rtx16"), "fixed") == ["qdq", "qdq-between"]


def test_two_failures_of_one_kind_are_no_difference_and_of_two_kinds_are_one() -> None:
    """That it fails otherwise is news to whoever waits for a fix."""
    results = report()
    old, new = cell(results, "qdq", "rtx14"), cell(results, "qdq", "rtx17")
    assert compare(column(results, "rtx14"), column(results, "rtx17")).of("changed") == ()
    new["signature"] = "another"
    assert variants(between("rtx14", "rtx17", results), "changed") == ["qdq"]
    new["signature"], new["class"] = old["signature"], "crashed"
    assert variants(between("rtx14", "rtx17", results), "changed") == ["qdq"]


def test_precision_is_lost_where_a_wanted_node_no_longer_has_it() -> None:
    """The engine builds, and runs in FP32 without a word."""
    results = report()
    lost = cell(results, "qdq", "rtx16")
    lost["precision"] = {**lost["precision"], CONV: "fp32"}
    found = between("rtx15", "rtx16", results)
    assert [each.text for each in found.of("precision_lost")] == [f"{CONV} int8 -> fp32"]
    assert variants(between("rtx16", "rtx15", results), "precision_gained") == ["qdq"]
    lost["precision"][CONV] = "unknown"
    assert between("rtx15", "rtx16", results).of("precision_lost") == ()


def test_precision_that_nobody_wants_is_no_news() -> None:
    """An activation that runs in FP16 instead of FP32 breaks nothing."""
    results = report()
    other = cell(results, "qdq", "rtx16")
    other["precision"] = {**other["precision"], "/model.0/act/Mul": "fp16"}
    assert between("rtx15", "rtx16", results).of("precision_lost") == ()


def test_what_was_measured_and_is_no_more_is_unknown() -> None:
    """Also where the machine was at fault; what makes no sense on a target is not missed there."""
    assert variants(between("rtx16", "rtx17"), "unknown") == ["fp32"]
    assert between("rtx17", "trt86").of("unknown")
    results = report()
    for each in results["cells"]:
        if each["target"] == "trt86":
            each["class"] = "not_applicable"
    assert between("rtx17", "trt86", results).of("unknown") == ()


def timed(factor: float, **changes: Any) -> Comparison:
    """Compare ONNX Runtime with itself, `factor` times as slow."""
    results = report()
    other = copy.deepcopy(results)
    slow = cell(other, "fp32", "ort131")
    slow["latency_ms"]["samples"] = [sample * factor for sample in slow["latency_ms"]["samples"]]
    slow["latency_ms"]["samples"] = slow["latency_ms"]["samples"][: changes.pop("count", None)]
    slow["stamps"]["environment"].update(changes)
    return compare(column(results, "ort131"), column(other, "ort131"))


@pytest.mark.parametrize(("factor", "kind"), [(1.5, "slower"), (0.6, "faster")])
def test_slower_and_faster_are_told_beyond_what_a_machine_does_by_itself(factor: float, kind: str) -> None:
    """With the interval that the samples allow."""
    assert variants(timed(factor), kind) == ["fp32"]


@pytest.mark.parametrize(
    ("clock", "factor", "kinds"),
    [
        ("cuda_events", 1.03, []),
        ("cuda_events", 1.06, ["slower"]),
        ("cuda_events", 0.97, []),
        ("cuda_events", 0.94, ["faster"]),
        ("monotonic", 1.2, []),
        ("monotonic", 1.3, ["slower"]),
    ],
)
def test_what_a_machine_does_from_run_to_run_is_no_change(
    clock: str, factor: float, kinds: list[str]
) -> None:
    """However sharply the samples of the two runs differ; a CPU does more of it than a GPU."""
    results = report()
    other = copy.deepcopy(results)
    for found, level in ((results, 0.04), (other, 0.04 * factor)):
        samples = [level + 1e-6 * (number % 5) for number in range(100)]
        cell(found, "fp32", "ort131")["latency_ms"].update({"samples": samples, "clock": clock})
    found = compare(column(results, "ort131"), column(other, "ort131"))
    assert [difference.kind for difference in found.differences] == kinds


def test_latency_of_another_machine_is_not_compared() -> None:
    """It is counted, so that silence is not taken for equality."""
    for changes in ({"cpu": "another"}, {"driver": "580.1"}, {"gpu_uuid": "GPU-1"}):
        found = timed(3.0, **changes)
        assert (found.of("slower"), found.other_stack) == ((), 1)


def test_few_samples_prove_nothing() -> None:
    """Their extremes do not enclose the median."""
    assert timed(1.5, count=8).differences == ()


def test_a_flaky_cell_is_marked_where_it_breaks() -> None:
    """It may have failed by chance."""
    results = report()
    cell(results, "qdq", "rtx17")["flaky"] = ["build_failed", "built"]
    assert "after is flaky (build_failed, built)" in between("rtx16", "rtx17", results).of("broken")[0].text


def test_hostile_text_stays_on_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An engine's message must not paint the terminal."""
    results = report()
    cell(results, "qdq", "rtx17")["reason"] = "a\x1b[31m\nfixed: 99\u202e"
    (tmp_path / "results.json").write_text(json.dumps(results))
    assert main(["diff", "rtx16", "rtx17", "--reports", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert not any(line.startswith("fixed: 99") for line in said.splitlines())


@pytest.fixture
def two_reports(tmp_path: Path) -> tuple[Path, Path]:
    """Write two reports, the second without the failures of rtx17."""
    old, new = tmp_path / "old", tmp_path / "new"
    results = report()
    for folder in (old, new):
        folder.mkdir()
    (old / "results.json").write_text(json.dumps(results))
    for variant in ("qdq", "qdq-between"):
        cell(results, variant, "rtx17").update({"class": "built", "signature": None, "diagnosis": None})
    (new / "results.json").write_text(json.dumps(results))
    return old, new


def test_exit_codes_of_two_reports(
    two_reports: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """1 where something breaks, 0 where not; each target is compared with itself."""
    old, new = map(str, two_reports)
    assert main(["diff", new, old]) == 1
    assert main(["diff", old, f"{new}/results.json"]) == 0
    assert main(["diff", new, old, "--target", "rtx16"]) == 0
    said = capsys.readouterr().out
    assert "broken: 2" in said
    assert "fixed: 2" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["rtx16", "rtx71"], "did you mean"),
        (["{old}", "rtx17"], "two targets or two reports"),
        (["{old}", "{new}", "--target", "rtx71"], "do not both have"),
        (["{old}", "nowhere.json"], "cannot be read"),
        (["{old}", "{broken}"], "not a results.json"),
        (["rtx16", "rtx17", "--target", "rtx17"], "--target is for two reports"),
        (["rtx16"], "required: B"),
    ],
)
def test_bad_usage_is_one_sentence(
    two_reports: tuple[Path, Path], capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    """And exit code 2, which no regression gives."""
    old, new = two_reports
    broken = old / "broken.json"
    broken.write_text("{")
    words = [word.format(old=old, new=new, broken=broken) for word in arguments]
    assert main(["diff", *words, "--reports", str(old)]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
