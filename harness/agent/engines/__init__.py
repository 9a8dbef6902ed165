"""The only modules that import an engine: each has `preload(engine) -> facts` and `run(job, body, emit)`.

`preload` runs once in the agent, `run` in a child for each job. A job reports by `emit(kind, body=b"", **fields)`:
`phase_begin` (name), `phase` (name, seconds, ok), `message` (severity, text), `parser_error`, `missing_api` (name),
`unavailable` (text), `failed` (text), `agent_fault` (text: a failure of this program or of the machine, not the
engine's), `plan`, `calibration_cache`, `layers`, `layer_times`, `output` (name, dtype, shape; dtype "" of
one that is not compared), `latency`, `fact`.
"""

import contextlib
import os
import platform
import time
from typing import Any, Callable, Dict, Iterator

Emit = Callable[..., None]


class Failed(Exception):
    """The engine refused; the messages say why."""


class MissingApi(Failed):
    """The recipe asks for something that this version does not have; `name` is its exact name."""

    def __init__(self, name: str) -> None:
        Failed.__init__(self, "%s does not exist in this version" % name)
        self.name = name


class MachineFault(Exception):
    """The machine lacks something that every cell needs; the text names it and the remedy."""


class MissingNeed(Exception):
    """This environment lacks something that is no part of the engine; the text says "needs ..."."""


def said(call: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a call of an engine; an exception of it or of CUDA becomes Failed, in its own words."""
    try:
        return call(*arguments)
    except (Failed, MachineFault, MissingNeed):
        raise
    except Exception as error:
        raise Failed("%s: %s" % (type(error).__name__, error)) from error


@contextlib.contextmanager
def phase(emit: Emit, name: str) -> Iterator[None]:
    """Time a phase and report it, also when it fails."""
    emit("phase_begin", name=name)
    start = time.monotonic()
    try:
        yield
    except Exception:
        emit("phase", name=name, seconds=time.monotonic() - start, ok=False)
        raise
    emit("phase", name=name, seconds=time.monotonic() - start, ok=True)


def report_failure(emit: Emit, work: Callable[[], object]) -> None:
    """Run `work`; an engine's refusal becomes events, anything else is a fault of the agent and ends the child."""
    try:
        work()
    except MissingApi as error:
        emit("missing_api", name=error.name)
    except MissingNeed as error:
        emit("unavailable", text=str(error))
    except MachineFault as error:
        emit("agent_fault", text=str(error))
    except Failed as error:
        emit("failed", text=str(error))


def machine_facts() -> Dict[str, str]:
    """Return the facts of the machine that need no engine."""
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()),
        "kernel": platform.release(),
        "cpu": _cpu_model(),
        "cpus": str(len(os.sched_getaffinity(0))),
    }


def _cpu_model() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith(("model name", "Model")):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor()
