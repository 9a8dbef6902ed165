"""Compiles the plugin and the registry that stands for libnvinfer, against real TensorRT headers.

COMPAT_TRT_HEADERS names a folder with one folder of headers a version, such as 8.5/NvInfer.h; docker/README.md says
where they come from. CUDA's header is that of tests/docker/stub/.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import needs

VARIABLE = "COMPAT_TRT_HEADERS"
HERE = Path(__file__).parent
PLUGIN = HERE.parents[1] / "docker" / "plugin"
CUDA_STUB = HERE / "stub"
#: As docker/plugin/build.sh has them, but that a warning is an error.
FLAGS = (
    *("-std=c++17", "-fPIC", "-shared", "-fvisibility=hidden"),
    *("-Wall", "-Wextra", "-Werror", "-Wno-deprecated-declarations"),
)
Version = tuple[int, ...]

#: DataType and TensorFormat of the first input by their numbers in every version's header.
FLOAT_LINEAR, INT8_LINEAR, INT8_CHW4, INT8_CHW32 = [0, 0], [2, 0], [2, 3], [2, 5]


def header_folders() -> list[Path]:
    """Return the folders of headers, one a version, in the order of the versions."""
    named = os.environ.get(VARIABLE)
    found = Path(named).glob("*/NvInferRuntime.h") if named else ()
    return sorted((path.parent for path in found), key=header_version)


def header_version(folder: Path) -> Version:
    """Return what the headers say of their version, not what their folder is called."""
    text = (folder / "NvInferVersion.h").read_text(encoding="utf-8")
    # From 10.16 on NV_TENSORRT_MAJOR is defined as another name, which is defined as the number.
    defined = dict(re.findall(r"#define (\w+) +(\w+)", text))
    numbers = (defined[f"NV_TENSORRT_{part}"] for part in ("MAJOR", "MINOR", "PATCH", "BUILD"))
    return tuple(int(defined.get(number, number)) for number in numbers)


def each_version() -> list[Any]:
    """Return the versions as test parameters; one that skips, and says why, where there are none."""
    why = f"{VARIABLE} names no folder of TensorRT headers"
    found = [pytest.param(folder, id=folder.name) for folder in header_folders()]
    return found or [pytest.param(None, id="none", marks=pytest.mark.skip(reason=why))]


def run(command: list[str], **environment: str) -> str:
    """Run a command and return what it printed; the test fails, with that, where the command does."""
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


@dataclass(frozen=True)
class Built:
    """A folder with libnvinfer and its sister libraries, all of them the registry, and the plugin."""

    folder: Path

    def drive(self, script: str, *arguments: str, **environment: str) -> Any:
        """Run a script of tests/docker in a process of its own and return the JSON that it prints."""
        command = [sys.executable, str(HERE / script), str(self.folder), *arguments]
        return json.loads(run(command, LD_LIBRARY_PATH=str(self.folder), **environment))


def compile_all(headers: Path, folder: Path) -> Built:
    """Compile the registry and the plugin against one version's headers, with every symbol resolved.

    A warning fails the test.
    """
    needs.program("g++")
    includes = ["-isystem", str(headers), "-isystem", str(CUDA_STUB)]
    major = header_version(headers)[0]
    absent = folder / "absent.o"
    run(["g++", "-x", "c", "-c", "-fPIC", str(HERE / "absent.c"), "-o", str(absent)])
    registry = folder / "libnvinfer.so"
    soname = f"-Wl,-soname,libnvinfer.so.{major}"
    run(["g++", *FLAGS, *includes, str(HERE / "registry.cpp"), str(absent), soname, "-o", str(registry)])
    for name in ("nvinfer", "nvinfer_plugin", "nvonnxparser"):
        (folder / f"lib{name}.so.{major}").symlink_to(registry)
    source = str(PLUGIN / "compat_identity.cpp")
    link = ["-Wl,-z,defs", f"-L{folder}", "-lnvinfer"]
    run(["g++", *FLAGS, "-O2", *includes, source, *link, "-o", str(folder / "libcompat_identity.so")])
    return Built(folder)
