"""matrix.yaml -> the jobs of a nightly workflow: which target on which kind of runner; pure.

GitHub joins the labels of `runs-on` by AND and lets a job wait a day for a runner that does not exist. So jobs are made
for the GPU generations and Jetson Linux releases that the caller says it has, and for those alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.errors import HandledError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.matrix import Target

#: https://docs.github.com/en/actions/reference/limits: the jobs that one matrix may have.
MOST_JOBS = 256
#: GitHub's own runners, by architecture.
_HOSTED = {"x86_64": "ubuntu-24.04", "aarch64": "ubuntu-24.04-arm"}
_SELF_HOSTED = {"x86_64": "X64", "aarch64": "ARM64"}
#: Minutes for a job; GitHub ends a hosted one after 360 whatever is asked.
_MINUTES = 350
#: Minutes of them for setting up and for uploading what was recorded.
_AROUND = 20


@dataclass(frozen=True)
class Job:
    """One target on one kind of runner; `runs_on` are labels that the runner must have, all of them."""

    name: str
    target: str
    runs_on: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return an entry of the workflow's matrix."""
        return {
            "name": self.name,
            "target": self.target,
            "runs-on": list(self.runs_on),
            "timeout-minutes": _MINUTES,
            "run-minutes": _MINUTES - _AROUND,
        }


def jobs(
    targets: Iterable[Target], *, gpus: Sequence[str] = (), jetsons: Sequence[str] = ()
) -> tuple[Job, ...]:
    """Return the jobs for runners with GPUs of these compute capabilities and boards of these Jetson Linux releases.

    A target that needs no GPU runs on GitHub's own runners, and on a GPU besides where one fits. Self-hosted runners
    carry, beside GitHub's own labels, `gpu` and `sm-<capability>`, or `jetson` and `l4t-<release>`. Raises
    HandledError for more jobs than a matrix holds.
    """
    made = [job for target in targets for job in _jobs(target, gpus, jetsons)]
    if len(made) > MOST_JOBS:
        raise HandledError(
            f"{len(made)} jobs, and a GitHub matrix holds {MOST_JOBS}; select fewer with --target or give fewer --gpu"
        )
    return tuple(made)


def _jobs(target: Target, gpus: Sequence[str], jetsons: Sequence[str]) -> list[Job]:
    needs = target.needs
    base = ("self-hosted", "linux", _SELF_HOSTED[needs.architecture])
    if target.platform == "jetson":
        return [
            Job(f"{target.name} on Jetson Linux {release}", target.name, (*base, "jetson", f"l4t-{release}"))
            for release in jetsons
            if needs.l4t_fits(release)
        ]
    # What only builds without a GPU shows its numbers and its latency where there is one.
    made = [] if needs.gpu else [Job(target.name, target.name, (_HOSTED[needs.architecture],))]
    if not needs.compute_capability or needs.architecture != "x86_64":
        return made
    return made + [
        Job(f"{target.name} on SM {gpu}", target.name, (*base, "gpu", f"sm-{gpu}"))
        for gpu in gpus
        if needs.compute_capability_fits(gpu)
    ]
