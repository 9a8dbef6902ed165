"""Observes one cell: build job, then, where there is something to run on, the run job under the device's lock.

An engine that does nothing without a GPU tunes on it while it builds: so a build needs the GPU alone as well, or its
neighbours decide its tactics and it disturbs what they time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.run.gpus import alone_on, others_on
from harness.run.observation import Observation
from harness.run.session import AgentLost, Event, Job, Session, Timing, job_memory_mib

if TYPE_CHECKING:
    from harness.plan import Cell
    from harness.run.prepared import Prepared


def observe(  # noqa: PLR0913
    cell: Cell,
    ready: Prepared,
    session: Session,
    gpu: str | None,
    *,
    needed: Callable[[], bool],
    machine: str = "",
    weights: str = "",
) -> Observation:
    """Run one cell's jobs and return all that was heard.

    `weights` is the folder, as the agent has it, of what lies beside the model.
    `gpu` is the UUID of the device to run on, and `machine` whose it is; None where there is none: an engine that
    builds and runs in one job is run all the same; with any other the cell ends when the engine is built. A cell waits
    for its device as long as `needed` says so. An agent that was killed at the container's memory limit is the cell's
    own out-of-memory; any other loss of the agent raises AgentLost.
    """
    seen = Observation()
    model, libraries = ("model", ready.model), ready.wire_libraries()
    try:
        if not cell.target.traits.builds_apart:
            kind = "build" if ready.unfed else "run"
            with _alone(gpu or "cpu", seen, needed, machine):
                job = _job(kind, cell, model, *ready.wire_inputs(), timed=ready.timed)
                seen.hear(session.run(replace(job, weights=weights)))
            return seen
        # A build feeds nothing but a calibrator; how an engine answers an odd input shows without values for it.
        fed = ready.wire_calibration() if cell.variant.recipe.calibrator else ()
        tunes = gpu is not None and cell.target.traits.needs_gpu
        with alone_on(str(gpu), needed, machine) if tunes else contextlib.nullcontext():
            # Without a GPU nobody loads the engine: one of gigabytes stays where it is.
            runs = gpu is not None and not ready.unfed
            job = _calibrated(_job("build", cell, model, *libraries, *fed), ready)
            seen.hear(session.run(replace(job, weights=weights, plan=runs or not weights)))
        if seen.succeeded and seen.plan is not None and gpu is not None and runs:
            plan = ("plan", seen.plan)
            with _alone(gpu, seen, needed, machine):
                parts = (plan, *libraries, *ready.wire_inputs())
                seen.hear(session.run(_job("run", cell, *parts, timed=ready.timed)))
    except AgentLost as error:
        if not error.out_of_memory:
            raise
        seen.hear([_killed_with_its_agent(error)])
    return seen


@contextlib.contextmanager
def _alone(device: str, seen: Observation, needed: Callable[[], bool], machine: str) -> Iterator[None]:
    """Hold a device for a timed run, and note who else is on it, before and after."""
    with alone_on(device, needed, machine):
        before = "" if device == "cpu" else others_on(device, machine)
        yield
        seen.note_others(before, "" if device == "cpu" else others_on(device, machine))


def _killed_with_its_agent(error: AgentLost) -> Event:
    """Return the end that the agent did not live to report."""
    message = {"type": "end", "kind": "out_of_memory", "detail": str(error), "peak_rss_bytes": None}
    return Event(message, b"")


def _calibrated(job: Job, ready: Prepared) -> Job:
    """Return a job whose calibrator takes a variant's own batches, where it has any."""
    if not ready.calibration:
        return job
    own = {"data": "own", "batches": len(next(iter(ready.calibration.values())))}
    return replace(job, recipe={**job.recipe, "calibrator": {**job.recipe["calibrator"], **own}})


def _job(kind: str, cell: Cell, *parts: tuple[str, bytes], timed: bool = True) -> Job:
    target = cell.target
    return Job(
        kind=kind,
        timeout_s=target.timeout_s,
        memory_mib=job_memory_mib(target),
        recipe=cell.variant.recipe.as_dict(),
        compute_capability=target.compute_capability,
        provider=target.provider,
        timing=Timing() if timed else None,
        parts=parts,
    )
