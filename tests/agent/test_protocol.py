"""Frames survive any cut of the stream, and what is not a frame is refused."""

import pytest

from harness.agent.protocol import Decoder, Frame, ProtocolError, encode, join_parts, split_parts

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("step", [1, 2, 3, 7, 12, 1000])
def test_frames_survive_any_cut_of_the_stream(step: int) -> None:
    frames: list[Frame] = [
        ({"type": "a", "n": 1}, b""),
        ({"type": "b", "text": "Ünï\n"}, b"\x00" * 50),
        ({"type": ""}, b"TCM1"),
    ]
    stream = b"".join(encode(message, body) for message, body in frames)
    decoder = Decoder()
    heard = [frame for at in range(0, len(stream), step) for frame in decoder.feed(stream[at : at + step])]
    assert heard == frames


def test_something_that_wrote_into_the_stream_is_refused_with_what_it_wrote() -> None:
    decoder = Decoder()
    assert list(decoder.feed(encode({"type": "a"})))
    with pytest.raises(ProtocolError, match="WARNING: a library"):
        list(decoder.feed(b"WARNING: a library says hello\n"))


def test_named_parts_come_back_by_name_also_when_empty() -> None:
    parts = [("model", b"abc"), ("empty", b""), ("shape:x", b"1,2")]
    index, body = join_parts(parts)
    assert split_parts(index, body) == dict(parts)
