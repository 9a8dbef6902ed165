"""The host's end of the agent: one frame a job, events in order, and one sentence when the agent is gone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.agent.cuda import advice
from harness.agent.protocol import NO_JOB, Decoder, encode, read_message, split_parts
from harness.errors import InfraError
from harness.matrix import Needs
from harness.run.observation import Preflight, preflight, preflight_job
from harness.run.session import AgentLost, Event, Job, Session
from harness.run.transport import ExitStatus, ProcessTransport
from tests.run.bench import target

pytestmark = pytest.mark.unit

HELLO_SAID = {"type": "hello", "facts": {"engine_version": "1"}}
HELLO = encode(HELLO_SAID)


#: Stands in what a tape says for the id of the job that it was sent last.
ID = b"the id of a job."


class Tape(ProcessTransport):
    """A transport that says what it is told to, then nothing more."""

    def __init__(self, *said: bytes, status: ExitStatus | None = None, tail: str = "") -> None:
        self._said: Iterator[bytes] = iter(said)
        self._ends = status
        self._words = tail
        self.sent = b""
        self.job = NO_JOB
        self.closed = False

    def send(self, data: bytes, timeout: float = 1.0) -> None:
        assert timeout > 0
        if self.sent:
            (frame,) = Decoder().feed(data)
            assert frame.job != self.job
            self.job = frame.job
        self.sent += data

    def place(self, folder: Path, files: Sequence[str]) -> str:
        raise AssertionError((folder, files))

    def receive(self, timeout: float | None = None) -> bytes:
        data = next(self._said, b"")
        if data == b"late":
            raise TimeoutError(timeout)
        return data.replace(ID, self.job)

    def alive(self) -> bool:
        return self._ends is None

    def exit_status(self) -> ExitStatus | None:
        return self._ends

    def stderr_tail(self) -> str:
        return self._words

    def close(self) -> None:
        self.closed = True


def session(*said: bytes, status: ExitStatus | None = None, tail: str = "") -> Session:
    return Session(Tape(HELLO, *said, status=status, tail=tail), engine="tensorrt", adapter="tensorrt")


JOB = Job("build", timeout_s=1, memory_mib=64, parts=(("model", b"abc"), ("x", b"")))


def test_a_job_is_one_frame_with_its_parts() -> None:
    (frame,) = Decoder().feed(JOB.frame(ID))
    message, body = read_message(frame.head), frame.body
    assert frame.job == ID
    assert (message["type"], message["kind"], message["timeout_s"], message["memory_mib"]) == (
        "job",
        "build",
        1,
        64,
    )
    assert split_parts(message["parts"], body) == {"model": b"abc", "x": b""}


END = {"type": "end", "kind": "finished", "detail": "", "peak_rss_bytes": None}
BEGIN = {"type": "phase_begin", "name": "build"}


def stream(*said: tuple[dict[str, Any], bytes, bytes]) -> bytes:
    return b"".join(encode(message, body, job) for message, body, job in said)


def test_events_come_in_order_up_to_the_end() -> None:
    live = session(
        stream((BEGIN, b"", ID), ({"type": "plan"}, b"plan", ID), (END, b"", ID), (BEGIN, b"", ID))
    )
    assert live.facts == {"engine_version": "1"}
    events = [(event.type, event.body) for event in live.run(JOB)]
    assert events == [("phase_begin", b""), ("plan", b"plan"), ("end", b"")]


def test_frames_of_another_job_are_nobodys() -> None:
    """Of one before this, or with an id that somebody made up: here a whole good job, `end` and greeting too."""
    strangers = [
        (message, b"", job) for job in (NO_JOB, b"somebody's own.-") for message in (HELLO_SAID, BEGIN, END)
    ]
    live = session(
        stream(*strangers, (BEGIN, b"", ID), *strangers, (END | {"kind": "exited"}, b"", ID), *strangers)
    )
    assert [(event.type, event.message.get("kind")) for event in live.run(JOB)] == [
        ("phase_begin", None),
        ("end", "exited"),
    ]
    # What is left of it is not the next job's either.
    with pytest.raises(AgentLost, match="went away"):
        list(live.run(JOB))


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (HELLO_SAID, "a frame of the type 'hello'"),
        ({"type": "fact", "facts": {"engine_version": 5}}, "'fact' has the 'facts' dict"),
        ({"type": "phase", "name": "build"}, "'phase' has no 'seconds'"),
        ({"type": "confetti"}, "a frame of the type 'confetti'"),
        ([], "a message without a type"),
    ],
)
def test_what_is_not_in_the_table_is_the_end_of_its_own_job(message: Any, says: str) -> None:
    """The agent has looked already: whoever got it past that has no more to say, and the next job is another's."""
    live = session(
        stream((message, b"", ID), (BEGIN, b"", ID), (END, b"", ID)), stream((BEGIN, b"", ID), (END, b"", ID))
    )
    (end,) = live.run(JOB)
    assert (end.type, end.message["kind"]) == ("end", "exited")
    assert end.message["detail"].startswith(f"broke the protocol: {says}")
    assert [event.type for event in live.run(JOB)] == ["phase_begin", "end"]


def test_an_agent_that_never_falls_silent_is_lost_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not of the job is passed over for so long and no longer."""
    clock = itertools.count(0, 30)
    monkeypatch.setattr("harness.run.session.time.monotonic", lambda: next(clock))
    endless = Tape(HELLO, *[stream((BEGIN, b"", NO_JOB))] * 100)
    live = Session(endless, engine="tensorrt", adapter="tensorrt")
    with pytest.raises(AgentLost, match="did not answer in time"):
        list(live.run(JOB))
    assert next(endless._said, None) is not None


def test_a_greeting_that_is_none_is_one_sentence() -> None:
    for said in ({"type": "hello", "facts": {"engine_version": 5}}, {"type": "hello"}, BEGIN):
        with pytest.raises(InfraError, match="the agent's greeting cannot be read"):
            Session(Tape(encode(said)), engine="tensorrt", adapter="tensorrt")


def test_an_engine_that_does_not_load_is_told_in_its_own_words() -> None:
    broken = encode({"type": "hello_failed", "error": "libnvinfer.so.10: cannot open"})
    with pytest.raises(
        InfraError, match=r"the engine does not load: libnvinfer\.so\.10: cannot open; it last said: x"
    ):
        Session(Tape(broken, tail="x"), engine="tensorrt", adapter="tensorrt")


@pytest.mark.parametrize(
    ("said", "status", "sentence", "memory"),
    [
        (b"", ExitStatus(signal="SIGKILL"), "went away while running a build job (killed by SIGKILL)", False),
        (b"", ExitStatus(out_of_memory=True), "(killed by the kernel: out of memory)", True),
        (b"late", None, "did not answer in time while running a build job", False),
        (
            b"Segmentation fault",
            ExitStatus(code=1),
            "stream is broken while running a build job: not a frame",
            False,
        ),
    ],
)
def test_an_agent_that_is_lost_says_how(
    said: bytes, status: ExitStatus | None, sentence: str, memory: bool
) -> None:
    with pytest.raises(AgentLost) as lost:
        list(session(said, status=status, tail="its last words").run(JOB))
    assert sentence in str(lost.value)
    assert str(lost.value).endswith("its last words")
    assert lost.value.out_of_memory is memory


FINE: dict[str, Any] = {"type": "end", "kind": "finished", "detail": "", "peak_rss_bytes": None}
GPU: dict[str, Any] = {"type": "fact", "facts": {"gpu_uuid": "GPU-1"}}
DEAD: dict[str, Any] = {
    "type": "end",
    "kind": "signalled",
    "detail": "killed by SIGSEGV",
    "peak_rss_bytes": None,
}


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
    assert (heard.trouble, heard.facts, len(heard.log)) == ("", {}, 1)


def test_the_job_is_bounded_and_leaves_the_agent_its_memory() -> None:
    asked = preflight_job(target(memory_mib=4096, timeout_s=600))
    assert (asked.kind, asked.timeout_s, asked.memory_mib) == ("preflight", 180, 3584)
    assert preflight_job(target(timeout_s=20)).timeout_s == 20
