"""What the Python bindings of each version offer: installed from the package index, imported over a stub."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from packaging.version import Version

from tests.contract.bindings import installed, python_of_bindings
from tools.interface.table import Fact, Listing

DUMP = Path(__file__).with_name("dump.py")
#: The bindings by the version that users name. Of 8.6 on the index keeps one package, of 9 none.
PACKAGES = (
    "tensorrt-bindings==8.6.1",
    *(
        f"tensorrt-cu12-bindings=={each}"
        for each in (
            "10.0.1", "10.1.0", "10.2.0", "10.3.0", "10.4.0", "10.5.0", "10.6.0", "10.7.0", "10.8.0.43", "10.9.0.34",
            "10.10.0.31", "10.11.0.33", "10.12.0.36", "10.13.0.35", "10.13.2.6", "10.13.3.9", "10.14.1.48.post1",
            "10.15.1.29", "10.16.0.72", "10.16.1.11", "11.0.0.114", "11.1.0.106", "11.2.1.2", "11.3.0.99", "11.4.0.106",
        )
    ),
)  # fmt: skip


def version_of(package: str) -> str:
    """Return the version that a package is of, in three numbers."""
    return ".".join(str(part) for part in Version(package.partition("==")[2]).release[:3])


def bindings(package: str, stub: Path) -> Listing:
    """Return what the bindings of a package offer."""
    numpy = "numpy==1.26.4" if Version(version_of(package)) < Version("10.15") else "numpy==2.2.6"
    paths: Sequence[Path] = (installed(package), installed(numpy))
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LD_LIBRARY_PATH": str(stub),
    }
    command = [str(python_of_bindings()), str(DUMP), "tensorrt_bindings"]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return {
        name: Fact(
            tuple(each.get("arguments", ())),
            each.get("returns", "") if each["kind"] != "value" else "",
            tuple(each.get("bases", ())),
            f"{each['note']} (docstring)" if each["note"] else "",
        )
        for name, each in json.loads(done.stdout.splitlines()[-1]).items()
    }
