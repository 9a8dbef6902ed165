"""`trt-compat`: a function a verb, which main.py lists.

Exit codes: 0 no regression, 1 regression, 2 a mistake in the command or in matrix.yaml, 3 infrastructure, a fault of
the harness, or no selected cell ran.
"""

from harness.cli.main import main

__all__ = ["main"]
