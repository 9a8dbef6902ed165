"""One target's environment and live agent, kept for as many cells as come."""

from __future__ import annotations

import contextlib
import re
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from harness.agent.bootstrap import ARGUMENTS
from harness.errors import InfraError, described
from harness.matrix import Target
from harness.plan import Cell
from harness.record.outcome import End, Outcome, Stamps, State, entry, whole_log
from harness.run import trace
from harness.run.gpus import WAIT, Device, Gpus
from harness.run.key import cell_key, place_of, placed_in
from harness.run.observation import Preflight, Turn, observe, preflight
from harness.run.prepared import PreparedVariants, Refused, Weights
from harness.run.provision.images import Pulling
from harness.run.provision.model import Environment, Unavailable, Unreachable, Via
from harness.run.provision.prepare import prepare, start
from harness.run.rounds import Later, Recorded, Steps, whole
from harness.run.session import Event, Job, Session
from harness.run.stamps import bare_stamps
from harness.run.transport import ProcessTransport

#: How often a cell, and the start of an agent, is tried when the machinery and not the engine fails.
_TRIES = 2
#: A tactic that a builder left out for want of memory, which neighbours may have had.
_SKIPPED = re.compile(r"insufficient memory|memory is insufficient|insufficient to use tactic", re.IGNORECASE)
#: The phases in which an engine that has run is timed.
_TIMED = ("time", "profile")


class Aborted(Exception):
    """The run was interrupted; the cell in hand has no record."""


class _GivenUp(Exception):
    """No cell of the target can run here; each is recorded in `state` with `reason`."""

    def __init__(self, state: State, reason: str) -> None:
        super().__init__(reason)
        self.state, self.reason = state, reason


def _ended_as_timed(outcome: Outcome) -> bool:
    ended = outcome.end is not None and outcome.end.kind != "finished"
    return "run" in outcome.phases and (ended or outcome.failed_phase in _TIMED)


def _accident(end: End) -> str:
    """Return how a child ended that did not finish its job in order; "" if it did."""
    if end.kind != "finished":
        return f"an end ({end.detail})"
    return "an error of CUDA" if end.cuda_error else ""


class TargetRunner:
    """Runs cells of one target in one warm environment; made ready at the first cell that needs it.

    A trusted cell's child process does other cells too, unless `isolated` gives a process to each. A cell that traces
    of others may show in is run again in a child of its own, and that record counts: its child did not finish the job,
    an error of CUDA was left, or `is_news` says so of its record. Each cell of an untrusted target has a container of
    its own, which is removed after it. Each cell gets a record, and only `abort` raises. A target that cannot run here
    gives `not_run` with the reason; one whose agent does not come up gives `infra_error` for all its cells. An agent
    lost twice on a cell gives `infra_error` for that one, as does a fault of this program while it prepares, runs or
    folds the cell.
    """

    def __init__(  # noqa: PLR0913
        self,
        target: Target,
        *,
        via: Via,
        run_id: str,
        prepared: PreparedVariants | None = None,
        pulling: Pulling = Pulling(),  # noqa: B008  (frozen)
        gpus: Gpus | None = None,
        isolated: bool = False,
        wait: float = WAIT,
        is_news: Callable[[Cell, Outcome], bool] = lambda *_: False,
    ) -> None:
        self.target = target
        self._warm = not (isolated or target.untrusted)
        self._is_news = is_news
        self._pulling = replace(pulling, needed=self._needed)
        self._via = via
        self._run_id = run_id
        self._prepared = prepared or PreparedVariants()
        self._gpus, self._wait = gpus or Gpus(), wait
        #: The GPU that was dealt to this target, for as long as it is run.
        self._dealt: tuple[str, ...] = ()
        self._environment: Environment | None = None
        self._transport: ProcessTransport | None = None
        #: The live agent, or why it cannot be started; None before the first cell, and after an agent was lost.
        self._agent: Session | _GivenUp | None = None
        #: Whether the agent's child has registered the project's plugin.
        self._plugin = False
        #: Called when an agent is there and its preflight went well.
        self.on_start: Callable[[], None] = lambda: None
        self._facts: dict[str, str] = {}
        self._preflight: Preflight | None = None
        #: Whether the agent has room for weights beside models, and the places of those it has, by folder.
        self._roomy = False
        self._placed: dict[Weights, str] = {}
        self._aborted = False
        self._closing = threading.Lock()

    @property
    def note(self) -> str:
        """Return which environment was chosen and why, once one is."""
        return self._environment.note if self._environment else ""

    def run(self, cell: Cell) -> Recorded:
        """Return the record of a cell and its whole log; raises only Aborted, after `abort`."""
        return whole(self.steps(cell))

    def steps(self, cell: Cell) -> Steps:
        """Run a cell in steps, between which others may be run; raises as `run` does."""
        try:
            shares = self._shares(cell)
            outcome, log = yield from self._run(cell, Turn(fresh=not shares, keep=shares))
            if doubt := self._doubt(cell, outcome, log):
                yield Later.AT_THE_END
                why, turn = doubt
                outcome, log = yield from self._run(cell, turn, why)
            return Recorded(self._keyed(cell, outcome), log)
        except Refused as refusal:
            self._refuse_aborted()
            return Recorded(self._keyed(cell, self._blank(cell, refusal.state, refusal.reason)), "")
        except Aborted:
            raise
        except Exception as error:  # noqa: BLE001
            # A fault of this program, or of its input, costs this cell and not the whole run.
            self._recover()
            return self._fault(cell, error, [])
        finally:
            if self.target.untrusted:
                self._end_agent()

    def abort(self) -> None:
        """End the agent from another thread, in the middle of a cell or a start; `run` then raises Aborted."""
        self._aborted = True
        self._end_agent()

    def close(self) -> None:
        """End the agent."""
        self._end_agent()
        self._gpus.give_back(self._dealt)
        self._dealt = ()

    def _shares(self, cell: Cell) -> bool:
        """Tell whether a cell's child may serve others: libraries stay in a process."""
        return self._warm and not cell.variant.recipe.libraries

    def _doubt(self, cell: Cell, outcome: Outcome, log: str) -> tuple[str, Turn] | None:
        """Return why and how a cell is to be run again in a child of its own, None if its record stands."""
        turn, end = Turn(fresh=True, keep=self._shares(cell)), outcome.end
        if outcome.builds_beside and _SKIPPED.search(log):
            why = f"a tactic found no memory beside {outcome.builds_beside} other builds"
            return why, replace(turn, alone=True)
        if _ended_as_timed(outcome):
            return "it ended as it was timed, perhaps for its CUDA graph", replace(turn, graph=False)
        if end is None or not end.jobs_before:
            return None
        why = _accident(end) or ("news" if self._is_news(cell, outcome) else "")
        return (f"{why} from a child that had done {end.jobs_before} other jobs", turn) if why else None

    def _run(self, cell: Cell, turn: Turn, why: str = "") -> Steps:
        reason = cell.inapplicable
        if reason is not None:
            return Recorded(self._blank(cell, "not_applicable", reason), "")
        lost, weights = "", self._prepared.weights(cell.variant)
        if weights is not None and not self._roomy:
            self._end_agent()
            self._roomy = True
        for _ in range(_TRIES):
            try:
                return (yield from self._observe(cell, turn, why))
            except _GivenUp as error:
                log = self._preflight.log if self._preflight else ()
                return Recorded(self._blank(cell, error.state, error.reason), "\n".join(log))
            except InfraError as error:
                self._recover()
                lost = str(error)
        return Recorded(self._blank(cell, "infra_error", lost), "")

    def _observe(self, cell: Cell, turn: Turn, why: str) -> Steps:
        self._live()
        with trace.span("make ready", cell=cell.id):
            ready = self._prepared.of(cell.variant, self._needed)
        gpu = self._device(self._facts["gpu_uuid"]) if "gpu_uuid" in self._facts else None
        cpu, weights = self._device("cpu"), self._place(cell)
        seen = yield from observe(cell, ready, self._job, gpu, turn, cpu=cpu, weights=weights)
        if why:
            seen.log.insert(0, entry("run again", why))
        if seen.ran:
            with trace.span("reference", cell=cell.id):
                ready = self._prepared.evaluated(cell.variant, ready, self._needed)
        try:
            with trace.span("fold", cell=cell.id):
                outcome = seen.outcome(cell, ready, self._stamps(cell)).as_read()
                return Recorded(outcome, whole_log(outcome, seen.log))
        except Exception as error:  # noqa: BLE001  (an engine's text, of any shape)
            return self._fault(cell, error, seen.log)

    def _job(self, job: Job) -> Iterator[Event]:
        """Run a job with the agent that there is now: between two steps of a cell others may have lost one.

        A child that has registered the project's plugin serves the cells of that plugin alone.
        """
        session, plugin = self._live(), bool(job.recipe["plugin"])
        if plugin != self._plugin and (plugin or job.kind == "build"):
            job = replace(job, fresh=True)
        self._plugin = plugin if job.fresh else self._plugin
        try:
            with trace.span(f"{job.kind} job", cell=job.label, fresh=job.fresh):
                for event in session.run(job):
                    if event.type == "phase":
                        trace.passed(event.message["name"], event.message["seconds"], cell=job.label)
                    yield event
        finally:
            if session.lost:
                # It died at the container's memory limit: that is this cell's outcome, and the next gets a new agent.
                self._end_agent()

    def _live(self) -> Session:
        """Return the live agent, started if needed; raises _GivenUp if there can be none."""
        self._refuse_aborted()
        self._agent = self._agent or self._started()
        if isinstance(self._agent, _GivenUp):
            raise self._agent
        return self._agent

    @property
    def runs(self) -> bool:
        """Tell whether it has a live agent."""
        return isinstance(self._agent, Session)

    def _place(self, cell: Cell) -> str:
        """Return the agent's folder of the weights beside a model, brought there once; "" if it holds them itself."""
        weights, transport = self._prepared.weights(cell.variant), self._transport
        if weights is None or transport is None:
            return ""
        if weights not in self._placed:
            self._placed[weights] = transport.place(weights.folder, weights.files)
        return self._placed[weights]

    def _started(self) -> Session | _GivenUp:
        """Return a live agent, or why it cannot be started."""
        failure = ""
        for _ in range(_TRIES):
            try:
                return self._start()
            except Unavailable as refusal:
                self._recover()
                return _GivenUp(
                    "infra_error" if isinstance(refusal, Unreachable) else "not_run", str(refusal)
                )
            except InfraError as error:
                self._recover()
                failure = str(error)
            except Exception as error:  # noqa: BLE001
                self._recover()
                # It would fail for every cell alike.
                return _GivenUp("infra_error", described(error))
            except BaseException:
                self._end_agent()
                raise
        return _GivenUp("infra_error", failure)

    def _start(self) -> Session:
        if self._environment is None:
            with trace.span("make the environment", target=self.target.name):
                self._environment = prepare(self.target, self._via, self._pulling)
        self._dealt = self._dealt or self._gpus.take(self._environment.gpus)
        # Kept before anything is asked of it, so that `abort` finds it; an `abort` just before did not.
        self._transport = start(
            self._environment,
            self.target,
            argv=ARGUMENTS,
            gpus=self._dealt,
            run=self._run_id,
            weights=self._roomy,
        )
        self._refuse_aborted()
        try:
            with trace.span("start the agent", target=self.target.name):
                session = Session(
                    self._transport, engine=self.target.module, adapter=self.target.traits.adapter
                )
        except InfraError as error:
            raise InfraError(f"{error}{self._environment.remedy}") from error
        self._placed = {}
        self._plugin = False
        self._check(session)
        self.on_start()
        return session

    def _check(self, session: Session) -> None:
        reported = session.facts["engine_version"]
        if not self.target.runs_version(reported):
            raise InfraError(
                f"{self.target.name} is declared as {self.target.version} and its environment holds {reported}: "
                "correct the version, image or packages in matrix.yaml"
            )
        # Its findings stay true of the next container of an untrusted target, which is made alike.
        if self._preflight is None or self._preflight.trouble or not self.target.untrusted:
            place = self._device(self._dealt[0]).among_builds() if self._dealt else contextlib.nullcontext()
            with place, trace.span("preflight", target=self.target.name):
                self._preflight = preflight(self.target, session, keep=self._warm)
        self._facts = {**session.facts, **self._preflight.facts}
        if self._preflight.trouble:
            raise InfraError(f"the preflight of {self.target.name} failed: {self._preflight.trouble}")

    def _device(self, name: str) -> Device:
        memory = int(self._facts.get("gpu_memory_mib", "0"))
        machine = self._environment.machine if self._environment else ""
        return Device(name, self._needed, machine, memory, self._wait)

    def _needed(self) -> bool:
        """Tell whether anybody still waits for the cell in hand."""
        return not self._aborted

    def _recover(self) -> None:
        """End the agent after a failure; raises Aborted if an abort caused it."""
        self._end_agent()
        self._refuse_aborted()

    def _refuse_aborted(self) -> None:
        if self._aborted:
            self._end_agent()
            raise Aborted

    def _end_agent(self) -> None:
        # A second caller, such as the worker after an abort, waits until the agent has ended.
        with self._closing:
            if isinstance(self._agent, Session):
                self._agent = None
            transport, self._transport = self._transport, None
            if transport is not None:
                # The next run's reaper ends an agent that cannot be ended now; the cell in hand has its record.
                with contextlib.suppress(InfraError):
                    transport.close()

    def _stamps(self, cell: Cell) -> Stamps:
        environment = self._environment
        return replace(
            bare_stamps(cell, self._run_id),
            engine_version=self._facts.get("engine_version", ""),
            via=environment.via if environment else "",
            image=environment.image if environment else "",
            image_digest=environment.image_digest if environment else "",
            packages=environment.packages if environment else (),
            environment=dict(self._facts),
        )

    def _keyed(self, cell: Cell, outcome: Outcome) -> Outcome:
        """Return an outcome with its key; trouble of the machinery has no key."""
        if outcome.state == "infra_error":
            return outcome
        apart = outcome.state == "not_run" or cell.inapplicable is not None
        place = place_of(self._environment) if self._environment and not apart else outcome.reason
        stamps = outcome.stamps
        key = cell_key(cell.id, stamps.model_sha256, stamps.recipe_sha256, placed_in(self.target, place))
        return replace(outcome, key=key)

    def _fault(self, cell: Cell, error: Exception, log: Sequence[str]) -> Recorded:
        outcome = self._blank(cell, "infra_error", f"the harness failed: {described(error)}")
        return Recorded(outcome, "\n".join([*log, *traceback.format_exception(error)]))

    def _blank(self, cell: Cell, state: State, reason: str) -> Outcome:
        return Outcome.blank(cell, state, reason, self._stamps(cell))
