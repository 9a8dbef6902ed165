"""Runs cells on a Slurm cluster: the one folder that knows Slurm."""

from harness.run.slurm.executor import PYTHON_VARIABLE, SlurmExecutor

__all__ = ["PYTHON_VARIABLE", "SlurmExecutor"]
