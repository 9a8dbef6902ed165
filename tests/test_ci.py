"""The nightly workflow: its jobs fit the runners, and the scripts of its steps do what they say."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.case import load_cases, model_sha256
from harness.ci import MOST_JOBS, jobs
from harness.cli import main
from harness.errors import HandledError
from harness.matrix import Needs, load_matrix
from harness.outcome import Outcome
from harness.plan import plan
from harness.store import Store
from harness.words import Engine
from tests.report import factory

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[1]
REAL = ROOT / "tests" / "report" / "data" / "real.jsonl"
WORKFLOWS = ROOT / ".github" / "workflows"


def names(**runners: Any) -> list[str]:
    """Return the names of the real matrix' jobs."""
    return [job.name for job in jobs(load_matrix(ROOT / "matrix.yaml"), **runners)]


def test_without_runners_of_our_own_only_what_needs_no_gpu_is_a_job() -> None:
    """A job for a runner that does not exist waits for a day."""
    found = jobs(load_matrix(ROOT / "matrix.yaml"))
    assert {job.target for job in found} >= {"rtx14", "rtx17", "rtx17-arm64", "ort131"}
    assert not any("self-hosted" in job.runs_on for job in found)
    assert next(job for job in found if job.target == "rtx17-arm64").runs_on == ("ubuntu-24.04-arm",)


def test_a_gpu_gets_the_targets_that_run_on_it() -> None:
    """TensorRT 10.3 knows no compute capability 12.0, and RTX builds for 8.9 run on nothing else."""
    found = names(gpus=["9.0", "12.0"])
    assert {"trt86 on SM 9.0", "trt103 on SM 9.0", "trt112 on SM 12.0", "rtx17"} <= set(found)
    assert not {"trt103 on SM 12.0", "rtx17 on SM 9.0", "rtx17-sm89 on SM 9.0"} & set(found)
    assert "rtx17-sm89 on SM 8.9" in names(gpus=["8.9"])


def test_a_board_gets_the_targets_of_its_jetson_linux() -> None:
    """Its labels name the release."""
    found = [
        job for job in jobs(load_matrix(ROOT / "matrix.yaml"), jetsons=["36.4"]) if "jetson" in job.runs_on
    ]
    assert {job.target for job in found} == {"l4t86", "l4t103"}
    assert found[0].runs_on == ("self-hosted", "linux", "ARM64", "jetson", "l4t-36.4")


def test_more_jobs_than_github_takes_are_refused() -> None:
    """GitHub would refuse the whole workflow."""
    target = factory.target("t", "1.0", engine=Engine.TENSORRT, needs=Needs(gpu=True, architecture="x86_64"))
    many = [
        replace(target, name=f"t{number}", needs=replace(target.needs, gpu=False)) for number in range(257)
    ]
    with pytest.raises(HandledError, match=f"257 jobs.* {MOST_JOBS}"):
        jobs(many)


def test_ci_matrix_prints_one_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    """It goes to $GITHUB_OUTPUT, where a line is a value."""
    places = ["--matrix", str(ROOT / "matrix.yaml"), "--cases", str(ROOT / "cases")]
    assert main(["ci-matrix", *places, "--gpu", "9.0", "--target", "trt86"]) == 0
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    (job,) = json.loads(said)["include"]
    assert set(job) == {"name", "target", "runs-on", "timeout-minutes"}
    assert main(["ci-matrix", *places, "--gpu", "hopper"]) == 2
    assert main(["ci-matrix", *places, "--target", "trt86"]) == 2


@dataclass(frozen=True)
class Ran:
    """How a script ended, and what it left in GitHub's files."""

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
        timeout=300,
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
    (tmp_path / "cases").mkdir()
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


@pytest.mark.parametrize(
    ("ended", "code", "said"), [(0, 0, ""), (1, 0, "notice"), (3, 0, "warning"), (2, 2, "")]
)
def test_a_target_s_job_is_red_for_mistakes_alone(tmp_path: Path, ended: int, code: int, said: str) -> None:
    """A regression is for the merged report to judge, and a lost machine breaks no product."""
    python = wrapper(tmp_path, f'echo "$@" >"{tmp_path}/said"; exit {ended}')
    ran = script(tmp_path, "nightly-cells", TARGET="rtx17", REPORTS="part", PYTHON=python)
    assert ran.code == code
    assert ("::" in ran.text) is bool(said)
    assert said in ran.text
    words = (tmp_path / "said").read_text()
    assert words == "-m harness run --target rtx17 --require rtx17 --reports part\n"


def parts(tmp_path: Path, *, broken: bool = False) -> Path:
    """Write records of real engines as the jobs leave them; `broken` makes one regress that is measured to work."""
    folder = tmp_path / "parts"
    cells = {cell.id: cell for cell in plan(load_matrix(ROOT / "matrix.yaml"), load_cases(ROOT / "cases"))}
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


def test_the_night_is_merged_checked_and_summarised(tmp_path: Path) -> None:
    """Over the history of the night before, which stays."""
    site = tmp_path / "site"
    ran = script(
        tmp_path, "nightly-publish", PARTS=str(parts(tmp_path)), REPORTS=str(site), PYTHON=small(tmp_path)
    )
    assert ran.code == 0, ran.text
    assert ran.output == "code=0\n"
    assert ran.summary.startswith("# TensorRT compatibility matrix")
    assert {"index.html", "results.json", "results.schema.json", "junit.xml", "badge.svg"} <= {
        path.name for path in site.iterdir()
    }
    assert list((site / "history").glob("*.json"))


def test_a_regression_is_published_first_and_then_turns_the_night_red(tmp_path: Path) -> None:
    """The report is what people need most on such a day."""
    folder = parts(tmp_path, broken=True)
    site = tmp_path / "site"
    ran = script(tmp_path, "nightly-publish", PARTS=str(folder), REPORTS=str(site), PYTHON=small(tmp_path))
    assert (ran.code, ran.output) == (0, "code=1\n"), ran.text
    assert "regressed: " in ran.text
    assert script(tmp_path, "nightly-gate", CODE="1").code == 1
    assert script(tmp_path, "nightly-gate", CODE="0").code == 0
    assert script(tmp_path, "nightly-gate", CODE="").code == 3


def test_a_night_without_any_result_is_red(tmp_path: Path) -> None:
    """An empty report must not replace last night's."""
    (tmp_path / "none").mkdir()
    ran = script(tmp_path, "nightly-publish", PARTS=str(tmp_path / "none"), REPORTS=str(tmp_path / "site"))
    assert ran.code == 3
    assert not (tmp_path / "site").exists()


def steps(name: str) -> list[dict[str, Any]]:
    """Return the steps of a workflow."""
    data = yaml.safe_load((WORKFLOWS / name).read_text())
    return [step for job in data["jobs"].values() for step in job["steps"]]


def test_workflows_run_scripts_that_are_tested_and_no_shell_of_their_own() -> None:
    """What stands in a workflow file runs for the first time when it is too late."""
    commands = [step["run"] for name in ("ci.yml", "nightly.yml") for step in steps(name) if "run" in step]
    tested = {"make .venv/run.stamp", ".ci/run"}
    tested |= {f".ci/{path.name}" for path in (ROOT / ".ci").glob("nightly-*")}
    assert set(commands) == tested
    for command in commands:
        if command.startswith(".ci/"):
            assert os.access(ROOT / command, os.X_OK), command
