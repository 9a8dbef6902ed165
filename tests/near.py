"""Inputs near those that a reader knows: parts of them are replaced by other bytes, or by meaningful ones."""

from __future__ import annotations

import re

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

#: The same inputs in every run: a test that fails now and then does not help.
SAME = settings(
    max_examples=60,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
#: The replacements of a word or a quoted text.
_VALUES = (
    *(b"", b"null", b"true", b"0", b"-1", b"0.5", b"1e999", b"NaN", b"9" * 400, b'"a"', b'"\\u0000"'),
    *(b'"\\ud800"', b'"../a"', b"{}", b'{"a": null}', b"[]", b"[1]", b"[" * 500, b"*a", b"&a a"),
    *(b"!!float ", b"2026-13-01"),
)
#: Bytes that are put anywhere: of JSON, YAML, frames, logs and patterns.
_PIECES = (
    *(b"\0", b"\xff", b"\xed\xa0\x80", b"\n", b"\n\n", b": ", b"- ", b"[", b"]", b"{", b"}", b","),
    *(b'"', b"'", b"\\"),
    *(b"\n[seen] {}", b"\nName: ", b", LayerType: ", b"Layer(", b" -> ", b"{ForeignNode[", b"...", b"]}"),
    *(b"TCM2", b"<<: ", b"(?P<a>", b"(?:", b")*", b"{2}", b"++", b"9" * 400),
)
_PLACE = st.integers(0, 1 << 16)
#: A place, how many bytes from there, or with -1 the next word or quoted text, and by what they are replaced.
_EDIT = st.one_of(
    st.tuples(_PLACE, st.just(-1), st.sampled_from(_VALUES)),
    st.tuples(
        _PLACE,
        st.sampled_from((0, 1, 8, 64, 512)),
        st.one_of(st.sampled_from(_PIECES), st.binary(max_size=4)),
    ),
)
_WORD = re.compile(rb'"[^"\n]*"|[\w.]+')


def near(*known: bytes) -> st.SearchStrategy[bytes]:
    """Return the inputs near known ones, and these."""
    return st.builds(_edited, st.sampled_from(known), st.lists(_EDIT, max_size=3))


def _edited(data: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    for place, length, piece in edits:
        at = place % (len(data) + 1)
        word = _WORD.search(data, at) if length < 0 else None
        start, end = word.span() if word else (at, at + max(0, length))
        data = data[:start] + piece + data[end:]
    return data
