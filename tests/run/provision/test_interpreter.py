"""An interpreter that the user names is used as it is: its packages are recorded, its engine's version is checked."""

from __future__ import annotations

import venv
from pathlib import Path
from typing import Any

import pytest

from harness.errors import HandledError
from harness.run.key import place_of
from harness.run.provision.host import Host
from harness.run.provision.model import Unavailable
from harness.run.provision.prepare import PYTHON_VARIABLE, installed_in, prepare
from tests.processes import put_program
from tests.run.provision.factory import target

pytestmark = pytest.mark.unit

HOST = Host(architecture="amd64")


def distribution(site: Path, name: str, version: str) -> None:
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    (folder / "METADATA").write_text("\n".join(lines) + "\n", encoding="utf-8")


def engine(site: Path, module: str, body: str) -> None:
    (site / f"{module}.py").write_text(body, encoding="utf-8")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return the packages of a Python that holds an engine and a thing of no concern."""
    root = tmp_path / "own" / "env"
    venv.create(root, with_pip=False, symlinks=True)
    site = next((root / "lib").glob("python*/site-packages"))
    engine(site, "onnxruntime", '__version__ = "1.31.1"\nprint("a library says hello")\n')
    distribution(site, "numpy", "2.5.2")
    distribution(site, "bystander", "1.0")
    return site


@pytest.fixture
def python(site: Path) -> str:
    return str(site.parents[2] / "bin" / "python")


def chosen(**changes: Any) -> Any:
    pins = ("onnxruntime-gpu[cuda]==1.31.1", "numpy==2.4.6")
    return target(**{"version": "1.31.1", "packages": pins, **changes})


@pytest.mark.parametrize(
    ("held", "pin"),
    [
        ("onnxruntime-gpu", "onnxruntime-gpu==1.31.1"),
        ("onnxruntime-of-the-house", "onnxruntime-of-the-house==1.31.1"),
        (None, "onnxruntime==1.31.1"),
    ],
)
def test_an_engine_counts_by_the_version_that_it_reports_itself(
    site: Path, python: str, held: str | None, pin: str
) -> None:
    """NVIDIA's wheels, Debian's packages and images hold one engine under many names, and some under none."""
    if held:
        distribution(site, held, "1.31.1")
    assert installed_in(python, chosen())[0] == ("numpy==2.5.2", pin)


def test_a_release_of_three_numbers_is_there_in_whichever_build_it_is(python: str) -> None:
    with pytest.raises(Unavailable):
        installed_in(python, chosen(version="1.31"))
    assert installed_in(python, chosen(version="1.31.1.4"))[1]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('__version__ = "1.17.3"', r"needs onnxruntime 1\.31\.1; .* holds onnxruntime 1\.17\.3"),
        (None, r"needs onnxruntime 1\.31\.1, which .* cannot import: ModuleNotFoundError: No module named"),
        ("import ctypes\nctypes.CDLL('libgone.so')", "cannot import: OSError: libgone.so"),
    ],
)
def test_an_engine_that_is_missing_or_another_is_not_this_target(
    site: Path, python: str, body: str | None, said: str
) -> None:
    (site / "onnxruntime.py").unlink()
    if body is not None:
        engine(site, "onnxruntime", body)
    with pytest.raises(Unavailable, match=said):
        installed_in(python, chosen())


def test_another_package_of_the_target_is_needed_too(python: str) -> None:
    with pytest.raises(Unavailable, match=r"needs absent, which .* does not hold"):
        installed_in(python, chosen(packages=("onnxruntime==1.31.1", "absent==1")))


def test_two_installations_are_told_apart_by_their_files(
    site: Path, python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cell that one has recorded is not taken for the other's, though both say the same version."""

    def place() -> str:
        monkeypatch.setenv(PYTHON_VARIABLE, python)
        return place_of(prepare(chosen(), "venv", host=HOST))

    first = place()
    assert first
    assert place() == first
    engine(site, "onnxruntime", '__version__ = "1.31.1"\n# built anew\n')
    second = place()
    assert second != first
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    monkeypatch.setenv("LD_LIBRARY_PATH", str(libraries))
    third = place()
    (libraries / "libcudnn.so.9").write_bytes(b"")
    assert len({first, second, third, place()}) == 4


@pytest.mark.parametrize("answer", ["[]", "{}", "7"])
def test_what_is_no_python_is_the_users_mistake(tmp_path: Path, answer: str) -> None:
    put_program(tmp_path, "python", f"echo '{answer}'")
    for path in ("/nonexistent/python", "/bin/false", f"{tmp_path}/python"):
        with pytest.raises(HandledError, match=f"TRT_COMPAT_VENV_PYTHON={path}: is no Python that answers"):
            installed_in(path, chosen())


def test_packages_of_the_callers_own_python_path_do_not_count(
    site: Path, python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent is started without it, so what it leads to is not what would run."""
    (site / "onnxruntime.py").rename(tmp_path / "onnxruntime.py")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(Unavailable, match="cannot import"):
        installed_in(python, chosen())


def test_the_environment_is_that_interpreter_and_nothing_is_made(
    python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PYTHON_VARIABLE, python)
    monkeypatch.setenv("TRT_COMPAT_CACHE_DIR", str(tmp_path / "cache"))
    environment = prepare(chosen(), "venv", host=HOST)
    assert (environment.via, environment.python) == ("venv", python)
    assert environment.packages == installed_in(python, chosen())[0]
    assert environment.note == (
        f"toy runs in {python}, as TRT_COMPAT_VENV_PYTHON says, with its own packages."
    )
    assert not (tmp_path / "cache").exists()
