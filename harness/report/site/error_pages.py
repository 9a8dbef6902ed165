"""The page of each known error: what the engine says, what it means, where it is seen, what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.report.site import paths
from harness.report.site.facts import in_words, lines, signatures
from harness.report.site.material import Page, guesses, told
from harness.report.text import clip

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.judge.diagnosis import Signature
    from harness.report.model import Advice, CellView
    from harness.report.site.facts import Fact, Line
    from harness.report.site.material import Key, Material

#: Texts of one error that are quoted, and characters of each.
_TEXTS, _LONGEST = 3, 600


@dataclass(frozen=True)
class About:
    """All that the page of an error says.

    `texts` are what engines printed here; `patterns` what is looked for, each with where. `harmless` says that it is a
    warning which explains nothing but a lost precision. `known` and `guessed` are the variants that fail so, each
    along the versions; `proofs` those that put the advice to the test.
    """

    advice: Advice
    texts: tuple[str, ...]
    patterns: tuple[tuple[str, str], ...]
    harmless: bool
    known: tuple[tuple[Key, tuple[Line, ...]], ...]
    guessed: tuple[tuple[Key, tuple[Line, ...]], ...]
    versions: tuple[Line, ...]
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
    kind = "TensorRT warning" if each.harmless else "TensorRT error"
    text = f"“{clip(' '.join(each.texts[0].split()), 140)}”: " if each.texts else ""
    return Page(
        paths.error(each.advice.id),
        f"{each.advice.title}: {kind}, its cause and what to do",
        f"{text}{each.advice.cause} {each.advice.advice}",
        each.advice.title,
        "error.html.j2",
        {"about": each},
        (("Error messages", paths.ERRORS),),
    )


def about(material: Material, signature: Signature, facts: Sequence[Fact]) -> About:
    """Return all that the page of an error says; `facts` are those that fail by it."""
    known = told(facts)
    measured = [each.cell for each in known if each.measured]
    proofs = (tuple(name.partition(".")[::2]) for name in signature.advice_variants)
    return About(
        in_words(signature),
        tuple(_texts(signature, measured)),
        tuple((pattern.where, pattern.regex.pattern) for pattern in signature.patterns),
        signature.note,
        _by_variant(known),
        _by_variant(guesses(facts)),
        (),
        tuple((key, lines(told(material.facts[key]))) for key in proofs if key in material.facts),
        (len(measured), len(known) - len(measured)),
    )


def _by_variant(facts: Sequence[Fact]) -> tuple[tuple[Key, tuple[Line, ...]], ...]:
    found: dict[Key, list[Fact]] = {}
    for each in facts:
        found.setdefault((each.cell.case, each.cell.variant), []).append(each)
    return tuple((key, lines(every)) for key, every in found.items())


def _texts(signature: Signature, cells: Sequence[CellView]) -> Iterator[str]:
    """Yield what engines printed, one text for each pattern at most."""
    for pattern in signature.patterns[:_TEXTS]:
        found = (text for cell in cells for text in _said(cell) if pattern.regex.search(text))
        text = next(found, None)
        if text is not None:
            yield clip(text, _LONGEST)


def _said(cell: CellView) -> Iterator[str]:
    yield from (message.text for message in cell.messages)
    yield from (entry.text for entry in cell.parser_errors)
    yield from (text for text in (cell.error, cell.missing_api or "") if text)
    yield from cell.native_output.splitlines()
