"""Sets the rig up in a folder and runs the command line on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.run.provision.cache import CACHE_VARIABLE
from harness.run.provision.prepare import PYTHON_VARIABLE
from tests import needs
from tests.contract import bindings
from tests.contract.bindings import Bindings
from tests.waiting import HANGS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
GPUS = ("GPU-11111111-1111-1111-1111-111111111111", "GPU-22222222-2222-2222-2222-222222222222")
_NAME = "NVIDIA H100 80GB HBM3"
_NVIDIA_SMI = """#!/bin/sh
case "$*" in
*query-compute-apps*) cat {folder}/apps.csv ;;
*) cat {folder}/gpus.csv ;;
esac
"""
_CASE = """
import onnx
from harness.case import Calibrator, Case, Graph, Link, Recipe, Typing, Variant
def build():
    graph = Graph("relu")
    graph.node("Relu", [graph.input("x", [1, 2])], name="relu", output="y")
    graph.output("y", [1, 2])
    return graph.model()
CASE = Case(
    "rig", "rig", "the graph that the engine of the rig runs", (Link("https://github.com/NVIDIA/TensorRT/issues/1"),),
    (
        Variant("plain", "plain", build, Recipe()),
        *(Variant(f"again{{each}}", "again", build, Recipe(flags=("FP16",))) for each in range({again})),
    ),
)
"""


@dataclass
class Rig:
    """A machine in a folder: `gpus` of `uuids` with a driver, and the faults to make.

    `fails` are lines of `cuda.c`'s file, `null` a factory of the library, `answers` what the wrapper says by
    "Class.member" instead ("crash" ends the process there), `neighbours` the lines of other processes on the GPUs,
    `again` the variants beside the first.
    """

    folder: Path
    version: Bindings
    gpus: int = 1
    driver: str = "580.159.03"
    targets: tuple[str, ...] = ("rig",)
    fails: tuple[str, ...] = ()
    null: str = ""
    answers: dict[str, Any] = field(default_factory=dict)
    libcuda: bool = True
    neighbours: tuple[str, ...] = ()
    uuids: tuple[str, ...] = GPUS
    again: int = 1

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `trt-compat run` on the rig's case and targets."""
        self.write()
        places = ["--matrix", "matrix.yaml", "--cases", "cases", "--reports", "reports"]
        return self.harness("run", "--via", "venv", *places, *arguments)

    def harness(
        self, *words: str, top: Path = ROOT, cwd: Path | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run `trt-compat` of the checkout `top` on the rig's machine as it was last written."""
        return subprocess.run(
            [sys.executable, "-m", "harness", *words],
            cwd=cwd or self.folder,
            env={**os.environ, **self._environment(), "PYTHONPATH": str(top), **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=HANGS,
        )

    def cells(self) -> dict[str, dict[str, Any]]:
        """Return the cells of the report by id."""
        results = json.loads((self.folder / "reports" / "results.json").read_text(encoding="utf-8"))
        return {cell["id"]: cell for cell in results["cells"]}

    def held(self) -> list[tuple[str, str, float, float]]:
        """Return who held which GPU from when to when: (uuid, pid, from, to), in the order taken."""
        began: dict[tuple[str, str], float] = {}
        found = []
        for line in (self.folder / "lib" / "held").read_text(encoding="ascii").splitlines():
            sign, uuid, pid, when = line.split()
            if sign == "+":
                began.setdefault((uuid, pid), float(when))
            else:
                found.append((uuid, pid, began.pop((uuid, pid)), float(when)))
        assert not began, "a process ended without giving its GPU back"
        return sorted(found, key=lambda each: each[2])

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "LD_LIBRARY_PATH": str(self.folder / "lib"),
            "DOCKER_HOST": "unix:///nonexistent/docker.sock",
            PYTHON_VARIABLE: str(self.folder / "python" / "bin" / "python"),
            CACHE_VARIABLE: str(self.folder / "cache"),
        }

    def write(self) -> None:
        """Make the machine as the fields say."""
        lib, binary = self.folder / "lib", self.folder / "bin"
        if not lib.exists():
            gcc = needs.program("gcc")
            lib.mkdir()
            bindings.compile_stub(gcc, lib)
            command = ["gcc", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-o"]
            if self.libcuda:
                subprocess.run(
                    [*command, str(lib / "libcuda.so.1"), str(HERE / "cuda.c"), "-ldl"], check=True
                )
            self._make_python()
            binary.mkdir()
            (binary / "nvidia-smi").write_text(_NVIDIA_SMI.format(folder=self.folder), encoding="ascii")
            (binary / "nvidia-smi").chmod(0o755)
        every = self.uuids[: self.gpus]
        files = {
            "gpus.csv": [f"{_NAME}, {uuid}, 9.0, {self.driver}, 81559" for uuid in every],
            "apps.csv": self.neighbours,
            "lib/devices": [f"{uuid} 9.0 {_NAME}" for uuid in every],
            "lib/fails": self.fails,
        }
        for name, lines in files.items():
            (self.folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
        order = {"null": self.null, "answers": self.answers}
        (lib / "rig.json").write_text(json.dumps(order), encoding="ascii")
        (self.folder / "cases").mkdir(exist_ok=True)
        (self.folder / "cases" / "rig.py").write_text(_CASE.format(again=self.again), encoding="utf-8")
        (self.folder / "matrix.yaml").write_text(json.dumps(self._matrix()), encoding="utf-8")

    def _matrix(self) -> dict[str, Any]:
        exact = self.version.package.partition("==")[2]
        target = {
            "engine": "tensorrt",
            "version": exact,
            "image": "nvcr.io/nvidia/tensorrt:24.09-py3",
            "packages": [f"tensorrt=={exact}"],
            "needs": {},
        }
        return {"schema": 1, "targets": dict.fromkeys(self.targets, target)}

    def _make_python(self) -> None:
        """Make an interpreter that holds the bindings, and the shim under the name of the package."""
        python = self.folder / "python"
        subprocess.run(
            [str(bindings.python_of_bindings()), "-m", "venv", "--without-pip", str(python)], check=True
        )
        site = next(python.glob("lib/python*/site-packages"))
        exact = self.version.package.partition("==")[2]
        (site / "tensorrt.py").write_text(
            "from tests.rig.shim import install\ninstall(__name__)\n", encoding="ascii"
        )
        info = site / f"tensorrt-{exact}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: tensorrt\nVersion: {exact}\n", encoding="ascii"
        )
        paths = [str(bindings.installed(self.version.package)), str(bindings.installed(self.version.numpy))]
        (site / "rig.pth").write_text("\n".join([*paths, str(ROOT)]) + "\n", encoding="utf-8")
