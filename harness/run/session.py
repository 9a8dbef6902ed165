"""Host side of the agent: one live agent for a target, one job at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.agent.bootstrap import pack
from harness.agent.protocol import Decoder, ProtocolError, encode, join_parts
from harness.errors import InfraError
from harness.run.transport import AgentGoneError

if TYPE_CHECKING:
    from harness.matrix import Target
    from harness.run.transport import Transport

#: Seconds for the interpreter to start and the engine's libraries to load; 5 s is usual for TensorRT, much more for
#: an emulated platform on a busy machine.
HELLO_TIMEOUT = 180.0
#: Seconds beyond a job's own time-out after which the agent, which enforces that time-out, is taken for lost.
GRACE = 20.0
_EXIT_WAIT = 2.0
#: What the container holds beside the job's child: the agent with the engine's libraries loaded.
_AGENT_MIB = 512


class AgentLost(InfraError):
    """The agent went away during a job; `out_of_memory` when the container's limit took it."""

    def __init__(self, text: str, *, out_of_memory: bool = False) -> None:
        super().__init__(text)
        self.out_of_memory = out_of_memory


class Event(NamedTuple):
    """One thing the agent said: a message with its `type`, and raw bytes."""

    message: dict[str, Any]
    body: bytes

    @property
    def type(self) -> str:
        """Return the kind of event."""
        return str(self.message["type"])


@dataclass(frozen=True)
class Timing:
    """How the timed run is made.

    `warmup_s` seconds of warm-up, then at least `iterations` samples and `window_s` seconds of them; at most `most`
    samples and `budget_s` seconds, whichever comes first.
    """

    warmup_s: float = 0.2
    iterations: int = 100
    window_s: float = 0.1
    most: int = 500
    budget_s: float = 10.0


@dataclass(frozen=True)
class Job:
    """What the agent is asked to do in one child process: "preflight", "build" or "run".

    `provider` is where ONNX Runtime is to run, "cpu" or "cuda"; "" for the other engines. `needs_gpu`: a preflight
    fails without a GPU that works.
    """

    kind: str
    timeout_s: float
    memory_mib: int
    recipe: Mapping[str, Any] = field(default_factory=dict)
    compute_capability: str | None = None
    provider: str = ""
    needs_gpu: bool = False
    timing: Timing = field(default_factory=Timing)
    parts: tuple[tuple[str, bytes], ...] = ()

    def frame(self) -> bytes:
        """Return the job as one frame."""
        index, body = join_parts(self.parts)
        message = {
            "type": "job",
            "kind": self.kind,
            "timeout_s": self.timeout_s,
            "memory_mib": self.memory_mib,
            "recipe": dict(self.recipe),
            "compute_capability": self.compute_capability,
            "provider": self.provider,
            "needs_gpu": self.needs_gpu,
            "timing": vars(self.timing),
            "parts": index,
        }
        return encode(message, body)


def job_memory_mib(target: Target) -> int:
    """Return the memory that a child may take in the target's container, beside the agent."""
    return max(_AGENT_MIB, target.memory_mib - _AGENT_MIB)


def _facts(said: object) -> dict[str, str]:
    if not isinstance(said, dict) or not all(isinstance(value, str) for value in said.values()):
        raise InfraError(f"the agent's facts cannot be read: {said!r:.200}")
    return said


class Session:
    """A live agent behind a transport.

    Starting it sends the agent's code and waits until the engine is loaded; `facts` is what the agent then says of
    engine, image and machine; `lost` turns True when the agent goes away. Raises InfraError when no agent comes up.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        engine: str,
        adapter: str,
        extra: Mapping[str, bytes] | None = None,
        hello_timeout: float = HELLO_TIMEOUT,
    ) -> None:
        self._transport = transport
        self._decoder = Decoder()
        self._events: list[Event] = []
        self._limit_hit = False
        self.lost = False
        try:
            transport.send(pack(extra) + encode({"type": "start", "engine": engine, "adapter": adapter}))
        except AgentGoneError:
            raise self._lost("starting") from None
        hello = self._next(time.monotonic() + hello_timeout, "loading the engine")
        if hello.type != "hello":
            raise InfraError(f"the engine does not load: {hello.message.get('error')}{self._tail()}")
        self.facts = _facts(hello.message.get("facts"))

    def run(self, job: Job) -> Iterator[Event]:
        """Run a job and yield what the agent says, up to and including the `end` event; raises AgentLost."""
        doing = f"running a {job.kind} job"
        try:
            self._transport.send(job.frame())
        except AgentGoneError:
            raise self._lost(doing) from None
        deadline = time.monotonic() + job.timeout_s + GRACE
        while True:
            event = self._next(deadline, doing)
            if event.type == "end":
                self._limit_hit = self._limit_hit or event.message.get("kind") == "out_of_memory"
            yield event
            if event.type == "end":
                return

    def close(self) -> None:
        """End the agent; bounded in time."""
        self._transport.close()

    def _next(self, deadline: float, doing: str) -> Event:
        while not self._events:
            try:
                data = self._transport.receive(max(0.0, deadline - time.monotonic()))
            except TimeoutError:
                self.lost = True
                raise AgentLost(f"the agent did not answer in time while {doing}{self._tail()}") from None
            if not data:
                raise self._lost(doing)
            try:
                self._events += [Event(*frame) for frame in self._decoder.feed(data)]
            except ProtocolError as error:
                self.lost = True
                raise AgentLost(
                    f"the agent's stream is broken while {doing}: {error}{self._tail()}"
                ) from error
        return self._events.pop(0)

    def _lost(self, doing: str) -> AgentLost:
        self.lost = True
        # The stream ends a moment before the process does.
        patience = time.monotonic() + _EXIT_WAIT
        while (status := self._transport.exit_status()) is None and time.monotonic() < patience:
            time.sleep(0.01)
        how = f" ({status})" if status else ""
        # Docker's flag says that the limit was ever hit: once a job has hit it, it says nothing of the agent's end.
        out_of_memory = bool(status and status.out_of_memory) and not self._limit_hit
        return AgentLost(f"the agent went away while {doing}{how}{self._tail()}", out_of_memory=out_of_memory)

    def _tail(self) -> str:
        tail = self._transport.stderr_tail().strip()
        return f"; it last said: {tail[-600:]}" if tail else ""
