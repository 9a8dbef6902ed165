"""The pytest front door, on a small project whose engine is ONNX Runtime."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness import pytest_plugin as hooks
from harness.case import load_cases
from harness.matrix import load_matrix
from harness.plan import Cell, all_cells
from harness.record.store import Store
from tests import needs
from tests.fixtures import Patch
from tests.processes import descendants
from tests.run.bench import containers_of, lives
from tests.waiting import PATIENCE, wait_for

pytestmark = pytest.mark.integration

Ran = tuple[Path, subprocess.CompletedProcess[str]]

ROOT = Path(__file__).resolve().parents[2]
WORDS = ["-p", "no:cacheprovider", "-p", "no:randomly"]

MATRIX = """\
schema: 1
defaults: {timeout_s: 600, memory_mib: 4096, python: "3.11"}
targets:
  ort:
    engine: onnxruntime
    version: "1.31.1"
    packages: [onnxruntime==1.31.1, numpy==2.4.6]
  ort-slow:
    extends: ort
  gpu:
    engine: tensorrt
    version: "8.6.1"
    image: registry.invalid/tensorrt:1
    needs: {driver: ">=9999"}
  broken:
    engine: onnxruntime
    version: "1.31.1"
    packages: [packaging==24.1]
"""
CASE = '''\
"""Five graphs of one node: what works, and what the parser does not know."""

from functools import partial

from harness.case import Case, Class, Engine, Expectation, Basis, Graph, Link, Variant

LINK = Link("https://github.com/NVIDIA/TensorRT/issues/1", "TensorRT issue 1")


def one(op, domain=""):
    graph = Graph(op.lower())
    graph.output(graph.node(op, [graph.input("x", [1, 8])], name="only", domain=domain), [1, 8])
    return graph.model()


def claim(outcome):
    return (Expectation.reported(outcome, "", LINK, engine=Engine.ONNXRUNTIME),)


def measured(outcome):
    target = {"engine": Engine.ONNXRUNTIME, "targets": ("ort",)}
    return (Expectation(outcome, "==1.20.0", None, Basis.MEASURED, "measured in May on ort", **target),)


def large():
    graph = Graph("large")
    tensor = graph.input("x", [3072, 3072])
    graph.output(graph.node("FusedMatMul", [tensor, tensor], name="only", domain="com.microsoft"), [3072, 3072])
    return graph.model()


bad = partial(one, "NoSuchOperator", "nowhere")
gone = (*claim(Class.PARSE_FAILED), *measured(Class.CRASHED))
CASE = Case(
    "tiny",
    "one node",
    "What a parser knows.",
    (LINK,),
    (
        Variant("works", "a Relu", partial(one, "Relu")),
        Variant("known", "an unknown operator", bad, expectations=claim(Class.PARSE_FAILED)),
        Variant("fixed", "a Sigmoid", partial(one, "Sigmoid"), expectations=gone),
        Variant("not-shown", "a Sigmoid", partial(one, "Sigmoid"), expectations=claim(Class.PARSE_FAILED)),
        Variant("new-failure", "an unknown operator", bad),
        Variant("regressed", "an unknown operator", bad, expectations=claim(Class.OK)),
    ),
)
'''


def make_project(folder: Path) -> Path:
    """Write a project: six variants on an engine of the package index, its twin, and two that cannot run."""
    needs.network()
    (folder / "matrix.yaml").write_text(MATRIX)
    (folder / "cases").mkdir()
    (folder / "cases" / "tiny.py").write_text(CASE)
    (folder / "conftest.py").write_text('pytest_plugins = ["harness.pytest_plugin"]\n')
    (folder / "pytest.ini").write_text(
        "[pytest]\ntestpaths = matrix.yaml\naddopts = --strict-markers --strict-config -ra\nfilterwarnings = error\n"
    )
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of the test's own."""
    return make_project(tmp_path)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """A project whose engine that runs here has been through all its cells."""
    folder = make_project(tmp_path_factory.mktemp("ran"))
    return folder, run(folder, "-k", "ort and not slow", "--junitxml=junit.xml")


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
    return kept | {"PYTHONPATH": str(ROOT)}


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in this process: to start one takes longer than most of these tests."""
    out, err = io.StringIO(), io.StringIO()
    with Patch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.chdir(folder)
        patch.setattr(sys, "path", sys.path[:])
        # The project has one too, which pytest imports under the same name.
        patch.setitem(sys.modules, "conftest", sys.modules["conftest"])
        for name in set(os.environ) - set(environment()):
            patch.delenv(name)
        code = pytest.main([*WORDS, "--via", "venv", *words])
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def outcomes(done: subprocess.CompletedProcess[str]) -> dict[str, int]:
    """Return the counts of pytest's last line."""
    return {word: int(number) for number, word in re.findall(r"(\d+) ([a-z]+)", done.stdout.splitlines()[-1])}


def results(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the report's cells by id."""
    data = json.loads((folder / "reports" / "results.json").read_text())
    return {entry["id"]: entry for entry in data["cells"]}


def short_summary(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout.partition("short test summary info")[2]


def test_targets_that_a_name_takes_along_are_noted(project: Path) -> None:
    note = "-k ort takes ort-slow along; -m ort is that one alone"
    words = ("--collect-only", "-k")
    assert note in run(project, *words, "works and ort").stdout.splitlines()
    alone = run(project, *words, "works and ort and not slow").stdout
    assert "along" not in alone


def test_each_verdict_is_pytests_own_word_for_it(ran: Ran) -> None:
    """Known failures xfail with their reason, unexpected passes XPASS, and only what is new or regressed fails."""
    project, done = ran
    assert done.returncode == 1, done.stdout + done.stderr
    assert outcomes(done) == {"failed": 2, "passed": 1, "xfailed": 1, "xpassed": 2, "deselected": 18}
    said = short_summary(done)
    assert "XFAIL matrix.yaml::tiny.known-ort -" in said
    assert "XPASS matrix.yaml::tiny.fixed-ort -" in said
    assert "XPASS matrix.yaml::tiny.not-shown-ort -" in said
    assert "FAILED matrix.yaml::tiny.new-failure-ort" in said
    assert "FAILED matrix.yaml::tiny.regressed-ort" in said
    assert "ResourceWarning" not in done.stdout + done.stderr
    assert {name: entry["verdict"] for name, entry in results(project).items() if name.endswith("-ort")} == {
        "tiny.works-ort": "expected",
        "tiny.known-ort": "known_failure",
        "tiny.fixed-ort": "fixed",
        "tiny.not-shown-ort": "not_reproduced",
        "tiny.new-failure-ort": "new",
        "tiny.regressed-ort": "regressed",
    }


def test_cells_of_this_project_need_no_tool_of_its_developers() -> None:
    """A word after an option, "venv", makes pytest load tests/conftest.py; users have no pytest-timeout."""
    words = ["--via", "venv", "-k", "mish and qdq-rtx17", "--collect-only", "-q", "-p", "no:timeout"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, "-p", "no:cacheprovider"],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "matrix.yaml::mish.qdq-rtx17" in done.stdout


def test_a_cell_that_is_recorded_is_not_run_again(ran: Ran, tmp_path: Path, monkeypatch: Patch) -> None:
    """What a killed run left goes all the same, and `--fresh` runs it."""
    project, left = tmp_path / "again", tmp_path / "tmp" / "trt-compat-left"
    left.mkdir(parents=True)
    (left / "held").touch()
    shutil.copytree(ran[0], project)
    monkeypatch.setattr(tempfile, "tempdir", str(left.parent))
    before = len(list(Store(project / "reports").outcomes()))
    done = run(project, "-k", "works and ort and not slow")
    assert outcomes(done)["passed"] == 1, done.stdout
    assert not left.exists()
    assert "1 of 1 cells" in done.stdout
    assert len(list(Store(project / "reports").outcomes())) == before
    done = run(project, "-k", "works and ort and not slow", "--fresh")
    assert outcomes(done)["passed"] == 1
    assert "taken from earlier runs" not in done.stdout
    assert len(list(Store(project / "reports").outcomes())) == before + 1


def test_the_junit_file_tells_class_verdict_and_signature(ran: Ran) -> None:
    project, _ = ran
    properties = {
        case.get("name"): {entry.get("name"): entry.get("value") for entry in case.iter("property")}
        for case in ET.parse(project / "junit.xml").iter("testcase")  # noqa: S314  (written a moment ago)
    }
    assert properties["tiny.works-ort"] == {"class": "ok", "verdict": "expected", "signature": ""}
    assert properties["tiny.known-ort"]["class"] == "parse_failed"
    assert properties["tiny.regressed-ort"]["verdict"] == "regressed"


def test_a_failure_explains_itself_and_the_line_it_gives_runs_that_cell_alone(ran: Ran) -> None:
    project, done = ran
    parts = re.split(r"^_+ (.*) _+$", done.stdout.partition("short test summary")[0], flags=re.MULTILINE)
    text = dict(zip(parts[1::2], parts[2::2], strict=True))["cell tiny.new-failure-ort"]
    assert "parse_failed (new): " in text
    assert "NoSuchOperator" in text
    assert "recipe   graph typing" in text
    assert "Traceback" not in text
    assert "repr_failure" not in text
    assert ".py:" not in text
    (again,) = re.findall(r"^  again +(pytest .*)$", text, re.MULTILINE)
    repeated = run(project, *shlex.split(again)[1:])
    assert outcomes(repeated) == {"failed": 1}, repeated.stdout + repeated.stderr


def test_what_cannot_run_here_is_skipped_with_what_it_needs_or_fails_when_required(project: Path) -> None:
    skipped = run(project, "-k", "gpu")
    assert skipped.returncode == 0
    assert outcomes(skipped) == {"skipped": 6, "deselected": 18}
    assert re.search(r"SKIPPED .*NVIDIA GPU", short_summary(skipped))
    assert "no compatibility report" in skipped.stdout
    assert not (project / "reports").exists(), "nothing ran: there is nothing to record"
    failed = run(project, "-k", "gpu", "--require", "gpu")
    assert failed.returncode == 1
    assert outcomes(failed) == {"failed": 6, "deselected": 18}
    assert "needs an NVIDIA" in failed.stdout


def test_trouble_with_the_machine_is_an_error_in_one_sentence_and_no_failure(project: Path) -> None:
    done = run(project, "-k", "broken and works")
    assert outcomes(done) == {"error": 1, "deselected": 23}
    assert "ERROR matrix.yaml::tiny.works-broken" in done.stdout
    assert "not load: ModuleNotFoundError" in done.stdout
    assert ".py:" not in done.stdout.partition("= ERRORS =")[2].partition("it last said")[0]
    assert results(project)["tiny.works-broken"]["class"] == "infra_error"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--require", "trt99"), "matrix.yaml has no target 'trt99'"),
        (("--cases", "nowhere"), "nowhere: no such folder of cases"),
    ],
)
def test_a_mistyped_option_is_one_sentence(project: Path, words: tuple[str, ...], sentence: str) -> None:
    done = run(project, *words)
    assert done.returncode == 2
    assert sentence in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert not (project / "reports").exists()


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_broken_matrix_is_one_sentence(project: Path, workers: tuple[str, ...]) -> None:
    (project / "matrix.yaml").write_text(MATRIX.replace('version: "8.6.1"', "version: 8.6"))
    done = run(project, *workers)
    assert done.returncode != 0
    assert re.search(r"matrix\.yaml:12: targets\.gpu\.version: ", done.stdout)
    assert "Traceback" not in done.stdout + done.stderr
    assert "INTERNALERROR" not in done.stdout + done.stderr


def test_a_record_that_cannot_be_read_is_one_sentence_and_the_report_is_written(project: Path) -> None:
    """The cells have run; that an older file of the store is damaged is neither theirs nor pytest's."""
    records = project / "reports" / "records"
    records.mkdir(parents=True)
    (records / "old-main.jsonl").write_text("not a record\n\n")
    done = run(project, "-k", "works and ort and not slow")
    assert done.returncode == 0
    assert re.search(r"^\S*old-main\.jsonl:1: not a record", done.stderr, re.MULTILINE)
    assert (project / "reports" / "index.html").is_file()
    assert "INTERNALERROR" not in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_collecting_starts_nothing_and_writes_nothing(project: Path) -> None:
    done = run(project, "--collect-only", "-q")
    assert done.returncode == 0
    ids = [line for line in done.stdout.splitlines() if "::" in line]
    assert ids[0] == "matrix.yaml::tiny.works-ort"
    assert len(ids) == 24
    assert not (project / "reports").exists()


def test_markers_select_targets_engines_and_cases(project: Path) -> None:
    for mark, count in (("onnxruntime and not ort-slow", 12), ("gpu and tensorrt and tiny", 6)):
        done = run(project, "--collect-only", "-q", "-m", mark)
        assert len([line for line in done.stdout.splitlines() if "::" in line]) == count, done.stdout


def test_under_xdist_each_target_has_one_worker_and_one_agent_and_the_report_is_one(project: Path) -> None:
    # From a folder below, where pytest 9.2 spells ids anew.
    where = ("../matrix.yaml", "--reports=../reports", "--junitxml=../junit.xml")
    done = run(project / "cases", *where, "-k", "ort or gpu", "-n", "2", "-v")
    lines = re.findall(r"^\[(gw\d)\] \[.{4}\] (\w+) (\S+) $", done.stdout, re.MULTILINE)
    assert len(lines) == 18, done.stdout
    workers = defaultdict(set)
    variants = ("works", "known", "fixed", "not-shown", "new-failure", "regressed")
    target_of = {f"tiny.{one}-{target}": target for one in variants for target in ("ort", "ort-slow", "gpu")}
    for worker, _, name in lines:
        workers[target_of[name.removeprefix("../matrix.yaml::")]].add(worker)
    assert all(len(mine) == 1 for mine in workers.values())
    assert workers["ort"] != workers["ort-slow"]
    recorded = {outcome.cell: outcome for outcome in Store(project / "reports").outcomes()}
    # What needs a GPU is skipped, and leaves no record.
    assert len(recorded) == 12
    assert len({outcome.stamps.run for outcome in recorded.values()}) == 1
    assert done.stdout.count("compatibility report: ") == 1
    counted = [entry["class"] for entry in results(project).values() if entry["target"] != "broken"]
    assert sorted(set(counted)) == ["not_run", "ok", "parse_failed"]
    assert re.search(
        r"^FAILED \.\./matrix\.yaml::tiny\.regressed-ort-slow( |$)", short_summary(done), re.MULTILINE
    )
    assert outcomes(done) == {"failed": 4, "passed": 2, "skipped": 6, "xfailed": 2, "xpassed": 4}
    named = {case.get("name") for case in ET.parse(project / "junit.xml").iter("testcase")}  # noqa: S314
    assert {f"tiny.works-{name}" for name in ("ort", "ort-slow", "gpu")} <= named


def agents_of(pid: int) -> list[int]:
    """List the agents below a process: those that were started from a stream."""
    found = []
    for each in descendants(pid):
        with contextlib.suppress(OSError):
            if b"memfd_create" in Path(f"/proc/{each}/cmdline").read_bytes():
                found.append(each)
    return found


#: Before the other variants: 3072 by 3072 by 3072 on one thread, a dozen times. The reference evaluator does not know
#: the operator, so that nothing is computed here.
SLOW = """\
    (
        Variant("works-first", "a Relu", partial(one, "Relu")),
        Variant("slow", "a large product", large),
        Variant("""


@pytest.mark.parametrize(
    ("via", "workers", "group"),
    [
        ("venv", (), False),
        ("venv", ("-n", "2"), True),
        pytest.param("docker", ("-n", "2"), False, marks=pytest.mark.long),
    ],
    ids=["alone", "terminal", "container"],
)
def test_an_interrupt_keeps_what_was_recorded_and_leaves_no_agent(
    project: Path, via: str, workers: tuple[str, ...], *, group: bool
) -> None:
    """Ctrl-C in a terminal reaches every process, `kill -INT` one: xdist then interrupts its workers."""
    if via == "docker":
        needs.base_image()
        slow_down(project)
    every = {cell.id for cell in cells_of(project) if cell.target.name in ("ort", "ort-slow")}
    with started(project, via, *workers) as harness:
        left = agents_below(harness.pid, via)
        (os.killpg if group else os.kill)(harness.pid, signal.SIGINT)
        said, _ = harness.communicate(timeout=PATIENCE)
    assert "Traceback" not in said
    assert "KeyboardInterrupt" in said
    assert recorded(project) < every
    assert wait_for(lambda: not any(lives(agent) for agent in left))


@pytest.mark.parametrize("worker", [True, False])
def test_a_worker_that_was_interrupted_is_not_interrupted_while_it_ends(
    monkeypatch: Patch, *, worker: bool
) -> None:
    """Execnet does so after five seconds, and an exit that is interrupted prints a traceback."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    if worker:
        monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        hooks.pytest_keyboard_interrupt()
        assert (signal.getsignal(signal.SIGINT) is signal.SIG_IGN) is worker
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.mark.docker
@pytest.mark.parametrize(
    ("workers", "whom", "code"),
    [
        ((), "it", 2),
        (("-n", "2"), "it", 2),
        pytest.param(("-n", "2"), "worker", 2, marks=pytest.mark.long),
        pytest.param(("-n", "2"), "group", 2, marks=pytest.mark.long),
    ],
    ids=["alone", "controller", "worker", "group"],
)
def test_a_termination_removes_the_container(
    project: Path, workers: tuple[str, ...], whom: str, code: int
) -> None:
    """As by `timeout`, or a CI system that cancels a job: no later run comes to remove it."""
    needs.base_image()
    slow_down(project)
    with started(project, "docker", *workers) as harness:
        left = agents_below(harness.pid, "docker")
        if whom == "group":
            os.killpg(harness.pid, signal.SIGTERM)
        else:
            told = harness.pid if whom == "it" else owner_below(harness.pid)
            os.kill(told, signal.SIGTERM)
            # The other worker goes on to the end of its target: xdist takes the first for crashed.
            assert wait_for(lambda: not containers_of(told))
        said, _ = harness.communicate(timeout=PATIENCE)
    assert harness.returncode == code, said
    assert "Traceback" not in said
    assert "INTERNALERROR" not in said
    assert "compatibility report: " in said
    assert recorded(project)
    assert wait_for(lambda: not any(lives(agent) for agent in left))


def slow_down(project: Path) -> None:
    """Put a cell second that takes longer than the ten seconds that xdist waits for its workers."""
    (project / "cases" / "tiny.py").write_text(CASE.replace("    (\n        Variant(", SLOW))


def agents_below(pid: int, via: str) -> Sequence[str | int]:
    """List the containers or processes of a pytest's agents."""
    if via == "docker":
        return [name for owner in (pid, *descendants(pid)) for name in containers_of(owner)]
    return agents_of(pid)


def owner_below(pid: int) -> int:
    """Return a worker that owns a container."""
    return next(child for child in descendants(pid) if containers_of(child))


def recorded(project: Path) -> set[str]:
    return {outcome.cell for outcome in Store(project / "reports").outcomes()}


@contextlib.contextmanager
def started(project: Path, via: str, *workers: str) -> Iterator[subprocess.Popen[str]]:
    """Start pytest in a process group of its own; entered once it has recorded a cell and has an agent."""
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", *WORDS, "--via", via, "-k", "ort", *workers],
        cwd=project,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as harness:
        try:
            assert wait_for(lambda: bool(recorded(project) and agents_below(harness.pid, via)))
            yield harness
        finally:
            harness.kill()


def cells_of(folder: Path) -> tuple[Cell, ...]:
    return all_cells(load_matrix(folder / "matrix.yaml"), load_cases(folder / "cases"))


def collected(*words: str) -> list[str]:
    done = run(ROOT, "--collect-only", "-q", *words)
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_the_projects_own_tests_are_apart_from_its_matrix() -> None:
    assert all(
        "matrix.yaml" not in line
        for line in collected("tests/plan/test_plan.py", "tests/record/test_store.py")
    )
    assert all(line.startswith("matrix.yaml::") for line in collected("-m", "rtx17"))


NOISY = """
import random, warnings
import pytest


def pytest_configure(config):
    warnings.warn("a setting of this plugin is unset", pytest.PytestWarning)


def pytest_sessionfinish(session):
    warnings.warn("nothing was benchmarked", pytest.PytestWarning)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    random.Random(7).shuffle(items)
"""


@pytest.mark.parametrize("words", [("-n", "2"), ("--collect-only", "-q")], ids=["xdist", "alone"])
def test_the_matrix_lives_beside_other_peoples_plugins(tmp_path: Path, words: tuple[str, ...]) -> None:
    """They warn when nobody asked them anything, and some shuffle tests: a target's cells stay together."""
    (tmp_path / "noisy.py").write_text(NOISY)
    chosen = ("-k", "mish and (ort117 or ort131) and not cuda") if "-q" in words else ("-k", "no_such_cell")
    command = [sys.executable, "-m", "pytest", "-p", "noisy", f"--reports={tmp_path}/out", *words, *chosen]
    found = environment() | {"PYTHONPATH": f"{ROOT}:{tmp_path}"}
    done = subprocess.run(command, cwd=ROOT, env=found, capture_output=True, text=True, check=False)
    assert done.returncode == (0 if "-q" in words else pytest.ExitCode.NO_TESTS_COLLECTED), done.stdout
    targets = [
        line.rpartition("-")[2] for line in done.stdout.splitlines() if line.startswith("matrix.yaml::")
    ]
    assert [name for name, _ in itertools.groupby(targets)] in (
        ["ort117", "ort131"],
        ["ort131", "ort117"],
        [],
    )
    assert bool(targets) is ("-q" in words)
