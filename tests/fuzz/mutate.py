"""Edits of an input, as the property test draws them and the campaign's mutator does: of bytes, and of JSON in it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

#: What a value of JSON is replaced by.
VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        2**31,
        2**63,
        10**25,
        -(10**400),
        0.5,
        1e308,
        -0.0,
        "",
        "a",
        "\0",
        "\ud800",
    ),
    *(
        "9" * 5000,
        "a\n[WARNING] b",
        "../..",
        "{0}",
        "2026-01-02",
        "int8",
        [],
        [None],
        [[]],
        {},
        {"a": None},
        [1, "a"],
    ),
)
#: What is put into bytes.
TOKENS: tuple[bytes, ...] = (
    *(
        b"\0",
        b"\xff",
        b"\xed\xa0\x80",
        b"\n",
        b"\n\n",
        b": ",
        b"- ",
        b"[",
        b"]",
        b"{",
        b"}",
        b",",
        b'"',
        b"'",
        b"\\u0000",
    ),
    *(
        b"1e999",
        b"-1",
        b"9" * 400,
        b"null",
        b"NaN",
        b"*a",
        b"&a ",
        b"!!float ",
        b"<<: ",
        b"..",
        b"/",
        b"\n[seen] {}",
    ),
    *(
        b"\nName: ",
        b", LayerType: ",
        b"Layer(",
        b" -> ",
        b"{ForeignNode[",
        b"...",
        b"]}",
        b"[" * 500,
        b"TCM2",
        b"\0\0",
    ),
)
#: The ways to edit.
KINDS = ("put", "cut", "copy", "flip", "value", "drop", "graft", "lines")


_MEMBERS = re.compile(rb"(\n|\0\0)")
_OPENING, _CLOSING = (b"{", b"["), (b"}", b"]", b"\n")


class Edit(NamedTuple):
    """One edit: which way, where, and of what; every number is taken by what is there."""

    kind: str
    place: int
    what: int


def random_edits(random: Random) -> list[Edit]:
    """Return a few edits."""
    return [
        Edit(random.choice(KINDS), random.randrange(1 << 20), random.randrange(1 << 20))
        for _ in range(random.choice((1, 1, 1, 2, 3, 8)))
    ]


def edited(data: bytes, edits: Sequence[Edit]) -> bytes:
    """Return bytes with edits made in them, one after the other."""
    for edit in edits:
        data = _edited(data, edit)
    return data


def _edited(data: bytes, edit: Edit) -> bytes:
    if edit.kind in ("value", "drop", "graft"):
        changed = _in_json(data, edit)
        if changed is not None:
            return changed
    at = edit.place % (len(data) + 1)
    if edit.kind == "cut":
        return data[:at] + data[at + 1 + edit.what % 64 :]
    if edit.kind == "copy":
        start = edit.what % (len(data) + 1)
        return data[:at] + data[start : start + 1 + edit.place % 200] + data[at:]
    if edit.kind == "flip" and at < len(data):
        return data[:at] + bytes([data[at] ^ (1 << edit.what % 8)]) + data[at + 1 :]
    if edit.kind == "lines":
        lines = data.split(b"\n")
        lines.insert(edit.place % (len(lines) + 1), lines[edit.what % len(lines)])
        return b"\n".join(lines)
    return data[:at] + TOKENS[edit.what % len(TOKENS)] + data[at:]


def _in_json(data: bytes, edit: Edit) -> bytes | None:
    """Return bytes with a value changed in them, or in a line or member that is JSON; None where none is."""
    parts = (
        [data]
        if data[:1] in _OPENING and data[-1:] in _CLOSING and b"\n{" not in data
        else _MEMBERS.split(data)
    )
    found = [number for number, part in enumerate(parts) if part[:1] in _OPENING]
    if not found:
        return None
    number = found[edit.place % len(found)]
    try:
        changed = _changed(json.loads(parts[number]), edit)
        parts[number] = json.dumps(changed).encode()
    except (ValueError, RecursionError):
        return None
    return b"".join(parts)


def _changed(document: Any, edit: Edit) -> Any:
    """Return JSON with a value replaced, dropped, or put in the place of another."""
    places = [(None, None), *_places(document)]
    inner, key = places[edit.place % len(places)]
    if edit.kind == "graft":
        other, name = places[edit.what % len(places)]
        value = document if other is None else other[name]
        value = json.loads(json.dumps(value))
    else:
        value = VALUES[edit.what % len(VALUES)]
    if inner is None:
        return value
    if edit.kind == "drop":
        del inner[key]
    else:
        inner[key] = value
    return document


def _places(value: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict | list):
            keys = list(each) if isinstance(each, dict) else list(range(len(each)))
            found += [(each, key) for key in keys]
            waiting += [each[key] for key in keys]
    return found
