"""How tests wait: for the event itself, and so long that on a busy machine only a missing event is given up."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Seconds until something that must happen is taken for never to happen.
PATIENCE = 300
#: Seconds until a test is taken for hanging, and one that starts no program.
HANGS, UNIT_HANGS = 600, 120


def wait_for(condition: Callable[[], bool]) -> bool:
    """Wait until a condition holds; tell whether it did."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
