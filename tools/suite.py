"""Models of others as cells: ONNX's own node tests, built one after the other by one warm agent a target."""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import warnings
from typing import TYPE_CHECKING

import onnx
from onnx.backend.test.loader import load_model_tests

from harness import __version__
from harness.agent.bootstrap import ARGUMENTS
from harness.case import Case, Link, Variant, effective_name, model_sha256
from harness.errors import InfraError
from harness.launch import start
from harness.numbers import Reference
from harness.outcome import Node, Outcome, Stamps
from harness.plan import Cell
from harness.provision import prepare
from harness.record import Observation
from harness.session import ADAPTERS, Job, Session
from harness.subject import Subject

if TYPE_CHECKING:
    from harness.matrix import Target
    from harness.provision import Environment, Via
    from harness.transport import Transport

NODE_TESTS = "onnx_node"
#: One operator each: what takes longer than this hangs, and would hold up the thousand behind it.
_TIMEOUT_S = 60.0
_MEMORY_MIB = 4096
#: How often a model is tried when the machinery and not the engine is what fails.
_TRIES = 2


@functools.cache
def node_tests() -> Case:
    """Return the models that `onnx.backend.test.case.node` generates, a variant each."""
    with warnings.catch_warnings():
        # They compute what is expected of each operator, overflows and all.
        warnings.simplefilter("ignore")
        tests = load_model_tests(kind="node")
    return Case(
        name=NODE_TESTS,
        title="ONNX's own node tests",
        summary="Every operator as the ONNX project tests it, built without inputs.",
        links=(Link("https://github.com/onnx/onnx/tree/main/onnx/backend/test/case/node"),),
        variants=tuple(_variant(test.name, test.model) for test in tests if test.model is not None),
    )


def _variant(name: str, model: onnx.ModelProto) -> Variant:
    return Variant(name=name.removeprefix("test_").lower(), title=name, build=lambda: model)


def cells_of(case: Case, target: Target) -> tuple[Cell, ...]:
    """Return a cell of the target for each variant."""
    return tuple(
        Cell(f"{case.name}[{variant.name}]-{target.name}", case, variant, target) for variant in case
    )


class Builder:
    """One target's environment and warm agent, which builds models and is sent no inputs.

    Whatever a model breaks is that model's record: an agent that is lost twice on it, or an answer that nothing
    can be made of, is its `infra_error`, and the next model finds an agent again.
    """

    def __init__(self, target: Target, *, via: Via, run_id: str) -> None:
        self.target = target
        self._run_id = run_id
        self._environment: Environment = prepare(target, via)
        self._transport: Transport | None = None
        self._session: Session | None = None

    def build(self, cell: Cell) -> tuple[Outcome, str]:
        """Return the record of a cell and its whole log."""
        reason = ""
        for _ in range(_TRIES):
            seen = Observation()
            try:
                ready = _subject(cell.variant)
                seen.hear(self.agent().run(self._job(cell, ready.model)))
                outcome = seen.outcome(cell, ready, self._stamps(cell, ready.sha256))
                # Nothing is asked of the layers here, and they would be most of the record; the log has them.
                return dataclasses.replace(outcome, layers=()), "\n".join(seen.log)
            except InfraError as error:
                self.close()
                reason = str(error)
            # Any model may find the hole that a thousand others did not.
            except Exception as error:  # noqa: BLE001
                self.close()
                reason = f"the harness failed on this model: {type(error).__name__}: {error}"
        return self._blank(cell, reason), ""

    def close(self) -> None:
        """End the agent; the next `build` starts another."""
        transport, self._transport, self._session = self._transport, None, None
        if transport is not None:
            transport.close()

    def agent(self) -> Session:
        """Return the live agent, started if there is none; raises InfraError where none comes up."""
        if self._session is None:
            self._transport = start(self._environment, self.target, argv=ARGUMENTS, run=self._run_id)
            adapter = ADAPTERS[self.target.engine]
            self._session = Session(self._transport, engine=self.target.module, adapter=adapter)
            reported = self._session.facts["engine_version"]
            if not self.target.runs_version(reported):
                raise InfraError(
                    f"{self.target.name} is {self.target.version} and its environment {reported}"
                )
        return self._session

    def _job(self, cell: Cell, model: bytes) -> Job:
        return Job(
            kind="build",
            timeout_s=min(_TIMEOUT_S, self.target.timeout_s),
            memory_mib=min(_MEMORY_MIB, self.target.memory_mib),
            recipe=cell.variant.recipe.as_dict(),
            compute_capability=self.target.compute_capability,
            provider=self.target.provider,
            parts=(("model", model),),
        )

    def _stamps(self, cell: Cell, model: str) -> Stamps:
        facts = self._session.facts if self._session else {}
        return Stamps(
            model_sha256=model,
            recipe_sha256=cell.variant.recipe.sha256(),
            engine_version=facts.get("engine_version", ""),
            via=self._environment.via,
            harness_version=__version__,
            when=dt.datetime.now(dt.timezone.utc).isoformat(timespec="milliseconds"),
            run=self._run_id,
            environment=facts,
        )

    def _blank(self, cell: Cell, reason: str) -> Outcome:
        return Outcome(
            cell=cell.id,
            case=cell.case.name,
            variant=cell.variant.name,
            target=self.target.name,
            state="infra_error",
            reason=reason,
            stamps=self._stamps(cell, ""),
        )


def _subject(variant: Variant) -> Subject:
    data = variant.model_bytes()
    model = onnx.load_model_from_string(data)
    return Subject(
        model=data,
        sha256=model_sha256(data),
        nodes=tuple(Node(effective_name(node), node.op_type) for node in model.graph.node),
        inputs={},
        reference=Reference(None, "only built"),
    )
