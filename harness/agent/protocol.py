"""Length-prefixed frames: a JSON message and a body of raw bytes, the same on both ends of the stream.

A frame is `MAGIC`, two big-endian 32-bit lengths, the message, the body. The magic catches a stream that something
else has written into: better one clear error than a length read out of somebody's log line.
"""

import json
import struct
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple

MAGIC = b"TCM1"
_HEAD = struct.Struct(">4sII")

#: What the agent may say in answer to a job, `end` last; harness/run/observation.py takes in each of them.
EVENTS = frozenset(
    {
        "agent_fault",
        "calibration_cache",
        "end",
        "fact",
        "failed",
        "latency",
        "layer_times",
        "layers",
        "message",
        "missing_api",
        "native",
        "output",
        "parser_error",
        "phase",
        "phase_begin",
        "plan",
        "profile",
        "unavailable",
    }
)

Message = Dict[str, Any]
Frame = Tuple[Message, bytes]


class ProtocolError(Exception):
    """The bytes on the stream are not frames."""


def encode(message: Mapping[str, Any], body: bytes = b"") -> bytes:
    """Return one frame as bytes."""
    head = json.dumps(message, separators=(",", ":")).encode()
    return _HEAD.pack(MAGIC, len(head), len(body)) + head + body


class Decoder:
    """Turns a byte stream, cut anywhere, back into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield each frame that `data` completes; raises ProtocolError when the stream is not ours."""
        self._buffer += data
        while len(self._buffer) >= _HEAD.size:
            magic, head, body = _HEAD.unpack_from(self._buffer)
            if magic != MAGIC:
                raise ProtocolError("not a frame: %r" % bytes(self._buffer[:80]))
            end = _HEAD.size + head + body
            if len(self._buffer) < end:
                return
            start = _HEAD.size + head
            message = _message(bytes(self._buffer[_HEAD.size : start]))
            payload = bytes(self._buffer[start:end])
            del self._buffer[:end]
            yield message, payload


def _message(data: bytes) -> Message:
    try:
        message = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ProtocolError("not a message: %r (%s)" % (data[:80], error)) from error
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise ProtocolError("a message without a type: %r" % data[:80])
    return message


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
