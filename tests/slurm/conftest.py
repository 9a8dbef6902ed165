"""A cluster for the tests of this folder, and a project to run on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests import needs
from tests.cli import project
from tests.fixtures import Patch
from tests.slurm.cluster import Cluster, cluster

#: Enough cells that a run is still under way when something befalls it.
CELLS = 60
_MANY = f"""
VARIANTS = tuple(Variant(f"v{{number}}", "A Relu", relu) for number in range({CELLS}))
CASE = Case("toy", "A toy", "For tests.", (Link("https://example.org/1"),), VARIANTS)
"""


@pytest.fixture(scope="session")
def started() -> Iterator[Cluster]:
    """Start the cluster, once."""
    needs.slurm()
    with cluster() as found:
        yield found


@pytest.fixture
def slurm(started: Cluster, monkeypatch: Patch) -> Cluster:
    """Return the cluster, which this process's commands talk to."""
    for name, value in started.environment.items():
        monkeypatch.setenv(name, value)
    return started


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: Patch) -> Path:
    """Return the folder of the small project, which is the current one."""
    folder = project.make(tmp_path / "project")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", str(project.TOP))
    return folder


@pytest.fixture
def many(toy: Path) -> Path:
    """Return the folder of a project with many cells, on a target that runs anywhere, in one task."""
    path = toy / "cases" / "toy.py"
    path.write_text(project.CASE.partition("CASE = ")[0] + _MANY)
    asks(toy, ort131={"time": "30"})
    data = yaml.safe_load((toy / "matrix.yaml").read_text())
    del data["targets"]["trt86"]
    (toy / "matrix.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
    return toy


def asks(folder: Path, **targets: dict[str, object]) -> None:
    """Write into matrix.yaml what targets ask of a cluster."""
    path = folder / "matrix.yaml"
    data = yaml.safe_load(path.read_text())
    for name, fields in targets.items():
        data["targets"][name]["slurm"] = fields
    path.write_text(yaml.safe_dump(data, sort_keys=False))
