"""An untrusted model's cell has a container of its own, gone after it; without containers nothing is run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.case import Case, Link, Recipe, Variant
from harness.cli import main
from harness.errors import HandledError, InfraError
from harness.matrix import load_matrix
from harness.plan import all_cells
from harness.run import docker
from harness.run.docker.container import LIMITS, UNTRUSTED_CPUS, Options, command_line
from harness.run.provision.host import Host
from harness.run.provision.model import Unavailable
from harness.run.provision.prepare import prepare
from harness.run.provision.requirements import can_run, refuse_unconfined
from harness.words import Class
from tests.run.bench import Bench, cell, classified, lives, relu, target
from tests.run.provision.test_prepare import a_daemon

in_docker = pytest.mark.parametrize("bench", ["docker"], indirect=True)
UNTRUSTED = target(untrusted=True)


@pytest.mark.integration
@in_docker
def test_each_cell_has_a_container_of_its_own_which_is_gone_after_it(bench: Bench) -> None:
    runner = bench.runner(UNTRUSTED)
    for count in (1, 2):
        outcome, _ = runner.run(cell("echo", UNTRUSTED))
        assert classified(outcome).cls is Class.BUILT
        assert len(bench.agents) == count
        assert not lives(bench.agents[-1])
    assert bench.prepared == 1


@pytest.mark.integration
@in_docker
def test_a_run_of_trusted_and_untrusted_cells_keeps_them_apart(bench: Bench) -> None:
    """The untrusted case's cells are batches of their own, on targets that are otherwise warm."""
    trusted = target()
    cells = [cell("echo", trusted), cell("echo", UNTRUSTED), cell("exit", trusted), cell("exit", UNTRUSTED)]
    ran: list[tuple[str, bool]] = []

    class Nowhere:
        def append(self, outcome: Any, _log: str | None = None) -> Any:
            return outcome

    bench.run(cells, Nowhere(), lambda each, *_: ran.append((each.variant.name, each.target.untrusted)))
    assert ran == [("echo", False), ("exit", False), ("echo", True), ("exit", True)]
    assert len(bench.agents) == 1 + 2


@pytest.mark.unit
def test_an_untrusted_container_has_processors_taken_away() -> None:
    plain = Options("image", "linux/amd64", "python3", (), 1024)
    for name, most in LIMITS.items():
        assert f"--ulimit {name}={most}:{most}" in command_line(plain)
    assert "--cpu-quota" not in command_line(plain)
    assert f"--cpu-quota {UNTRUSTED_CPUS * 100_000}" in command_line(replace(plain, untrusted=True))
    (more,) = set(docker.limits(untrusted=True)) - set(docker.limits(untrusted=False))
    assert "container for each" in more
    assert str(UNTRUSTED_CPUS) in more


@pytest.mark.unit
def test_a_host_that_filters_nothing_runs_trusted_models_alone() -> None:
    bare = Host("amd64", docker=replace(a_daemon(), filters=False))
    with pytest.raises(Unavailable, match="needs confinement, as it is untrusted; the kernel of its Docker"):
        prepare(UNTRUSTED, "docker", host=bare)
    assert can_run(target(), bare) is None


@pytest.mark.unit
def test_without_containers_an_untrusted_model_is_refused_and_what_is_not_protected_is_named() -> None:
    bare = "keeps a model's code from your files, your network and your processes"
    with pytest.raises(HandledError, match=f"--via venv is refused for untrusted models.*{bare}"):
        refuse_unconfined([UNTRUSTED], "venv")
    with pytest.raises(InfraError, match=f"containers alone, and no daemon.*{bare}"):
        refuse_unconfined([UNTRUSTED], "auto", Host("amd64", docker_reason="no daemon"))
    with pytest.raises(HandledError, match="it has no seccomp"):
        refuse_unconfined([UNTRUSTED], "auto", Host("amd64", docker=replace(a_daemon(), filters=False)))
    refuse_unconfined([UNTRUSTED], "auto", Host("amd64", docker=a_daemon()))
    refuse_unconfined([target()], "venv")


@pytest.mark.unit
def test_provisioning_never_takes_a_virtual_environment_for_it() -> None:
    """For the front doors that ask nobody beforehand, as pytest's."""
    without = Host("amd64", docker_reason="no daemon")
    for via in ("auto", "venv"):
        with pytest.raises(Unavailable, match="needs Docker"):
            prepare(UNTRUSTED, via, host=without)


@pytest.mark.unit
def test_the_command_line_refuses_and_says_nothing_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    reports = tmp_path / "reports"
    model = tmp_path / "model.onnx"
    model.write_bytes(relu().SerializeToString())
    run = ["run", "--target", "rtx17", "--reports", str(reports)]
    for words in (
        [*run, "-k", "mish"],
        [*run, "-k", "mish", "--dry-run"],
        [*run, "--suite", str(tmp_path)],
        ["check", str(model), "--target", "rtx17"],
        ["reduce", str(model), "--target", "rtx17"],
        ["bisect", str(model), "--good", "rtx16", "--bad", "rtx17"],
    ):
        # Docker that is not there is the machine's lack, a virtual environment the command's mistake.
        for via, code in (("auto", 3), ("venv", 2)):
            assert main([*words, "--untrusted", "--via", via]) == code, words
            (line,) = capsys.readouterr().err.splitlines()
            assert "model's code from" in line
    assert not reports.exists()
    assert main(["run", "--trusted", "-k", "mish", "--target", "rtx17", "--dry-run"]) == 0
    assert "virtual environment nothing" in capsys.readouterr().out


@pytest.mark.unit
def test_matrix_and_case_can_say_it_too(tmp_path: Path) -> None:
    fields = '{engine: onnxruntime, version: "1.31.0", packages: [onnxruntime==1.31.0]'
    path = tmp_path / "matrix.yaml"
    path.write_text(
        "schema: 1\ndefaults: {untrusted: true}\ntargets:\n"
        f"  mine: {fields}, untrusted: false}}\n  theirs: {fields}}}\n"
    )
    matrix = load_matrix(path)
    assert [each.untrusted for each in matrix] == [False, True]
    link = Link("https://github.com/NVIDIA/TensorRT/issues/1")
    variants = (Variant("plain", "plain", relu, Recipe()),)
    cases = [Case(name, name, name, (link,), variants, untrusted=name == "b") for name in ("a", "b")]
    assert [each.target.untrusted for each in all_cells(matrix, cases)] == [False, True, True, True]
    other = replace(matrix, targets=tuple(replace(each, untrusted=False) for each in matrix))
    assert matrix.sha256() == other.sha256()
