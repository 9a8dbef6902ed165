"""The action for other repositories runs the cells they name, and ends as those do."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.cli.main import _parse

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[1]
#: Notes its words, writes a summary and ends with the code that it is told.
PROGRAM = """#!{python}
import json, os, pathlib, sys
with open(os.environ["NOTES"], "a") as notes:
    notes.write(json.dumps([pathlib.Path(sys.argv[0]).name, *sys.argv[1:]]) + "\\n")
if "--reports" in sys.argv:
    folder = pathlib.Path(sys.argv[sys.argv.index("--reports") + 1])
    folder.mkdir(exist_ok=True)
    (folder / "summary.md").write_text("of the run")
    sys.exit(int(os.environ["CODE"]))
"""


def workflow_steps() -> list[dict[str, Any]]:
    workflow = yaml.safe_load((ROOT / ".github/workflows/matrix.yml").read_text())
    return [step for step in workflow["jobs"]["matrix"]["steps"] if "run" in step]


def action_step() -> dict[str, Any]:
    steps = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    return next(dict(step) for step in steps if "run" in step)


def ran(tmp_path: Path, command: str, code: int = 0, **given: str) -> tuple[int, list[list[str]], str]:
    """Run a step as GitHub does, with stand-ins for pip and the harness; return its code, their words, the summary."""
    for name in ("bin/pip", "bin/trt-compat", "temporary/trt-compat/bin/trt-compat"):
        program = tmp_path / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(PROGRAM.replace("{python}", sys.executable))
        program.chmod(0o755)
    notes, summary = tmp_path / "notes", tmp_path / "summary"
    notes.touch()
    summary.touch()
    environment = {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "GITHUB_ACTION_PATH": str(ROOT),
        "GITHUB_STEP_SUMMARY": str(summary),
        "RUNNER_TEMP": str(tmp_path / "temporary"),
        "NOTES": str(notes),
        "CODE": str(code),
    }
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command]
    done = subprocess.run(
        shell, cwd=tmp_path, env=environment | given, capture_output=True, text=True, check=False
    )
    return done.returncode, [json.loads(line) for line in notes.read_text().splitlines()], summary.read_text()


SOME = {"EXPRESSION": "mish and not qdq", "TARGETS": "rtx17 ort131", "REPORTS": "my reports"}
ALL = {"EXPRESSION": "", "TARGETS": "", "REPORTS": "reports"}


@pytest.mark.parametrize(
    ("step", "given", "wanted"),
    [
        (workflow_steps()[1], ALL, "run -k '' --reports reports"),
        (
            workflow_steps()[1],
            SOME,
            "run -k 'mish and not qdq' --target rtx17 --target ort131 --reports 'my reports'",
        ),
        (
            action_step(),
            ALL | {"FAIL_ON": "class,latency", "BASE": "", "GH_TOKEN": ""},
            "run -k '' --fail-on class,latency --reports reports",
        ),
        (
            action_step(),
            SOME | {"FAIL_ON": "class", "BASE": "", "GH_TOKEN": ""},
            "run -k 'mish and not qdq' --fail-on class --target rtx17 --target ort131 --reports 'my reports'",
        ),
    ],
)
def test_the_step_runs_the_cells_that_are_asked_for(
    tmp_path: Path, step: dict[str, Any], given: dict[str, str], wanted: str
) -> None:
    """With the run's exit code; every input reaches the step, and the command takes its words."""
    assert step["env"].keys() == given.keys()
    code, said, _ = ran(tmp_path, step["run"], code=1, **given)
    assert (code, said) == (1, [["trt-compat", *shlex.split(wanted)]])
    assert _parse(said[0][1:]).called == "run"


def test_the_action_hands_on_the_summary(tmp_path: Path) -> None:
    said = ran(tmp_path, action_step()["run"], 0, **ALL)
    assert said[2] == "of the run"
