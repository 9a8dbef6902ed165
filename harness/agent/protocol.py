"""The stream between host, agent and child: frames, and the one table of their contents.

A frame is `MAGIC`, the id of a job, two big-endian 32-bit lengths, a JSON message, a body of raw bytes. The magic
catches a stream that another writer has written into. The id is made by the host, at random, for each job and stands on
every frame of that job, in the child's pipe too: a frame of another id is not that job's, whoever wrote it.

A child holds an engine and a model of a stranger's, so its frames are checked against the table: by the agent, which
ends a child that sends anything else, and by the host again. A frame within the table is the child's claim about its
own cell, and cannot be checked: adapter and engine are one process, and `agent_fault` and `unavailable` too may be the
engine's own words. They cost its own cell, which is then never a good one.
"""

import json
import math
import struct
from types import MappingProxyType
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from harness.agent.tensors import ELEMENTS, size

MAGIC = b"TCM2"
_HEAD = struct.Struct(">4s16sII")
#: The id of frames that belong to no job.
NO_JOB = bytes(16)

#: Bytes of the JSON of one frame, and of all frames of a job; the listing of a large engine's layers is some MB.
HEAD_LIMIT, HEADS_LIMIT = 16 << 20, 256 << 20
#: Bytes of the bodies of a job: an engine with the weights of a large model.
BODIES_LIMIT = 2 << 30
#: Characters of a name, and of what a report in words may have.
_NAME, _TEXT = 1 << 16, HEAD_LIMIT
#: Elements of a list and of a mapping.
_MANY = 1 << 17
_DIMENSIONS = 64
#: The most digits of a whole number; Python 3.8 takes a time quadratic in them.
_DIGITS = 20

#: The phases of a preflight, and of a cell.
PREFLIGHT_PHASES = ("the GPU", "builder, network, parser and config", "the runtime")
PHASES = ("parse", "build", "calibrate", "serialise", "load", "run", "time", "profile")

Message = Dict[str, Any]
Check = Callable[[Any], bool]


class ProtocolError(Exception):
    """The bytes on the stream are not frames, or a frame is not in the table."""


class Frame(NamedTuple):
    """A frame as it came: the JSON of its message is not read yet."""

    head: bytes
    body: bytes
    job: bytes


class MessageKind(NamedTuple):
    """A type of message: its fields, optional fields, how many a job may send, with a body or not."""

    fields: Dict[str, Check]
    most: int
    may: Mapping[str, Check] = MappingProxyType({})
    body: bool = False


def _text(value: Any) -> bool:
    return type(value) is str and len(value) <= _TEXT


def _name(value: Any) -> bool:
    return type(value) is str and len(value) <= _NAME


def _flag(value: Any) -> bool:
    return value is True or value is False


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 53


def _number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _seconds(value: Any) -> bool:
    return _number(value) and value >= 0


def _numbers(value: Any) -> bool:
    return type(value) is list and len(value) <= _MANY and all(map(_seconds, value))


def _shape(value: Any) -> bool:
    return type(value) is list and len(value) <= _DIMENSIONS and all(map(_count, value))


def _times(value: Any) -> bool:
    return _mapping(value, _numbers)


def _facts(value: Any) -> bool:
    return _mapping(value, _name)


def _mapping(value: Any, check: Check) -> bool:
    if type(value) is not dict or len(value) > _MANY:
        return False
    return all(map(_name, value)) and all(map(check, value.values()))


def _nothing(_: Any) -> bool:
    return False


def _or_none(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _one_of(*words: str) -> Check:
    # A list is not hashable, and no word either.
    known = frozenset(words)
    return lambda value: type(value) is str and value in known


_SENSORS = {"before": _facts, "after": _facts}
_PHASE = _one_of(*PHASES, *PREFLIGHT_PHASES)

#: The messages of a child about its job. `done` is for the agent: without it a child that ended in order was cut short.
#: It names the traces for the next job in the same child: an error of CUDA, the name of a changed variable.
FROM_CHILD: Dict[str, MessageKind] = {
    "agent_fault": MessageKind({"text": _text}, 16),
    "calibration_cache": MessageKind({}, 4, body=True),
    "done": MessageKind({"cuda_error": _text, "changed": _text}, 1),
    "fact": MessageKind({"facts": _facts}, 64),
    "failed": MessageKind({"text": _text}, 16),
    "latency": MessageKind(
        {
            "samples_ms": _numbers,
            "warmup": _count,
            "clock": _one_of("cuda_events", "cuda_graph", "monotonic"),
            "scope": _name,
        },
        4,
        _SENSORS,
    ),
    "layer_times": MessageKind({"times": _times}, 4),
    "layers": MessageKind({"source": _one_of("inspector", "ort_graph")}, 4, body=True),
    "message": MessageKind(
        {"severity": _one_of("VERBOSE", "INFO", "WARNING", "ERROR", "INTERNAL_ERROR"), "text": _text}, 1 << 20
    ),
    "missing_api": MessageKind({"name": _name}, 16),
    "output": MessageKind(
        {"name": _name, "dtype": _one_of("", *ELEMENTS), "shape": _shape}, 4096, {"plain": _flag}, body=True
    ),
    "parser_error": MessageKind(dict.fromkeys(("text", "code", "node", "operator"), _text), 1 << 12),
    "phase": MessageKind({"name": _PHASE, "seconds": _seconds, "ok": _flag}, 64),
    "phase_begin": MessageKind({"name": _PHASE}, 64),
    "plan": MessageKind({}, 1, {"bytes": _count}, body=True),
    "unavailable": MessageKind({"text": _text}, 16),
}

#: The messages of the agent before the first job, forbidden to a child.
GREETINGS: Dict[str, MessageKind] = {
    "hello": MessageKind({"facts": _facts}, 1),
    "hello_failed": MessageKind({"error": _text}, 1),
}
#: The messages about a job that the host hears, and harness/run/observation.py takes in: the child's, and the ones that
#: the agent alone says, `end` last.
OF_A_JOB: Dict[str, MessageKind] = {
    **{kind: FROM_CHILD[kind] for kind in FROM_CHILD if kind != "done"},
    "end": MessageKind(
        {
            "kind": _one_of("finished", "exited", "signalled", "out_of_memory", "timed_out"),
            "detail": _text,
            "peak_rss_bytes": _or_none(_count),
        },
        1,
        {
            "exit_code": _or_none(_count),
            "signal": _or_none(_name),
            "jobs_before": _count,
            "cuda_error": _text,
        },
    ),
    "native": MessageKind({"text": _text}, 1 << 20),
}

#: The start of a job's end if its child sent a message outside of the table; a signature in diagnosis.yaml knows it.
BROKEN = "broke the protocol: "


class FrameReader:
    """Reads the frames of one job; `known` are the types that may come. Raises ProtocolError for any other."""

    def __init__(self, known: Mapping[str, MessageKind], *, preflight: bool = False) -> None:
        self._known = known
        self._preflight = preflight
        self._said: Dict[str, int] = {}
        self._heads = 0
        self._bodies = 0

    def read(self, frame: Frame) -> Message:
        """Return a frame's message; it has its `type` and the fields of that, each as the table says."""
        self._heads += len(frame.head)
        self._bodies += len(frame.body)
        if self._heads > HEADS_LIMIT or self._bodies > BODIES_LIMIT:
            most = HEADS_LIMIT if self._heads > HEADS_LIMIT else BODIES_LIMIT
            raise ProtocolError("more than %d MiB were said in one job" % (most >> 20))
        message = read_message(frame.head)
        name = message["type"]
        kind = self._known.get(name)
        if kind is None:
            raise ProtocolError("a frame of the type %.40r, which none from there is" % name)
        said = self._said[name] = self._said.get(name, 0) + 1
        if said > kind.most:
            raise ProtocolError("more than %d frames of the type %r" % (kind.most, name))
        _check_fields(name, kind, message)
        if frame.body and not kind.body:
            raise ProtocolError("%r has a body of %d bytes" % (name, len(frame.body)))
        if name == "output":
            _check_filled(message, frame.body)
        elif name == "fact" and message["facts"] and not self._preflight:
            raise ProtocolError("a cell's job tells of %.80r" % sorted(message["facts"]))
        return message


def _check_fields(name: str, kind: MessageKind, message: Message) -> None:
    for field, check in kind.fields.items():
        if field not in message or not check(message[field]):
            raise _wrong(name, field, message)
    if len(message) == len(kind.fields) + 1:
        return
    for field, value in message.items():
        if field not in kind.fields and field != "type" and not kind.may.get(field, _nothing)(value):
            raise _wrong(name, field, message)


def _check_filled(message: Message, body: bytes) -> None:
    filled = size(message["dtype"], message["shape"]) if message["dtype"] else 0
    if filled != len(body):
        raise ProtocolError("'output' has %d bytes, and its shape takes %d" % (len(body), filled))


def _wrong(name: str, field: str, message: Message) -> ProtocolError:
    if field not in message:
        return ProtocolError("%r has no %r" % (name, field))
    value = message[field]
    # A nested value is named by its type alone: writing it out may take as many steps as it is deep.
    shown = repr(value[:40]) if isinstance(value, str) else type(value).__name__
    return ProtocolError("%r has the %.40r %s" % (name, field, shown))


def _short_int(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError("a number of %d digits" % len(digits))
    return int(digits)


def _no_number(word: str) -> Any:
    raise ValueError("%s is no number in JSON" % word)


_JSON = json.JSONDecoder(parse_int=_short_int, parse_constant=_no_number)


def read_message(data: bytes) -> Message:
    """Return the message of a frame; raises ProtocolError if it is no JSON or has no type."""
    try:
        message = _JSON.decode(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ProtocolError("not a message: %.80r (%s)" % (data[:80], error)) from error
    if type(message) is not dict or type(message.get("type")) is not str:
        raise ProtocolError("a message without a type: %.80r" % data[:80])
    return message


def encode(message: Mapping[str, Any], body: bytes = b"", job: bytes = NO_JOB) -> bytes:
    """Return one frame as bytes."""
    head = json.dumps(message, separators=(",", ":")).encode()
    return packed(Frame(head, body, job))


def packed(frame: Frame) -> bytes:
    """Return a frame as bytes."""
    return _HEAD.pack(MAGIC, frame.job, len(frame.head), len(frame.body)) + frame.head + frame.body


class Decoder:
    """Turns a byte stream, cut anywhere, back into frames; `limit` bounds a body before any of it is kept."""

    def __init__(self, limit: int = (1 << 32) - 1) -> None:
        self._buffer = bytearray()
        self._limit = limit

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield each frame that `data` completes; raises ProtocolError when the stream is not ours."""
        self._buffer += data
        while True:
            # As soon as it can be told: of less than a head there may never be more.
            if not MAGIC.startswith(self._buffer[: len(MAGIC)]):
                raise ProtocolError("not a frame: %r" % bytes(self._buffer[:80]))
            if len(self._buffer) < _HEAD.size:
                return
            _, job, head, body = _HEAD.unpack_from(self._buffer)
            if head > HEAD_LIMIT or body > self._limit:
                raise ProtocolError("a frame with a message of %d bytes and %d more" % (head, body))
            end = _HEAD.size + head + body
            if len(self._buffer) < end:
                return
            start = _HEAD.size + head
            frame = Frame(bytes(self._buffer[_HEAD.size : start]), bytes(self._buffer[start:end]), job)
            del self._buffer[:end]
            yield frame


def join_parts(parts: Sequence[Tuple[str, bytes]]) -> Tuple[List[List[Any]], bytes]:
    """Return the index and the body that carry several named blobs in one frame."""
    return [[name, len(data)] for name, data in parts], b"".join(data for _, data in parts)


def split_parts(index: Sequence[Sequence[Any]], body: bytes) -> Dict[str, bytes]:
    """Return the named blobs of a frame made by `join_parts`."""
    parts: Dict[str, bytes] = {}
    start = 0
    for name, length in index:
        parts[name] = body[start : start + length]
        start += length
    return parts
