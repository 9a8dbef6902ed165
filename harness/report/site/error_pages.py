"""The page of each known error: what the engine says, what it means, where it is seen, what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.report.errors import error_entries
from harness.report.site import paths
from harness.report.site.facts import lines, signatures
from harness.report.site.material import Page, guesses, told
from harness.text import clip

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.report.errors import ErrorEntry
    from harness.report.site.facts import Fact, Line
    from harness.report.site.material import Key, Material


@dataclass(frozen=True)
class About:
    """All that the page of an error says.

    `patterns` are what is looked for, each with where. `known` and `guessed` are the variants that fail so, each along
    the versions; `proofs` those that put the advice to the test, each with a guess that rests on a report. `counts`
    are the results measured and reported.
    """

    entry: ErrorEntry
    patterns: tuple[tuple[str, str], ...]
    known: tuple[tuple[Key, tuple[Line, ...]], ...]
    guessed: tuple[tuple[Key, tuple[Line, ...]], ...]
    proofs: tuple[tuple[Key, tuple[Line, ...], str], ...]
    counts: tuple[int, int]


def error_pages(material: Material) -> Iterator[Page]:
    """Yield the list of errors and the page of each."""
    by_signature: dict[str, list[Fact]] = {name: [] for name in signatures()}
    for every in material.facts.values():
        for each in every:
            if each.advice and each.advice.id in by_signature:
                by_signature[each.advice.id].append(each)
    told_of = [about(material, one, by_signature[one.id]) for one in error_entries(material.results)]
    yield Page(
        paths.ERRORS,
        "TensorRT error messages: what they mean and what to do",
        f"{len(told_of)} errors and warnings of TensorRT and its ONNX parser, each with its cause, the versions that "
        "say it and what to do.",
        "Error messages",
        "errors.html.j2",
        {"every": told_of},
    )
    for one in told_of:
        yield _page(one)


def _page(each: About) -> Page:
    entry = each.entry
    kind = "TensorRT error" if entry.kind == "failure" else "TensorRT warning"
    text = f"“{clip(' '.join(entry.texts[0].text.split()), 140)}”: " if entry.texts else ""
    return Page(
        paths.error(entry.id),
        f"{entry.title}: {kind}, its cause and what to do",
        f"{text}{entry.cause} {entry.advice}",
        entry.title,
        "error.html.j2",
        {"about": each, "entry": entry},
        (("Error messages", paths.ERRORS),),
    )


def about(material: Material, entry: ErrorEntry, facts: Sequence[Fact]) -> About:
    """Return all that the page of an error says; `facts` are those that fail by it."""
    known = told(facts)
    measured = sum(each.measured for each in known)
    proofs = (((each.case, each.variant), each.guess) for each in entry.proofs)
    return About(
        entry,
        tuple((pattern.where, pattern.regex.pattern) for pattern in signatures()[entry.id].patterns),
        _by_variant(known),
        _by_variant(guesses(facts)),
        tuple((key, lines(told(material.facts[key])), guess) for key, guess in proofs),
        (measured, len(known) - measured),
    )


def _by_variant(facts: Sequence[Fact]) -> tuple[tuple[Key, tuple[Line, ...]], ...]:
    found: dict[Key, list[Fact]] = {}
    for each in facts:
        found.setdefault((each.cell.case, each.cell.variant), []).append(each)
    return tuple((key, lines(every)) for key, every in found.items())
