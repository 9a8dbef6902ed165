"""Text that strangers wrote (names, logs) made safe to show, and the half-sentences of error messages."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Hashable, Iterable, Sequence
from decimal import ROUND_HALF_UP, Context
from typing import TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")

#: Characters that are invisible or turn text around: controls but tab and newline, bidirectional marks, zero-width
#: characters, byte-order mark, tags; and lone surrogates, which UTF-8 cannot hold.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)
#: ANSI colour sequences, which native libraries write to their standard error.
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def visible(text: str) -> str:
    """Return the text with every hidden character written out as ⟨U+202E⟩, without colour sequences."""
    if text.isprintable():
        return text
    text = _ANSI.sub("", text.replace("\r\n", "\n"))
    return _HIDDEN.sub(lambda found: f"⟨U+{ord(found.group()):04X}⟩", text)


def capital(text: str) -> str:
    """Return a sentence with its first letter in capitals, unless it begins with a name or path."""
    return text[:1].upper() + text[1:] if re.match(r"[a-z]+[ ,;:]", text) else text


def listed(words: Sequence[str]) -> str:
    """Return words as a sentence lists them: "a, b and c"."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def some(words: Sequence[str], most: int = 3, separator: str = ", ") -> str:
    """Return the first of many words, and how many more there are: "a, b, c and 4 more"."""
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return separator.join(words[:most]) + more


def grouped(pairs: Iterable[tuple[_Key, _Value]]) -> dict[_Key, list[_Value]]:
    """Return the values that share a key, to tell the key once; in the order in which they come."""
    found: dict[_Key, list[_Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def clip(text: str, limit: int) -> str:
    """Return the text with no more than `limit` characters, the end of a longer one replaced by …."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def one_line(text: str, limit: int) -> str:
    """Return the visible characters of a text on one line of no more than `limit`."""
    return clip(" ".join(visible(text).split()), limit)


def tail(text: str, limit: int) -> str:
    """Return the last `limit` characters, from the start of a line if possible."""
    if len(text) <= limit:
        return text
    kept = text[-limit:]
    _, newline, rest = kept.partition("\n")
    return "…\n" + (rest if newline else kept)


def milliseconds(value: float) -> str:
    """Return a time as a reader says it, to three digits: 43 µs, 1.25 ms, 1500 ms."""
    if not math.isfinite(value):
        return f"{value} ms"
    if value < 0.1:  # noqa: PLR2004
        return f"{_digits(value * 1000)} µs"
    return f"{_digits(value) if value < 1000 else _digits(value, len(str(int(value))))} ms"  # noqa: PLR2004


def _digits(value: float, digits: int = 3) -> str:
    """Return a number to so many digits, halves up, as the page's script rounds."""
    return f"{Context(prec=digits, rounding=ROUND_HALF_UP).create_decimal(value).normalize():f}"


#: A list longer than this hides the answer instead of giving it.
_MOST_LISTED = 24


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return "did you mean 'x'?" for a near miss, else the known names, many of them shortened."""
    names = list(known)
    folded = {name.casefold(): name for name in names}
    near = difflib.get_close_matches(word.casefold(), folded, n=1)
    if near:
        return f"did you mean {folded[near[0]]!r}?"
    return f"known: {some(names, _MOST_LISTED)}" if names else "there are none"
