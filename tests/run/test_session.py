"""The host's end of the agent: one frame a job, events in order, and one sentence when the agent is gone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.agent.protocol import Decoder, encode, split_parts
from harness.errors import InfraError
from harness.run.session import AgentLost, Job, Session
from harness.run.transport.api import ExitStatus

pytestmark = pytest.mark.unit

HELLO = encode({"type": "hello", "facts": {"engine_version": "1"}})


class Tape:
    """A transport that says what it is told to, then nothing more."""

    def __init__(self, *said: bytes, status: ExitStatus | None = None, tail: str = "") -> None:
        self._said: Iterator[bytes] = iter(said)
        self._status = status
        self._tail = tail
        self.sent = b""
        self.closed = False

    def send(self, data: bytes, timeout: float = 1.0) -> None:
        assert timeout > 0
        self.sent += data

    def receive(self, timeout: float | None = None) -> bytes:
        data = next(self._said, b"")
        if data == b"late":
            raise TimeoutError(timeout)
        return data

    def alive(self) -> bool:
        return self._status is None

    def exit_status(self) -> ExitStatus | None:
        return self._status

    def stderr_tail(self) -> str:
        return self._tail

    def close(self) -> None:
        self.closed = True


def session(*said: bytes, status: ExitStatus | None = None, tail: str = "") -> Session:
    return Session(Tape(HELLO, *said, status=status, tail=tail), engine="tensorrt", adapter="tensorrt")


JOB = Job("build", timeout_s=1, memory_mib=64, parts=(("model", b"abc"), ("x", b"")))


def test_a_job_is_one_frame_with_its_parts() -> None:
    ((message, body),) = Decoder().feed(JOB.frame())
    assert (message["type"], message["kind"], message["timeout_s"], message["memory_mib"]) == (
        "job",
        "build",
        1,
        64,
    )
    assert split_parts(message["parts"], body) == {"model": b"abc", "x": b""}


def test_events_come_in_order_up_to_the_end_however_the_stream_is_cut() -> None:
    stream = b"".join(
        encode({"type": name, "kind": "finished"}, name.encode())
        for name in ("phase", "plan", "end", "later")
    )
    live = session(*(stream[start : start + 7] for start in range(0, len(stream), 7)))
    assert live.facts == {"engine_version": "1"}
    events = list(live.run(JOB))
    assert [(event.type, event.body) for event in events] == [
        ("phase", b"phase"),
        ("plan", b"plan"),
        ("end", b"end"),
    ]


def test_an_engine_that_does_not_load_is_told_in_its_own_words() -> None:
    broken = encode({"type": "broken", "error": "libnvinfer.so.10: cannot open"})
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
    assert str(lost.value).endswith("; it last said: its last words")
    assert lost.value.out_of_memory is memory
