"""A live agent for a target: its jobs, one at a time, and the preflight, in which each need of a cell is tried once."""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from harness.agent.bootstrap import pack
from harness.agent.protocol import (
    BODIES_LIMIT,
    BROKEN,
    GREETINGS,
    NO_JOB,
    OF_A_JOB,
    Decoder,
    Frame,
    FrameReader,
    ProtocolError,
    encode,
    join_parts,
)
from harness.errors import InfraError
from harness.matrix import Target
from harness.run.transport import AgentGoneError, ProcessTransport

#: Seconds for the interpreter to start and the engine's libraries to load; 5 s is usual for TensorRT, much more for
#: an emulated platform on a busy machine.
HELLO_TIMEOUT = 180.0
#: Seconds beyond a job's own time-out after which the agent, which enforces that time-out, is taken for lost.
GRACE = 20.0
#: Seconds after that in which an agent may still be read that does not fall silent: a busy machine reads slowly.
_BACKLOG = 180.0
_EXIT_WAIT = 2.0
#: The container's memory beside the job's child: the agent with the engine's libraries loaded.
_AGENT_MIB = 512
#: How the timed run is made; harness/agent/gpu.py explains each.
TIMING = {"warmup_s": 0.2, "iterations": 100, "window_s": 0.1, "most": 500, "budget_s": 10.0, "graph": True}


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
class Job:
    """A request to the agent for one child process, of the kind "preflight", "build" or "run".

    `provider` is ONNX Runtime's device, "cpu" or "cuda"; "" for the other engines. `needs_gpu`: a preflight
    fails without a GPU that works. Unless `timed` a run is neither timed nor profiled. `weights` is the folder,
    as the agent has it, of the weights beside the model; without `plan` the size of the engine alone is
    returned. `fresh` asks for a new child, and not for one that was kept; `keep` lets it live on for the next job.
    `plain` asks ONNX Runtime for its outputs without optimisations too. `graph` lets an engine be timed by a CUDA
    graph. `label` says whose job it is, on this side alone.
    """

    kind: str
    timeout_s: float
    memory_mib: int
    recipe: Mapping[str, Any] = field(default_factory=dict)
    compute_capability: str | None = None
    provider: str = ""
    needs_gpu: bool = False
    timed: bool = True
    graph: bool = True
    label: str = ""
    plain: bool = False
    weights: str = ""
    plan: bool = True
    fresh: bool = True
    keep: bool = False
    parts: tuple[tuple[str, bytes], ...] = ()

    def frame(self, job_id: bytes) -> bytes:
        """Return the job as one frame; all that is said of it is to have its id."""
        index, body = join_parts(self.parts)
        timing = {**TIMING, "graph": self.graph} if self.timed else None
        said = {**vars(self), "type": "job", "recipe": dict(self.recipe), "timing": timing, "parts": index}
        return encode(said, body, job_id)


def job_memory_mib(target: Target) -> int:
    """Return the memory that a child may take in the target's container, beside the agent."""
    return max(_AGENT_MIB, target.memory_mib - _AGENT_MIB)


class Session:
    """A live agent behind a transport.

    Starting it sends the agent's code and waits until the engine is loaded; `facts` are the agent's facts of
    engine, image and machine; `lost` turns True when the agent goes away. Raises InfraError when no agent comes up.
    """

    def __init__(
        self,
        transport: ProcessTransport,
        *,
        engine: str,
        adapter: str,
        extra: Mapping[str, bytes] | None = None,
        hello_timeout: float = HELLO_TIMEOUT,
    ) -> None:
        self._transport = transport
        self._decoder = Decoder(BODIES_LIMIT)
        self._frames: deque[Frame] = deque()
        self._limit_hit = False
        self.lost = False
        try:
            transport.send(pack(extra) + encode({"type": "start", "engine": engine, "adapter": adapter}))
        except AgentGoneError:
            raise self._lost("starting") from None
        deadline = time.monotonic() + hello_timeout
        try:
            hello = FrameReader(GREETINGS).read(self._next(NO_JOB, deadline, "loading the engine"))
        except ProtocolError as error:
            self.lost = True
            raise InfraError(f"the agent's greeting cannot be read: {error}{self._tail()}") from error
        if hello["type"] != "hello":
            raise InfraError(f"the engine does not load: {hello.get('error')}{self._tail()}")
        self.facts: dict[str, str] = hello["facts"]

    def run(self, job: Job) -> Iterator[Event]:
        """Run a job and yield the agent's events, up to and including the `end` event; raises AgentLost.

        Frames of another job are passed over. A frame that is not in the protocol's table, though it has the job's id,
        is the last that is heard of it but for an `end` that says so.
        """
        doing, job_id, broken = f"running a {job.kind} job", secrets.token_bytes(len(NO_JOB)), ""
        try:
            self._transport.send(job.frame(job_id))
        except AgentGoneError:
            raise self._lost(doing) from None
        deadline = time.monotonic() + job.timeout_s + GRACE
        reader = FrameReader(OF_A_JOB, preflight=job.kind == "preflight")
        while True:
            frame = self._next(job_id, deadline, doing)
            try:
                event = Event(reader.read(frame), frame.body)
            except ProtocolError as error:
                broken = broken or str(error)
                continue
            if event.type == "end":
                self._limit_hit = self._limit_hit or event.message["kind"] == "out_of_memory"
                yield _broken(event, broken) if broken else event
                return
            if not broken:
                yield event

    def close(self) -> None:
        """End the agent; bounded in time."""
        self._transport.close()

    def _next(self, job_id: bytes, deadline: float, doing: str) -> Frame:
        """Return the next frame of a job; those of another are passed over."""
        while True:
            while self._frames:
                frame = self._frames.popleft()
                if frame.job == job_id:
                    return frame
            try:
                data = self._transport.receive(max(0.0, deadline - time.monotonic()))
                if time.monotonic() > deadline + _BACKLOG:
                    raise TimeoutError  # noqa: TRY301  (as if it were silent)
            except TimeoutError:
                self.lost = True
                raise AgentLost(f"the agent did not answer in time while {doing}{self._tail()}") from None
            if not data:
                raise self._lost(doing)
            try:
                self._frames += self._decoder.feed(data)
            except ProtocolError as error:
                self.lost = True
                raise AgentLost(
                    f"the agent's stream is broken while {doing}: {error}{self._tail()}"
                ) from error

    def _lost(self, doing: str) -> AgentLost:
        self.lost = True
        # The stream ends a moment before the process does.
        patience = time.monotonic() + _EXIT_WAIT
        while (status := self._transport.exit_status()) is None and time.monotonic() < patience:
            time.sleep(0.01)
        how = f" ({status})" if status else ""
        # Docker's flag says that the limit was ever hit: once a job has hit it, it does not explain the agent's end.
        out_of_memory = bool(status and status.out_of_memory) and not self._limit_hit
        return AgentLost(f"the agent went away while {doing}{how}{self._tail()}", out_of_memory=out_of_memory)

    def _tail(self) -> str:
        tail = self._transport.stderr_tail().strip()
        return f"; it last said: {tail[-600:]}" if tail else ""


def _broken(end: Event, sentence: str) -> Event:
    kind = "exited" if end.message["kind"] == "finished" else end.message["kind"]
    return Event({**end.message, "kind": kind, "detail": BROKEN + sentence}, b"")
