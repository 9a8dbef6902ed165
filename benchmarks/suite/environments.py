"""(g) Making a target's virtual environment: with nothing there, with its packages downloaded, and once it is made.

As a program it makes those of the targets that it is given, and prints the seconds that each took.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from typing import TYPE_CHECKING

from benchmarks.suite.figures import Figure, Section
from benchmarks.suite.running import ROOT, ran
from harness.matrix import load_matrix
from harness.run.provision import prepare
from harness.run.provision.cache import CACHE_VARIABLE

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.suite.running import Setting

TITLE = "environment of rtx17"
#: Where the packages lie and the lines to the index are warm is for this suite to say.
_OWN = ("UV_CACHE_DIR", "UV_PYTHON_INSTALL_DIR")


def measure(setting: Setting) -> Section:
    """Make the environment in a cache folder of its own: three times in each round."""
    cold, downloaded, warm = [], [], []
    for _ in setting.rounds("g"):
        cache = setting.folder()
        cold.append(_made(cache))
        shutil.rmtree(cache / "venvs")
        downloaded.append(_made(cache))
        warm.append(_made(cache))
        # Several hundred MB each.
        shutil.rmtree(cache)
    return Section(
        "g",
        TITLE,
        (
            Figure(f"{TITLE}, cold: downloads too", "s", tuple(cold)),
            Figure(f"{TITLE}, packages downloaded", "s", tuple(downloaded)),
            Figure(f"{TITLE}, warm", "s", tuple(warm)),
        ),
        notes=("what is cold downloads from the package index: its seconds are those of the line to it.",),
    )


def _made(cache: Path) -> float:
    own = {name: str(cache / name.lower()) for name in _OWN}
    done = ran(
        [sys.executable, "-m", "benchmarks.suite.environments", "rtx17"],
        environment={CACHE_VARIABLE: str(cache), **own},
    )
    (seconds,) = json.loads(done.said.splitlines()[-1])
    return float(seconds)


def main() -> None:
    """Make the environments and print a list of seconds."""
    matrix = load_matrix(ROOT / "matrix.yaml")
    took = []
    for name in sys.argv[1:]:
        start = time.monotonic()
        prepare(matrix.target(name), "venv")
        took.append(time.monotonic() - start)
    print(json.dumps(took))


if __name__ == "__main__":
    main()
