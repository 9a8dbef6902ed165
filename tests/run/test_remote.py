"""Cells on a daemon behind SSH: the same as here; what keeps from it is one sentence; nothing is left there."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import InfraError
from harness.matrix import Build
from harness.run import docker
from harness.run.commands import command_lines, plan_environment, published_lines
from harness.run.docker import reaper
from harness.run.gpus import Device
from harness.run.provision import host
from harness.run.provision.host import Host, host_of, look_at_host, look_there
from harness.run.provision.model import Unavailable, Unreachable
from harness.run.provision.prepare import prepare
from harness.words import Class
from tests import needs
from tests.processes import put_program
from tests.run.bench import Bench, cell, classified, lives, run, target
from tests.run.lines import Sshd, needs_sshd
from tests.run.provision.factory import gpu_target
from tests.run.provision.factory import target as package_target
from tests.waiting import wait_for

ORIN = "ssh://user@orin"
#: Complaints of an ssh that does not get through, and their end as they are reported.
REFUSALS = {
    "ssh: Could not resolve hostname orin: Name or service not known": "Name or service not known",
    "user@orin: Permission denied (publickey).": "(publickey); it takes none of your keys; `ssh-copy-id` "
    "brings one there",
    "Welcome\nHost key verification failed.": "its host key is not known here; connect once by hand with ssh, and "
    "confirm it",
    "@ REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.": "its host key is not the known one; "
    "make sure why, then `ssh-keygen -R`",
}


def fake_ssh(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a shell script in the place of the program ssh."""
    put_program(folder, "ssh", script)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.mark.docker
@pytest.mark.integration
@pytest.mark.parametrize("said", REFUSALS)
def test_an_ssh_that_does_not_connect_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    needs.program("docker")
    fake_ssh(tmp_path, monkeypatch, f"cat >&2 <<'END'\n{said}\nEND\nexit 255")
    with pytest.raises(InfraError) as caught:
        docker.daemon(ORIN)
    assert str(caught.value).startswith(f"Docker does not answer at {ORIN}: ")
    assert str(caught.value).endswith(REFUSALS[said])
    with pytest.raises(InfraError) as caught:
        host.run_there(ORIN, ["true"])
    assert str(caught.value).startswith(f"{ORIN} does not answer: ")
    assert str(caught.value).endswith(REFUSALS[said])
    with pytest.raises(
        Unreachable, match=rf"^needs the host that matrix.yaml names for toy; Docker .* {ORIN}: "
    ):
        prepare(package_target(host=ORIN))


@pytest.mark.unit
def test_a_missing_program_is_said_and_no_password_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InfraError, match=r"^the program docker is not installed here$"):
        docker.daemon(ORIN)
    with pytest.raises(InfraError, match=r"^the program ssh is not installed here$"):
        host.run_there(ORIN, ["true"])
    assert docker.address("ssh://user:secret@orin:22") == "ssh://user:...@orin:22"


@pytest.mark.unit
def test_a_target_with_a_host_takes_no_virtual_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells would run on this machine, and the report would say otherwise."""
    away = Host("", docker_reason=f"Docker does not answer at {ORIN}: no route")
    monkeypatch.setattr(host, "_seen", lambda _: away)
    chosen = package_target(host=ORIN)
    with pytest.raises(
        Unavailable, match=rf"needs its host {ORIN}, where engines run in containers alone; leave --via"
    ):
        prepare(chosen, "venv", host=away)
    here = Host("amd64")
    assert plan_environment(chosen, "auto", here) == (
        f"cannot run here: it needs the host that matrix.yaml names for toy; {away.docker_reason}",
    )


@pytest.mark.unit
def test_lines_to_paste_name_the_host_and_published_ones_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = gpu_target(host=ORIN)
    pull, run = command_lines(chosen)
    assert pull.startswith(f"docker -H {ORIN} pull --platform linux/amd64 registry.invalid/")
    assert run.startswith(f"docker -H {ORIN} run --rm -i")
    (build, _) = command_lines(package_target(host=ORIN, build=Build("ngc", "python:3.11-slim")))
    assert build.startswith(f"docker -H {ORIN} build ")
    assert "orin" not in str(published_lines((chosen,)))  # type: ignore[arg-type]
    there = Host("amd64", docker=DAEMON, machine="m")
    monkeypatch.setattr(host, "_seen", lambda _: there)
    monkeypatch.setattr(docker, "find_image", lambda *_: None)
    first, *_ = plan_environment(package_target(host=ORIN), host=Host("amd64"))
    assert first.endswith(f" on {ORIN}, to be built")


DAEMON = docker.Daemon("24.0", "orin", "amd64", nvidia_runtime=True, address=ORIN)
FACTS = """Welcome to orin
== boot
7f9c7f68-0000-4000-8000-000000000000
== machine
aarch64
== kernel
5.15.148-tegra
== l4t
# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic
== groups
994
0
994
== qemu-aarch64
== qemu-x86_64
enabled
interpreter /usr/bin/qemu-x86_64-static
flags: OCF
== rosetta
== smi
/usr/sbin/nvidia-smi
== gpus
Orin (nvgpu), GPU-5, 8.7, 540.4.0, [N/A]
== ended
"""


@pytest.mark.unit
def test_a_board_behind_ssh_is_looked_at_as_this_machine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "ask_daemon", lambda _: (DAEMON, ""))
    monkeypatch.setattr(host, "run_there", lambda *_: FACTS)
    seen = look_there("ssh://a.board")
    (gpu,) = seen.gpus
    assert (seen.architecture, seen.jetson, seen.render_groups) == ("arm64", "36.4.3", ("994",))
    assert (gpu.uuid, gpu.compute_capability, seen.emulated) == ("GPU-5", "8.7", frozenset({"amd64"}))
    assert (seen.docker_elsewhere, len(seen.machine)) == (False, 12)
    assert host_of(package_target(), look_at_host_once := Host("amd64")) is look_at_host_once
    monkeypatch.setattr(host, "run_there", lambda *_: "This account is not available.")
    assert "POSIX shell, and" in look_there("ssh://a.jail").docker_reason


@pytest.mark.unit
def test_a_device_of_another_machine_is_another_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRT_COMPAT_CACHE_DIR", str(tmp_path))
    with contextlib.ExitStack() as held:
        for machine in ("", "board", "other"):
            held.enter_context(Device("cpu", lambda: True, machine).alone())
        with pytest.raises(InfraError, match="given up"), Device("cpu", lambda: False, "board").alone():
            pass


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """An sshd before the daemon of this machine."""
    needs_sshd()
    made = Sshd(tmp_path_factory.mktemp("sshd"))
    made.start()
    yield made
    made.end()


@pytest.fixture
def sshd(server: Sshd, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sshd]:
    """The sshd, with a key that it takes; no session of its may be left open."""
    server.let("key", "known")
    monkeypatch.setenv("PATH", server.path)
    yield server
    if server.process is None:
        server.start()
    server.cut()


@pytest.mark.docker
@pytest.mark.integration
@pytest.mark.parametrize("bench", ["docker"], indirect=True)
def test_the_same_cells_run_there_and_a_cut_line_costs_none(bench: Bench, sshd: Sshd) -> None:
    """The container of the time before is removed when the line is back, and none is left at the end."""
    runner = bench.runner(target(host=sshd.address))
    assert [run(runner, do).cls for do in ("echo", "segfault")] == [Class.BUILT, Class.CRASHED]
    assert len(bench.agents) == 1
    bench.during(sshd.cut)
    outcome, _ = runner.run(cell("nap", runner.target))
    assert classified(outcome).cls is Class.BUILT
    assert len(bench.agents) == 2
    assert not lives(bench.agents[0])
    assert "127.0.0.1" not in str(outcome.to_json())
    runner.close()
    assert not lives(bench.agents[1])


@pytest.mark.docker
@pytest.mark.integration
@pytest.mark.parametrize("bench", ["docker"], indirect=True)
def test_a_line_that_stays_cut_is_said_and_its_agent_ends_by_itself(bench: Bench, sshd: Sshd) -> None:
    runner = bench.runner(target(host=sshd.address))
    bench.during(sshd.end)
    found = run(runner, "nap")
    assert found.cls is Class.INFRA_ERROR
    assert found.reason.startswith(f"Docker does not answer at {sshd.address}: ")
    # A call that was under way as the line broke says the second.
    assert found.reason.endswith(("Connection refused", "broken pipe"))
    runner.close()
    state = ["docker", "inspect", "--format", "{{.State.Running}}", str(bench.agents[0])]
    assert wait_for(
        lambda: subprocess.run(state, capture_output=True, text=True, check=True).stdout == "false\n"
    )
    sshd.start()
    assert reaper.remove(str(bench.agents[0]), sshd.address)


@pytest.mark.docker
@pytest.mark.integration
def test_an_sshd_that_refuses_is_told_in_the_words_of_a_real_one(sshd: Sshd) -> None:
    sshd.let("stranger", "known")
    with pytest.raises(InfraError, match=r"Permission denied \(publickey\); it takes none of your keys"):
        docker.daemon(sshd.address)
    sshd.let("key", "unknown")
    with pytest.raises(InfraError, match="its host key is not known here; connect once by hand"):
        docker.daemon(sshd.address)


@pytest.mark.docker
@pytest.mark.integration
def test_this_machine_behind_ssh_is_known_for_itself(sshd: Sshd) -> None:
    """So its devices have the same locks, by whatever name it is reached."""
    there, here = look_there(sshd.address), look_at_host()
    assert there.docker is not None
    assert there.docker.address == sshd.address
    same = (
        *("architecture", "gpus", "jetson", "emulated", "docker_elsewhere", "wsl", "render_groups"),
        "machine",
    )
    assert {name: getattr(there, name) for name in same} == {name: getattr(here, name) for name in same}


@pytest.mark.docker
@pytest.mark.long
@pytest.mark.integration
def test_an_image_is_built_there_and_its_engine_runs(
    sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.run.provision.test_prepare import ask, forget

    needs.base_image()
    needs.network()
    monkeypatch.setenv("TRT_COMPAT_CACHE_DIR", str(tmp_path))
    build = Build("packages", "python:3.11-slim", (("TEST", "ssh"),))
    chosen = package_target(host=sshd.address, build=build)
    made = prepare(chosen)
    try:
        assert (made.via, made.machine) == ("docker", "")
        assert made.note.endswith(f" answers on {sshd.address}.")
        assert ask(made, chosen) == "24.1 x86_64 3 11"
    finally:
        forget(made.image)
