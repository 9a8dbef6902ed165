"""matrix.yaml as frozen data: `load_matrix`, `Matrix`, `Target`, `versions_agree`."""

from harness.matrix.load import load_matrix
from harness.matrix.model import (
    Build,
    Matrix,
    Needs,
    Platform,
    Slurm,
    Source,
    Target,
    versions_agree,
)

__all__ = [
    "Build",
    "Matrix",
    "Needs",
    "Platform",
    "Slurm",
    "Source",
    "Target",
    "load_matrix",
    "versions_agree",
]
