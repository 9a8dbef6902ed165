"""The Python interface: what the command line's `check` and `run` do, with results as frozen data.

    from harness import check, load_results, measure

    found = check("model.onnx", targets=["rtx16", "rtx17"])
    found["rtx16"].classification.cls, found["rtx16"].signature
    found.worse("rtx17", "rtx16")

Nothing is printed. A mistake raises `HandledError`, trouble of the machinery `InfraError`; what becomes of a model on a
target never raises: it is in the result.
"""

from harness.api.checked import Checked
from harness.api.checking import check
from harness.api.measuring import measure
from harness.errors import HandledError, InfraError
from harness.judge.findings import explain
from harness.matrix import Target, load_matrix
from harness.report.model import load_results

__all__ = [
    "Checked",
    "HandledError",
    "InfraError",
    "Target",
    "check",
    "explain",
    "load_matrix",
    "load_results",
    "measure",
]
