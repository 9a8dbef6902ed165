"""The further tries of a check as rows, which show them everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec import structs

from harness.known.further import Became, Blocker, Blockers, Further, LeftFloat, Tried, Workarounds
from harness.text import clip, some
from harness.words import PREDICATE, said

_MOST_NAMES, _WIDEST = 4, 640


class Row(NamedTuple):
    """A line of the table: the question put to a target, its subject, and the answer."""

    model: str
    target: str
    question: str
    about: str
    answer: str


def further_rows(entries: Iterable[Further], question: str = "") -> tuple[Row, ...]:
    """Return entries as rows of a table, in their order; `question`, as an entry has it, leaves out the others."""
    return tuple(
        Row(entry.model, entry.target, *words)
        for entry in entries
        for key, told in _TOLD.items()
        if getattr(entry, key) is not None and question in ("", key)
        for words in told(getattr(entry, key))
    )


def _blockers(found: Blockers) -> Iterator[tuple[str, str, str]]:
    for each in _kinds(found.found):
        cut = "after a cut: " if each.after_cut else ""
        why = f"{each.signature}: {each.title}" if each.signature else each.reason
        yield "blockers", _where(each), _short(f"{cut}{why}{'. ' if each.advice else ''}{each.advice}")
    if found.cut_as_well:
        names = some(found.cut_as_well, _MOST_NAMES)
        yield "blockers", names, "cut as well: their inputs have no known shape"
    yield "blockers", "in the end", _short(found.end)


def _where(each: Blocker) -> str:
    many = f"{len(each.nodes)} times " if each.operator and each.named and len(each.nodes) > 1 else ""
    unnamed = "" if each.named else " (one of these: the engine names none)"
    return f"{many}{each.operator or 'a fused region'}: {some(each.nodes, _MOST_NAMES)}{unnamed}"


def _kinds(found: Sequence[Blocker]) -> list[Blocker]:
    """Return blockers with those of one cause and operator as one, in place of the first of them."""
    kinds: dict[object, Blocker] = {}
    for number, each in enumerate(found):
        alike = each.signature and each.named and each.operator
        key = (each.signature, each.operator) if alike else number
        first = kinds.get(key)
        kinds[key] = structs.replace(first, nodes=(*first.nodes, *each.nodes)) if first else each
    return list(kinds.values())


def _left(found: LeftFloat) -> Iterator[tuple[str, str, str]]:
    if found.became is None:
        why = "does not help" if found.of else "none of its nodes is quantised"
        yield "left in floating point", "every quantised node", why
        return
    least = "; none of them can be spared" if found.least else ""
    helps = "helps" if found.helps else "does not help"
    about = f"{len(found.nodes)} of {len(found.of)} quantised nodes: {','.join(found.nodes)}"
    yield "left in floating point", about, f"{helps}: {_became(found.became)}{least}"


def _workarounds(found: Workarounds) -> Iterator[tuple[str, str, str]]:
    vain: dict[str, list[str]] = {}
    for each in found.tried:
        if not each.gain:
            vain.setdefault(_became(each.became), []).append(each.name)
            continue
        best = " (the best)" if each.name == found.best else ""
        gain = f" ({each.gain})" if each.gain != "builds" else ""
        proof = f"; as in {', '.join(each.proof)}" if each.proof else ""
        answer = f"{_became(each.became)}{gain}{best}; costs {each.costs}; {_outputs(each)}{proof}"
        yield "workarounds", f"{each.name}: {each.title}", _short(answer)
    for became, names in vain.items():
        yield "workarounds", ", ".join(names), f"in vain: {became}"
    if found.nothing_to_change:
        yield "workarounds", ", ".join(found.nothing_to_change), "nothing to change"


#: In the order in which they are asked.
_TOLD: dict[str, Any] = {"blockers": _blockers, "leave_float": _left, "workarounds": _workarounds}


def _became(found: Became) -> str:
    kept = f", {said(found.precision or '').upper()} {found.kept}/{found.wanted}" if found.wanted else ""
    cause = f" ({found.signature})" if found.signature else ""
    return f"{PREDICATE[found.cls]}{cause}{kept}"


def _outputs(found: Tried) -> str:
    if found.uncompared or not found.outputs:
        return f"outputs not compared: {found.uncompared or 'none'}"
    worst = max(found.outputs, key=lambda each: (not each.shape_matches, each.not_finite, each.max_rel))
    if not worst.shape_matches:
        return f"output {worst.output!r} has another shape"
    if worst.max_abs == 0 and not worst.not_finite:
        return "all outputs the same"
    if worst.differing is not None:
        return f"output {worst.output!r} differs in {worst.differing} of its {worst.elements} elements"
    cosine = "" if worst.elements == 1 else f", cosine {worst.cosine:.6f}"
    return f"outputs off by {worst.max_rel:.2g} at most{cosine}"


def _short(text: str) -> str:
    return clip(" ".join(text.split()), _WIDEST)
