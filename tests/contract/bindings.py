"""The Python bindings of every version, installed from the package index, and the probe run on each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uv

from harness.run.provision.cache import cache_dir, make_once

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
#: The newest Python for which there are bindings of every version.
PYTHON = "3.11"
#: NVIDIA's libraries that the bindings ask the loader for, all of them `stub.c`.
LIBRARIES = (
    *(
        f"lib{name}.so.{major}"
        for name in ("nvinfer", "nvinfer_plugin", "nvonnxparser")
        for major in (8, 10, 11)
    ),
    "libnvparsers.so.8",
    "libtensorrt_rtx.so.1",
    "libtensorrt_onnxparser_rtx.so.1",
)
#: The adapter: what runs beside the engine and touches its API.
ADAPTER = ("harness/agent/calibration.py", "harness/agent/engines/tensorrt")


@dataclass(frozen=True)
class Bindings:
    """One version: its name in tables, its engine, and the package that holds its bindings.

    `sources` says that there is no such package: the version is the `package`'s bindings without all that its public
    C++ sources do not define. `numpy` goes with the bindings: those up to 10.14 misread NumPy 2's arrays.
    """

    version: str
    engine: str
    package: str
    sources: str | None = None
    numpy: str = "numpy==2.2.6"

    @property
    def id(self) -> str:
        """Return the version as a word of tables and test names."""
        return f"{'rtx ' if self.engine == 'tensorrt_rtx' else ''}{self.version}"


def _rtx(version: str, exact: str) -> Bindings:
    return Bindings(version, "tensorrt_rtx", f"tensorrt-rtx-cu12-bindings=={exact}")


def _full(version: str, exact: str, numpy: str = Bindings.numpy) -> Bindings:
    return Bindings(version, "tensorrt", f"tensorrt-cu12-bindings=={exact}", numpy=numpy)


_OLDEST = "tensorrt-bindings==8.6.1"
_NUMPY_1 = "numpy==1.26.4"
VERSIONS = (
    Bindings("8.5", "tensorrt", _OLDEST, "8.5", _NUMPY_1),
    Bindings("8.6", "tensorrt", _OLDEST, None, _NUMPY_1),
    Bindings("9.2", "tensorrt", "tensorrt-cu12-bindings==10.0.1", "9.2", _NUMPY_1),
    _full("10.0", "10.0.1", _NUMPY_1),
    _full("10.1", "10.1.0", _NUMPY_1),
    _full("10.2", "10.2.0", _NUMPY_1),
    _full("10.3", "10.3.0", _NUMPY_1),
    _full("10.4", "10.4.0", _NUMPY_1),
    _full("10.6", "10.6.0", _NUMPY_1),
    _full("10.7", "10.7.0", _NUMPY_1),
    _full("10.9", "10.9.0.34", _NUMPY_1),
    _full("10.11", "10.11.0.33", _NUMPY_1),
    _full("10.12", "10.12.0.36", _NUMPY_1),
    _full("10.13", "10.13.3.9", _NUMPY_1),
    _full("10.14", "10.14.1.48.post1", _NUMPY_1),
    _full("10.16", "10.16.1.11"),
    _full("11.0", "11.0.0.114"),
    _full("11.1", "11.1.0.106"),
    _full("11.2", "11.2.1.2"),
    _full("11.3", "11.3.0.99"),
    _full("11.4", "11.4.0.106"),
    _rtx("1.4", "1.4.0.76"),
    _rtx("1.5", "1.5.0.114"),
    _rtx("1.6", "1.6.1.120"),
    _rtx("1.7", "1.7.1.116"),
)


def source_names(version: str) -> dict[str, Any]:
    """Return the names and arguments that the public sources of a version define (NVIDIA's, at its `source`)."""
    found: dict[str, Any] = json.loads(
        (HERE / "data" / f"sources-{version}.json").read_text(encoding="utf-8")
    )
    return found


def compile_stub(gcc: str, folder: Path) -> Path:
    """Compile `stub.c` into a folder, under every name by which bindings ask for it, and `own.so`, of nothing.

    Returns the folder.
    """
    library = folder / "stub.so"
    command = [gcc, "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC"]
    subprocess.run([*command, "-o", str(library), str(HERE / "stub.c")], check=True)
    subprocess.run([*command, "-o", str(folder / "own.so"), "-x", "c", os.devnull], check=True)
    for name in LIBRARIES:
        (folder / name).symlink_to(library.name)
    return folder


def adapter_files() -> list[Path]:
    """Return the adapter's files."""
    found: list[Path] = []
    for name in ADAPTER:
        path = ROOT / name
        found += sorted(path.glob("*.py")) if path.is_dir() else [path]
    return found


def probe(bindings: Bindings, scenarios: Sequence[Mapping[str, Any]], stub: Path) -> dict[str, Any]:
    """Run the scenarios on a version through the adapter; returns the probe's report.

    Raises AssertionError with what the process printed when it ends early, a crash included.
    """
    module = f"{bindings.engine}_bindings"
    order = {
        "module": module,
        "name": bindings.engine,
        "keep": source_names(bindings.sources)["names"] if bindings.sources else None,
        "scenarios": scenarios,
        "files": [str(path) for path in adapter_files()],
    }
    report = _ask(bindings, "tests.contract.probe", order, stub)
    for result in report["results"].values():
        if result["end"] == "crashed":
            result["detail"] += f"\n{report['stderr']}"
    return report


def run_files(bindings: Bindings, files: Sequence[Mapping[str, Any]], stub: Path) -> dict[str, Any]:
    """Run Python files on a version's bindings, each as a program of its own; returns what came of each by its name.

    Each has a `name`, a `text`, the `plugin` that it may load, and `answers` of the engine as a scenario has.
    """
    order = {
        "module": f"{bindings.engine}_bindings",
        "name": bindings.engine,
        "keep": source_names(bindings.sources)["names"] if bindings.sources else None,
        "files": files,
    }
    return dict(_ask(bindings, "tests.contract.probe.files", order, stub)["results"])


def _ask(bindings: Bindings, program: str, order: Mapping[str, Any], stub: Path) -> dict[str, Any]:
    paths = [str(installed(bindings.package)), str(installed(bindings.numpy)), str(ROOT)]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LD_LIBRARY_PATH": str(stub),
    }
    done = subprocess.run(
        [str(python_of_bindings()), "-m", program],
        cwd=stub,
        input=json.dumps(order),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{bindings.id}: exit code {done.returncode}\n{done.stderr[-4000:]}"
    return {**json.loads(done.stdout), "stderr": done.stderr[-4000:]}


def python_of_bindings() -> Path:
    """Return a Python of the version that the bindings are for."""
    if sys.version_info[:2] == tuple(int(part) for part in PYTHON.split(".")):
        return Path(sys.executable)
    folder = cache_dir() / "bindings" / f"python-{PYTHON}"
    make_once(folder, _make_python)
    return folder / "bin" / "python"


def _make_python(partial: Path) -> None:
    # Relocatable, as it is made under another name than it is used by.
    _uv("venv", "--relocatable", "--python", PYTHON, str(partial))


def installed(package: str) -> Path:
    """Return the folder with the bindings, installed once and without the gigabytes they would draw in."""
    folder = cache_dir() / "bindings" / f"{package.replace('==', '-')}-{PYTHON}"
    python = str(python_of_bindings())
    options = ("--no-deps", "--python", python, "--target")
    return make_once(folder, lambda partial: _uv("pip", "install", *options, str(partial), package))


def _uv(*arguments: str) -> None:
    command = [uv.find_uv_bin(), "--quiet", "--no-progress", *arguments]
    subprocess.run(command, check=True)
