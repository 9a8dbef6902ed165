"""From a measurement on somebody's GPU to the page: submit, intake, merge, report, in the rig.

What real GPUs and real images answer, the rig cannot say.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import needs
from tests.community.contributors import (
    Contributor,
    harness,
    make_project,
    unpacked,
)
from tests.contract.bindings import VERSIONS
from tests.rig.machine import GPUS, Rig
from tests.waiting import HANGS

pytestmark = [pytest.mark.contract, pytest.mark.timeout(4 * HANGS)]

NEWEST = next(version for version in VERSIONS if version.id == "11.2")
ALICE = Contributor("alice", GPUS[0])
BOB = Contributor("bob", GPUS[1])
CAROL = Contributor(
    "carol",
    "GPU-33333333-3333-3333-3333-333333333333",
    (("Builder.build_serialized_network", None),),
)


class World(NamedTuple):
    """The project, the machine of the rig, and the archive of each contributor."""

    project: Path
    rig: Rig
    archives: dict[str, Path]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    if platform.machine() != "x86_64":
        pytest.skip("the stub returns structures as x86-64 does")
    needs.network()
    needs.program("git")
    rig = Rig(tmp_path_factory.mktemp("rig"), NEWEST)
    rig.write()
    project = make_project(tmp_path_factory.mktemp("world") / "project", rig)
    archives = {}
    for who in (ALICE, BOB, CAROL):
        done = who.submit(rig, project)
        assert done.returncode == 0, done.stdout + done.stderr
        archives[who.account] = project / f"{who.account}.tar.xz"
    yield World(project, rig, archives)


def test_a_submission_says_who_measured_what_and_not_on_whose_machine(world: World) -> None:
    files = unpacked(world.archives["alice"])
    print({name: len(data) for name, data in files.items()})
    print(files["submission/provenance.json"].decode())
    print(files["submission/records.jsonl"].decode()[:3000])
    for name in files:
        if name.startswith("submission/logs/"):
            print(files[name].decode()[:2000])
