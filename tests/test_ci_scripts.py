"""The scripts that CI runs do what they say: counted starts, busy loops that end, a table of every step."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import yaml

from tests.processes import alive, descendants, state
from tests.waiting import PATIENCE, wait_for

pytestmark = pytest.mark.unit

SCRIPTS = Path(__file__).parents[1] / ".ci"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout that has the scripts of this one and nothing else."""
    shutil.copytree(SCRIPTS, tmp_path / "checkout" / ".ci", ignore=shutil.ignore_patterns("environment"))
    return tmp_path / "checkout"


def program(path: Path, lines: str) -> Path:
    """Write a shell script that stands for a program."""
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)
    return path


def ignores_interrupts(program: Path) -> str:
    """Return the line of shell that writes whether SIGINT is ignored into a file beside the program."""
    return f'grep SigIgn /proc/self/status >>"{program.parent}/ignored"'


def run(checkout: Path, name: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{checkout / 'bin'}:{os.environ['PATH']}"
    return subprocess.run(
        [checkout / ".ci" / name, *words],
        env=os.environ | {"PATH": path} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_cold_starts_are_counted_and_each_begins_with_nothing(checkout: Path, tmp_path: Path) -> None:
    """The second finds a cache folder as empty as the first did, and fails."""
    python = program(
        tmp_path / "python",
        f"""[ ! -e "$TRT_COMPAT_CACHE_DIR" ] || echo "not empty"
        mkdir "$TRT_COMPAT_CACHE_DIR" && echo "$@" >>"{tmp_path}/words"
        [ "$(wc -l <"{tmp_path}/words")" != 2 ] || {{ echo "the last word" >&2; exit 3; }}""",
    )
    done = run(checkout, "cold-starts", "3", PYTHON=str(python))
    assert done.returncode == 1, done.stderr
    assert done.stdout == ("start 2 of 3 ended with exit code 3:\nthe last word\n1 of 3 cold starts failed\n")
    words = (tmp_path / "words").read_text().splitlines()
    assert len(words) == 3
    assert "--target ort117 --target ort131 --jobs 2" in words[0]
    assert run(checkout, "cold-starts", "1", PYTHON="true").stdout == "0 of 1 cold starts failed\n"


@pytest.mark.parametrize(("name", "word"), [("cold-starts", "x"), ("cold-starts", "0"), ("loaded", "x")])
def test_a_count_that_is_none_is_a_mistake(checkout: Path, name: str, word: str) -> None:
    done = run(checkout, name, word)
    assert done.returncode == 2
    assert done.stderr.startswith(f"usage: .ci/{name} ")


def test_the_tests_are_run_beside_loops_and_then_in_the_background(checkout: Path) -> None:
    """Only there SIGINT is ignored; one run that fails is told, and those after it run all the same."""
    make = checkout / "bin" / "make"
    program(
        make,
        f"""{ignores_interrupts(make)}; echo "$@" >>"{make.parent}/words"
        [ "$(wc -l <"{make.parent}/words")" != 1 ] || exit 2""",
    )
    done = run(checkout, "loaded", "2", "1", ARGS="-k 'a b'")
    assert done.returncode == 1, done.stderr
    told = [line.partition(" after ")[0] for line in done.stdout.splitlines()]
    assert told == [
        "== the tests beside 1 busy loops, run 1 of 2: exit code 2",
        "== the tests beside 1 busy loops, run 2 of 2: exit code 0",
        "== the tests in the background: exit code 0",
    ]
    assert (make.parent / "words").read_text() == "test ARGS=-k 'a b'\n" * 3
    masks = [int(line.split()[1], 16) for line in (make.parent / "ignored").read_text().splitlines()]
    assert [bool(mask >> (signal.SIGINT - 1) & 1) for mask in masks] == [False, False, True]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_busy_loops_and_tests_end_with_the_script_however_it_ends(
    checkout: Path, number: signal.Signals
) -> None:
    """A loop that stays makes a machine slow for ever."""
    program(checkout / "bin" / "make", "exec sleep 1000")
    script = subprocess.Popen(
        [checkout / ".ci" / "loaded", "1", "2"],
        env=os.environ | {"PATH": f"{checkout / 'bin'}:{os.environ['PATH']}"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        # Two loops; `make`, and `timeout` above it.
        assert wait_for(lambda: sorted(map(state, descendants(script.pid))) == ["R", "R", "S", "S"])
        below = descendants(script.pid)
        script.send_signal(number)
        script.wait(PATIENCE)
        assert wait_for(lambda: not any(map(alive, below)))
    finally:
        script.kill()


STEPS = ("machine", "cold-starts", "bare", "loaded", "pythons")


def test_every_step_of_the_long_script_stands_in_its_table(checkout: Path) -> None:
    """One that fails or takes too long does not keep those after it from being run."""
    for name in STEPS:
        program(checkout / ".ci" / name, f'echo "{name} $@" >>"{checkout}/ran"')
    (checkout / ".ci" / "environment").write_text("export FROM_ENVIRONMENT=here\n")
    program(checkout / "bin" / "make", "[ $FROM_ENVIRONMENT = here ]")
    program(checkout / ".ci" / "cold-starts", "exit 7")
    program(checkout / ".ci" / "loaded", "exit 124")
    done = run(checkout, "long", GITHUB_STEP_SUMMARY=str(checkout / "summary"))
    assert done.returncode == 1, done.stderr
    table = (checkout / "summary").read_text()
    assert done.stdout.endswith(table)
    rows = [line.strip("| ").split(" | ")[:2] for line in table.splitlines()]
    assert rows[2:] == [
        ["40 cold starts", "failed with exit code 7"],
        ["make matrix on a bare machine", "ok"],
        ["make test on a bare machine", "ok"],
        ["the tests beside busy loops and in the background", "not done after 200 minutes"],
        ["the unit tests on the oldest and the newest Python", "ok"],
        ["the long tests", "ok"],
        ["coverage by the unit tests", "ok"],
    ]
    ran = (checkout / "ran").read_text().splitlines()
    assert ran == ["machine ", "bare matrix", "bare test", "pythons "]


def test_a_part_of_the_long_script_is_run_alone_and_fits_a_job_of_ci(checkout: Path) -> None:
    """All steps together may take more than twice the six hours after which GitHub ends a job."""
    for name in STEPS:
        program(checkout / ".ci" / name, f'echo "{name} $@" >>"{checkout}/ran"')
    (checkout / ".ci" / "environment").touch()
    program(checkout / "bin" / "make", "")
    assert run(checkout, "long", PART="busy").returncode == 0
    assert (checkout / "ran").read_text().splitlines() == ["machine ", "loaded "]
    wrong = run(checkout, "long", PART="slow")
    assert (wrong.returncode, wrong.stderr.startswith("PART=slow: it is")) == (2, True)

    job = yaml.safe_load((SCRIPTS.parent / ".github" / "workflows" / "nightly.yml").read_text())["jobs"][
        "long"
    ]
    minutes = Counter[str]()
    for part, limit in re.findall(r"^step (\w+) (\d+) ", (SCRIPTS / "long").read_text(), re.MULTILINE):
        minutes[part] += int(limit)
    assert sorted(minutes) == sorted(job["strategy"]["matrix"]["part"])
    # What the machine itself takes to be set up comes on top.
    assert max(minutes.values()) + 30 <= job["timeout-minutes"]


def test_the_bare_machine_needs_a_known_word_and_root(checkout: Path) -> None:
    """It says so in a sentence, and before it makes anything."""
    done = run(checkout, "bare", "lint")
    assert (done.returncode, done.stderr) == (2, "usage: .ci/bare [matrix] [test]\n")
    program(checkout / "bin" / "id", "echo 1000")
    done = run(checkout, "bare")
    assert done.returncode == 3
    assert done.stderr.endswith("it needs root\n")
    assert done.stderr.count("\n") == 1
