"""What a step from one column to another amounts to, in sentences."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from harness.engines import ENGINES
from harness.report.compare.kinds import Kind, NotComparable, standing, why_not_comparable
from harness.report.compare.sides import STACK
from harness.words import Class, Engine, Grade, Precision

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.report.compare.pairs import Pair, Step
    from harness.report.compare.rows import Row
    from harness.report.compare.sides import Side, SideTiming

#: Classes that a cell has only where its engine was tried on a device.
_RUN = frozenset({Class.OK, Class.INACCURATE, Class.LOAD_FAILED, Class.RUN_FAILED})


def headline(step: Step, rows: Sequence[Row]) -> str:
    """Return the answer: first what nobody has run, then what is known."""
    unrun = _nobody_ran(step)
    before, after, both = step.before.called, step.after.called, step.known
    if unrun and not both:
        return f"{unrun}, so what this step does is not known."
    if not both:
        return f"Nothing is known on both {before} and {after}, so nothing can be said."
    counts = Counter(row.kind for row in rows)
    parts = _worse(counts)
    besides = _without(counts[Kind.BUILDS_WITHOUT]) + _wider(counts[Kind.WIDER])
    known = f"of {len(both)} variants known on both{besides}."
    if parts:
        going = f"{unrun}. By these, going" if unrun else "Going"
        return f"{going} to {after} {' and '.join(parts)} {known}{_unheralded(step)}"
    if unrun:
        # What nobody has run is no all-clear.
        return f"{unrun}. They name none that breaks or loses precision, {known}{_unheralded(step)}"
    return f"Nothing that {_good(both)} on {before} breaks or loses precision on {after}, {known}{_unheralded(step)}"


def _unheralded(step: Step) -> str:
    """Say of how many that fail or lose precision after nothing is known before, which is no all-clear either."""
    many = sum(pair.unheralded for pair in step.pairs)
    if not many:
        return ""
    told = "more fails or loses" if many == 1 else "more fail or lose"
    return f" But {many} {told} precision on {step.after.called}, and nothing is known of {step.before.called} there."


def _worse(counts: Mapping[Kind, int]) -> list[str]:
    broken, lost = counts.get(Kind.BROKEN), counts.get(Kind.PRECISION_LOST)
    parts = [f"breaks {broken}"] if broken else []
    return parts + ([f"loses the precision of {lost}"] if lost else [])


def _nobody_ran(step: Step) -> str:
    """Say on which sides nobody has run anything, and how many reports speak of those; "" where both were run."""
    unrun = {
        column.called: sides
        for column, sides in step.sides
        if not any(one.grade is Grade.MEASURED for one in sides)
    }
    if not unrun:
        return ""
    reports = {
        (at, one.claim)
        for sides in unrun.values()
        for at, one in enumerate(sides)
        if one.grade is Grade.REPORTED
    }
    many = len(reports)
    spoken = (
        f"{many} reported claims speak"
        if many > 1
        else "1 reported claim speaks"
        if many
        else "no report speaks"
    )
    return f"Nobody has run {' or '.join(unrun)}; {spoken} of {'it' if len(unrun) == 1 else 'them'}"


def basis(step: Step) -> str:
    """Say what to mind: different products, what was not measured, not run, on other GPUs, or is flaky."""
    return " ".join(
        filter(None, (_strangers(step), _unmeasured(step), _built(step), _apart(step), _flaky(step)))
    )


def coverage(step: Step) -> str:
    """Count, by operator, the wanted INT8 nodes that run in it, for each side on which any was built."""
    wanted = [(row, at, op) for row, pair in enumerate(step.pairs) for at, op in pair.variant.int8]
    if not wanted:
        return ""
    told = ", ".join(
        _told(column.called, [(sides[row], at, op) for row, at, op in wanted]) for column, sides in step.sides
    )
    return f"Nodes that run in INT8, of {len(wanted)} that should: {told}."


def timing(step: Step) -> tuple[int, str]:
    """Return how many variants have latencies that were compared, and the sentence on these and those left out."""
    both = [
        (pair, pair.old.timing, pair.new.timing) for pair in step.pairs if pair.old.timing and pair.new.timing
    ]
    if not both:
        return 0, "Latency is not compared: no variant was timed on both."
    why = Counter(why_not_comparable(*each) for each in both)
    left = []
    if why[NotComparable.STACK]:
        differing = ", ".join(_differing([(old, new) for _, old, new in both]))
        left.append(f"{why[NotComparable.STACK]} timed on different stacks ({differing} differ)")
    if why[NotComparable.NOISE]:
        left.append(f"{why[NotComparable.NOISE]} too noisy")
    if why[NotComparable.MODEL]:
        left.append(f"{why[NotComparable.MODEL]} of another model or recipe")
    timed = f"Latency is compared for {why[None] or 'none'} of {len(both)} variants timed on both"
    return why[None], f"{timed}{'; left out: ' if left else ''}{', '.join(left)}."


def _without(count: int) -> str:
    if not count:
        return ""
    how = "builds without its" if count == 1 else "build without their"
    return f"; {count} that failed before now {how} precision"


def _wider(count: int) -> str:
    return (
        f"; {count} {'gives' if count == 1 else 'give'} up a narrow type that nobody asked for"
        if count
        else ""
    )


def _good(both: Sequence[Pair]) -> str:
    """Say what the old side does with what it does well: an engine that was only built is not known to work."""
    found = {pair.old.cls for pair in both}
    said = [word for cls, word in ((Class.OK, "works"), (Class.BUILT, "builds")) if cls in found]
    return " or ".join(said) or "works"


def _strangers(step: Step) -> str | None:
    """Say that the sides are different products: their versions are no older and newer ones of one thing."""
    names = [(column.called, ENGINES[Engine(column.view.engine)].product) for column, _ in step.sides]
    (before, old), (after, new) = names
    if old == new:
        return None
    return f"{before} is {old} and {after} is {new}: different products, so this is no upgrade."


def _unmeasured(step: Step) -> str | None:
    unrun = dict.fromkeys(column.called for column, _ in step.sides if not column.view.stamps)
    counts = Counter(pair.grade for pair in step.known)
    told = ", ".join(f"{counts[grade]} {grade}" for grade in Grade if counts[grade])
    parts = [f"Not run for this report: {' and '.join(unrun)}."] if unrun else []
    parts += [f"Known on both, by the less sure side: {told}."] if counts.keys() - {Grade.MEASURED} else []
    return " ".join(parts) or None


def _built(step: Step) -> str | None:
    """Name the sides whose engines were built and not run; of one that was run in part, with how many."""
    named: dict[str, None] = {}
    for column, sides in step.sides:
        measured = [one for one in sides if column.view.stamps and one.grade is Grade.MEASURED]
        built = sum(one.cls is Class.BUILT for one in measured)
        run = any(one.timing or one.cls in _RUN for one in measured)
        if built:
            part = f" ({built} {'variant' if built == 1 else 'variants'})" if run else ""
            named[f"{column.called}{part}"] = None
    if not named:
        return None
    return f"Built, not run, on {' and '.join(named)}: numbers and latency were not measured."


def _apart(step: Step) -> str | None:
    count = sum(pair.apart for pair in step.pairs)
    if not count:
        return None
    many = "1 variant was" if count == 1 else f"{count} variants were"
    return f"{many} measured on no GPU that both sides have: what differs may be the GPU's doing."


def _flaky(step: Step) -> str | None:
    """Count all variants that are flaky, also those without a row: they may be the same on both by chance."""
    names = dict.fromkeys(column.called for column, sides in step.sides if any(one.flaky for one in sides))
    count = sum(bool(pair.old.flaky or pair.new.flaky) for pair in step.pairs)
    if not count:
        return None
    return f"{count} {'variant is' if count == 1 else 'variants are'} flaky on {' or '.join(names)}."


def _told(name: str, wanted: Sequence[tuple[Side, int, str]]) -> str:
    """Say how many of the wanted nodes of one side run in INT8, or why that is not known."""
    if not any(one.nodes for one, _, _ in wanted):
        measured = [one.cls for one, _, _ in wanted if one.grade is Grade.MEASURED]
        # What gives wrong numbers ran, in whatever precision.
        failed = [cls for cls in measured if not standing(cls) and cls is not Class.INACCURATE]
        if measured and len(failed) == len(measured):
            return f"none on {name} (every variant measured there that wants INT8 fails)"
        return f"not told on {name}"
    ops = Counter(op for one, at, op in wanted if one.nodes and one.nodes[at] == Precision.INT8)
    by_op = ", ".join(f"{op} {count}" for op, count in sorted(ops.items()))
    return f"{ops.total()} on {name}{f' ({by_op})' if by_op else ''}"


def _differing(both: Sequence[tuple[SideTiming, SideTiming]]) -> Iterator[str]:
    """Yield the fields of the stack in which the two sides of any variant differ."""
    for at, field in enumerate(("clock", *STACK)):
        if any(old.stack[at] != new.stack[at] for old, new in both):
            yield field
