"""A step from one column to another, of one report or of two: rows by kind, a headline, and ways round; pure."""

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
from harness.known.model import Known, TargetView, VariantView
from harness.layers.operators import MOVING, MULTIPLYING
from harness.text import listed
from harness.words import GOOD, SHOWS_NO_FAILURE, Basis, Class, Part, Precision, Role, Verdict

#: The counts that a headline may name, each with its words for one and for many, by what they are for the reader.
COUNTED: dict[str, dict[str, tuple[str, str]]] = {
    "worse": {"broken": ("breaks", "break"), "lost": ("loses precision", "lose precision")},
    "better": {"fixed": ("now works", "now work"), "gained": ("gains precision", "gain precision")},
    "beside": {"alone": ("fails", "fail")},
}
_COUNTED_KINDS = {
    "broken": Kind.BROKEN,
    "lost": Kind.PRECISION_LOST,
    "fixed": Kind.FIXED,
    "gained": Kind.PRECISION_GAINED,
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
        counts = {name: len(self.phenomena(kind)) for name, kind in _COUNTED_KINDS.items()} | {
            "alone": len(self.alone)
        }
        said = {part: ", ".join(self._counted(names, counts)) for part, names in COUNTED.items()}
        sides = zip((self.before, self.after), self.run, strict=True)
        unmeasured = [name for name, run in sides if not run]
        better = said["better"] and f"; {said['better']}"
        facts: dict[str, object] = {
            **counts,
            **said,
            "better": better,
            "unmeasured": len(unmeasured),
            "sides": " and ".join(unmeasured),
            "apart": not self.known,
            "failing": counts["broken"] + counts["lost"] + counts["alone"] + len(self.troubles),
            "known": self.known,
            "before": self.before,
            "after": self.after,
        }
        text = next(text for needs, text in HEADLINES if not needs or any(map(facts.get, needs)))
        return (self.on and f"On {self.on}: ") + text.format(**facts)

    def _counted(self, names: Mapping[str, tuple[str, str]], counts: Mapping[str, int]) -> Iterator[str]:
        """Yield the counts of phenomena that are not 0, and of how many models if several share one."""
        for name, (one, many) in names.items():
            count = counts[name]
            models = self.counts[_COUNTED_KINDS[name]] if name in _COUNTED_KINDS else count
            shared = f" ({models} models)" if models != count else ""
            if count:
                yield f"{count} {one if count == 1 else many}{shared}"


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
        altered = bool(old and new) and _hashes(before.variants[name]) != _hashes(after.variants[name])
        sides = before.cells.get(name), after.cells.get(name)
        known = sides[0] or _not_there(variant), sides[1] or _not_there(variant)
        yield name, pair_of((old or variant, variant), known, altered=altered)


def _not_there(variant: VariantView) -> Known:
    name = variant.id
    return Known(
        name, variant.case, variant.name, "", Class.NOT_RUN, Verdict.NOT_RUN, text="not in that report"
    )


def _hashes(variant: VariantView) -> tuple[str, str]:
    return variant.model_sha256, variant.recipe_sha256


def _row(after: Column, name: str, pair: Pair, kind: Kind, names: tuple[str, str]) -> StepRow:
    failing, signature = (pair.old if kind in OF_BEFORE else pair.new), pair.signatures[kind not in OF_BEFORE]
    cause = "" if kind is Kind.NEWLY_UNKNOWN else _cause(failing, signature)
    signature = signature if cause else ""
    if kind is Kind.NOT_YET:
        cause = str(pair.old.not_yet)
    cell = after.cells.get(name) if kind in _WANTING else None
    instead, tried = (cell.instead, cell.instead_tried) if cell else ((), "")
    sure = pair.measured, _sure(pair, names), _seen(pair, names)
    text = _text(pair, kind, names)
    return StepRow(kind, name, text, cause, signature, instead, *sure, tried, phenomenon(pair, kind))


def _text(pair: Pair, kind: Kind, names: tuple[str, str]) -> str:
    """Return the change in words, with the GPU if a side has several, and sides that are flaky."""
    text = sentence(pair, kind)
    for side, one in zip(names, (pair.old, pair.new), strict=True):
        text += f"; flaky on {side} ({', '.join(one.flaky)})" if one.flaky else ""
    several = pair.old.by_gpu[1:] or pair.new.by_gpu[1:]
    return f"on {pair.new.gpu[1]}: {text}" if pair.new.gpu and several and not pair.apart else text


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


#: The most ways round that a cell names.
_MOST = 2
#: Variants with their cells on one target, by `case.variant`.
OnTarget = Mapping[str, tuple[VariantView, Known]]
#: What a variant may ask for without asking for less than FP32.
_PLAIN = frozenset(
    {Precision.FP32, Precision.TF32, Precision.INT32, Precision.INT64, Precision.BOOL, Precision.UNKNOWN}
)
#: Operators that do the same, by one of them.
_PLAIN_OF = {
    **dict.fromkeys(("QLinearConv", "ConvInteger"), "Conv"),
    **dict.fromkeys(("Gemm", "QLinearMatMul", "MatMulInteger"), "MatMul"),
}


class Ways(NamedTuple):
    """Ids of the variants to use meanwhile; `tried` is "" if they were measured on the target itself, else in words."""

    ids: tuple[str, ...] = ()
    tried: str = ""


def ways_round(
    column: OnTarget,
    variant: VariantView,
    cell: Known,
    proofs: Sequence[str] = (),
    elsewhere: Mapping[str, Sequence[str]] | None = None,
) -> Ways:
    """Return the ways round a cell that fails: those measured to work there, else reported to, else tried elsewhere.

    `proofs` are the variants that its signature's advice names; `elsewhere` has the versions that variants were
    measured to work on, of those that fail on no version. A way that failed on the target is none.
    """
    if cell.stands is None or _works(cell):
        return Ways()
    every = _candidates(column, variant, cell, proofs)
    for basis, tried in ((Basis.MEASURED, ""), (Basis.REPORTED, "reported")):
        works = [other.id for other, known in every if _works(known) and known.basis is basis]
        if works:
            return Ways(tuple(works[:_MOST]), tried)
    return _elsewhere(
        [other.id for other, known in every if known.cls is Class.NOT_RUN and not known.basis],
        elsewhere or {},
    )


def _works(cell: Known) -> bool:
    return cell.stands in GOOD


def _elsewhere(untried: Sequence[str], elsewhere: Mapping[str, Sequence[str]]) -> Ways:
    """Return those that nobody tried here and that were measured to work on the same other versions."""
    where = {name: tuple(elsewhere.get(name, ())) for name in untried}
    versions = next(filter(None, where.values()), ())
    alike = tuple(name for name in untried if versions and where[name] == versions)
    return Ways(alike[:_MOST], f"tried on {listed(versions)} alone") if alike else Ways()


def tried_elsewhere(
    targets: Sequence[TargetView], rows: Sequence[tuple[VariantView, Sequence[Known]]]
) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return by engine and variant the versions it was measured to work on, of variants that never failed there."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for variant, row in rows:
        tried: dict[str, list[tuple[str, bool]]] = {}
        for target, cell in zip(targets, row, strict=True):
            if cell.basis is Basis.MEASURED and cell.stands not in SHOWS_NO_FAILURE - GOOD:
                tried.setdefault(target.engine, []).append((target.short, cell.stands in GOOD))
        for engine, every in tried.items():
            if all(works for _, works in every):
                versions = tuple(dict.fromkeys(version for version, _ in every))
                found.setdefault(engine, {})[variant.id] = versions
    return found


def _candidates(
    column: OnTarget, variant: VariantView, cell: Known, proofs: Sequence[str]
) -> list[tuple[VariantView, Known]]:
    """Return the workarounds of a variant and of counterparts that fail too, then the fitting proofs of its signature.

    The twin with its precision in the graph does not need a removed call. A workaround that gives up the types that a
    variant asks for is no help where these are lost, and elsewhere only if none keeps them.
    """
    own: dict[str | None, VariantView] = {
        other.name: other for other, _ in column.values() if other.case == variant.case
    }
    family, failing = _family(column, own, variant)
    roles = {Role.WORKAROUND, Role.TWIN} if cell.stands is Class.API_REMOVED else {Role.WORKAROUND}
    near = [other.id for other in own.values() if other.role in roles and _is_near(other, family, failing)]
    fitting = [name for name in proofs if name in column and _fits(column, variant, cell, column[name][0])]
    found = [column[name] for name in dict.fromkeys([*near, *fitting]) if name != variant.id]
    keeping = [each for each in found if _agree(each[0], variant)]
    strict = cell.stands is Class.PRECISION_LOST and _types(variant)
    return keeping if keeping or strict else found


def _is_near(other: VariantView, family: Sequence[str | None], failing: Sequence[str | None]) -> bool:
    return other.counterpart in failing or other.name in family


def _family(
    column: OnTarget, own: Mapping[str | None, VariantView], variant: VariantView
) -> tuple[list[str | None], list[str | None]]:
    """Return the names of a variant and its counterparts, and those of them that fail."""
    family: list[str | None] = [variant.name]
    failing: list[str | None] = [variant.name]
    while (name := own[family[-1]].counterpart) in own and name not in family:
        family.append(name)
        # A workaround of what works here helps against another trouble.
        if _works(column[own[name].id][1]):
            break
        failing.append(name)
    return family, failing


def _fits(column: OnTarget, variant: VariantView, cell: Known, proof: VariantView) -> bool:
    """Tell whether a proof is about the operator that fails, and unless it is of the same case, about its types."""
    place = _PLAIN_OF.get(name := cell.diagnosis.place.partition(" ")[0], name) if cell.diagnosis else ""
    failing = {place} if place in _operators(variant) else _subject(variant)
    pair = [other for other, _ in column.values() if other.case == proof.case and _paired(other, proof)]
    about = set[str]().union(*map(_operators, pair))
    return bool(failing & about) and (variant.case == proof.case or _agree(variant, proof))


def _agree(one: VariantView, two: VariantView) -> bool:
    """Tell whether two variants ask for a type in common, or both for none below FP32."""
    return bool(_types(one) & _types(two)) or _types(one) == _types(two)


def _paired(one: VariantView, two: VariantView) -> bool:
    return two.name in (one.name, one.counterpart) or two.counterpart == one.name


def _operators(variant: VariantView) -> set[str]:
    return {_PLAIN_OF.get(node.op, node.op) for node in variant.graph.nodes}


def _subject(variant: VariantView) -> set[str]:
    """Return the operators that a variant is about: those that want a precision, else that multiply, else compute."""
    wanted, every = dict(variant.wanted), _operators(variant)
    asked = {_PLAIN_OF.get(node.op, node.op) for node in variant.graph.nodes if node.name in wanted}
    return asked or every & MULTIPLYING or every - MOVING


def _types(variant: VariantView) -> frozenset[Precision]:
    """Return the types coarser than FP32 that a variant asks for, by its nodes, else by builder flags."""
    flags = {str(flag).lower() for flag in variant.recipe.get("flags") or ()}
    asked = {kind for _, kind in variant.wanted} or {kind for kind in Precision if str(kind) in flags}
    return frozenset(asked) - _PLAIN
