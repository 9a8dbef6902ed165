"""A team's own repository, from `init` to a pull request that loses INT8: each step of the workflow, run by hand."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx
import pytest
import yaml

from harness.case import Graph
from tests import needs

pytestmark = [pytest.mark.integration, pytest.mark.long]

#: What a shell that needs no network stands in for.
STANDS_IN = {"pip": "#!/bin/sh\n", "gh": '#!/bin/sh\necho "$@" >> "$NOTES"\n'}


def network(path: Path, quantised: Iterable[int]) -> None:
    """Write three layers in a row, of which some are in Q/DQ."""
    g = Graph("net")
    x = g.input("x", [16, 64])
    for at in range(3):
        weight = g.weight(f"{at}.weight", (64, 64))
        if at in quantised:
            x = g.qdq(x, name=f"/{at}/input", scale=0.05)
            weight = g.weight_qdq(weight, name=f"/{at}/weight")
        x = g.node("MatMul", [x, weight], name=f"/{at}/MatMul")
        x = g.node("Relu", [x], name=f"/{at}/Relu", output=["/0/y", "/1/y", "y"][at])
    g.output("y", [16, 64])
    onnx.save(g.model(), path)


@dataclass
class Forge:
    """A repository, with what GitHub keeps of its runs: caches by key, and the artifacts of the present run."""

    top: Path
    notes: Path
    said: str = ""
    runs: int = 0
    caches: list[tuple[str, Path]] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)

    def run(self, *words: str, code: int = 0) -> str:
        """Run a command of the harness in the repository."""
        done = subprocess.run(
            [sys.executable, "-m", "harness", *words],
            cwd=self.top / "repository",
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def push(self, base: str = "") -> str:
        """Do what a push to main starts, or a pull request against `base`; return the summaries of its jobs."""
        self.runs += 1
        self.failed, self.said = set(), ""
        workflow = yaml.safe_load((self.top / "repository/.github/workflows/trt-compat.yml").read_text())
        shutil.rmtree(self.top / "artifacts", ignore_errors=True)
        known: dict[str, str] = {
            "github.base_ref": base,
            "github.ref_name": "main" if not base else "7/merge",
            "github.base_ref || github.ref_name": base or "main",
            "github.run_id": str(self.runs),
            "github.token": "secret",
            "github.event.pull_request.number": "7",
        }
        jobs = workflow["jobs"]
        plan = self._job("plan", jobs["plan"], known, workflow["env"])
        for entry in json.loads(plan["jobs"])["include"]:
            own = known | {f"matrix.{name}": str(value) for name, value in entry.items()}
            self._job(entry["name"], jobs["cells"], own, workflow["env"])
        self._job("gate", jobs["gate"], known, workflow["env"])
        return self.said

    def _job(
        self, name: str, job: Mapping[str, Any], known: Mapping[str, str], env: Mapping[str, str]
    ) -> dict[str, str]:
        place, temporary = self.top / "job", self.top / "temporary"
        for folder in (place, temporary):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.top / "repository", place, ignore=shutil.ignore_patterns("reports"))
        temporary.mkdir()
        written = {each: temporary / each.lower() for each in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for path in written.values():
            path.touch()
        for step in job["steps"]:
            condition = step.get("if", "success()")
            wanted = "!github.base_ref" not in condition or not known["github.base_ref"]
            wanted &= "&& github.base_ref" not in condition or bool(known["github.base_ref"])
            if not wanted or (name in self.failed and "always()" not in condition):
                continue
            if "uses" in step:
                self._action(step["uses"].partition("@")[0], filled(step.get("with", {}), known), place)
                continue
            given = {**env, **job.get("env", {}), **step.get("env", {})}
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=place,
                env={
                    **os.environ,
                    **{each: str(path) for each, path in written.items()},
                    "PATH": f"{self.top / 'bin'}:{os.environ['PATH']}",
                    "RUNNER_TEMP": str(temporary),
                    "GITHUB_WORKFLOW": "trt-compat",
                    "NOTES": str(self.notes),
                    **filled(given, known),
                },
                capture_output=True,
                text=True,
                check=False,
            )
            self.said += f"== {name}: {step['run'][:70]}\n{done.stdout}{done.stderr}"
            if done.returncode:
                self.failed.add(name)
        lines = written["GITHUB_OUTPUT"].read_text().splitlines()
        self.said += f"== {name}: summary\n{written['GITHUB_STEP_SUMMARY'].read_text()}"
        return dict(line.split("=", 1) for line in lines)

    def _action(self, what: str, given: Mapping[str, str], place: Path) -> None:
        if what == "actions/cache/restore":
            prefix = given["restore-keys"]
            found = [kept for key, kept in self.caches if key.startswith(prefix)]
            if found:
                shutil.copytree(found[-1], place / given["path"])
        elif what == "actions/cache/save":
            kept = self.top / "caches" / given["key"]
            shutil.copytree(place / given["path"], kept)
            self.caches.append((given["key"], kept))
        elif what == "actions/upload-artifact" and (place / given["path"]).exists():
            shutil.copytree(place / given["path"], self.top / "artifacts" / given["name"])
        elif what == "actions/download-artifact":
            (place / given["path"]).mkdir()
            for part in (self.top / "artifacts").glob(given["pattern"]):
                shutil.copytree(part, place / given["path"] / part.name)


def filled(given: Mapping[str, Any], known: Mapping[str, str]) -> dict[str, str]:
    """Fill in what GitHub would; other expressions, of caches that are not kept here, become empty."""
    expression = re.compile(r"\$\{\{ (.*?) \}\}")
    return {
        name: expression.sub(lambda found: known.get(found[1], ""), str(value))
        for name, value in given.items()
    }


@pytest.fixture
def forge(tmp_path: Path) -> Forge:
    needs.network()
    found = Forge(tmp_path, tmp_path / "notes")
    (tmp_path / "bin").mkdir()
    own = {"trt-compat": f'#!/bin/sh\nexec {sys.executable} -m harness "$@"\n'}
    for name, text in (STANDS_IN | own).items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "repository").mkdir()
    found.run("init")
    (tmp_path / "repository" / "cases" / "example.py").unlink()
    matrix = tmp_path / "repository" / "matrix.yaml"
    network(tmp_path / "net.onnx", (0, 1, 2))
    assert "trt-compat run -k net" in found.run("new", "net", "--from", str(tmp_path / "net.onnx"))
    assert "  rtx16:" in matrix.read_text()
    return found


def test_from_init_to_a_pull_request_that_loses_int8(forge: Forge) -> None:
    """The base's results come from its last run; a loss is red in the jobs and at the gate, with the nodes."""
    repository = forge.top / "repository"
    case = repository / "cases" / "net.py"
    # The precision that the graph asks for stands in the case.
    assert '("/2/MatMul", Precision.INT8)' in case.read_text()
    forge.run("run")
    forge.run("accept")
    assert "[/0/MatMul, /1/MatMul, /2/MatMul]" in (repository / "cases/measured.yaml").read_text()
    shutil.rmtree(repository / "reports")

    forge.push("main")
    assert forge.failed == set()
    assert "No run of" in forge.said

    forge.push()
    assert forge.failed == set()
    (kept,) = forge.caches
    assert kept[0] == "trt-compat-reports-main-2"

    forge.push("main")
    assert forge.failed == set()
    unchanged = "### Nothing changed, of 3 cells known on both\n\nUnchanged: `rtx16`, `rtx17`, `ort131`.\n"
    assert unchanged in forge.said
    assert "taken from earlier" in forge.said

    # The export of the retrained model has lost the Q/DQ of one layer, and nobody named what it is to keep.
    case.write_text(re.sub(r" +precision=\((?:.|\n)*?\n {12}\),\n", "", case.read_text()))
    assert "precision=" not in case.read_text()
    network(case.with_suffix(".onnx"), (0, 1))
    forge.push("main")
    assert forge.failed == {"rtx16", "rtx17", "gate"}
    assert "of /2/MatMul (MatMul)" in forge.said
    assert re.search(
        r"\| Loses precision \| `rtx17` \| `net\.net` \| .*no longer asks for int8 of", forge.said
    )
    assert "pr comment 7 --body-file" in forge.notes.read_text()

    # What is meant is accepted; the gate still tells what the base had.
    forge.run("run", code=1)
    forge.run("accept")
    forge.push("main")
    assert forge.failed == {"gate"}
