"""`python -m harness`, and `trt-compat`: loading takes a second, and an interrupt in it has no traceback."""

import gc
import signal
import sys
import traceback

#: New objects between two searches for garbage: with Python's own number, a thousand or so, loading takes a tenth
#: longer, and the records of a whole run a third longer to read.
_GARBAGE = 1_000_000


def start() -> int:
    """Load the command line and run it; return the exit code."""
    gc.set_threshold(_GARBAGE)
    try:
        from harness.cli import main  # noqa: PLC0415

        return main()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
    except Exception:  # noqa: BLE001  (whatever it is, Python's own exit code would be 1, which means a regression here)
        traceback.print_exc()
        print(
            f"infrastructure: {sys.executable} cannot load the harness; `make .venv/run.stamp` sets up one that can, "
            ".venv/bin/python",
            file=sys.stderr,
        )
        return 3


if __name__ == "__main__":
    sys.exit(start())
