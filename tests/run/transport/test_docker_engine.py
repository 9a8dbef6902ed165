"""What containers promise: their limits and owner, weights in a volume, and one sentence where none starts."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.errors import InfraError
from harness.run.docker import ALL_GPUS, DockerTransport, Options, command_line
from harness.run.docker.images import canonical
from harness.run.docker.reaper import RUN_LABEL, remove
from tests import needs
from tests.processes import open_files
from tests.waiting import PATIENCE, wait_for

SLEEP = "import time; print('up', flush=True); time.sleep(600)"


def options(code: str, **changes: Any) -> Options:
    """Return the options of a container that runs some code."""
    fields: dict[str, Any] = {
        "image": needs.base_image(),
        "platform": "linux/amd64",
        "python": "python3",
        "argv": ("-c", code),
        "memory_mib": 256,
    }
    return Options(**(fields | changes))


def inspect(name: str) -> dict[str, Any]:
    """Return what the daemon says of a container."""
    done = subprocess.run(["docker", "inspect", name], capture_output=True, text=True, check=True)
    (found,) = json.loads(done.stdout)
    return dict(found)


@pytest.mark.integration
@pytest.mark.docker
def test_a_container_has_its_limits_and_its_owner() -> None:
    made = DockerTransport(
        options("print('up', flush=True); " + SLEEP, weights=True), target="toy", run="test"
    )
    try:
        assert made.receive(PATIENCE)
        found = inspect(made.name)
    finally:
        made.close()
    assert found["Config"]["User"] == "65534:65534"
    assert (found["HostConfig"]["NetworkMode"], found["HostConfig"]["CapDrop"]) == ("none", ["ALL"])
    assert found["HostConfig"]["ReadonlyRootfs"]
    # A plugin's library is loaded from there.
    assert "exec" in found["HostConfig"]["Tmpfs"]["/tmp"].split(",")
    assert found["HostConfig"]["Memory"] == found["HostConfig"]["MemorySwap"] == 256 << 20
    assert found["HostConfig"]["PidsLimit"] == 1024
    assert found["HostConfig"]["SecurityOpt"] == ["no-new-privileges"], "Docker's own profile"
    assert found["HostConfig"]["LogConfig"]["Type"] == "none"
    assert not found["HostConfig"]["AutoRemove"], "it is asked how it ended"
    assert found["Config"]["StdinOnce"], "the end of its input reaches it"
    assert found["Config"]["Labels"][RUN_LABEL] == "test"


@pytest.mark.integration
@pytest.mark.docker
def test_closing_removes_the_container_and_every_descriptor() -> None:
    chosen = options(SLEEP)
    before = open_files()
    made = DockerTransport(chosen, target="toy")
    name = made.name
    made.close()
    assert not open_files() - before
    with pytest.raises(subprocess.CalledProcessError):
        inspect(name)


READS_WEIGHTS = """
import os, sys
print("up", flush=True)
sys.stdin.readline()
with open("/weights/w.bin", "rb") as file:
    print(len(file.read()), os.access("/weights/w.bin", os.W_OK), os.access("/weights", os.W_OK), flush=True)
import time; time.sleep(600)
"""


@pytest.mark.integration
@pytest.mark.docker
@pytest.mark.parametrize("reaped", [False, True], ids=["closed", "reaped"])
def test_weights_lie_in_a_volume_that_goes_with_the_container(tmp_path: Path, reaped: bool) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(9 << 20))
    made = DockerTransport(options(READS_WEIGHTS, weights=True), target="toy", run="test")
    try:
        assert made.receive(PATIENCE) == b"up\n"
        assert made.place(tmp_path, ["w.bin"]) == "/weights"
        made.send(b"\n")
        assert made.receive(PATIENCE).split() == [str(9 << 20).encode(), b"False", b"False"]
        (volume,) = (each["Name"] for each in inspect(made.name)["Mounts"] if each["Type"] == "volume")
        if reaped:
            assert remove(made.name)
    finally:
        made.close()
    found = subprocess.run(["docker", "volume", "inspect", volume], capture_output=True, check=False)
    assert found.returncode != 0


def refused(**changes: Any) -> str:
    """Return the sentence on a container that cannot be started."""
    made = DockerTransport(options(SLEEP, **changes), target="toy", run="refused")
    try:
        assert made.receive(PATIENCE) == b""
        with pytest.raises(InfraError) as caught:
            wait_for(lambda: made.exit_status() is not None)
        return str(caught.value)
    finally:
        made.close()


@pytest.mark.integration
@pytest.mark.docker
def test_a_start_that_fails_is_one_sentence_and_leaves_nothing_behind() -> None:
    cannot = "the container of toy could not be started: "
    for said, wanted in (
        (refused(image="registry.invalid/none:1"), "registry.invalid/none"),
        (refused(python="/no/such/python"), "/no/such/python"),
    ):
        assert said.startswith(cannot)
        assert wanted in said
        assert "\n" not in said
    if not needs.docker().nvidia_runtime:
        assert "device driver" in refused(gpus=ALL_GPUS)
    assert containers() == ""


def containers() -> str:
    """List the containers of the run of this test, in any state."""
    listed = ["docker", "ps", "-aq", "--filter", f"label={RUN_LABEL}=refused"]
    return subprocess.run(listed, capture_output=True, text=True, check=True).stdout


@pytest.mark.unit
def test_gpus_and_jetsons_are_asked_for_in_their_own_ways() -> None:
    base = Options("image", "linux/amd64", "python3", ("-V",), 1024)
    assert "--gpus" not in command_line(base)
    assert "--gpus all" in command_line(dataclasses.replace(base, gpus=ALL_GPUS))
    two = dataclasses.replace(base, gpus=("GPU-1", "GPU-2"))
    assert "--gpus '\"device=GPU-1,GPU-2\"'" in command_line(two)
    jetson = dataclasses.replace(base, platform="linux/arm64", jetson=True)
    assert "--runtime nvidia" in command_line(jetson)
    assert "NVIDIA_VISIBLE_DEVICES=all" in command_line(jetson)
    board = dataclasses.replace(jetson, groups=("994", "44"))
    assert "--runtime nvidia --group-add 44 --group-add 994" in command_line(board)


@pytest.mark.unit
def test_a_digest_leaves_the_tag_out() -> None:
    assert canonical("host:5000/a/b:1.0@sha256:ab") == "host:5000/a/b@sha256:ab"
    assert canonical("host:5000/a/b@sha256:ab") == "host:5000/a/b@sha256:ab"
    assert canonical("host:5000/a/b:1.0") == "host:5000/a/b:1.0"
