"""What is submitted to Slurm, and what its commands print, without a Slurm."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import HandledError, InfraError
from harness.matrix import Needs, Slurm, Target
from harness.plan import Cell
from harness.run.slurm.client import Client, Refused
from harness.run.slurm.flight import Flight
from harness.run.slurm.parse import (
    End,
    Seen,
    complaint,
    is_silence,
    may_be_later,
    parse_accounting,
    parse_architectures,
    parse_job,
    parse_queue,
)
from harness.run.slurm.plan import Group, Submission, grouped, options, ranges, unfit
from tests.run.bench import cell
from tests.run.provision.factory import gpu_target, target

pytestmark = pytest.mark.unit

SUBMISSION = Submission(
    Path("/shared/my reports/slurm/r1"),
    "trt-compat-r1",
    ("-m", "harness", "run", "--via", "venv"),
    Path("/shared"),
)


def cells(each: Target, *doings: str) -> list[Cell]:
    return [cell(do, each) for do in doings]


def test_targets_that_ask_the_same_share_a_job_and_a_task_is_of_one_target() -> None:
    alike = Slurm(partition="gpus", gres="gpu:h200:1")
    first, other = target(name="one", slurm=alike), target(name="two", slurm=Slurm(partition="boards"))
    third = target(name="three", slurm=Slurm(partition="gpus", gres="gpu:h200:1", cells=2))
    found = grouped(
        [*cells(first, "a", "b"), *cells(other, "a"), *cells(third, "a", "b", "c")], {}, "/usr/bin/python3"
    )
    assert [group.options for group in found] == [
        ("--partition=gpus", "--gres=gpu:h200:1"),
        ("--partition=boards",),
    ]
    assert [[[each.id for each in task] for task in group.tasks] for group in found] == [
        [["faulty.a-one", "faulty.b-one"], ["faulty.a-three", "faulty.b-three"], ["faulty.c-three"]],
        [["faulty.a-two"]],
    ]
    assert [group.number for group in found] == [1, 2]
    assert {group.python for group in found} == {"/usr/bin/python3"}


def test_a_python_of_its_own_is_a_job_of_its_own_and_a_job_holds_no_more_tasks_than_slurm_takes() -> None:
    far = target(name="far", slurm=Slurm(python="/arm/python", cells=1))
    found = grouped([*cells(target(name="near"), "a"), *[cell("a", far)] * 1001], {}, "/usr/bin/python3")
    assert [(group.python, len(group.tasks)) for group in found] == [
        ("/usr/bin/python3", 1),
        ("/arm/python", 1000),
        ("/arm/python", 1),
    ]


def test_a_target_that_needs_a_gpu_asks_for_one_unless_it_says_what_it_wants() -> None:
    assert options(gpu_target(), {}) == ("--gres=gpu:1",)
    assert options(target(), {}) == ()
    assert options(gpu_target(slurm=Slurm(gres="")), {}) == ()
    asked = Slurm("gpu:h200:2", "hopper&big", "main,night", "2:00:00", "us", options=("--mem=16G", "--nice"))
    assert options(gpu_target(slurm=asked), {}) == (
        "--partition=main,night",
        "--account=us",
        "--time=2:00:00",
        "--constraint=hopper&big",
        "--gres=gpu:h200:2",
        "--mem=16G",
        "--nice",
    )


def test_nodes_of_another_architecture_are_kept_out() -> None:
    """Slurm knows each node's and constrains none; a node that never came up is of none."""
    nodes = {"orin1": "aarch64", "h200": "x86_64", "orin2": "aarch64"}
    assert options(target(), nodes) == ("--exclude=orin1,orin2",)
    board = target(platform="jetson", needs=Needs(gpu=False, architecture="aarch64"))
    assert unfit(board, nodes) == {"h200"}
    assert unfit(target(slurm=Slurm(architecture="any")), nodes) == set()
    assert unfit(target(slurm=Slurm(architecture="aarch64")), nodes) == {"h200"}


def test_script_and_line_are_quoted_as_a_shell_reads_them() -> None:
    group = Group(3, ("--gres=gpu:1",), "/opt/my python", (tuple(cells(target(name="one"), "a")),) * 3)
    assert SUBMISSION.script(group) == (
        "#!/bin/sh\n"
        "# A task of this job: cells of one\n"
        "exec '/opt/my python' -m harness run --via venv"
        " --reports '/shared/my reports/slurm/r1/3'-\"$SLURM_ARRAY_TASK_ID\""
        " --task '/shared/my reports/slurm/r1/3'-\"$SLURM_ARRAY_TASK_ID\"/task.json\n"
    )
    assert SUBMISSION.command(group, [0, 2]) == [
        "sbatch",
        "--parsable",
        "--job-name=trt-compat-r1",
        "--array=0,2",
        "--requeue",
        "--chdir=/shared",
        "--output=/shared/my reports/slurm/r1/3-%a/slurm.txt",
        "--open-mode=append",
        "--gres=gpu:1",
        "/shared/my reports/slurm/r1/3.sh",
    ]


@pytest.mark.parametrize(
    ("indexes", "written"), [([0], "0"), ([0, 1, 2], "0-2"), ([7, 0, 1, 3], "0-1,3,7"), ([5, 6], "5-6")]
)
def test_indexes_are_written_as_ranges(indexes: list[int], written: str) -> None:
    assert ranges(indexes) == written


def test_the_queue_is_read_with_reasons_of_any_text() -> None:
    """Lines of Slurm 22.05."""
    found = parse_queue(
        "15_0|PENDING||BeginTime\n"
        "15_1|RUNNING|b|None\n"
        "20|PENDING||Nodes required for job are DOWN, DRAINED or reserved | more\n"
        "21_3|PENDING||PartitionTimeLimit\n"
        "22_0|PENDING||launch failed requeued held\n"
        "slurm_load_jobs error\n"
    )
    assert found["15_0"] == Seen("PENDING", "", "BeginTime")
    assert found["15_1"] == Seen("RUNNING", "b", "None")
    assert found["20"].reason.endswith("reserved | more")
    assert [name for name, seen in found.items() if seen.running] == ["15_1"]
    assert [name for name, seen in found.items() if seen.hopeless] == ["21_3"]
    assert [name for name, seen in found.items() if seen.stuck] == ["22_0"]
    assert not any(seen.ended for seen in found.values())
    assert all(
        Seen(state).ended for state in ("COMPLETED", "NODE_FAIL", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY")
    )


def test_how_a_job_ended_is_read_from_the_controller_and_from_accounting() -> None:
    shown = (
        "JobId=15 ArrayJobId=15 ArrayTaskId=1 JobName=t.sh JobState=NODE_FAIL Reason=NodeDown Dependency=(null) "
        "Requeue=1 ExitCode=0:9 DerivedExitCode=0:0 ReqNodeList=(null) ExcNodeList=(null) NodeList=b NumNodes=1\n"
    )
    assert parse_job(shown) == End("NODE_FAIL", "0:9", "b", "NodeDown")
    assert parse_job("slurm_load_jobs error: Invalid job id specified") is None
    end = parse_accounting("CANCELLED by 1000|0:15|None assigned|None\n")
    assert end == End("CANCELLED by 1000", "0:15", "", "None")
    assert end.sentence() == "ended as CANCELLED by 1000 (exit code 0:15)"
    assert parse_accounting("\n") is None
    assert End("FAILED", "127:0", "b", "NonZeroExitCode").code == 127


def test_the_architecture_of_each_node_is_read() -> None:
    assert parse_architectures(
        "NodeName=a Arch=x86_64 CoresPerSocket=1 OS=Linux\nNodeName=orin Arch=aarch64 \nNodeName=never CPUTot=2\n"
    ) == {"a": "x86_64", "orin": "aarch64"}


@pytest.mark.parametrize(
    ("printed", "said", "silent", "later"),
    [
        (
            "allocation failure: Requested node configuration is not available\n",
            "Requested node configuration is not available",
            False,
            True,
        ),
        (
            """sbatch: error: invalid partition specified: nope
            sbatch: error: Batch job submission failed: Invalid partition name specified
            """,
            "invalid partition specified: nope; Invalid partition name specified",
            False,
            False,
        ),
        (
            "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)",
            "Unable to contact slurm controller (connect failure)",
            True,
            False,
        ),
        (
            "sbatch: unrecognized option '--x'\nTry \"sbatch --help\" for more information\n",
            "unrecognized option '--x'",
            False,
            False,
        ),
    ],
)
def test_complaints_are_told_apart(printed: str, said: str, silent: bool, later: bool) -> None:
    assert complaint(printed) == said
    assert (is_silence(said), may_be_later(said)) == (silent, later)


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_a_refusal_a_mistake_and_a_silence_are_three_things(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    program(tmp_path, "sbatch", "echo 'sbatch: error: no such account' >&2; exit 1")
    with pytest.raises(Refused, match=r"^no such account$"):
        Client().submit(["sbatch", "x.sh"])
    program(tmp_path, "sbatch", "echo 'sbatch: error: Invalid --time specification' >&2; exit 255")
    with pytest.raises(HandledError, match=r"does not understand --time=x: Invalid --time .*matrix\.yaml$"):
        Client().submit(["sbatch", "--time=x"])
    program(tmp_path, "sbatch", "echo 'sbatch: error: Socket timed out on send/recv operation' >&2; exit 1")
    with pytest.raises(InfraError, match=r"^Slurm does not answer: Socket timed out"):
        Client().submit(["sbatch", "x.sh"])
    program(tmp_path, "sbatch", "echo '12;cluster'")
    assert Client().submit(["sbatch", "x.sh"]) == "12"
    program(tmp_path, "squeue", "exec sleep 60")
    with pytest.raises(InfraError, match=r"squeue took longer than 0\.1 s"):
        Client(patience=0.1).queue("x")


def test_a_task_is_submitted_three_times_at_most_and_what_another_try_does_not_mend_once(
    tmp_path: Path,
) -> None:
    task = tuple(cells(target(name="one"), "a"))
    flight = Flight(Group(1, (), "python", (task,)), 0, tmp_path, {each.id: each for each in task})
    lost = End("NODE_FAIL", "0:9", "b", "NodeDown")
    for number, again in ((1, True), (2, True), (3, False)):
        flight.submitted(str(number))
        flight.look({})
        assert flight.over
        assert flight.tried_again(lost) is again
    assert flight.given_up(lost) == (
        "the task 3_0 in Slurm ended as NODE_FAIL on b (exit code 0:9, NodeDown), and so did 2 before it; "
        f"it wrote nothing into {tmp_path}: do the nodes see this folder?"
    )
    flight.submissions = 1
    for end in (End("CANCELLED"), End("FAILED", "2:0"), End("FAILED", "127:0")):
        assert not flight.tried_again(end)
    assert flight.tried_again(None)
    (tmp_path / "slurm.txt").write_text("one\nerror: no cases\n\n")
    assert flight.given_up(None) == (
        "the task 3_0 in Slurm is gone, and Slurm does not know it any more; it said: error: no cases"
    )
