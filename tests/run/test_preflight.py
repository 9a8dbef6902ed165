"""What a preflight amounts to, by what was heard of it."""

from __future__ import annotations

from typing import Any

import pytest

from harness.agent.cuda import advice
from harness.matrix import Needs
from harness.run.session import Event, Preflight, preflight, preflight_job
from tests.run.bench import target

pytestmark = pytest.mark.unit

FINE: dict[str, Any] = {"type": "end", "kind": "finished", "detail": ""}
GPU: dict[str, Any] = {"type": "fact", "facts": {"gpu_uuid": "GPU-1"}}
DEAD: dict[str, Any] = {"type": "end", "kind": "signalled", "detail": "killed by SIGSEGV"}


def doing(name: str) -> dict[str, Any]:
    return {"type": "phase_begin", "name": name}


def said(severity: str, text: str) -> dict[str, Any]:
    return {"type": "message", "severity": severity, "text": text}


class Heard:
    """A session that says what it was given."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self.messages = messages

    def run(self, _job: object) -> list[Event]:
        return [Event(message, b"") for message in self.messages]


def run(*messages: dict[str, Any], gpu: bool = True) -> Preflight:
    session: Any = Heard(*messages)
    return preflight(target(needs=Needs(gpu=gpu, architecture="x86_64")), session)


@pytest.mark.parametrize(
    ("messages", "trouble"),
    [
        ((GPU, doing("the runtime"), FINE), ""),
        ((GPU, {"type": "agent_fault", "text": "Builder: null"}, FINE), "Builder: null"),
        (
            (GPU, {"type": "failed", "text": "refused"}, {"type": "agent_fault", "text": "later"}, FINE),
            "refused",
        ),
        ((FINE,), "it names no GPU, which the target needs"),
        ((doing("the runtime"), DEAD), "killed by SIGSEGV in the check of the runtime"),
        ((DEAD,), "killed by SIGSEGV"),
        (
            (said("INFO", "fine"), said("ERROR", "first"), said("INTERNAL_ERROR", "cudaError 802"), DEAD),
            f"killed by SIGSEGV; cudaError 802; {advice(802)}",
        ),
        (({"type": "native", "text": "terminate\nlast words\n"}, DEAD), "killed by SIGSEGV; last words"),
        ((), "the preflight did not end"),
    ],
)
def test_what_went_wrong_is_one_sentence(messages: tuple[dict[str, Any], ...], trouble: str) -> None:
    assert run(*messages).trouble == trouble


def test_a_target_that_needs_no_gpu_needs_none() -> None:
    heard = run(FINE, gpu=False)
    assert (heard.trouble, heard.facts) == ("", {})
    assert heard.log == [f"[preflight] {FINE}"]


def test_the_job_is_bounded_and_leaves_the_agent_its_memory() -> None:
    asked = preflight_job(target(memory_mib=4096, timeout_s=600))
    assert (asked.kind, asked.timeout_s, asked.memory_mib) == ("preflight", 180, 3584)
    assert preflight_job(target(timeout_s=20)).timeout_s == 20
