"""Entries on error texts: meaning, the versions that print each, with the basis, advice and its proof."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from harness.case import Expectation
from harness.engines import ENGINES
from harness.judge.diagnosis import blank
from harness.judge.signatures import Signature, load_signatures, load_texts
from harness.known.cell import in_general
from harness.known.model import Known, VariantView
from harness.report.labels import examples, filled
from harness.report.model import Results
from harness.text import listed
from harness.words import GOOD, SHOWS_NO_FAILURE, Basis, Engine, Role

_FUSED = re.compile(r"ForeignNode\[|PWN\(|\w \+ \S|__my|node_of_|Unnamed Layer")
_ISSUE = re.compile(r"https://github\.com/.+/(?:issues|pull)/\d+")
#: Texts, reproducers and places of a proof that an entry names at most.
_MOST_TEXTS, _MOST_REPRODUCERS = 4, 2


@dataclass(frozen=True)
class ShownText:
    """A text as people see it, and its source: the product that printed it, or a quotation."""

    text: str
    seen: str
    url: str = ""
    note: str = ""


@dataclass(frozen=True)
class Sighting:
    """A sighting of a text: basis, versions and GPUs, and source.

    ends: it is reported for versions before another.
    """

    basis: Basis
    where: str
    by: str
    url: str = ""
    ends: bool = False


@dataclass(frozen=True)
class ProofResult:
    """The result of a proof: whether it works, on which versions, how sure that is; `target` is one of them."""

    basis: Basis
    works: bool
    where: str
    target: str


@dataclass(frozen=True)
class Proof:
    """A variant that puts the advice to the test, with its results."""

    case: str
    variant: str
    title: str
    known: tuple[ProofResult, ...]

    @property
    def id(self) -> str:
        """Return its name as rows have it."""
        return f"{self.case}.{self.variant}"


@dataclass(frozen=True)
class Reproducer:
    """A variant that fails with the text, on a target."""

    case: str
    variant: str
    target: str
    basis: Basis


@dataclass(frozen=True)
class ErrorEntry:
    """One signature for readers; <node> stands for a part that only a failure fills in.

    kind: "failure", "warning" (counted, and the cause only of a lost precision or wrong numbers) or "harmless".
    reading: its texts name layers in the forms that `READING` explains.
    only: the one product that it concerns, if that is not TensorRT.
    related: ids and titles of the signatures that its texts name.
    """

    id: str
    title: str
    cause: str
    advice: str
    harmless: str
    kind: str
    operator: str
    texts: tuple[ShownText, ...]
    seen: tuple[Sighting, ...]
    proofs: tuple[Proof, ...]
    reproducers: tuple[Reproducer, ...]
    links: tuple[str, ...]
    reading: bool
    only: str = ""
    related: tuple[tuple[str, str], ...] = ()


def error_entries(results: Results) -> tuple[ErrorEntry, ...]:
    """Return an entry for every signature: failures before warnings before harmless lines, most reported first."""
    book = _Book(results)
    made = [book.entry(signature) for signature in load_signatures()]
    order = ("failure", "warning", "harmless").index
    return tuple(sorted(made, key=lambda entry: (order(entry.kind), -_reports(entry), not entry.seen)))


def _texts(signature: str) -> tuple[ShownText, ...]:
    """Return the texts that engines were measured printing, then quoted ones."""
    every = sorted((each for each in load_texts() if each.id == signature), key=lambda each: not each.engine)
    shown = (
        ShownText(
            each.text.strip(),
            f"measured on {ENGINES[each.engine].product}" if each.engine else "quoted",
            each.url,
            each.note,
        )
        for each in every
    )
    return tuple(islice(shown, _MOST_TEXTS))


def _related(own: str, text: str) -> tuple[tuple[str, str], ...]:
    """Return the other signatures that a text names in brackets."""
    named = set(re.findall(r"\(([a-z0-9]+(?:-[a-z0-9]+)+)\)", text)) - {own}
    return tuple(
        (each.id, filled(in_general(each).title, examples(each.id)))
        for each in load_signatures()
        if each.id in named
    )


def _reports(entry: ErrorEntry) -> int:
    """Count the public threads that an entry names."""
    every = (*entry.links, *(each.url for each in entry.seen), *(each.url for each in entry.texts))
    return len({url for url in every if _ISSUE.match(url)})


class _Book:
    """The matrix, looked up by signature."""

    def __init__(self, results: Results) -> None:
        self._targets = {target.id: target for target in results.targets}
        self._variants = {(variant.case, variant.name): variant for variant in results.variants}
        self._rows: dict[tuple[str, str], list[Known]] = {}
        self._measured: dict[str, list[Known]] = {}
        self._claims: dict[str, list[tuple[VariantView, Expectation]]] = {}
        for cell in results.cells:
            self._rows.setdefault((cell.case, cell.variant), []).append(cell)
            if cell.measured:
                self._measured.setdefault(cell.signature or "", []).append(cell)
        for variant in results.variants:
            for claim in variant.claims:
                if claim.basis is not Basis.MEASURED:
                    self._claims.setdefault(claim.signature or "", []).append((variant, claim))

    def entry(self, signature: Signature) -> ErrorEntry:
        said = in_general(signature)
        texts = _texts(signature.id)
        values = examples(signature.id)
        return ErrorEntry(
            id=signature.id,
            title=filled(said.title, values),
            cause=filled(said.cause, values),
            advice=filled(said.advice, values),
            harmless=filled(blank(signature.harmless), values),
            kind=signature.kind,
            operator=signature.operator,
            texts=texts,
            seen=self._seen(signature),
            proofs=tuple(filter(None, map(self._proof, signature.advice_variants))),
            reproducers=self._reproducers(signature.id),
            links=signature.links,
            reading=any(_FUSED.search(each.text) for each in texts),
            only=self._only(signature),
            related=_related(signature.id, f"{said.cause} {said.advice}"),
        )

    def _only(self, signature: Signature) -> str:
        """Return the one product that it concerns; "" for TensorRT, for several and if unknown."""
        claims = (*(claim for _, claim in self._claims.get(signature.id, ())), *signature.reported)
        found = {
            *(Engine(self._targets[cell.target].engine) for cell in self._measured.get(signature.id, ())),
            *(claim.engine for claim in claims if claim.basis is Basis.REPORTED),
            *(each.engine for each in load_texts() if each.id == signature.id),
        }
        only = found.pop() if len(found) == 1 else None
        return "" if only is None or ENGINES[only].by_major else ENGINES[only].product

    def _seen(self, signature: Signature) -> tuple[Sighting, ...]:
        found = []
        if cells := self._measured.get(signature.id, []):
            many = f"measured, {len(cells)} cell{'s' if len(cells) > 1 else ''},"
            found.append(Sighting(Basis.MEASURED, self._where([cell.target for cell in cells]), many))
        for claim in (*(claim for _, claim in self._claims.get(signature.id, ())), *signature.reported):
            if claim.basis is Basis.REPORTED and claim.source:
                ends = "<" in (claim.versions or "")
                found.append(Sighting(claim.basis, range_of(claim), claim.provenance, claim.source.url, ends))
        return tuple(dict.fromkeys(found))

    def _proof(self, name: str) -> Proof | None:
        case, _, variant = name.partition(".")
        view = self._variants.get((case, variant))
        if view is None:
            return None
        groups: dict[tuple[Basis, bool], list[str]] = {}
        for cell in self._rows[case, variant]:
            if cell.stands is None or cell.basis is None or not cell.demanded:
                continue
            # A missing call or GPU means that the advice was not tried.
            if cell.stands not in SHOWS_NO_FAILURE - GOOD:
                groups.setdefault((cell.basis, cell.stands in GOOD), []).append(cell.target)
        ordered = sorted(groups, key=lambda key: (list(Basis).index(key[0]), not key[1]))
        known = (ProofResult(*key, self._where(groups[key]), groups[key][-1]) for key in ordered)
        return Proof(case, variant, view.title, tuple(known))

    def _reproducers(self, name: str) -> tuple[Reproducer, ...]:
        found: dict[tuple[str, str], Reproducer] = {}
        for cell in self._measured.get(name, ()):
            one = Reproducer(cell.case, cell.variant, cell.target, Basis.MEASURED)
            found.setdefault((cell.case, cell.variant), one)
        for variant, claim in self._claims.get(name, ()):
            index = variant.claims.index(claim)
            cells = [cell for cell in self._rows[variant.case, variant.name] if index in cell.claims]
            if cells:
                one = Reproducer(variant.case, variant.name, cells[0].target, claim.basis)
                found.setdefault((variant.case, variant.name), one)
        return tuple(sorted(found.values(), key=self._worth)[:_MOST_REPRODUCERS])

    def _worth(self, one: Reproducer) -> tuple[int, bool]:
        """Order reproducers: the surest first, and reproducers by role before variants that only fail too."""
        role = self._variants[one.case, one.variant].role
        return list(Basis).index(one.basis), role is not Role.REPRODUCER

    def _where(self, names: Iterable[str]) -> str:
        """Name targets by product and versions, in the order of the matrix."""
        versions: dict[str, dict[str, None]] = {}
        wanted = set(names)
        for target in self._targets.values():
            if target.id in wanted:
                versions.setdefault(target.product, {})[target.short] = None
        return "; ".join(f"{name} {listed(list(found))}" for name, found in versions.items())


def range_of(claim: Expectation) -> str:
    """Return the versions that a claim is about, with product and platform."""
    where = (
        ENGINES[claim.engine].product,
        f"on {claim.platform}" if claim.platform else "",
        claim.on_versions.replace("==", ""),
        f"on SM {claim.compute_capability}" if claim.compute_capability else "",
        f"({', '.join(claim.targets)})" if claim.targets else "",
    )
    return " ".join(filter(None, where))
