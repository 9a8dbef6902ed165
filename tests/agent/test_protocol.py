"""Frames survive any cut of the stream; other bytes, and messages outside of the table, are refused."""

import contextlib
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.agent import protocol
from harness.agent.protocol import (
    FROM_CHILD,
    NO_JOB,
    OF_A_JOB,
    PHASES,
    PREFLIGHT_PHASES,
    Decoder,
    Frame,
    FrameReader,
    ProtocolError,
    encode,
    join_parts,
    packed,
    read_message,
    split_parts,
)
from tests.near import SAME, near

pytestmark = pytest.mark.unit

AGENT = Path(protocol.__file__).parent
JOB = b"the id of a job."


@pytest.mark.parametrize("step", [1, 2, 3, 7, 12, 1000])
def test_frames_survive_any_cut_of_the_stream(step: int) -> None:
    frames: list[tuple[dict[str, Any], bytes, bytes]] = [
        ({"type": "a", "n": 1}, b"", NO_JOB),
        ({"type": "b", "text": "Ünï\n"}, b"\x00" * 50, JOB),
        ({"type": ""}, b"TCM1", bytes(range(16))),
    ]
    stream = b"".join(encode(message, body, job) for message, body, job in frames)
    decoder = Decoder()
    heard = [frame for at in range(0, len(stream), step) for frame in decoder.feed(stream[at : at + step])]
    assert [(read_message(frame.head), frame.body, frame.job) for frame in heard] == frames
    assert b"".join(map(packed, heard)) == stream


def test_something_that_wrote_into_the_stream_is_refused_with_what_it_wrote() -> None:
    decoder = Decoder()
    assert list(decoder.feed(encode({"type": "a"})))
    with pytest.raises(ProtocolError, match="WARNING: a library"):
        list(decoder.feed(b"WARNING: a library says hello\n"))


def test_named_parts_come_back_by_name_also_when_empty() -> None:
    parts = [("model", b"abc"), ("empty", b""), ("shape:x", b"1,2")]
    index, body = join_parts(parts)
    assert split_parts(index, body) == dict(parts)


#: One frame of each type that a child may say, as adapters say it.
SAID: dict[str, tuple[dict[str, Any], bytes]] = {
    "agent_fault": ({"text": "a fault"}, b""),
    "calibration_cache": ({}, b"x: 3c01"),
    "done": ({"cuda_error": "", "changed": ""}, b""),
    "fact": ({"facts": {}}, b""),
    "failed": ({"text": "refused"}, b""),
    "latency": (
        {"samples_ms": [0.5, 1], "warmup": 3, "clock": "monotonic", "scope": "one run"},
        b"",
    ),
    "layer_times": ({"times": {"a layer": [0.1, 0.2]}}, b""),
    "layers": ({"source": "inspector"}, b"{}"),
    "message": ({"severity": "INFO", "text": "told"}, b""),
    "missing_api": ({"name": "BuilderFlag.INT8"}, b""),
    "output": ({"name": "y", "dtype": "float32", "shape": [2, 1]}, bytes(8)),
    "parser_error": ({"text": "no", "code": "8", "node": "", "operator": "Relu"}, b""),
    "phase": ({"name": "build", "seconds": 0.5, "ok": True}, b""),
    "phase_begin": ({"name": "build"}, b""),
    "plan": ({}, b"plan"),
    "unavailable": ({"text": "needs a GPU"}, b""),
}


def read(kind: str, fields: dict[str, Any], body: bytes = b"", reader: FrameReader | None = None) -> None:
    (frame,) = Decoder().feed(encode({"type": kind, **fields}, body))
    (reader or FrameReader(FROM_CHILD)).read(frame)


def test_what_adapters_say_is_in_the_table_with_every_field_of_it() -> None:
    assert SAID.keys() == FROM_CHILD.keys()
    for kind, (fields, body) in SAID.items():
        read(kind, fields, body)
        for missing in FROM_CHILD[kind].fields:
            with pytest.raises(ProtocolError, match=f"'{kind}' has no '{missing}'"):
                read(kind, {name: value for name, value in fields.items() if name != missing}, body)
        if not body:
            with pytest.raises(ProtocolError):
                read(kind, fields, b"x")
    said = {
        name for path in AGENT.rglob("*.py") for name in re.findall(r'emit\(\s*"(\w+)"', path.read_text())
    }
    assert said == FROM_CHILD.keys()
    phases = {
        name
        for path in AGENT.rglob("*.py")
        for name in re.findall(r'phase\(emit, "([^"]+)"', path.read_text())
    }
    assert phases <= {*PHASES, *PREFLIGHT_PHASES}


def test_what_the_agent_alone_says_no_child_does() -> None:
    assert OF_A_JOB.keys() - FROM_CHILD.keys() == {"end", "native"}
    for kind in ("end", "native", "hello", "hello_failed", "start", "job", "confetti"):
        with pytest.raises(ProtocolError, match=f"a frame of the type '{kind}'"):
            read(kind, {})


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("message", {"severity": "end"}),
        ("message", {"text": 5}),
        ("message", {"severity": ["INFO"]}),
        ("message", {"more": 1}),
        ("phase", {"name": "confetti"}),
        ("phase", {"seconds": True}),
        ("phase", {"seconds": -1.0}),
        ("phase", {"seconds": "1"}),
        ("phase", {"ok": 1}),
        ("fact", {"facts": {"gpu": 5}}),
        ("fact", {"facts": {"gpu": "another"}}),
        ("fact", {"facts": ["gpu"]}),
        ("layers", {"source": "verbose_log"}),
        ("latency", {"samples_ms": [0.5, "1"]}),
        ("latency", {"samples_ms": [[0.5]]}),
        ("latency", {"warmup": 1.5}),
        ("latency", {"before": {"temperature": 5}}),
        ("layer_times", {"times": {"a": 0.5}}),
        ("output", {"dtype": "quaternion"}),
        ("output", {"shape": [3]}),
        ("output", {"shape": [-1, -2]}),
        ("output", {"shape": [2, 1.0]}),
        ("output", {"shape": [1] * 65}),
        ("output", {"dtype": ""}),
        ("missing_api", {"name": "x" * (1 << 17)}),
        ("parser_error", {"code": 8}),
    ],
)
def test_what_is_not_as_the_table_says_is_refused(kind: str, changes: dict[str, Any]) -> None:
    fields, body = SAID[kind]
    with pytest.raises(ProtocolError) as refused:
        read(kind, {**fields, **changes}, body)
    assert len(str(refused.value)) < 200


def test_a_preflight_tells_of_the_machine() -> None:
    read("fact", {"facts": {"gpu": "H100"}}, reader=FrameReader(FROM_CHILD, preflight=True))


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"{",
        b"[]",
        b'"text"',
        b"{}",
        b'{"type": 5}',
        b'{"type": ["message"]}',
        b"\xff\xfe",
        b'{"type": "phase", "name": "build", "seconds": NaN, "ok": true}',
        b'{"type": "phase", "name": "build", "seconds": 1e999, "ok": true}',
        b'{"type": "phase", "name": "build", "seconds": -Infinity, "ok": true}',
        b'{"type": "latency", "warmup": ' + b"9" * 100_000 + b"}",
        b"[" * 200_000,
        b'{"a":' * 100_000,
        b'{"type": "message", "severity": "INFO", "text": ' + b"[" * 900 + b"]" * 900 + b"}",
    ],
)
def test_what_is_no_message_is_one_error_and_no_other(head: bytes) -> None:
    with pytest.raises(ProtocolError) as refused:
        FrameReader(FROM_CHILD).read(Frame(head, b"", NO_JOB))
    assert len(str(refused.value)) < 400


def test_what_is_said_too_often_or_too_much_of_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = FrameReader(FROM_CHILD)
    for _ in range(FROM_CHILD["phase_begin"].most):
        read("phase_begin", {"name": "build"}, reader=reader)
    with pytest.raises(ProtocolError, match="more than 64 frames of the type 'phase_begin'"):
        read("phase_begin", {"name": "build"}, reader=reader)
    monkeypatch.setattr(protocol, "HEADS_LIMIT", 1000)
    monkeypatch.setattr(protocol, "BODIES_LIMIT", 1000)
    for kind, fields, body in (
        ("message", {"severity": "INFO", "text": "x" * 400}, b""),
        ("layers", {"source": "inspector"}, bytes(400)),
    ):
        reader = FrameReader(FROM_CHILD)
        read(kind, fields, body, reader)
        read(kind, fields, body, reader)
        with pytest.raises(ProtocolError, match=r"more than \d+ MiB were said in one job"):
            read(kind, fields, body, reader)


@pytest.mark.parametrize(("head", "body"), [(protocol.HEAD_LIMIT + 1, 0), (2, 101)])
def test_a_frame_that_is_too_long_is_refused_before_it_is_kept(head: int, body: int) -> None:
    decoder = Decoder(limit=100)
    assert list(decoder.feed(encode({"type": "a"}, bytes(100))))
    with pytest.raises(ProtocolError, match=f"a message of {head} bytes and {body} more"):
        list(decoder.feed(b"TCM2" + NO_JOB + head.to_bytes(4, "big") + body.to_bytes(4, "big")))


def decoded(*pieces: bytes) -> list[Frame | str]:
    """Return the frames of a stream, and "broken" at other bytes."""
    found: list[Frame | str] = []
    decoder = Decoder(1 << 20)
    try:
        for piece in pieces:
            found += decoder.feed(piece)
    except ProtocolError:
        found.append("broken")
    return found


@SAME
@given(
    near(*(encode({"type": kind, **fields}, body, JOB) for kind, (fields, body) in SAID.items())),
    st.integers(1, 40),
)
def test_a_stream_near_a_good_one_is_read_alike_however_it_comes(data: bytes, step: int) -> None:
    """Any fault is a ProtocolError, of a frame's form or its content."""
    frames = decoded(data)
    assert decoded(*(data[at : at + step] for at in range(0, len(data), step))) == frames
    reader = FrameReader(FROM_CHILD)
    for frame in frames:
        with contextlib.suppress(ProtocolError):
            if isinstance(frame, Frame):
                reader.read(frame)
