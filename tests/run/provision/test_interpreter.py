"""An interpreter that the user names is used as it is: its packages are recorded, its engine's version is checked."""

from __future__ import annotations

import venv
from pathlib import Path
from typing import Any

import pytest

from harness.errors import HandledError
from harness.run.provision import packages
from harness.run.provision.host import Host
from harness.run.provision.model import Unavailable
from harness.run.provision.prepare import prepare
from tests.run.provision.factory import target

pytestmark = pytest.mark.unit

HOST = Host(architecture="amd64")


def distribution(site: Path, name: str, version: str) -> None:
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    (folder / "METADATA").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a Python that holds an engine and a thing of no concern."""
    root = tmp_path_factory.mktemp("own") / "env"
    venv.create(root, with_pip=False, symlinks=True)
    site = next((root / "lib").glob("python*/site-packages"))
    distribution(site, "onnxruntime-gpu", "1.31.1")
    distribution(site, "numpy", "2.5.2")
    distribution(site, "bystander", "1.0")
    return str(root / "bin" / "python")


def chosen(**changes: Any) -> Any:
    pins = ("onnxruntime-gpu[cuda]==1.31.1", "numpy==2.4.6")
    return target(**{"version": "1.31.1", "packages": pins, **changes})


def test_the_targets_packages_are_recorded_as_found(python: str) -> None:
    """The engine's own version must be the declared one; another NumPy is a fact for the stamps."""
    assert packages.pins_in(python, chosen()) == (
        "numpy==2.5.2",
        "onnxruntime-gpu==1.31.1",
    )


def test_a_release_of_three_numbers_is_there_in_whichever_build_it_is(python: str) -> None:
    declared = chosen(version="1.31", packages=("onnxruntime-gpu==1.31",))
    with pytest.raises(Unavailable):
        packages.pins_in(python, declared)
    built = chosen(version="1.31.1.4", packages=("onnxruntime-gpu==1.31.1.4",))
    assert packages.pins_in(python, built) == ("onnxruntime-gpu==1.31.1",)


def test_the_engine_in_another_version_is_not_this_target(python: str) -> None:
    other = chosen(version="1.17.3", packages=("onnxruntime-gpu==1.17.3", "numpy==2.4.6"))
    with pytest.raises(
        Unavailable, match=r"needs onnxruntime-gpu==1\.17\.3; .* holds onnxruntime-gpu 1\.31\.1"
    ):
        packages.pins_in(python, other)


@pytest.mark.parametrize("path", ["/nonexistent/python", "/bin/false", "/bin/echo"])
def test_what_is_no_python_is_the_users_mistake(path: str) -> None:
    with pytest.raises(HandledError, match=f"TRT_COMPAT_VENV_PYTHON={path}: is no Python that answers"):
        packages.pins_in(path, chosen())


def test_packages_of_the_callers_own_python_path_do_not_count(
    python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent is started without it, so what it leads to is not what would run."""
    distribution(tmp_path, "onnxruntime", "1.31.1")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(Unavailable, match="needs onnxruntime, which"):
        packages.pins_in(python, chosen(packages=("onnxruntime==1.31.1",)))


def test_the_environment_is_that_interpreter_and_nothing_is_made(
    python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(packages.PYTHON_VARIABLE, python)
    monkeypatch.setenv("TRT_COMPAT_CACHE_DIR", str(tmp_path / "cache"))
    environment = prepare(chosen(), "venv", host=HOST)
    assert (environment.via, environment.python) == ("venv", python)
    assert environment.packages == packages.pins_in(python, chosen())
    assert environment.note == (
        f"toy runs in {python}, as TRT_COMPAT_VENV_PYTHON says, with its own packages."
    )
    assert not (tmp_path / "cache").exists()
