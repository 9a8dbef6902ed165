"""Runs the harness in this process and writes where its CPU time went: `... benchmarks.suite.profiled FILE run ...`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.suite.running import DONE, fresh, ran
from benchmarks.suite.sampling import Samples, table

if TYPE_CHECKING:
    from benchmarks.suite.running import Setting


def profile(setting: Setting) -> str:
    """Return a table of what the host spends its time on in a whole run of (a), with a worker a core."""
    folder = setting.folder()
    file = folder / "samples.json"
    words = [sys.executable, "-m", "benchmarks.suite.profiled", str(file), "run", "--via", "venv"]
    ran(
        [*words, "--reports", str(folder), *fresh(), "-j", str(setting.cores), *setting.selection],
        accepted=DONE,
    )
    return table(json.loads(file.read_text(encoding="utf-8")))


def main() -> int:
    """Run the command, and write the samples whatever came of it."""
    samples = Samples()
    samples.start()
    try:
        from harness.cli import main as run_harness  # noqa: PLC0415  (its imports are part of what is looked at)

        return run_harness(sys.argv[2:])
    finally:
        samples.stop()
        Path(sys.argv[1]).write_text(json.dumps(samples.to_json()), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
