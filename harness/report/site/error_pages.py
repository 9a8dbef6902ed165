"""The page of each known error: what the engine says, what it means, where it is seen, what to do."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from harness.judge.diagnosis import in_general
from harness.report.site import paths
from harness.report.site.facts import lines, signatures
from harness.report.site.material import Page, guesses, told
from harness.report.text import clip

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.judge.diagnosis import Signature
    from harness.report.model import CellView
    from harness.report.site.facts import Fact, Line
    from harness.report.site.material import Key, Material

#: Texts of one error that are quoted, and characters of each.
_TEXTS, _LONGEST = 3, 600


@dataclass(frozen=True)
class Text:
    """A text as engines print it, and the targets that did."""

    text: str
    seen: str


@dataclass(frozen=True)
class Entry:
    """What a signature is in general: `kind` is "failure", or "warning" for what explains at most a lost precision."""

    id: str
    title: str
    cause: str
    advice: str
    kind: str
    texts: tuple[Text, ...]
    links: tuple[str, ...]


@dataclass(frozen=True)
class About:
    """All that the page of an error says.

    `patterns` are what is looked for, each with where. `known` and `guessed` are the variants that fail so, each along
    the versions; `proofs` those that put the advice to the test. `counts` are the results measured and reported.
    """

    entry: Entry
    patterns: tuple[tuple[str, str], ...]
    known: tuple[tuple[Key, tuple[Line, ...]], ...]
    guessed: tuple[tuple[Key, tuple[Line, ...]], ...]
    proofs: tuple[tuple[Key, tuple[Line, ...]], ...]
    counts: tuple[int, int]


def error_pages(material: Material) -> Iterator[Page]:
    """Yield the list of errors and the page of each."""
    by_signature: dict[str, list[Fact]] = {name: [] for name in signatures()}
    for every in material.facts.values():
        for each in every:
            if each.advice and each.advice.id in by_signature:
                by_signature[each.advice.id].append(each)
    told_of = [about(material, signature, by_signature[name]) for name, signature in signatures().items()]
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


def _entry(signature: Signature, measured: Sequence[Fact]) -> Entry:
    """Return what a signature is in general, with what engines printed here."""
    said = in_general(signature)
    return Entry(
        said.id,
        said.title,
        said.cause,
        said.advice,
        "warning" if signature.note else "failure",
        tuple(_texts(signature, measured)),
        said.links,
    )


def about(material: Material, signature: Signature, facts: Sequence[Fact]) -> About:
    """Return all that the page of an error says; `facts` are those that fail by it."""
    known = told(facts)
    measured = [each for each in known if each.measured]
    proofs = (tuple(name.partition(".")[::2]) for name in signature.advice_variants)
    return About(
        _entry(signature, measured),
        tuple((pattern.where, pattern.regex.pattern) for pattern in signature.patterns),
        _by_variant(known),
        _by_variant(guesses(facts)),
        tuple((key, lines(told(material.facts[key]))) for key in proofs if key in material.facts),
        (len(measured), len(known) - len(measured)),
    )


def _by_variant(facts: Sequence[Fact]) -> tuple[tuple[Key, tuple[Line, ...]], ...]:
    found: dict[Key, list[Fact]] = {}
    for each in facts:
        found.setdefault((each.cell.case, each.cell.variant), []).append(each)
    return tuple((key, lines(every)) for key, every in found.items())


def _texts(signature: Signature, measured: Sequence[Fact]) -> Iterator[Text]:
    """Yield what engines printed, one text for each pattern at most, and which printed that first."""
    for pattern in signature.patterns[:_TEXTS]:
        found = (
            Text(clip(text, _LONGEST), f"measured on {each.target.label}")
            for each in measured
            for text in _said(each.cell)
            if pattern.regex.search(text)
        )
        yield from islice(found, 1)


def _said(cell: CellView) -> Iterator[str]:
    yield from (message.text for message in cell.messages)
    yield from (entry.text for entry in cell.parser_errors)
    yield from (text for text in (cell.error, cell.missing_api or "") if text)
    yield from cell.native_output.splitlines()
