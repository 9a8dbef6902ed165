"""What a test's process holds open."""

from __future__ import annotations

import contextlib
import gc
from collections import Counter
from pathlib import Path


def open_files() -> Counter[str]:
    """Return what each open file of this process is, those of forgotten objects closed.

    A test looks for what is new: what an earlier one left may be closed meanwhile.
    """
    gc.collect()
    found: Counter[str] = Counter()
    for path in Path("/proc/self/fd").iterdir():
        # The folder itself was open while it was listed.
        with contextlib.suppress(FileNotFoundError):
            found[str(path.readlink())] += 1
    return found
