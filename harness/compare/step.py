"""A step from one column to another, of one report or of two: rows by kind, a headline, and workarounds; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from harness.compare.kinds import OF_BEFORE, Kind, Pair, fails, pair_of, phenomenon, sentence
from harness.judge.names import Removed
from harness.known.cell import general_advice
from harness.known.claim import gpus, seen_by
from harness.known.model import Known, VariantView
from harness.words import Basis, Class, Part, Verdict

#: The counts that a headline may name, each with its words for one and for many, by what they are for the reader.
COUNTED: dict[str, dict[str, tuple[str, str]]] = {
    "worse": {"broken": ("breaks", "break"), "lost": ("loses precision", "lose precision")},
    "better": {"fixed": ("now works", "now work"), "gained": ("gains precision", "gain precision")},
    "beside": {"alone": ("fails", "fail")},
}
#: The headlines, each with the counts of which one must not be 0; the first that fits stands. The page draws them too.
HEADLINES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("unmeasured",), "Not measured: {sides}. Failures reported of {after}: {failing}."),
    (("apart",), "Nothing is known on both {before} and {after}."),
    (("broken", "lost"), "{worse}{better}, of {known} known on both."),
    (("alone",), "Nothing breaks{better}, of {known}; {beside}, not known before."),
    ((), "Nothing breaks or loses precision{better}, of {known} known on both."),
)
#: The kinds that may fail a step, and the part of a cell that each is of. No engine warns of a lost precision.
_WORSE: dict[Kind, Part] = {
    Kind.BROKEN: "class",
    Kind.PRECISION_LOST: "precision",
    Kind.SLOWER: "latency",
}
#: Kinds whose rows name workarounds.
_WANTING = frozenset({Kind.BROKEN, Kind.PRECISION_LOST, Kind.BUILDS_WITHOUT, Kind.OTHERWISE})


@dataclass(frozen=True)
class Column:
    """One target's cells by variant id, with their variants; `name` is shown."""

    name: str
    variants: Mapping[str, VariantView]
    cells: Mapping[str, Known]

    @property
    def measured(self) -> bool:
        """Tell whether anything was measured on it, now or before."""
        return any(cell.basis is Basis.MEASURED for cell in self.cells.values())

    @property
    def capabilities(self) -> frozenset[str]:
        """Return the compute capabilities of the GPUs that took part."""
        return frozenset(cell.gpu[0] for cell in self.cells.values() if cell.gpu)


class StepRow(NamedTuple):
    """A change of one kind.

    phenomenon: the one cause that rows of a kind share, in the words of `harness.compare.kinds.phenomenon`.
    signature: the cause's signature, "" without one.
    instead: ids of the variants to use meanwhile.
    tried: where those were tried, if not on the new side: "tried on 10.6 alone", "reported".
    measured: both sides were measured, on one GPU.
    sure: the basis of both sides in words.
    seen: the sources of reported sides.
    """

    kind: Kind
    variant: str
    text: str
    cause: str
    signature: str
    instead: tuple[str, ...]
    measured: bool
    sure: str
    seen: str
    tried: str = ""
    phenomenon: str = ""


class Alone(NamedTuple):
    """A variant that fails or loses precision on the new side, and is unknown on the old one."""

    variant: str
    text: str
    basis: Basis
    signature: str


class StepTrouble(NamedTuple):
    """A signature that is reported of the new side's version, not of the old one's, and is shown by no variant."""

    signature: str
    title: str
    advice: str
    seen: str


@dataclass(frozen=True)
class Step:
    """The step from one column to another; `known` counts the variants that are known on both sides.

    `run` tells for each side whether it has a measurement; `on` names the GPU generation, if both were measured on one;
    `removed` has the names that the engine's Python interface loses.
    """

    before: str
    after: str
    run: tuple[bool, bool]
    rows: tuple[StepRow, ...]
    alone: tuple[Alone, ...]
    troubles: tuple[StepTrouble, ...]
    known: int
    variants: int
    on: str = ""
    removed: tuple[Removed, ...] = ()

    @property
    def worse(self) -> frozenset[Part]:
        """Return the parts that get worse of a variant that was measured on both sides."""
        return frozenset(_WORSE[row.kind] for row in self.rows if row.kind in _WORSE and row.measured)

    @cached_property
    def counts(self) -> Counter[Kind]:
        """Return the number of rows of each kind."""
        return Counter(row.kind for row in self.rows)

    def phenomena(self, kind: Kind) -> list[tuple[StepRow, ...]]:
        """Return the rows of a kind by their cause, in the order of the first of each."""
        found: dict[str, list[StepRow]] = {}
        for row in self.rows:
            if row.kind is kind:
                found.setdefault(row.phenomenon or row.variant, []).append(row)
        return [tuple(rows) for rows in found.values()]

    @property
    def headline(self) -> str:
        """Return the answer, some twenty words: the first of `HEADLINES` that fits, with phenomena counted."""
        unmeasured = [name for name, run in zip((self.before, self.after), self.run, strict=True) if not run]
        kinds = {
            "broken": Kind.BROKEN,
            "lost": Kind.PRECISION_LOST,
            "fixed": Kind.FIXED,
            "gained": Kind.PRECISION_GAINED,
        }
        counts = {name: len(self.phenomena(kind)) for name, kind in kinds.items()} | {
            "alone": len(self.alone)
        }
        models = {name: self.counts[kind] for name, kind in kinds.items()}
        said = {
            part: ", ".join(
                _counted(n, models.get(name, n), words)
                for name, words in names.items()
                if (n := counts[name])
            )
            for part, names in COUNTED.items()
        }
        facts: dict[str, object] = {
            **counts,
            **said,
            "better": f"; {said['better']}" if said["better"] else "",
            "unmeasured": len(unmeasured),
            "sides": " and ".join(unmeasured),
            "apart": not self.known,
            "failing": counts["broken"] + counts["lost"] + counts["alone"] + len(self.troubles),
            "known": self.known,
            "before": self.before,
            "after": self.after,
        }
        text = next(text for needs, text in HEADLINES if not needs or any(facts[each] for each in needs))
        return (f"On {self.on}: " if self.on else "") + text.format(**facts)


def _counted(count: int, models: int, words: tuple[str, str]) -> str:
    """Return the count of phenomena, and of how many models if several share one."""
    return f"{count} {words[count != 1]}{f' ({models} models)' if models != count else ''}"


def step(
    before: Column, after: Column, troubles: Sequence[StepTrouble] = (), removed: tuple[Removed, ...] = ()
) -> Step:
    """Return the step from one column to another; `troubles` are of the new side alone, `removed` of the engine."""
    pairs = dict(_pairs(before, after))
    rows = [
        _row(after, name, pair, kind, (before.name, after.name))
        for name, pair in pairs.items()
        for kind in pair.kinds()
    ]
    order = {kind: at for at, kind in enumerate(Kind)}
    alone = tuple(_alone(name, pair) for name, pair in pairs.items() if pair.unheralded)
    shown = {pair.new.signature for pair in pairs.values()}
    return Step(
        before=before.name,
        after=after.name,
        run=(before.measured, after.measured),
        rows=tuple(sorted(rows, key=lambda row: (order[row.kind], _own_plugin(after, before, row)))),
        alone=alone,
        troubles=tuple(one for one in troubles if one.signature not in shown),
        known=sum(pair.known for pair in pairs.values()),
        variants=len(pairs),
        on=_on(before.capabilities, after.capabilities),
        removed=removed,
    )


def _own_plugin(after: Column, before: Column, row: StepRow) -> bool:
    """Tell whether a variant is about a plugin of our own, which comes after what people use."""
    return "plugin" in (after.variants.get(row.variant) or before.variants[row.variant]).tags


def _on(before: frozenset[str], after: frozenset[str]) -> str:
    """Return the generation that both sides were measured on, "Hopper (SM 9.0)"; "" if there is no such one."""
    if before != after or len(before) != 1:
        return ""
    (capability,) = before
    names = [each.architecture for each in gpus(f"=={capability}")]
    return f"{names[0]} (SM {capability})" if names else f"SM {capability}"


def _pairs(before: Column, after: Column) -> Iterator[tuple[str, Pair]]:
    """Yield every variant with both sides: in the order of `after`, then those that only `before` has.

    A step between two reports takes the nodes that a variant wants now.
    """
    for name in dict.fromkeys((*after.cells, *before.cells)):
        old, new = before.variants.get(name), after.variants.get(name)
        variant = new or before.variants[name]
        altered = bool(old and new) and _subject(before.variants[name]) != _subject(after.variants[name])
        sides = before.cells.get(name), after.cells.get(name)
        known = sides[0] or _not_there(variant), sides[1] or _not_there(variant)
        yield name, pair_of((old or variant, variant), known, altered=altered)


def _not_there(variant: VariantView) -> Known:
    name = variant.id
    return Known(
        name, variant.case, variant.name, "", Class.NOT_RUN, Verdict.NOT_RUN, text="not in that report"
    )


def _subject(variant: VariantView) -> tuple[str, str]:
    return variant.model_sha256, variant.recipe_sha256


def _row(after: Column, name: str, pair: Pair, kind: Kind, names: tuple[str, str]) -> StepRow:
    failing, claim = (pair.old, pair.claims[0]) if kind in OF_BEFORE else (pair.new, pair.claims[1])
    signature = (claim.signature if claim else failing.signature) or ""
    cause = "" if kind is Kind.NEWLY_UNKNOWN else _cause(failing, signature)
    signature = signature if cause else ""
    if kind is Kind.NOT_YET:
        cause = str(pair.old.not_yet)
    cell = after.cells.get(name) if kind in _WANTING else None
    instead, tried = (cell.instead, cell.instead_tried) if cell else ((), "")
    text = sentence(pair, kind)
    flaky = [(side, one.flaky) for side, one in zip(names, (pair.old, pair.new), strict=True) if one.flaky]
    text += "".join(f"; flaky on {side} ({', '.join(classes)})" for side, classes in flaky)
    if pair.new.gpu and not pair.apart and (pair.old.by_gpu[1:] or pair.new.by_gpu[1:]):
        text = f"on {pair.new.gpu[1]}: {text}"
    sure = pair.measured, _sure(pair, names), _seen(pair, names)
    return StepRow(kind, name, text, cause, signature, instead, *sure, tried, phenomenon(pair, kind))


def _cause(cell: Known, signature: str) -> str:
    """Return the title of a failure's cause, with its nodes if it was measured."""
    if cell.diagnosis and cell.diagnosis.id == signature:
        return cell.diagnosis.title
    advice = general_advice(signature) if fails(cell.stands) else None
    return advice.title if advice else ""


def _alone(name: str, pair: Pair) -> Alone:
    claim, basis = pair.claims[1], pair.bases[1]
    signature = claim.signature if claim else pair.new.signature
    return Alone(name, pair.new.text, basis or Basis.REPORTED, signature or "")


def _sure(pair: Pair, names: tuple[str, str]) -> str:
    """Return how sure a row is, and the basis of its sides."""
    sides = zip(names, pair.claims, pair.bases, strict=True)
    said = ["measured"] if pair.measured else []
    if not pair.measured:
        said = [
            ", ".join(
                f"{name} {claim.provenance if claim else basis}" for name, claim, basis in sides if basis
            )
        ]
    if pair.altered:
        said.append("model or recipe changed")
    if pair.apart:
        said.append("measured on different GPUs")
    return "; ".join(said)


def _seen(pair: Pair, names: tuple[str, str]) -> str:
    """Return the sources of the reported sides, a common one once."""
    read = {
        name: seen_by(claim)
        for name, claim in zip(names, pair.claims, strict=True)
        if claim and claim.basis is Basis.REPORTED
    }
    if len(set(read.values())) == 1:
        return next(iter(read.values()))
    return "; ".join(f"{name}: {text}" for name, text in read.items())
