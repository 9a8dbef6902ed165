r"""The subset of regular expressions that means the same in Python and in JavaScript, and its form in JavaScript.

Python compiles it with re.ASCII, JavaScript with the flag u. What differs between the two is either rewritten
exactly (`.`, `$`, `\A`, `\Z`, `\s`, `(?P<name>`) or refused.
"""

from __future__ import annotations

import re
from typing import NamedTuple

#: One part of a pattern: an escape, a class, the beginning of a group, a repetition, or a single character.
_TOKEN = re.compile(
    r"(?P<escape>\\(?:x[0-9a-fA-F]{2}|.))"
    r"|(?P<members>\[\^?\]?(?:\\.|[^\]\\])*\])"
    r"|\(\?P<(?P<name>[A-Za-z]\w*)>"
    r"|(?P<plain>\(\?(?::|<?[=!]))"
    r"|(?P<special>\(\?.?)"
    r"|(?P<repeat>(?:[*+?]|\{\d+(?:,\d*)?\})[?+]?)"
    r"|(?P<one>.)",
    re.DOTALL,
)
_IN_MEMBERS = re.compile(r"\\x[0-9a-fA-F]{2}|\\.|.", re.DOTALL)
#: What Python warns of in a class, as a later version may take it for a set within, a difference, a union and so on.
_SETS = re.compile(r"\A\[\^?\[|(?<!\\)(?:--|&&|~~|\|\|)")
_SPACE = r" \t\n\r\f\v"
#: An end is where no character follows; a dollar stands before the last line break too.
_REWRITTEN = {
    r"\A": r"(?<![\s\S])",
    r"\Z": r"(?![\s\S])",
    r"\s": f"[{_SPACE}]",
    r"\S": f"[^{_SPACE}]",
    "$": r"(?=\n?(?![\s\S]))",
    ".": r"[^\n]",
    "]": r"\]",
    "}": r"\}",
}
_SAME = frozenset(rf"\{letter}" for letter in "wWdDbBntrfv")
_SYNTAX = frozenset("^$\\.*+?()[]{}|/")
_ANY = r"[\s\S]"
_HEX = r"\x"


class Unportable(ValueError):
    """What a pattern holds that JavaScript has not or takes for something else, and what to write, in a sentence."""


class _Group(NamedTuple):
    start: int
    captures: int
    negative: bool


def javascript(pattern: str) -> str:
    """Return the source of the same expression in JavaScript, for the flag u; raises Unportable for what has none."""
    made: list[str] = []
    opened: list[_Group] = []
    closed: _Group | None = None
    captures = 0
    for token in _TOKEN.finditer(pattern):
        text, kind = token.group(), token.lastgroup
        if kind in ("special", "name", "plain") or text == "(":
            captures += kind == "name"
            opened.append(_Group(token.start(), captures - (kind == "name"), text in ("(?!", "(?<!")))
            text = _beginning(kind, text, token["name"])
        elif text == ")" and opened:
            closed = opened.pop()
            _check_closed(closed, captures)
            made.append(text)
            continue
        elif kind == "repeat":
            _check_repeated(text, pattern[closed.start : token.start()] if closed else "", closed, captures)
        else:
            text = _members(text) if kind == "members" else _character(text)
        closed = None
        made.append(text)
    return "".join(made)


def _beginning(kind: str | None, text: str, name: str | None) -> str:
    if kind == "special":
        raise Unportable(f"{text!r} is not in the subset that JavaScript shares; spell it out without it")
    return f"(?<{name}>" if name else text


def _check_closed(group: _Group, captures: int) -> None:
    if group.negative and captures > group.captures:
        raise Unportable("a group is captured in what must not be there; capture none with (?:...)")


def _check_repeated(text: str, repeated: str, group: _Group | None, captures: int) -> None:
    if text.endswith("+") and text != "+":
        raise Unportable(f"{text!r} never gives back what it took; write {text[:-1]!r}")
    if group is None or text[0] == "?":
        return
    if captures > group.captures:
        raise Unportable(
            "a group is captured in a part that is repeated; capture the whole, or none with (?:...)"
        )
    if re.fullmatch(repeated, "", re.ASCII):
        raise Unportable(f"{repeated!r} is repeated and may be empty; make it take a character")


def _character(text: str) -> str:
    if text in _REWRITTEN:
        return _REWRITTEN[text]
    if text[0] != "\\" or text in _SAME or text.startswith(_HEX):
        if text == "{":
            raise Unportable(r"'{' stands alone; write '\{'")
        return text
    if text == "\\":
        raise Unportable(r"a backslash with nothing behind it ends the pattern; write '\\' for one")
    if text[1].isalnum():
        raise Unportable(f"{text!r} is not in the subset that JavaScript shares; spell it out without it")
    return text if text[1] in _SYNTAX else text[1]


def _members(text: str) -> str:
    """Return a class; of the negated ones only the class of all characters may hold any."""
    if text == _ANY:
        return text
    if found := _SETS.search(text):
        raise Unportable(f"{found.group()!r} may mean a set of sets one day; put a backslash before its end")
    start = "[^" if text.startswith("[^") else "["
    return start + "".join(map(_member, _IN_MEMBERS.findall(text[len(start) : -1]))) + "]"


def _member(text: str) -> str:
    if text == r"\s":
        return _SPACE
    if text in (r"\w", r"\d", *(rf"\{letter}" for letter in "ntrfv"), r"\-") or text.startswith(_HEX):
        return text
    bare = text[-1]
    if text[0] == "\\" and bare.isalnum():
        raise Unportable(
            f"{text!r} in a class is not in the subset that JavaScript shares; spell it out without it"
        )
    return f"\\{bare}" if bare in _SYNTAX else bare
