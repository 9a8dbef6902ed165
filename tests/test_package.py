"""The package that is installed holds all that it needs, and finds it without a checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from harness import __version__, shipped

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def library(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the path with the package as a wheel holds it."""
    folder = tmp_path_factory.mktemp("package")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


def installed(library: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder with the package on its path, and no part of the checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=kept | {"PYTHONPATH": str(library)},
        capture_output=True,
        text=True,
        check=False,
    )


def files(folder: Path, *names: str) -> set[str]:
    found = [path for name in names for path in (folder / name, *(folder / name).rglob("*"))]
    return {
        path.relative_to(folder).as_posix()
        for path in found
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_package_holds_the_harness_and_what_stands_at_the_repositorys_top(library: Path) -> None:
    """Every file of harness/, data too, and copies of the matrix, the cases and the Dockerfiles; no other package."""
    assert {path.name.partition("-")[0] for path in library.iterdir()} == {"harness", "trt_compat"}
    inside = {name for name in files(library, "harness") if not name.startswith("harness/_shipped/")}
    assert inside == files(ROOT, "harness")
    copied = files(library / "harness" / "_shipped", ".")
    assert copied == files(ROOT, "matrix.yaml", "cases", "docker") | {"published/results.json.xz"}
    assert {"matrix.yaml", "cases/measured.yaml", "docker/plugin/formats.h"} <= copied


def test_a_checkout_finds_its_own() -> None:
    assert not shipped.installed()
    assert [shipped.shipped(name) for name in ("docker", "cases")] == [ROOT / "docker", ROOT / "cases"]


def test_an_installed_harness_prints_lines_that_hold_in_any_folder(library: Path, tmp_path: Path) -> None:
    """The Dockerfiles are named by their path, except in published lines."""
    code = (
        "import sys; from pathlib import Path; from harness.matrix import load_matrix\n"
        "from harness.run.provision.images import image_command_lines as lines\n"
        "from harness.shipped import shipped\n"
        "assert shipped('docker').is_relative_to(sys.argv[1]), shipped('docker')\n"
        "target = load_matrix(shipped('matrix.yaml')).target('trt102')\n"
        "print(lines(target)[0]); print(lines(target, here=False)[0])\n"
    )
    done = installed(library, tmp_path, "-c", code, str(library))
    assert done.returncode == 0, done.stderr
    here, published = (line.split() for line in done.stdout.splitlines())
    folder = str(library / "harness" / "_shipped" / "docker")
    assert (here[here.index("-f") + 1], here[-1]) == (f"{folder}/ngc.Dockerfile", folder)
    assert (published[published.index("-f") + 1], published[-1]) == ("docker/ngc.Dockerfile", "docker")


def test_an_installed_harness_lists_what_came_with_it_in_an_empty_folder(
    library: Path, tmp_path: Path
) -> None:
    done = installed(library, tmp_path, "-m", "harness", "show", "mish.fp32-ort131")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("mish.fp32-ort131\n")
    assert "commands, for this" in done.stdout
    assert "ok on onnxruntime ==1.31.1 (measured)" in done.stdout
    said, published = done.stderr.splitlines()
    assert published.startswith("no reports here:")
    assert said.startswith("no matrix.yaml and")
    assert list(tmp_path.iterdir()) == []


def test_an_installed_harness_tells_what_is_known_in_an_empty_folder(library: Path, tmp_path: Path) -> None:
    """The published results come with it, and each command says that it takes those."""
    for words, code, said in (
        (("diff", "trt86", "trt106"), 1, "Breaks: "),
        (("show", "mish.qdq-trt86"), 0, "last result: as published"),
        (("list", "-k", "mish.qdq-trt86"), 0, "ok (expected)"),
        (("report",), 0, "report of the published results: reports/index.html"),
    ):
        done = installed(library, tmp_path, "-m", "harness", *words)
        assert done.returncode == code, done.stderr
        assert said in done.stdout
        assert done.stderr.endswith(
            f": taking the published results that come with trt-compat {__version__}\n"
        )
    assert "mish.qdq" in (tmp_path / "reports" / "results.csv").read_text()
    assert (tmp_path / "reports" / "index.html").stat().st_size > 1_000_000


def test_the_package_stays_small(wheel: Path) -> None:
    """What is known of every version comes with it all the same."""
    assert wheel.stat().st_size < 3_000_000


def test_python_finds_what_came_with_it_as_the_command_does(library: Path, tmp_path: Path) -> None:
    code = "import harness\ntry: harness.check('m.onnx', targets='ort13')\nexcept Exception as error: print(error)"
    done = installed(library, tmp_path, "-c", code)
    assert "did you mean 'ort13" in done.stdout, done.stdout + done.stderr
