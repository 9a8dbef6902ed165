"""A run that is interrupted, terminated or no longer read keeps its records and leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from harness.cli import main
from harness.record.store import Store
from harness.run.docker import PROJECT_LABEL
from tests import needs
from tests.cli import project
from tests.fixtures import Capture, Patch
from tests.processes import alive, descendants
from tests.waiting import PATIENCE, wait_for

pytestmark = pytest.mark.integration

#: Enough cells that the run is still under way when it is interrupted.
MANY = """
VARIANTS = tuple(Variant(f"v{number}", "A Relu", relu) for number in range(150))
CASE = Case("toy", "A toy", "For tests.", (Link("https://example.org/1"),), VARIANTS)
"""


@pytest.fixture
def many(toy: Path) -> Path:
    """Return the folder of the toy project, with many cells on each target."""
    path = toy / "cases" / "toy.py"
    path.write_text(project.CASE.partition("CASE = ")[0] + MANY)
    return toy


def started(folder: Path, *words: str) -> tuple[subprocess.Popen[str], set[int]]:
    """Start a run; return it, once it has recorded some cells, with the processes below it."""
    process = project.harness(folder, "run", "--target", "ort131", "-j", "1", *words)

    def recorded() -> bool:
        return sum(1 for _ in Store(folder / "reports").outcomes()) > 3

    if wait_for(lambda: recorded() or process.poll() is not None) and process.poll() is None:
        return process, descendants(process.pid)
    process.kill()
    raise AssertionError(f"it recorded nothing: {process.communicate()}")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_keeps_the_records_and_ends_the_agent(
    many: Path, capsys: Capture, number: signal.Signals, code: int
) -> None:
    """The exit code names the signal, nothing is left running, and the report is there."""
    needs.network()
    process, below = started(many, "--via", "venv")
    assert below, "no agent was seen"
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert "Traceback" not in err
    kept = sum(1 for _ in Store(many / "reports").outcomes())
    assert 3 < kept < 150
    *_, told, last = err.splitlines()
    assert told.startswith(f"{kept} of 150 ")
    assert told.endswith(" reports/index.html")
    assert last == "interrupted"
    assert wait_for(lambda: not any(map(alive, below)))
    assert main(["verify"]) == 0
    assert "reports: consistent" in capsys.readouterr().out


@pytest.mark.docker
def test_a_signal_removes_the_container(many: Path) -> None:
    needs.base_image()
    needs.network()
    process, _ = started(many, "--via", "docker")
    mine = f"{PROJECT_LABEL}.run={next((many / 'reports' / 'records').iterdir()).name.partition('-')[0]}"
    assert containers(mine)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 143
    assert not containers(mine)


@pytest.mark.parametrize("via", ["venv", "docker"])
def test_a_killed_run_is_gone_on_with_and_leaves_nothing(many: Path, monkeypatch: Patch, via: str) -> None:
    """No cell is lost or run twice; processes, containers and temporary folders are gone."""
    needs.network()
    if via == "docker":
        needs.base_image()
    temporary = many / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    process, below = started(many, "--via", via, "-k", "v1")
    process.kill()
    process.communicate(timeout=PATIENCE)
    reports = many / "reports"
    kept = {outcome.cell for outcome in Store(reports).outcomes()}
    again = project.harness(many, "run", "--target", "ort131", "--via", via, "-k", "v1")
    _, err = again.communicate(timeout=PATIENCE)
    assert (again.returncode, "Traceback" in err) == (0, False), err
    outcomes = list(Store(reports).outcomes())
    cells = {outcome.cell for outcome in outcomes}
    assert (len(outcomes), len(cells)) == (61, 61)
    assert kept < cells
    assert not list(reports.rglob(".writing-*"))
    assert main(["verify"]) == 0
    assert wait_for(lambda: not any(map(alive, below)))
    assert not list(temporary.iterdir())
    if via == "docker":
        assert not any(
            containers(f"{PROJECT_LABEL}.run={outcome.stamps.run}")
            for outcome in outcomes[:: len(outcomes) - 1]
        )


def containers(label: str) -> list[str]:
    command = ["docker", "ps", "-aq", "--filter", f"label={label}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize("words", [("list",), ("run", "--via", "venv", "--target", "ort131", "-k", "relu")])
def test_a_reader_that_goes_away_is_no_fault(toy: Path, words: tuple[str, ...]) -> None:
    """As in `| head`: the exit code is that of a broken pipe, and nothing is said about it."""
    needs.network()
    with project.harness(toy, *words) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        err = process.stderr.read()
        process.wait(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGPIPE
    assert "Traceback" not in err
    assert "BrokenPipe" not in err


def test_a_reader_of_errors_that_goes_away_is_no_regression(toy: Path) -> None:
    """As in `2>&1 | head`: Rich would end the program with code 1, which means a regression here."""
    needs.network()
    with project.harness(toy, "run", "--via", "venv", "--target", "ort131", "-k", "relu") as process:
        assert process.stderr is not None
        process.stderr.close()
        process.wait(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGPIPE


def test_an_interrupt_while_the_program_loads_is_told_in_a_word(tmp_path: Path) -> None:
    """It takes a second to load, and ended with a traceback."""
    (tmp_path / "onnx.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n"
    )
    process = project.harness(
        tmp_path, "list", environment=[("PYTHONPATH", f"{tmp_path}{os.pathsep}{project.TOP}")]
    )
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")
