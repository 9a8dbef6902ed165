"""Builds and reads engines on every version of TensorRT for RTX that runs here, and writes docs/reuse.json."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from harness.errors import HandledError
from harness.matrix import load_matrix
from harness.run.provision.host import look_at_host
from harness.run.provision.packages import venv
from tools.reuse.page import MEASURED

TOP = Path(__file__).resolve().parents[2]
TARGETS = ("rtx14", "rtx15", "rtx16", "rtx17")
_PROBE = Path(__file__).with_name("probe.py")


def main() -> int:
    """Measure, and write the file that the page is made of."""
    targets = {target.name: target for target in load_matrix(TOP / "matrix.yaml").targets}
    try:
        pythons = [venv(targets[name])[0] for name in TARGETS]
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            builders = [_run(python, "build", folder) for python in pythons]
            _spoil(folder)
            readers = [_run(python, "read", folder) for python in pythons]
    except HandledError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    gpus = sorted({gpu.name for gpu in look_at_host().gpus})
    found = {
        "when": datetime.now(timezone.utc).date().isoformat(),
        "gpus": gpus,
        "builders": builders,
        "readers": readers,
    }
    MEASURED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {MEASURED.relative_to(TOP)}; `make docs` makes the page of it")
    return 0


def _spoil(folder: Path) -> None:
    """Add what is no engine, or not a whole one."""
    whole = max(folder.glob("*-default.engine")).read_bytes()
    spoilt = {
        "nothing": b"",
        "a text": b"not an engine",
        "zeros": bytes(4096),
        "half": whole[: len(whole) // 2],
    }
    for name, data in spoilt.items():
        (folder / f"{name}.engine").write_bytes(data)


def _run(python: Path, what: str, folder: Path) -> dict[str, Any]:
    done = subprocess.run(
        [python, _PROBE, what, folder], capture_output=True, text=True, timeout=600, check=False
    )
    if done.returncode:
        raise HandledError(f"{python} ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


if __name__ == "__main__":
    sys.exit(main())
