"""`python -m harness`, which is `trt-compat` by another name."""

import sys
import traceback

try:
    from harness.cli import main
except Exception:  # noqa: BLE001  (whatever it is, Python's own exit code would be 1, which means a regression here)
    traceback.print_exc()
    print(
        f"infrastructure: {sys.executable} cannot load the harness; `make .venv/run.stamp` sets up one that can, "
        ".venv/bin/python",
        file=sys.stderr,
    )
    sys.exit(3)

sys.exit(main())
