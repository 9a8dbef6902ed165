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


def intake(world: World, path: Path, *words: str) -> tuple[int, str]:
    """Take an archive in, or try to; returns the exit code and what was said."""
    done = harness(world.project, "intake", str(path), *words)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout + done.stderr


def test_a_submission_says_who_measured_what_and_on_which_gpu(world: World) -> None:
    """Everything but the UUID, which stays at home."""
    files = unpacked(world.archives["alice"])
    said = json.loads(files["submission/provenance.json"])
    assert {
        "account": "alice",
        "target": "rig",
        "cells": 2,
        "compute_capability": "9.0",
    }.items() <= said.items()
    assert len(said["commit"]) == 40
    assert not [name for name, data in files.items() if GPUS[0][4:].encode() in data]
    code, told = intake(world, world.archives["alice"], "--check")
    assert (code, "by alice holds: 2 cells of rig" in told) == (0, True), told


def test_the_same_file_comes_of_the_same_measurement(world: World) -> None:
    files = unpacked(world.archives["alice"])
    assert packed(files) == world.archives["alice"].read_bytes()


def test_no_lie_is_taken_in(world: World, tmp_path: Path) -> None:
    """Every forgery, made of what was measured here; what each is refused with stands in tests/community/forgeries.py."""
