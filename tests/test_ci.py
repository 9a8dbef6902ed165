"""The nightly workflow: its jobs fit the runners, and the scripts of its steps do what they say."""

from __future__ import annotations

import json
import os
import re
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
from harness.cli.ci_jobs import MOST_JOBS, jobs
from harness.errors import HandledError
from harness.history.runs import RunRecord, to_text
from harness.matrix import Needs, load_matrix
from harness.plan import all_cells
from harness.record.outcome import Outcome
from harness.record.store import Store
from harness.words import Engine
from tests.report import factory, suite_records

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
    assert job["run-minutes"] < job["timeout-minutes"] < 360
    assert set(job) == {"name", "target", "runs-on", "timeout-minutes", "run-minutes"}
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
    )
    output, summary = (file.read_text() for file in files.values())
    return Ran(done.returncode, done.stdout + done.stderr, output, summary)


def wrapper(tmp_path: Path, line: str) -> str:
    """Return a program to be used in Python's place."""
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return str(path)


def small(tmp_path: Path, *, before: str = "") -> str:
    """Return a Python that runs the harness on a matrix of six targets and one case, after a line of shell."""
    matrix = yaml.safe_load((ROOT / "matrix.yaml").read_text())
    kept = ("rtx14", "rtx15", "rtx16", "rtx17", "ort117", "ort131")
    matrix["targets"] = {name: matrix["targets"][name] for name in kept}
    (tmp_path / "matrix.yaml").write_text(yaml.safe_dump(matrix, sort_keys=False))
    (tmp_path / "cases").mkdir(exist_ok=True)
    for name in ("depthwise_qdq.py", "measured.yaml"):
        shutil.copy(ROOT / "cases" / name, tmp_path / "cases")
    places = f'--matrix "{tmp_path / "matrix.yaml"}" --cases "{tmp_path / "cases"}"'
    return wrapper(tmp_path, f'{before}\nexec "{sys.executable}" "$@" {places}')


def test_the_plan_reaches_the_workflow(tmp_path: Path) -> None:
    """With and without runners of our own."""
    ran = script(tmp_path, "nightly-matrix", GPUS="8.9 9.0", JETSONS="36.4")
    assert ran.code == 0, ran.text
    name, _, value = ran.output.strip().partition("=")
    assert name == "matrix"
    assert "trt86 on SM 9.0" in [job["name"] for job in json.loads(value)["include"]]
    assert script(tmp_path, "nightly-matrix", GPUS="hopper").code == 2
    assert "self-hosted" not in script(tmp_path, "nightly-matrix").output


def cells(tmp_path: Path, line: str, minutes: str = "1") -> Ran:
    """Run the script of a target's job with a program in the harness' place that does what `line` says."""
    part = str(tmp_path / "part")
    python = wrapper(tmp_path, line)
    return script(tmp_path, "nightly-cells", TARGET="rtx17", MINUTES=minutes, REPORTS=part, PYTHON=python)


@pytest.mark.parametrize(("ended", "code", "said"), [(0, 0, ""), (1, 0, "notice"), (3, 0, "warning")])
def test_a_target_s_job_is_not_red_for_what_a_finished_run_found(
    tmp_path: Path, ended: int, code: int, said: str
) -> None:
    """A regression is for the merged report to judge, and a lost machine breaks no product."""
    (tmp_path / "part").mkdir()
    ran = cells(tmp_path, f'echo "$@" >"{tmp_path}/said"; touch "{tmp_path}/part/results.json"; exit {ended}')
    assert ran.code == code
    assert ("::" in ran.text) is bool(said)
    assert said in ran.text
    words = (tmp_path / "said").read_text()
    assert (
        words
        == f"-m harness run --fresh --pull --target rtx17 --require rtx17 --reports {tmp_path / 'part'}\n"
    )


@pytest.mark.parametrize(
    ("ended", "code", "said"), [(0, 3, "broke off"), (1, 3, "broke off"), (3, 3, "broke off"), (2, 2, "")]
)
def test_a_target_s_job_is_red_where_the_run_did_not_get_to_its_end(
    tmp_path: Path, ended: int, code: int, said: str
) -> None:
    """A fault of the harness, or a Python without it, which ends with 1: neither is a regression, nor a green job."""
    ran = cells(tmp_path, f"exit {ended}")
    assert ran.code == code
    assert said in ran.text
    assert "regressed" not in ran.text


def test_a_target_s_job_ends_its_run_before_github_does(tmp_path: Path) -> None:
    """With the signal on which the harness keeps its records and ends its containers."""
    ran = cells(tmp_path, f"trap 'echo ended >\"{tmp_path}/said\"; exit 143' TERM; sleep 60 & wait", "0.05")
    assert ran.code == 3
    assert "::error title=rtx17::not done after 0.05 minutes" in ran.text
    assert (tmp_path / "said").read_text() == "ended\n"


def test_a_run_that_was_killed_is_not_said_to_have_run_out_of_time(tmp_path: Path) -> None:
    """As by the kernel, for want of memory."""
    ran = cells(tmp_path, "kill -KILL $$")
    assert ran.code == 3
    assert "::error title=rtx17::killed after " in ran.text
    assert "not done after" not in ran.text


@pytest.mark.parametrize(("ended", "said"), [(0, ""), (1, "notice"), (3, "warning")])
def test_a_target_s_job_runs_the_suite_after_the_cells(tmp_path: Path, ended: int, said: str) -> None:
    """With the time that is left, and whatever it finds: the merged report judges it."""
    (tmp_path / "part").mkdir()
    part = tmp_path / "part"
    line = f'echo "$@" >>"{tmp_path}/said"; touch "{part}/results.json"; case "$*" in *--suite*) exit {ended};; esac'
    given = {"TARGET": "rtx17", "MINUTES": "5", "REPORTS": str(tmp_path / "part"), "SUITE": "onnx-node"}
    ran = script(tmp_path, "nightly-cells", PYTHON=wrapper(tmp_path, line), **given)
    assert ran.code == 0, ran.text
    assert said in ran.text
    assert ("models of onnx-node" in ran.text) is bool(said)
    first, second = (tmp_path / "said").read_text().splitlines()
    assert second == f"{first} --suite onnx-node"


def test_a_night_that_has_no_time_left_for_the_suite_says_so(tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    line = f'touch "{tmp_path}/part/results.json"; case "$*" in *--suite*) sleep 60 & wait;; esac'
    given = {"TARGET": "rtx17", "MINUTES": "0.05", "REPORTS": str(tmp_path / "part"), "SUITE": "onnx-node"}
    ran = script(tmp_path, "nightly-cells", PYTHON=wrapper(tmp_path, line), **given)
    assert ran.code == 3
    assert "::error title=rtx17::not done after 0.05 minutes" in ran.text


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


def publish(tmp_path: Path, folder: Path, *, before: str = "") -> Ran:
    """Merge the parts in a folder into `reports`, and publish `site`; `before` is a line of shell that comes first."""
    places = {"REPORTS": str(tmp_path / "reports"), "SITE": str(tmp_path / "site")}
    python = small(tmp_path, before=before)
    return script(
        tmp_path, "nightly-publish", PARTS=str(folder), **places, TRT_COMPAT_SITE_URL="", PYTHON=python
    )


@pytest.mark.long
def test_what_the_suite_found_is_compared_with_the_night_before(tmp_path: Path) -> None:
    """Of that only the history is left, as the workflow's cache keeps it; the summary has the figures."""
    folder = parts(tmp_path)
    suite_records.record(folder / "part-rtx14", {"rtx17": suite_records.FIRST["rtx17"]})
    assert publish(tmp_path, folder).code == 0
    shutil.rmtree(tmp_path / "site")
    for path in (tmp_path / "reports").iterdir():
        if path.name != "history":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.rmtree(folder / "part-rtx14" / "suites")
    worse = {**suite_records.FIRST["rtx17"], "abs": "crash"}
    suite_records.record(folder / "part-rtx14", {"rtx17": worse}, run="r2", day="2026-11-21")
    ran = publish(tmp_path, folder)
    assert ran.code == 0, ran.text
    assert ran.output == outputs(tmp_path, 1)
    assert (tmp_path / "site" / "latest" / "suites" / "onnx-node.html").is_file()
    assert "regressed: onnx-node[abs]-rtx17: worked in the run before" in ran.text
    assert "rtx17 since 2026-11-20 (1.7.1.116): 1 broken, 0 fixed" in ran.summary
    assert "  broken: abs (crashed)" in ran.summary


def outputs(tmp_path: Path, code: int, history: str = "whole", publish: str = "site") -> str:
    """Return what a night hands to the steps after it."""
    return f"code={code}\nhistory={history}\npublish={tmp_path / publish}\n"


def shown(tmp_path: Path) -> dict[str, int]:
    """Count the measured cells of the report, by target."""
    data = json.loads((tmp_path / "reports" / "results.json").read_text())
    return Counter(
        cell["target"] for cell in data["cells"] if cell["class"] not in ("not_run", "not_applicable")
    )


def test_the_night_is_merged_checked_and_summarised(tmp_path: Path) -> None:
    """The first one says that it has no history; the next goes on from what it left."""
    site = tmp_path / "reports"
    folder = parts(tmp_path)
    ran = publish(tmp_path, folder)
    assert ran.code == 0, ran.text
    assert ran.output == outputs(tmp_path, 0)
    assert "::notice::no history of earlier nights" in ran.text
    assert "::error" not in ran.text
    assert ran.summary.startswith("# TensorRT compatibility matrix")
    assert {"index.html", "results.json", "results.schema.json", "junit.xml", "badge.svg"} <= {
        path.name for path in site.iterdir()
    }
    assert shown(tmp_path) == {"rtx14": 2, "rtx15": 1, "ort131": 1}
    assert {"index.html", "latest", "cases", "feed.xml"} <= {
        path.name for path in (tmp_path / "site").iterdir()
    }
    # GitHub Pages refuses a site with a file that not everybody may read.
    pages = [path for path in (tmp_path / "site").rglob("*") if path.is_file()]
    assert all(path.stat().st_mode & 0o444 == 0o444 for path in pages)
    kept = {path.name for path in (site / "history").glob("*.json")}
    for path in site.iterdir():
        if path.name != "history":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.rmtree(folder / "part-rtx14")
    again = publish(tmp_path, folder)
    assert (again.code, again.output) == (0, outputs(tmp_path, 0)), again.text
    assert "::notice::" not in again.text
    assert {path.name for path in (site / "history").glob("*.json")} == kept
    assert shown(tmp_path) == {"rtx15": 1, "ort131": 1}


def test_a_regression_is_published_first_and_then_turns_the_night_red(tmp_path: Path) -> None:
    """The report is what people need most on such a day."""
    ran = publish(tmp_path, parts(tmp_path, broken=True))
    assert (ran.code, ran.output) == (0, outputs(tmp_path, 1)), ran.text
    assert "regressed: " in ran.text
    assert shown(tmp_path)


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ("0", 0, ""),
        ("1", 1, "cells regressed"),
        ("3", 3, "no cell regressed"),
        ("", 3, "there is no report of this night"),
    ],
)
def test_the_last_step_says_why_the_night_is_red(tmp_path: Path, given: str, code: int, said: str) -> None:
    """Nothing but a regression is called one."""
    ran = script(tmp_path, "nightly-gate", CODE=given)
    assert ran.code == code
    assert said in ran.text
    assert ("::error::cells regressed" in ran.text) is (given == "1")


def test_a_night_without_any_result_is_red(tmp_path: Path) -> None:
    """An empty report must not replace last night's."""
    (tmp_path / "none" / "part-0").mkdir(parents=True)
    ran = publish(tmp_path, tmp_path / "none")
    assert (ran.code, ran.output) == (3, "")
    assert not (tmp_path / "reports").exists()
    assert not (tmp_path / "site").exists()
    assert publish(tmp_path, tmp_path / "nowhere").code == 3


@pytest.mark.long
@pytest.mark.parametrize("broken", [False, True], ids=["sound", "regressed"])
def test_a_damaged_part_does_not_cost_the_others_their_report(tmp_path: Path, *, broken: bool) -> None:
    """What can be read of it counts too; the night is red, and for a regression only where there is one."""
    folder = parts(tmp_path, broken=broken)
    _, last = sorted((folder / "part-rtx14" / "records").iterdir())
    last.write_text("damaged\n" + last.read_text())
    (folder / "part-empty").mkdir()
    ran = publish(tmp_path, folder)
    assert (ran.code, ran.output) == (0, outputs(tmp_path, 1 if broken else 3)), ran.text
    assert ran.text.count("::error::") == 1
    assert "part-rtx14/: not taken in whole" in ran.text
    assert shown(tmp_path) == {"rtx14": 1, "rtx15": 1, "ort131": 1}


@pytest.mark.long
def test_a_history_that_cannot_be_read_is_left_out_and_said_to_be(tmp_path: Path) -> None:
    """The workflow then keeps the one that the cache holds."""
    past = tmp_path / "reports" / "history"
    past.mkdir(parents=True)
    (past / "2026-01-01-r.json").write_text('{"schema": 99}')
    ran = publish(tmp_path, parts(tmp_path))
    assert (ran.code, ran.output) == (0, outputs(tmp_path, 3, "damaged")), ran.text
    assert "history schema 99" in ran.text
    assert shown(tmp_path) == {"rtx14": 2, "rtx15": 1, "ort131": 1}
    assert not (past / "2026-01-01-r.json").exists()


def test_a_sound_history_is_not_blamed_for_a_night_without_a_record(tmp_path: Path) -> None:
    """What is damaged is said once, where it is."""
    past = tmp_path / "reports" / "history"
    past.mkdir(parents=True)
    record = RunRecord("r", "2026-01-01T00:00:00+00:00")
    (past / record.file_name).write_text(to_text(record))
    damaged = tmp_path / "parts" / "part-0" / "records"
    damaged.mkdir(parents=True)
    (damaged / "r-main.jsonl").write_text("damaged\n")
    ran = publish(tmp_path, tmp_path / "parts")
    assert (ran.code, ran.output.partition("\n")[0]) == (0, "code=3"), ran.text
    assert "r-main.jsonl:1: not a record" in ran.text
    assert "history of earlier nights" not in ran.text


@pytest.mark.parametrize("ending", ["exit 3", "exit 1", "exit 139"])
def test_a_merge_that_crashes_is_no_regression(tmp_path: Path, ending: str) -> None:
    """Code 1 without a report is what a Python without the harness ends with."""
    ran = publish(tmp_path, parts(tmp_path), before=f'[ "$3" != merge ] || {ending}')
    assert (ran.code, ran.output) == (3, ""), ran.text
    assert script(tmp_path, "nightly-gate", CODE="").code == 3


@pytest.mark.long
def test_a_report_that_crashes_leaves_the_records_of_all_to_be_uploaded(tmp_path: Path) -> None:
    """The harness fails after the records are taken in."""
    (tmp_path / "shim").mkdir()
    (tmp_path / "shim" / "sitecustomize.py").write_text(
        "import harness.report.writer\n\ndef broken(*_):\n    raise RuntimeError('slip')\n\n"
        "harness.report.writer.render = broken\n"
    )
    folder = parts(tmp_path)
    ran = publish(tmp_path, folder, before=f'export PYTHONPATH="{tmp_path}/shim:{ROOT}"')
    assert (ran.code, ran.output) == (3, ""), ran.text
    assert "fault: the harness itself failed" in ran.text
    sent = {outcome.cell for part in folder.iterdir() for outcome in Store(part).outcomes()}
    assert {outcome.cell for outcome in Store(tmp_path / "reports").outcomes()} == sent


@pytest.mark.long
@pytest.mark.parametrize("ending", ["exit 3", "exit 1", "exit 139"])
@pytest.mark.parametrize("broken", [False, True], ids=["sound", "regressed"])
def test_a_verify_that_fails_or_crashes_is_no_regression_and_hides_none(
    tmp_path: Path, ending: str, *, broken: bool
) -> None:
    """The report is published all the same."""
    ran = publish(tmp_path, parts(tmp_path, broken=broken), before=f'[ "$3" != verify ] || {ending}')
    assert (ran.code, ran.output) == (0, outputs(tmp_path, 1 if broken else 3)), ran.text
    assert "::error::the report has the faults above" in ran.text
    assert ran.summary


@pytest.mark.long
@pytest.mark.parametrize("broken", [False, True], ids=["sound", "regressed"])
def test_where_no_site_comes_of_a_report_that_is_published(tmp_path: Path, *, broken: bool) -> None:
    """Whoever opens the address finds tonight's results; the night is red, for a regression where there is one."""
    ran = publish(tmp_path, parts(tmp_path, broken=broken), before='[ "$3" != report ] || exit 3')
    assert (ran.code, ran.output) == (0, outputs(tmp_path, 1 if broken else 3, publish="reports")), ran.text
    assert "::error::no site came of the report" in ran.text
    assert (tmp_path / "reports" / "index.html").exists()


def job(name: str) -> dict[str, Any]:
    """Return a job of the nightly workflow."""
    data: dict[str, Any] = yaml.safe_load((WORKFLOWS / "nightly.yml").read_text())["jobs"][name]
    return data


def test_what_was_recorded_is_kept_however_a_job_ends() -> None:
    """Records, history, report and verdict; actions/cache itself saves nothing where the job ends red."""
    upload = job("cells")["steps"][-1]
    assert (upload["if"], upload["with"]["overwrite"]) == ("always()", True)
    used = [step.get("uses", step.get("run", "")).partition("@")[0] for step in job("report")["steps"]]
    order = [
        "actions/cache/restore",
        ".ci/nightly-publish",
        "actions/cache/save",
        "actions/upload-artifact",
        "actions/upload-pages-artifact",
        ".ci/nightly-gate",
    ]
    assert [name for name in used if name in order] == order
    assert "actions/cache" not in used
    assert job("report")["steps"][-1]["if"] == "always()"
    assert "!cancelled()" in job("pages")["if"]


def steps(name: str) -> list[dict[str, Any]]:
    """Return the steps of a workflow."""
    data = yaml.safe_load((WORKFLOWS / name).read_text())
    return [step for job in data["jobs"].values() for step in job["steps"]]


def test_workflows_run_scripts_that_are_tested_and_no_shell_of_their_own() -> None:
    """What stands in a workflow file runs for the first time when it is too late."""
    own = [path.name for path in WORKFLOWS.iterdir() if path.name != "matrix.yml"]
    commands = [step["run"] for name in own for step in steps(name) if "run" in step]
    tested = {"make .venv/run.stamp", ".ci/run", ".ci/long", ".ci/submission"}
    tested |= {f".ci/{path.name}" for path in (ROOT / ".ci").glob("nightly-*")}
    assert set(commands) == tested
    for command in commands:
        if command.startswith(".ci/"):
            assert os.access(ROOT / command, os.X_OK), command


_REFERENCE = re.compile(
    r"\b(needs|steps)\.([A-Za-z0-9_-]+)\.(?:outputs\.([A-Za-z0-9_-]+)|result|outcome|conclusion)"
)


def wrong_references(workflow: Any) -> list[str]:
    """Return what the expressions of a workflow name and its jobs and steps do not have: GitHub makes "" of it."""
    jobs = workflow["jobs"]
    found = []
    for name, job in jobs.items():
        needed = [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", [])
        steps = {step["id"] for step in job.get("steps", []) if "id" in step}
        for kind, other, output in _REFERENCE.findall(json.dumps(job)):
            known = needed if kind == "needs" else steps
            if other not in known or (
                kind == "needs" and output and output not in jobs[other].get("outputs", {})
            ):
                found.append(f"{name}: {kind}.{other}.{output}")
    return found


def workflow(name: str) -> str:
    return (Path(__file__).parents[1] / ".github" / "workflows" / f"{name}.yml").read_text()


@pytest.mark.unit
@pytest.mark.parametrize("name", ["ci", "nightly", "submission", "matrix"])
def test_expressions_of_the_workflows_name_what_is_there(name: str) -> None:
    """GitHub makes an empty text of a name that is not there, and no error."""
    assert wrong_references(yaml.safe_load(workflow(name))) == []


@pytest.mark.unit
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("needs.plan.outputs.matrix", "needs.plan.outputs.matrx"),
        ("steps.merge.outputs.code", "steps.merg.outputs.code"),
        ("needs.report.outputs.site", "needs.reports.outputs.site"),
    ],
)
def test_a_typing_mistake_in_an_expression_is_found(right: str, wrong: str) -> None:
    """It would give no jobs, or a night without a verdict."""
    text = workflow("nightly")
    assert right in text
    assert wrong_references(yaml.safe_load(text.replace(right, wrong, 1)))
