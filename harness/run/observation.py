"""Observes one cell: its jobs, and the fold of the agent's events into its record.

The build job comes first, then, with a device, the run job, which has the device alone. An engine that needs a GPU
tunes on it while it builds: beside other builds, and never beside a timed run.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from harness.agent.cuda import advice_in
from harness.agent.protocol import BROKEN
from harness.layers.parse import LayerReport, Source, parse_layers
from harness.layers.tactics import tactics_of
from harness.matrix import Target
from harness.plan import Cell
from harness.record.outcome import (
    LEFT_OUT,
    OTHERS,
    Accuracy,
    End,
    Latency,
    Message,
    Outcome,
    ParserError,
    Stamps,
    State,
    entry,
)
from harness.run.gpus import Device, others_on
from harness.run.numbers.reference import Reference, compare
from harness.run.numbers.wire import Array, from_wire
from harness.run.prepared import Prepared
from harness.run.rounds import Wait
from harness.run.session import AgentLost, Event, Job, Session, job_memory_mib


@dataclass(frozen=True)
class Turn:
    """How a cell's jobs share processes and the GPU with others.

    `fresh` gives it a new child, and `keep` leaves its child to the next cell; without `keep` each of its jobs has a
    child of its own. `alone` builds with no build beside. Without `graph` no CUDA graph of the engine is made.
    """

    fresh: bool = True
    keep: bool = False
    alone: bool = False
    graph: bool = True


def observe(  # noqa: PLR0913
    cell: Cell,
    ready: Prepared,
    run: Callable[[Job], Iterator[Event]],
    gpu: Device | None,
    turn: Turn,
    *,
    cpu: Device,
    weights: str = "",
) -> Generator[Wait | None, None, Observation]:
    """Take one cell through its jobs by `run`, in steps (harness/run/rounds.py); returns their observation.

    `weights` is the folder, as the agent has it, of the weights beside the model.
    `gpu` is the device to run on, or None: an engine that builds and runs in one job is run all the
    same, on `cpu`; with any other the cell ends when the engine is built. An agent that was killed at the container's
    memory limit is the cell's own out-of-memory; any other loss of the agent raises AgentLost.
    """
    seen = Observation()
    jobs = _Jobs(cell, ready, turn, weights)
    try:
        if not cell.target.traits.builds_apart:
            yield from _alone(gpu or cpu, seen, run, jobs.whole(), soon=True)
            return seen
        # Without a GPU the engine is not loaded: one of gigabytes is not sent back.
        runs_on = None if ready.unfed else gpu
        yield from _build(
            gpu if cell.target.traits.needs_gpu else None, seen, run, jobs.build(runs_on), alone=turn.alone
        )
        if runs_on is not None and seen.succeeded and seen.plan is not None:
            yield from _alone(runs_on, seen, run, jobs.run(seen.plan), soon=turn.fresh and turn.keep)
    except AgentLost as error:
        if not error.out_of_memory:
            raise
        # The agent did not live to report it.
        end = {"type": "end", "kind": "out_of_memory", "detail": str(error), "peak_rss_bytes": None}
        seen.hear([Event(end, b"")])
    return seen


@dataclass(frozen=True)
class _Jobs:
    """The jobs of a cell."""

    cell: Cell
    ready: Prepared
    turn: Turn
    weights: str

    def whole(self) -> Job:
        """Return the job that builds and runs in one, or builds where nothing can be fed."""
        kind = "build" if self.ready.unfed else "run"
        job = self._job(kind, ("model", self.ready.model), *self.ready.wire_inputs())
        return replace(job, weights=self.weights, plain=self.ready.plain)

    def build(self, runs_on: Device | None) -> Job:
        """Return the job that builds; the engine itself comes back for a device to run on."""
        ready, calibrator = self.ready, self.cell.variant.recipe.calibrator
        # A build feeds only a calibrator; how an engine answers an odd input shows without values for it.
        fed = ready.wire_calibration() if calibrator else ()
        job = self._job("build", ("model", ready.model), *ready.wire_libraries(), *fed)
        if ready.calibration:
            own = {"data": "own", "batches": len(next(iter(ready.calibration.values())))}
            recipe = {**job.recipe, "calibrator": {**job.recipe["calibrator"], **own}}
            job = replace(job, recipe=recipe)
        return replace(job, weights=self.weights, plan=runs_on is not None or not self.weights)

    def run(self, plan: bytes) -> Job:
        """Return the job that runs the engine: in the child that built it, or the cell's second."""
        parts = (("plan", plan), *self.ready.wire_libraries(), *self.ready.wire_inputs())
        return replace(self._job("run", *parts), fresh=not self.turn.keep)

    def _job(self, kind: str, *parts: tuple[str, bytes]) -> Job:
        target, turn = self.cell.target, self.turn
        return Job(
            kind=kind,
            timeout_s=target.timeout_s,
            memory_mib=job_memory_mib(target),
            recipe=self.cell.variant.recipe.as_dict(),
            compute_capability=target.compute_capability,
            provider=target.provider,
            timed=self.ready.timed,
            graph=turn.graph,
            label=self.cell.id,
            fresh=turn.fresh,
            keep=turn.keep,
            parts=parts,
        )


def _build(
    gpu: Device | None, seen: Observation, run: Callable[[Job], Iterator[Event]], job: Job, *, alone: bool
) -> Generator[Wait | None, None, None]:
    """Build: on the GPU that the engine tunes on, in a place beside others, or alone; any other engine needs none."""
    if gpu is None:
        seen.hear(run(job))
    elif alone:
        yield from _alone(gpu, seen, run, job, soon=True)
    else:
        with gpu.among_builds() as others:
            before = others()
            seen.hear(run(job))
            seen.builds_beside = max(before, others())


def _alone(
    device: Device, seen: Observation, run: Callable[[Job], Iterator[Event]], job: Job, *, soon: bool
) -> Generator[Wait | None, None, None]:
    """Do a job with its device alone, and note who else is on it, before and after."""
    yield Wait(device, len(seen.plan or b""), soon)
    # Between two timed runs of one round nobody waits.
    before = others_on(device, within=_MOMENT)
    seen.hear(run(job))
    seen.note_others(before, others_on(device))
    yield None


#: Seconds for which the answer after a timed run stands for that before the next.
_MOMENT = 0.2
_Said = dict[str, Any]
#: Messages of an engine that say why something failed.
_ERRORS = ("ERROR", "INTERNAL_ERROR")
_Text = TypeVar("_Text")
#: Messages of one text kept in the record; the log holds them all.
_REPEATS = 3
#: The sources of layers, the best first: the inspector knows the loaded engine, the log the built one.
_SOURCES: tuple[Source, ...] = ("inspector", "ort_graph", "verbose_log")
#: How the message that lists an engine's layers begins.
_LOGGED_LAYERS = "Layers:"
#: Characters of a message kept in the record, and of the sentence on why a job failed.
LONGEST = 4000
_LONGEST_REASON = 1 << 16
#: Messages, and the parser's errors, kept in the record: the first half and the last half of them.
_MOST_MESSAGES, _MOST_PARSER_ERRORS = 1000, 200
#: Characters of a cell's log that engine and model may fill.
LOG_LIMIT = 128 << 20


@dataclass
class Observation:
    """The events of one cell so far; the only mutable thing between an agent and a record."""

    log: list[str] = field(default_factory=list)
    phases: dict[str, float] = field(default_factory=dict)
    failed_phase: str | None = None
    missing_api: str | None = None
    unavailable: str = ""
    fault: str = ""
    error: str = ""
    end: End | None = None
    plan: bytes | None = None
    engine_bytes: int | None = None
    facts: dict[str, str] = field(default_factory=dict)
    builds_beside: int = 0
    _phase: str | None = None
    _parser_errors: list[ParserError] = field(default_factory=list)
    _messages: list[Message] = field(default_factory=list)
    _native: list[str] = field(default_factory=list)
    _unlogged: list[str] = field(default_factory=list)
    _layers: dict[Source, bytes] = field(default_factory=dict)
    _layer_times: dict[str, list[float]] = field(default_factory=dict)
    _outputs: dict[str, Array | None] = field(default_factory=dict)
    _plain: dict[str, Array] = field(default_factory=dict)
    _latency: Latency | None = None
    _logged: int = 0
    _left_out: int = 0

    def hear(self, events: Iterable[Event]) -> None:
        """Take in the events of one job, as they come; each was held to the protocol's table when it was read."""
        for event in events:
            getattr(self, f"_on_{event.type}")(event.message, event.body)

    def _note(self, kind: str, text: str, *, last: bool = False) -> None:
        """Append an entry to the log, behind the whole lines that native libraries wrote before it."""
        unlogged = "".join(self._unlogged)
        native, _, rest = (unlogged, "", "") if last else unlogged.rpartition("\n")
        if native.strip():
            self.log.append(entry("native", native.rstrip()))
        self._unlogged = [rest]
        self.log.append(entry(kind, text))

    def _room(self, text: str | bytes, *, chatter: bool = False) -> bool:
        """Tell whether the log has room for a text of the engine's; a text without room is in the record neither.

        Chatter fills no more than half, so that messages on a failure are not lost in it.
        """
        if self._logged + len(text) > (LOG_LIMIT // 2 if chatter else LOG_LIMIT):
            self._left_out += 1
            return False
        # An entry takes some letters however short its text.
        self._logged += len(text) + 32
        return True

    @property
    def succeeded(self) -> bool:
        """Tell whether all that was asked so far was done."""
        finished = self.end is not None and self.end.kind == "finished"
        refused = self.failed_phase is not None or self.missing_api is not None
        return finished and not (refused or self.unavailable or self.fault or self.error)

    @property
    def trouble(self) -> str:
        """Return why the preflight that said this lets no cell run, "" if it went well."""
        if refused := self.error or self.fault or self.unavailable:
            return refused
        if self.end is None:
            return "the preflight did not end"
        if self.end.kind == "finished":
            return ""
        where = f" in the check of {self.failed_phase}" if self.failed_phase else ""
        native = "".join(self._native).strip().splitlines()
        errors = [message.text for message in self._messages if message.severity in _ERRORS]
        said = next(reversed(errors or native), "")
        return "; ".join(filter(None, (f"{self.end.detail}{where}", said, advice_in(said))))

    @property
    def ran(self) -> bool:
        """Tell whether outputs came out."""
        return bool(self._outputs)

    def _on_phase_begin(self, message: _Said, _: bytes) -> None:
        self._phase = message["name"]

    def _on_phase(self, message: _Said, _: bytes) -> None:
        self._phase = None
        self.phases[message["name"]] = message["seconds"]
        failed = "" if message["ok"] else " failed"
        self._note("phase", f"{message['name']} {message['seconds']:.3f} s{failed}")
        if failed:
            self.failed_phase = message["name"]

    def _on_message(self, message: _Said, _: bytes) -> None:
        severity, text = message["severity"], message["text"]
        lists = severity == "VERBOSE" and text.startswith(_LOGGED_LAYERS)
        if not self._room(text, chatter=severity == "VERBOSE" and not lists):
            return
        self._note(severity, text)
        if lists:
            self._layers["verbose_log"] = text.encode("utf-8", "backslashreplace")
        if severity != "VERBOSE":
            self._messages.append(Message(severity, text[:LONGEST]))

    def _on_parser_error(self, message: _Said, _: bytes) -> None:
        fields = {key: str(message[key])[:LONGEST] for key in ("text", "code", "node", "operator")}
        if self._room("".join(fields.values())):
            self._parser_errors.append(ParserError(**fields))
            self._note("parser error", str(fields))

    def _on_missing_api(self, message: _Said, _: bytes) -> None:
        self.missing_api = message["name"]
        self._note("missing", message["name"])

    def _on_unavailable(self, message: _Said, _: bytes) -> None:
        self.unavailable = message["text"][:_LONGEST_REASON]
        self._note("unavailable", self.unavailable)

    def _on_failed(self, message: _Said, _: bytes) -> None:
        self.error = message["text"][:_LONGEST_REASON]
        self._note("failed", self.error)

    def _on_plan(self, message: _Said, body: bytes) -> None:
        self.plan, self.engine_bytes = body, message.get("bytes", len(body))

    def _on_layers(self, message: _Said, body: bytes) -> None:
        if message["source"] == "inspector":
            if not self._room(body):
                return
            self._note("inspector", body.decode("utf-8", "replace"))
        self._layers[message["source"]] = body

    def _on_layer_times(self, message: _Said, _: bytes) -> None:
        self._layer_times = message["times"]

    def _on_output(self, message: _Said, body: bytes) -> None:
        # An output of no element type came, and the wire does not carry it: a sequence, or strings.
        value = from_wire(message["dtype"], message["shape"], body) if message["dtype"] else None
        if not message.get("plain"):
            self._outputs[message["name"]] = value
        elif value is not None:
            self._plain[message["name"]] = value

    def _on_latency(self, message: _Said, _: bytes) -> None:
        # The protocol's fields are the record's.
        fields: _Said = {
            name: tuple(value) if isinstance(value, list) else value for name, value in message.items()
        }
        del fields["type"]
        self._latency = Latency(**fields)

    def _on_calibration_cache(self, _: _Said, body: bytes) -> None:
        if self._room(body):
            self._note("calibration cache", f"\n{body.decode('ascii', 'replace').rstrip()}")

    def _on_agent_fault(self, message: _Said, _: bytes) -> None:
        self.fault = message["text"][:_LONGEST_REASON]
        self._note("agent fault", self.fault)

    def _on_fact(self, message: _Said, _: bytes) -> None:
        self.facts.update(message["facts"])

    def _on_native(self, message: _Said, _: bytes) -> None:
        if self._room(message["text"], chatter=True):
            self._native.append(message["text"])
            self._unlogged.append(message["text"])

    def _on_end(self, message: _Said, _: bytes) -> None:
        if self._phase is not None:
            self._note("phase", f"{self._phase} cut short")
        if self._left_out:
            self._note(LEFT_OUT, f"{self._left_out} texts: this log has no room for more")
            self._left_out = 0
        self._note("end", f"{message['kind']} {message['detail']}", last=True)
        end = End(
            kind=message["kind"],
            detail=message["detail"],
            exit_code=message.get("exit_code"),
            signal=message.get("signal"),
            peak_rss_bytes=message["peak_rss_bytes"],
            jobs_before=message.get("jobs_before", 0),
            cuda_error=message.get("cuda_error", "")[:LONGEST],
        )
        self.end = _after(self.end, end) if self.end else end
        if self._phase is not None:
            self.failed_phase, self._phase = self._phase, None
        if message["detail"].startswith(BROKEN):
            # Nor is it believed that the machine or the recipe was to blame.
            self.fault = self.unavailable = ""
            self.missing_api = None

    def note_others(self, before: str, after: str) -> None:
        """Keep the others on the GPU before and after the timed run, each "" if alone, beside its sensors' readings."""
        if self._latency is not None:
            old = self._latency
            self._latency = replace(old, before=_beside(old.before, before), after=_beside(old.after, after))

    def outcome(self, cell: Cell, prepared: Prepared, stamps: Stamps) -> Outcome:
        """Return the record of all that was heard."""
        report = self._layer_report(prepared)
        layers = report.layers if report else ()
        lines = (line for noted in self.log for line in noted.split("\n"))
        facts = replace(stamps, environment={**stamps.environment, **self.facts})
        reason = self.fault or self.unavailable or prepared.unfed
        return replace(
            Outcome.blank(cell, self._state, reason, facts),
            end=self.end,
            phases=self.phases,
            failed_phase=self.failed_phase,
            missing_api=self.missing_api,
            error=self.error,
            parser_errors=tuple(_ends(self._parser_errors, _MOST_PARSER_ERRORS)),
            messages=_without_repeats(self._messages),
            native_output="".join(self._native)[-LONGEST:],
            nodes=prepared.nodes,
            layers=layers,
            layer_source=report.source if report else "",
            unparsed_layers=report.unparsed if report else 0,
            tactics=tactics_of(lines, layers, prepared.nodes),
            engine_bytes=self.engine_bytes,
            ran=self.ran,
            accuracy=self._compared(prepared.reference),
            uncompared=prepared.reference.reason if self._outputs else "",
            latency=self._latency,
            builds_beside=self.builds_beside,
        )

    @property
    def _state(self) -> State:
        if self.fault:
            return "infra_error"
        return "not_run" if self.unavailable else "done"

    def _compared(self, reference: Reference) -> tuple[Accuracy, ...]:
        """Return the distance of the outputs from the reference, or from those without optimisations."""
        expected = reference.outputs or self._plain
        return compare(expected, self._outputs, reference.ranked) if expected and self._outputs else ()

    def _layer_report(self, prepared: Prepared) -> LayerReport | None:
        for source in _SOURCES:
            if source in self._layers:
                return parse_layers(
                    source,
                    self._layers[source],
                    nodes=prepared.nodes,
                    model=prepared.model,
                    times_ms=self._layer_times,
                )
        return None


def _after(before: End, end: End) -> End:
    """Return how a cell ended whose second job ended so: the child's past is the first's, errors and memory of both."""
    peaks = [one.peak_rss_bytes for one in (before, end) if one.peak_rss_bytes is not None]
    return replace(
        end,
        peak_rss_bytes=max(peaks, default=None),
        jobs_before=before.jobs_before,
        cuda_error=before.cuda_error or end.cuda_error,
    )


def _beside(sensors: dict[str, str], others: str) -> dict[str, str]:
    return {**sensors, OTHERS: others} if others else sensors


def _without_repeats(messages: list[Message]) -> tuple[Message, ...]:
    counts: dict[Message, int] = {}
    kept = []
    for message in messages:
        counts[message] = counts.get(message, 0) + 1
        if counts[message] <= _REPEATS:
            kept.append(message)
    return tuple(_ends(kept, _MOST_MESSAGES))


def _ends(texts: list[_Text], most: int) -> list[_Text]:
    """Return the first and the last of texts, `most` in all: the beginning and the end of the trouble."""
    return texts if len(texts) <= most else texts[: most // 2] + texts[-(most // 2) :]


#: Seconds: the first CUDA context on a machine, and the kernels that a builder loads, take tens of them.
PREFLIGHT_TIMEOUT = 180.0


class Preflight(NamedTuple):
    """The findings of a preflight, why no cell can run ("" if they can), and its log."""

    facts: dict[str, str]
    trouble: str
    log: list[str]


def preflight(target: Target, session: Session, *, keep: bool = False) -> Preflight:
    """Run a target's preflight and return its findings; raises InfraError if the agent is lost.

    `keep` leaves its child, which has a builder then, to the first cell.
    """
    seen = Observation()
    seen.hear(session.run(replace(preflight_job(target), keep=keep)))
    lacking = target.needs.gpu and "gpu_uuid" not in seen.facts
    return Preflight(
        seen.facts, seen.trouble or ("it names no GPU, which the target needs" if lacking else ""), seen.log
    )


def preflight_job(target: Target) -> Job:
    """Return the job of a target's preflight."""
    return Job(
        "preflight",
        timeout_s=min(PREFLIGHT_TIMEOUT, target.timeout_s),
        memory_mib=job_memory_mib(target),
        provider=target.provider,
        needs_gpu=bool(target.needs.gpu),
    )
