"""`trt-compat`: run, list, show, doctor, report, diff, accept, pack, merge, verify, ci-matrix.

Exit codes: 0 no regression, 1 regression, 2 a mistake in the command or in matrix.yaml, 3 infrastructure or a fault of
the harness.
"""

from harness.cli.main import main

__all__ = ["main"]
