"""One target's environment and live agent, kept for as many cells as come."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from harness import __version__
from harness.agent.bootstrap import ARGUMENTS
from harness.errors import InfraError
from harness.executor.cell import observe
from harness.outcome import Outcome, Stamps, State
from harness.plan import applicability
from harness.provision import Environment, Unavailable, prepare
from harness.session import ADAPTERS, AgentLost, Job, Session
from harness.subject import subject
from harness.transport import start

if TYPE_CHECKING:
    from harness.matrix import Target
    from harness.plan import Cell
    from harness.provision import Via

#: How often a cell, and the start of an agent, is tried when the machinery and not the engine is what fails.
_TRIES = 2


class Aborted(Exception):
    """The run was interrupted; the cell in hand has no record."""


class TargetRunner:
    """Runs cells of one target in one warm environment; made ready at the first cell that needs it.

    A target that cannot run here gives `not_run` with the reason; an agent that does not come up, or is lost twice on
    the same cell, gives `infra_error`. Nothing is raised for either: each cell gets a record.
    """

    def __init__(self, target: Target, *, via: Via, run_id: str) -> None:
        self.target = target
        self._via = via
        self._run_id = run_id
        self._environment: Environment | None = None
        self._session: Session | None = None
        self._gpu: str | None = None
        self._facts: dict[str, str] = {}
        self._given_up: tuple[State, str] | None = None
        self._failed_starts = 0
        self._aborted = False

    @property
    def note(self) -> str:
        """Return which environment was chosen and why, once one is."""
        return self._environment.note if self._environment else ""

    def run(self, cell: Cell) -> tuple[Outcome, str]:
        """Return the record of a cell and its whole log."""
        reason = applicability(cell)
        if reason is not None:
            return self._blank(cell, "not_applicable", reason), ""
        lost = ""
        for _ in range(_TRIES):
            if self._aborted or self._given_up is not None:
                break
            try:
                return self._try(cell)
            except Unavailable as error:
                self._given_up = ("not_run", str(error))
            except AgentLost as error:
                self._drop_session()
                lost = str(error)
            except InfraError as error:
                self._drop_session()
                lost = str(error)
                self._failed_starts += 1
                if self._failed_starts >= _TRIES:
                    self._given_up = ("infra_error", lost)
        if self._aborted:
            raise Aborted
        return self._blank(cell, *(self._given_up or ("infra_error", lost))), ""

    def abort(self) -> None:
        """End the agent from another thread, in the middle of a cell; `run` then raises Aborted."""
        self._aborted = True
        self._drop_session()

    def close(self) -> None:
        """End the agent."""
        self._drop_session()

    def _try(self, cell: Cell) -> tuple[Outcome, str]:
        session = self._ready_session()
        ready = subject(cell.variant)
        seen = observe(cell.variant, self.target, session, self._gpu)
        stamps = self._stamps(cell, ready.sha256)
        outcome = seen.outcome(cell, ready, stamps)
        return outcome, "\n".join(seen.log)

    def _ready_session(self) -> Session:
        if self._session is None:
            if self._environment is None:
                self._environment = prepare(self.target, self._via)
            transport = start(self._environment, self.target, argv=ARGUMENTS, run=self._run_id)
            try:
                session = Session(transport, engine=self.target.module, adapter=ADAPTERS[self.target.engine])
                self._check(session)
            except BaseException:
                transport.close()
                raise
            self._session = session
        return self._session

    def _check(self, session: Session) -> None:
        reported = session.facts["engine_version"]
        if not self.target.runs_version(reported):
            raise InfraError(
                f"{self.target.name} is declared as {self.target.version} and its environment holds {reported}: "
                "correct the version, image or packages in matrix.yaml"
            )
        self._facts = dict(session.facts)
        for event in session.run(Job("devices", timeout_s=60, memory_mib=4096)):
            if event.type == "fact":
                self._facts.update(event.message["facts"])
        self._gpu = self._facts.get("gpu_uuid")

    def _drop_session(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            session.close()

    def _stamps(self, cell: Cell, model: str) -> Stamps:
        environment = self._environment
        return Stamps(
            model_sha256=model,
            recipe_sha256=cell.variant.recipe.sha256(),
            engine_version=self._facts.get("engine_version", ""),
            via=environment.via if environment else "",
            image=environment.image if environment else "",
            image_digest=environment.image_digest if environment else "",
            packages=environment.packages if environment else (),
            harness_version=__version__,
            when=dt.datetime.now(dt.timezone.utc).isoformat(timespec="milliseconds"),
            run=self._run_id,
            environment=self._facts,
        )

    def _blank(self, cell: Cell, state: State, reason: str) -> Outcome:
        return Outcome(
            cell=cell.id,
            case=cell.case.name,
            variant=cell.variant.name,
            target=self.target.name,
            state=state,
            reason=reason,
            stamps=self._stamps(cell, subject(cell.variant).sha256),
        )
