"""The preflight of a target: what every cell needs, tried once in a child of its own before the first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.agent.cuda import advice_in
from harness.errors import InfraError
from harness.run.session import Job, job_memory_mib

if TYPE_CHECKING:
    from harness.matrix import Target
    from harness.run.session import Event, Session

#: Seconds: the first CUDA context on a machine, and the kernels that a builder loads, take tens of them.
TIMEOUT = 180.0
#: Characters kept of what a native library wrote.
_TAIL = 2000
#: Messages of an engine that say why something failed.
_ERRORS = ("ERROR", "INTERNAL_ERROR")


@dataclass
class Preflight:
    """What has been heard in one preflight; `facts` are what it found out."""

    facts: dict[str, str] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    _fault: str = ""
    _doing: str = ""
    _said: str = ""
    _native: str = ""
    _ended: str = "the preflight did not end"

    def hear(self, event: Event) -> None:
        """Take in one event."""
        message = event.message
        if event.type == "fact":
            self.facts.update(message["facts"])
        elif event.type == "phase_begin":
            self._doing = message["name"]
        elif event.type in ("agent_fault", "failed", "unavailable"):
            self.fault(message["text"])
        elif event.type == "message" and message["severity"] in _ERRORS:
            self._said = message["text"]
        elif event.type == "native":
            self._native = (self._native + message["text"])[-_TAIL:]
        elif event.type == "end":
            self._ended = _end(message)
        self.log.append(f"[preflight] {message}")

    def fault(self, sentence: str) -> None:
        """Note what failed, unless something did before."""
        self._fault = self._fault or sentence

    @property
    def trouble(self) -> str:
        """Return why no cell can run, "" where nothing was found."""
        if self._fault:
            return self._fault
        if not self._ended:
            return ""
        where = f" in the check of {self._doing}" if self._doing else ""
        said = self._said or next(reversed(self._native.strip().splitlines()), "")
        parts = (f"{self._ended}{where}", said, advice_in(said))
        return "; ".join(part for part in parts if part)


def preflight(target: Target, session: Session) -> Preflight:
    """Run a target's preflight and return what was heard; raises InfraError where the agent is lost."""
    heard = Preflight()
    for event in session.run(job(target)):
        try:
            heard.hear(event)
        except (KeyError, TypeError, ValueError) as error:
            raise InfraError(f"the agent's event {event.type!r} cannot be read: {error!r}") from error
    if not heard.trouble and target.needs.gpu and "gpu_uuid" not in heard.facts:
        heard.fault("it names no GPU, which the target needs")
    return heard


def job(target: Target) -> Job:
    """Return the job of a target's preflight."""
    return Job(
        "preflight",
        timeout_s=min(TIMEOUT, target.timeout_s),
        memory_mib=job_memory_mib(target),
        provider=target.provider,
        needs_gpu=bool(target.needs.gpu),
    )


def _end(message: dict[str, Any]) -> str:
    """Return how a child ended, "" where it finished."""
    if message["kind"] == "finished":
        return ""
    return str(message.get("detail") or message["kind"])
