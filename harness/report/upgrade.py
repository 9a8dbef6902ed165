"""From A to B: what breaks, is fixed, loses or gains precision, gets slower or faster, and what to use meanwhile.

The page's script computes the same from the same `Side`s (page/upgrade.js); a browser test holds the two together.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from harness.report.ranges import PREDICATE, same_precision
from harness.report.sides import STACK, Side, side
from harness.report.text import milliseconds
from harness.words import GOOD, Class, Precision, Role, Word

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.report.model import Results, TargetView, VariantView

#: A median must move by this much, and the quartiles must not overlap, to be called slower or faster.
NOTICEABLE = 1.05
#: Variants named as what to use meanwhile.
_INSTEAD = 2


class Kind(Word):
    """What a step from one target to another does to a variant; the order is that of the page."""

    BROKEN = "broken"
    PRECISION_LOST = "precision_lost"
    SLOWER = "slower"
    NEWLY_UNKNOWN = "newly_unknown"
    OTHERWISE = "otherwise"
    FIXED = "fixed"
    PRECISION_GAINED = "precision_gained"
    FASTER = "faster"


@dataclass(frozen=True)
class Row:
    """One thing that the step does: to which variant, what, why, what to use meanwhile, how sure that is."""

    kind: Kind
    case: str
    variant: str
    text: str
    cause: str
    instead: str
    sure: str


@dataclass(frozen=True)
class Upgrade:
    """The step from one target to another; `same` and `unknown` count variants that make no row.

    `headline` answers in a sentence, `basis` says what of it is not measured, `coverage` counts the nodes that are
    wanted in INT8, and `timing` says on what ground latencies were compared: those of `timed` variants.
    """

    before: str
    after: str
    rows: tuple[Row, ...]
    same: int
    unknown: int
    timed: int
    headline: str
    basis: str
    coverage: str
    timing: str

    def count(self, kind: Kind) -> int:
        """Return the number of rows of one kind."""
        return sum(row.kind is kind for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """Return the step as plain JSON data, with the counts."""
        return {**dataclasses.asdict(self), "counts": {str(kind): self.count(kind) for kind in Kind}}


def upgrade(results: Results, before: str, after: str) -> Upgrade:
    """Return what the step between two targets, by id, does to every variant; KeyError for an unknown target."""
    known = {target.id for target in results.targets}
    for target in (before, after):
        if target not in known:
            raise KeyError(target)
    sides = _Sides(results, before, after)
    rows: list[Row] = []
    same = unknown = 0
    for variant in sides.variants:
        old, new = sides.old(variant), sides.new(variant)
        found = [_row(sides, variant, kind) for kind in (_kind(variant, old, new), _speed(old, new)) if kind]
        rows += found
        unknown += old.cls is None and new.cls is None
        same += not found and not (old.cls is None and new.cls is None)
    order = list(Kind)
    rows.sort(key=lambda row: order.index(row.kind))
    timed, timing = _timing(sides)
    said = _headline(sides, rows), _basis(results, before, after), _coverage(sides), timing
    return Upgrade(before, after, tuple(rows), same, unknown, timed, *said)


def default_pair(results: Results) -> tuple[str, str]:
    """Return the two newest measured targets of the series with most of them; documented ones where none has two."""
    for measured in (True, False):
        by_series: dict[str, list[TargetView]] = {}
        for target in results.targets:
            if target.stamps or not measured:
                by_series.setdefault(target.series, []).append(target)
        best = max(by_series.values(), key=len, default=[])
        if len(best) > 1:
            older, newer = sorted(best, key=lambda target: Version(target.version))[-2:]
            return older.id, newer.id
    ids = [target.id for target in results.targets] or [""]
    return ids[0], ids[-1]


class _Sides:
    """Both sides of every variant."""

    def __init__(self, results: Results, before: str, after: str) -> None:
        self.before, self.after = before, after
        self.variants = [variant for case in results.cases for variant in case.variants]
        views = {(variant.case, variant.name): variant for variant in self.variants}
        wanted = [cell for cell in results.cells if cell.target in (before, after)]
        self._found = {
            (cell.case, cell.variant, cell.target): side(cell, views[cell.case, cell.variant])
            for cell in wanted
        }

    def old(self, variant: VariantView) -> Side:
        return self._found[variant.case, variant.name, self.before]

    def new(self, variant: VariantView) -> Side:
        return self._found[variant.case, variant.name, self.after]


def _grade(cls: Class) -> int:
    return 2 if cls in GOOD else 1 if cls is Class.PRECISION_LOST else 0


def _kind(variant: VariantView, old: Side, new: Side) -> Kind | None:
    if old.cls is None or new.cls is None:
        lost_sight = old.cls is not None and new.why != "does not apply"
        return Kind.NEWLY_UNKNOWN if lost_sight else None
    was, now = _grade(old.cls), _grade(new.cls)
    if now == 0:
        other = old.cls is not new.cls or (old.signature and new.signature and old.signature != new.signature)
        return Kind.BROKEN if was else Kind.OTHERWISE if other else None
    if now != was:
        # An engine that was refused and is now built without its precision has not been fixed: it fails silently.
        return Kind.PRECISION_LOST if now == 1 else Kind.PRECISION_GAINED if was else Kind.FIXED
    before, after = _kept(variant, old, new), _kept(variant, new, old)
    return Kind.PRECISION_LOST if after < before else Kind.PRECISION_GAINED if after > before else None


def _kept(variant: VariantView, one: Side, other: Side) -> int:
    """Count the wanted nodes that kept their precision, of those that both sides tell of."""
    told = zip(variant.wanted, one.nodes, other.nodes, strict=False)
    return sum(
        bool(got and elsewhere) and same_precision(want, Precision(got)) for (_, want), got, elsewhere in told
    )


def _speed(old: Side, new: Side) -> Kind | None:
    before, after = old.box, new.box
    if before is None or after is None or before.stack != after.stack:
        return None
    if after.low > before.high and after.median >= before.median * NOTICEABLE:
        return Kind.SLOWER
    if after.high < before.low and before.median >= after.median * NOTICEABLE:
        return Kind.FASTER
    return None


def _row(sides: _Sides, variant: VariantView, kind: Kind) -> Row:
    old, new = sides.old(variant), sides.new(variant)
    if kind in (Kind.SLOWER, Kind.FASTER):
        return Row(kind, variant.case, variant.name, _pace(old, new), "", "", _sure(sides, old, new))
    text = f"{_said(old)} → {_said(new)}"
    if kind is Kind.PRECISION_LOST:
        lost = _lost(variant, new)
        text += f": {lost}" if lost else ""
    gone = kind in (Kind.FIXED, Kind.PRECISION_GAINED)
    cause = old.why if gone else "" if kind is Kind.NEWLY_UNKNOWN else new.why
    bad = kind in (Kind.BROKEN, Kind.PRECISION_LOST, Kind.OTHERWISE)
    instead = _instead(sides, variant, new) if bad else ""
    return Row(kind, variant.case, variant.name, text, cause, instead, _sure(sides, old, new))


def _said(one: Side) -> str:
    if one.cls is None:
        return one.why
    documented = "" if one.sure == "measured" else "documented: "
    return f"{documented}{PREDICATE[one.cls]}{f' ({one.chip})' if one.chip else ''}"


def _lost(variant: VariantView, new: Side) -> str:
    told = zip(variant.wanted, new.nodes, strict=False)
    lost = [
        f"{node} in {got} instead of {want}"
        for (node, want), got in told
        if got and not same_precision(want, Precision(got))
    ]
    return ", ".join(lost[:3]) + (f" and {len(lost) - 3} more" if len(lost) > 3 else "")  # noqa: PLR2004


def _pace(old: Side, new: Side) -> str:
    if old.box is None or new.box is None:
        return ""
    before, after = old.box.median, new.box.median
    change = f"{abs(after / before - 1) * 100:.0f} % {'slower' if after > before else 'faster'}"
    return f"median {milliseconds(before)} → {milliseconds(after)}, {change}"


def _sure(sides: _Sides, old: Side, new: Side) -> str:
    known = [(sides.before, old), (sides.after, new)]
    said = [(target, one.sure) for target, one in known if one.cls is not None]
    if all(sure == "measured" for _, sure in said):
        return "measured"
    return ", ".join(f"{target} {sure}" for target, sure in said)


def _instead(sides: _Sides, variant: VariantView, new: Side) -> str:
    """Name the workarounds that hold on the new target: measured ones, or else those documented to."""
    every = _candidates(sides, variant, new)
    if not every:
        return "no workaround of it is known here"
    good = [other for other in every if sides.new(other).cls in GOOD]
    works = [other for other in good if sides.new(other).sure == "measured"]
    if good:
        return "; ".join(_use(sides, other) for other in (works or good)[:_INSTEAD])
    return f"none of {len(every)} known here works on {sides.after}"


def _candidates(sides: _Sides, variant: VariantView, new: Side) -> Sequence[VariantView]:
    """Return the workarounds of a variant or of what it is read against, then what its diagnosis is proven by."""
    own = {other.name: other for other in sides.variants if other.case == variant.case}
    family = [variant.name]
    while (name := own[family[-1]].counterpart) in own and name not in family:
        family.append(name)
    near = [
        other
        for other in own.values()
        if other.role is Role.WORKAROUND and (other.counterpart in family or other.name in family)
    ]
    by_id = {f"{other.case}.{other.name}": other for other in sides.variants}
    proofs = [by_id[proof] for proof in new.proofs if proof in by_id]
    found = {(other.case, other.name): other for other in (*near, *proofs) if other is not variant}
    return list(found.values())


def _use(sides: _Sides, other: VariantView) -> str:
    return f"{other.case}[{other.name}] {_said(sides.new(other))}"


def _headline(sides: _Sides, rows: Sequence[Row]) -> str:
    compared = sum(
        sides.old(variant).cls is not None and sides.new(variant).cls is not None
        for variant in sides.variants
    )
    if not compared:
        return f"Nothing is known on both {sides.before} and {sides.after}: this page cannot tell."
    broken = sum(row.kind is Kind.BROKEN for row in rows)
    lost = sum(row.kind is Kind.PRECISION_LOST for row in rows)
    parts = [f"breaks {broken}"] if broken else []
    parts += [f"loses the precision of {lost}"] if lost else []
    if parts:
        return f"Going to {sides.after} {' and '.join(parts)} of {compared} variants known on both."
    return (
        f"Nothing that works on {sides.before} breaks or loses precision on {sides.after}, "
        f"of {compared} variants known on both."
    )


def _basis(results: Results, before: str, after: str) -> str:
    unrun = [target.id for target in results.targets if target.id in (before, after) and not target.stamps]
    if not unrun:
        return ""
    return f"Not run here: {' and '.join(unrun)}. What is said of it is documented, not measured."


def _coverage(sides: _Sides) -> str:
    """Count, by operator, the wanted INT8 nodes that run in it, for each side on which any was built."""
    wanted = [
        (variant, at, variant.ops.get(node, ""))
        for variant in sides.variants
        for at, (node, want) in enumerate(variant.wanted)
        if want is Precision.INT8
    ]

    def told(name: str, look: Callable[[VariantView], Side]) -> str:
        found = [(look(variant).nodes, at, op) for variant, at, op in wanted]
        if not any(nodes for nodes, _, _ in found):
            return f"not told on {name}"
        ops = Counter(op or "?" for nodes, at, op in found if len(nodes) > at and nodes[at] == "int8")
        by_op = ", ".join(f"{op} {count}" for op, count in sorted(ops.items()))
        return f"{sum(ops.values())} on {name}{f' ({by_op})' if by_op else ''}"

    if not wanted:
        return ""
    return (
        f"Of {len(wanted)} nodes that should run in INT8, in INT8 are: "
        f"{told(sides.before, sides.old)}, {told(sides.after, sides.new)}."
    )


def _timing(sides: _Sides) -> tuple[int, str]:
    """Return how many variants were timed alike on both, and the sentence that says so."""
    pairs = [(sides.old(variant).box, sides.new(variant).box) for variant in sides.variants]
    both = [(old, new) for old, new in pairs if old and new]
    same = sum(old.stack == new.stack for old, new in both)
    if not both:
        return 0, "Latency is not compared: no variant was timed on both."
    apart = len(both) - same
    if same:
        more = f"; {apart} more were timed on different stacks and are not compared" if apart else ""
        return same, f"Latency is compared for {same} variants, timed on the same stack{more}."
    old, new = both[0]
    fields = ("clock", *STACK)
    differing = [key for key, one, two in zip(fields, old.stack, new.stack, strict=True) if one != two]
    return (
        0,
        f"Latency is not compared: the two were timed on different stacks ({', '.join(differing)} differ).",
    )
