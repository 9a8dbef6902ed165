"""The night: its jobs fit the runners, a damaged part is left out, and it ends red after a regression."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.case import load_cases, model_sha256
from harness.cli import main
from harness.cli.repository import MOST_JOBS, jobs
from harness.errors import HandledError
from harness.matrix import Needs, load_matrix
from harness.plan import all_cells
from harness.record.outcome import Outcome
from harness.record.store import Store
from harness.words import Engine
from tests.fixtures import Capture
from tests.report import factory
from tests.suites import records
from tests.waiting import HANGS

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[1]
REAL = ROOT / "tests" / "report" / "data" / "real.jsonl"


def names(**runners: Any) -> list[str]:
    """Return the names of the real matrix' jobs."""
    return [job["name"] for job in jobs(load_matrix(ROOT / "matrix.yaml"), **runners)]


def test_without_runners_of_our_own_only_what_needs_no_gpu_is_a_job() -> None:
    """A job for a runner that does not exist waits for a day."""
    found = jobs(load_matrix(ROOT / "matrix.yaml"))
    assert {job["target"] for job in found} >= {"rtx14", "rtx17", "rtx17-arm64", "ort131"}
    assert not any("self-hosted" in job["runs-on"] for job in found)
    assert next(job for job in found if job["target"] == "rtx17-arm64")["runs-on"] == ["ubuntu-24.04-arm"]


def test_a_gpu_gets_the_targets_that_run_on_it() -> None:
    """TensorRT 10.3 knows no compute capability 12.0, and RTX builds for 8.9 run on no other."""
    found = names(gpus=["9.0", "12.0"])
    assert {"trt86 on SM 9.0", "trt103 on SM 9.0", "trt112 on SM 12.0", "rtx17"} <= set(found)
    assert not {"trt103 on SM 12.0", "rtx17 on SM 9.0", "rtx17-sm89 on SM 9.0"} & set(found)
    assert "rtx17-sm89 on SM 8.9" in names(gpus=["8.9"])


def test_a_board_gets_the_targets_of_its_jetson_linux() -> None:
    """Its labels name the release."""
    found = [
        job for job in jobs(load_matrix(ROOT / "matrix.yaml"), jetsons=["36.4"]) if "jetson" in job["runs-on"]
    ]
    assert {job["target"] for job in found} == {"l4t86", "l4t103"}
    assert found[0]["runs-on"] == ["self-hosted", "linux", "ARM64", "jetson", "l4t-36.4"]


def test_more_jobs_than_github_takes_are_refused() -> None:
    """GitHub would refuse the whole workflow."""
    target = factory.target("t", "1.0", engine=Engine.TENSORRT, needs=Needs(gpu=True, architecture="x86_64"))
    many = [
        replace(target, name=f"t{number}", needs=replace(target.needs, gpu=False)) for number in range(257)
    ]
    with pytest.raises(HandledError, match=f"257 jobs.* {MOST_JOBS}"):
        jobs(many)


def test_ci_matrix_prints_one_line_of_json(capsys: Capture) -> None:
    """It goes to $GITHUB_OUTPUT, a value a line."""
    places = ["--matrix", str(ROOT / "matrix.yaml"), "--cases", str(ROOT / "cases")]
    assert main(["ci-matrix", *places, "--gpu", "9.0", "--target", "trt86"]) == 0
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    (job,) = json.loads(said)["include"]
    assert job["run-minutes"] < job["timeout-minutes"] < 360
    assert set(job) == {"name", "target", "runs-on", "timeout-minutes", "run-minutes"}
    assert main(["ci-matrix", *places, "--gpu", "hopper"]) == 2
    assert main(["ci-matrix", *places, "--target", "trt86"]) == 2


@dataclass(frozen=True)
class Ran:
    """The end of a script, and its lines in GitHub's files."""

    code: int
    text: str
    output: str
    summary: str


def script(tmp_path: Path, name: str, **environment: str) -> Ran:
    """Run a script of .ci/ as a workflow does."""
    files = {key: tmp_path / key for key in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.write_text("")
    given = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHON": sys.executable}
    done = subprocess.run(
        [ROOT / ".ci" / name],
        env={**given, **{key: str(file) for key, file in files.items()}, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    output, summary = (file.read_text() for file in files.values())
    return Ran(done.returncode, done.stdout + done.stderr, output, summary)


def wrapper(tmp_path: Path, line: str) -> str:
    """Return a program to be used in Python's place."""
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return str(path)


def small(tmp_path: Path) -> str:
    """Return a Python that runs the harness on a matrix of six targets and one case."""
    matrix = yaml.safe_load((ROOT / "matrix.yaml").read_text())
    kept = ("rtx14", "rtx15", "rtx16", "rtx17", "ort117", "ort131")
    matrix["targets"] = {name: matrix["targets"][name] for name in kept}
    (tmp_path / "matrix.yaml").write_text(yaml.safe_dump(matrix, sort_keys=False))
    (tmp_path / "cases").mkdir(exist_ok=True)
    for name in ("depthwise_qdq.py", "measured.yaml"):
        shutil.copy(ROOT / "cases" / name, tmp_path / "cases")
    places = f'--matrix "{tmp_path / "matrix.yaml"}" --cases "{tmp_path / "cases"}"'
    return wrapper(tmp_path, f'exec "{sys.executable}" "$@" {places}')


def test_the_plan_reaches_the_workflow(tmp_path: Path) -> None:
    """With and without runners of our own."""
    ran = script(tmp_path, "nightly-matrix", GPUS="8.9 9.0", JETSONS="36.4")
    assert ran.code == 0, ran.text
    name, _, value = ran.output.strip().partition("=")
    assert name == "matrix"
    assert "trt86 on SM 9.0" in [job["name"] for job in json.loads(value)["include"]]
    assert script(tmp_path, "nightly-matrix", GPUS="hopper").code == 2
    assert "self-hosted" not in script(tmp_path, "nightly-matrix").output


def cells(tmp_path: Path, line: str) -> Ran:
    """Run the script of a target's job with a line of shell in the harness' place."""
    given = {"TARGET": "rtx17", "MINUTES": "1", "REPORTS": str(tmp_path / "part"), "SUITE": "onnx-node"}
    return script(tmp_path, "nightly-cells", PYTHON=wrapper(tmp_path, line), **given)


@pytest.mark.parametrize(("ended", "code"), [(0, 0), (1, 0), (2, 2), (3, 0), (9, 9)])
def test_a_target_s_job_is_not_red_for_the_results_of_a_finished_run(
    tmp_path: Path, ended: int, code: int
) -> None:
    """A regression is for the merged report to judge. The suite is run after the cells."""
    part = tmp_path / "part"
    part.mkdir()
    line = f'echo "$@" >>"{tmp_path}/said"; touch "{part}/results.json"; exit {ended}'
    ran = cells(tmp_path, line)
    assert ran.code == code, ran.text
    first, *more = (tmp_path / "said").read_text().splitlines()
    assert first.split()[3:] == [
        "--fresh",
        "--pull",
        "--target",
        "rtx17",
        "--require",
        "rtx17",
        "--reports",
        str(part),
    ]
    assert more == ([] if code else [f"{first} --suite onnx-node"])


@pytest.mark.parametrize("ended", [0, 1, 3])
def test_a_target_s_job_is_red_where_the_run_did_not_get_to_its_end(tmp_path: Path, ended: int) -> None:
    """A fault of the harness, or a Python without it, which ends with 1: neither is a regression, nor a green job."""
    assert cells(tmp_path, f"exit {ended}").code == 3


def parts(tmp_path: Path, *, broken: bool = False) -> Path:
    """Write records of real engines as the jobs leave them; `broken` makes one regress that is measured to work."""
    folder = tmp_path / "parts"
    cells = {
        cell.id: cell for cell in all_cells(load_matrix(ROOT / "matrix.yaml"), load_cases(ROOT / "cases"))
    }
    for line in REAL.read_text(encoding="utf-8").splitlines():
        outcome = Outcome.from_json(json.loads(line))
        if outcome.case != "depthwise_qdq":
            continue
        if broken and outcome.latency:
            outcome = replace(
                outcome, phases={}, failed_phase="build", error="no", latency=None, ran=False, accuracy=()
            )
        variant = cells[outcome.cell].variant
        stamps = replace(
            outcome.stamps,
            model_sha256=model_sha256(variant.model_bytes()),
            recipe_sha256=variant.recipe.sha256(),
        )
        with Store(folder / f"part-{outcome.target}", run=outcome.stamps.run, worker=outcome.target) as store:
            store.append(replace(outcome, stamps=stamps, log_sha256=None))
    return folder


def publish(tmp_path: Path, folder: Path) -> Ran:
    """Merge the parts in a folder into `reports`, and write the pages to publish there."""
    python = small(tmp_path)
    return script(
        tmp_path, "nightly-publish", PARTS=str(folder), REPORTS=str(tmp_path / "reports"), PYTHON=python
    )


def verdict(ran: Ran) -> dict[str, str]:
    """Return the values that a night hands to the steps after it: its exit code and the state of its history."""
    said = dict(line.split("=", 1) for line in ran.output.splitlines())
    return {name: said[name] for name in ("code", "history")}


def shown(tmp_path: Path) -> dict[str, int]:
    """Count the measured cells of the report, by target."""
    data = json.loads((tmp_path / "reports" / "results.json").read_text())
    return Counter(
        cell["target"] for cell in data["cells"] if cell["basis"] == "measured" and cell.get("evidence", True)
    )


@pytest.mark.timeout(HANGS)
def test_the_night_is_merged_checked_and_summarised(tmp_path: Path) -> None:
    """The first one says that it has no history; the next goes on from its state."""
    reports = tmp_path / "reports"
    folder = parts(tmp_path)
    ran = publish(tmp_path, folder)
    assert ran.code == 0, ran.text
    assert verdict(ran) == {"code": "0", "history": "whole"}
    assert "::notice::no history of" in ran.text
    assert "::error" not in ran.text
    assert ran.summary.startswith("# TensorRT compatibility")
    assert shown(tmp_path) == {"rtx14": 2, "rtx15": 1, "ort131": 1}
    # GitHub Pages refuses a site with a file that not everybody may read.
    pages = [path for path in reports.rglob("*") if path.is_file()]
    assert reports / "index.html" in pages
    assert all(path.stat().st_mode & 0o444 == 0o444 for path in pages)
    kept = {path.name for path in (reports / "history").glob("*.json")}
    assert kept
    for path in reports.iterdir():
        if path.name != "history":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.rmtree(folder / "part-rtx14")
    again = publish(tmp_path, folder)
    assert again.code == 0, again.text
    assert verdict(again) == {"code": "0", "history": "whole"}
    assert "::notice::" not in again.text
    assert {path.name for path in (reports / "history").glob("*.json")} == kept
    assert shown(tmp_path) == {"rtx15": 1, "ort131": 1}


@pytest.mark.parametrize(("given", "code"), [("0", 0), ("1", 1), ("3", 3), ("", 3)])
def test_the_last_step_turns_the_night_red(tmp_path: Path, given: str, code: int) -> None:
    """Only a regression is called one."""
    ran = script(tmp_path, "nightly-gate", CODE=given)
    assert ran.code == code
    assert ("::error::cells regressed" in ran.text) is (given == "1")


def test_a_night_without_any_result_is_red(tmp_path: Path) -> None:
    """An empty report must not replace last night's."""
    (tmp_path / "none" / "part-0").mkdir(parents=True)
    ran = publish(tmp_path, tmp_path / "none")
    assert (ran.code, ran.output) == (3, "")
    assert not (tmp_path / "reports").exists()
    assert publish(tmp_path, tmp_path / "nowhere").code == 3


@pytest.mark.timeout(HANGS)
def test_a_damaged_part_does_not_cost_the_others_their_report(tmp_path: Path) -> None:
    """Its readable part counts too; the night ends red, and for a regression if there is one."""
    folder = parts(tmp_path, broken=True)
    _, last = sorted((folder / "part-rtx14" / "records").iterdir())
    last.write_text("damaged\n" + last.read_text())
    (folder / "part-empty").mkdir()
    ran = publish(tmp_path, folder)
    assert ran.code == 0, ran.text
    assert verdict(ran) == {"code": "1", "history": "whole"}, ran.text
    assert "regressed: " in ran.text
    assert "part-rtx14/: not taken" in ran.text
    assert shown(tmp_path) == {"rtx14": 2, "rtx15": 1, "ort131": 1}


@pytest.mark.timeout(HANGS)
@pytest.mark.parametrize("place", ["history", "suites/onnx-node/history"])
def test_a_damaged_history_costs_no_more_than_itself(tmp_path: Path, place: str) -> None:
    folder = parts(tmp_path)
    records.record(folder / "part-ort131", {"ort131": records.FIRST["ort131"]})
    past = tmp_path / "reports" / place / "20261101T020000-r0.json"
    past.parent.mkdir(parents=True)
    past.write_text("damaged")
    ran = publish(tmp_path, folder)
    assert ran.code == 0, ran.text
    assert verdict(ran)["history"] == "damaged", ran.text
    assert (tmp_path / "reports" / "results.json").is_file()
    assert not past.exists()
