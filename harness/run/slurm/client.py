"""Slurm's own commands: each one call, and InfraError where nobody answers."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

from harness.errors import HandledError, InfraError
from harness.run.slurm.parse import (
    QUEUE_FORMAT,
    End,
    Seen,
    complaint,
    is_silence,
    parse_accounting,
    parse_architectures,
    parse_job,
    parse_queue,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Seconds to wait for a command: they try again themselves while the controller does not answer.
_PATIENCE = 120.0
#: What sbatch exits with when it does not understand its options.
_MISUSED = 255


class Refused(Exception):
    """Slurm does not take a job, and says why."""


class Client:
    """Calls Slurm; `patience` is how many seconds one command may take."""

    def __init__(self, patience: float = _PATIENCE) -> None:
        self._patience = patience

    def architectures(self) -> dict[str, str]:
        """Return each node's architecture; raises HandledError where Slurm is not, InfraError where it is silent."""
        for program in ("sbatch", "squeue", "scontrol", "scancel"):
            if shutil.which(program) is None:
                raise HandledError(
                    f"--executor slurm needs Slurm's commands, and there is no {program} on the PATH; "
                    "run it where jobs are submitted, or leave --executor out to run here"
                )
        return parse_architectures(self._answered("scontrol", "show", "node", "--oneliner"))

    def submit(self, command: Sequence[str]) -> str:
        """Submit by an sbatch line that has `--parsable`; return the job's number, or raise Refused."""
        return self._sbatch(command).strip().partition(";")[0]

    def test(self, command: Sequence[str]) -> None:
        """Ask whether Slurm would take the job of an sbatch line; raises Refused where not."""
        self._sbatch([command[0], "--test-only", *command[1:]])

    def queue(self, name: str) -> dict[str, Seen]:
        """Return the jobs of a name, those too that have just ended."""
        # By name and not by number: a number that Slurm has forgotten already would be an error.
        words = ("--noheader", "--array", "--states=all", f"--name={name}", f"--format={QUEUE_FORMAT}")
        return parse_queue(self._answered("squeue", *words))

    def ended(self, job: str) -> End | None:
        """Return how a job ended, as far as Slurm still knows."""
        account = ["sacct", "--noheader", "--parsable2", "--allocations", f"--jobs={job}"]
        for words, parse in (
            (["scontrol", "show", "job", "--oneliner", job], parse_job),
            ([*account, "--format=State,ExitCode,NodeList,Reason"], parse_accounting),
        ):
            if shutil.which(words[0]) is not None:
                code, out, _ = self._run(*words)
                found = parse(out) if code == 0 else None
                if found is not None:
                    return found
        return None

    def cancel(self, name: str, jobs: Sequence[str] = ()) -> None:
        """Cancel the jobs of a name, or some of them."""
        self._answered("scancel", f"--name={name}", *jobs)

    def gone(self, name: str, seconds: float, every: float) -> bool:
        """Wait for the jobs of a name to end, for so many seconds; tell whether they have."""
        end = time.monotonic() + seconds
        while any(not seen.ended for seen in self.queue(name).values()):
            if time.monotonic() > end:
                return False
            time.sleep(every)
        return True

    def _sbatch(self, command: Sequence[str]) -> str:
        code, out, err = self._run(*command)
        if code == 0:
            return out
        said = complaint(err) or f"sbatch ended with exit code {code}"
        if is_silence(said):
            raise InfraError(f"Slurm does not answer: {said}")
        if code == _MISUSED:
            raise HandledError(
                f"sbatch does not understand {shlex.join(command[1:])}: {said}; correct `slurm` in matrix.yaml"
            )
        raise Refused(said)

    def _answered(self, *command: str) -> str:
        code, out, err = self._run(*command)
        if code != 0:
            raise InfraError(f"Slurm does not answer: {complaint(err) or f'{command[0]}: exit code {code}'}")
        return out

    def _run(self, *command: str) -> tuple[int, str, str]:
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=self._patience,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise InfraError(
                f"Slurm does not answer: {command[0]} took longer than {self._patience:g} s"
            ) from error
        except OSError as error:
            raise InfraError(f"{command[0]} cannot be started: {error.strerror}") from error
        return done.returncode, done.stdout, done.stderr
