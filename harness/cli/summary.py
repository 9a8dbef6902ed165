"""A run for people: how far it is, then what came of it and what to do next."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from rich.console import Console

from harness.cli.terminal import Doing, printer
from harness.judge.cell import Judged, claim, headline, judge_cell
from harness.plan import Cell
from harness.record.outcome import Outcome
from harness.record.store import Store
from harness.run.local import Here
from harness.run.slurm import SlurmExecutor
from harness.text import grouped, one_line
from harness.words import GOOD, UNJUDGED, Class, Verdict

#: Cells of a list that are named one by one; a longer list is told by cause, and the report has them all.
_MOST_LISTED = 15
#: Characters of a sentence, and causes of a list.
_WIDEST = 200
_MOST_CAUSES = 20

#: Every cell is counted under exactly one of these, worst first: by its verdict, if one is named.
_COUNTED: dict[str, Verdict | None] = {
    "regressed": Verdict.REGRESSED,
    "new failure": Verdict.NEW,
    "varies": Verdict.VARIES,
    "fixed": Verdict.FIXED,
    "not reproduced": Verdict.NOT_REPRODUCED,
    "infrastructure trouble": Verdict.INFRA,
    "known failure": Verdict.KNOWN_FAILURE,
    "built, known to fail when run": Verdict.FAILS_WHEN_RUN,
    "as expected": Verdict.EXPECTED,
    "newly found to work": None,
    "undecided without a GPU": Verdict.NOT_RUN,
    "not run": None,
    "not applicable": None,
}


class PipedConsole(Console):
    """Rich answers a reader that has gone with exit code 1, which here means a regression."""

    def on_broken_pipe(self) -> None:
        """Raise what main.py ends a program for."""
        raise BrokenPipeError


def run_shown(
    cells: Sequence[Cell], store: Store, executor: Here | SlurmExecutor, judged: dict[str, Judged]
) -> None:
    """Run cells, judge them as they come, and show how far they are."""
    console = PipedConsole(stderr=True)
    say = printer(console)
    mine: dict[str, Judged] = {}
    # The notes so far, without their targets.
    noted = {""}
    left = Counter(cell.target.name for cell in cells)
    with Doing(console) as doing:

        def report(cell: Cell, outcome: Outcome, note: str) -> None:
            result, name = judge_cell(cell, outcome), cell.target.name
            mine[cell.id] = judged[cell.id] = result
            # A dozen targets have one long sentence if Docker or a registry is out of reach.
            reason = note.removeprefix(name)
            if reason not in noted:
                say(note)
                noted.add(reason)
            if result.judgement.verdict in (Verdict.REGRESSED, Verdict.FIXED):
                say(f"{result.judgement.verdict}: {cell.id}")
            doing.now(f"{len(mine)} of {len(cells)} cells; {name}")
            left[name] -= 1
            if not (left[name] or console.is_terminal):
                of_target = [each for each in mine.values() if each.cell.target.name == name]
                if any(each.outcome.state == "done" for each in of_target):
                    say(f"{len(mine)} of {len(cells)} cells; {name}: {_ended(of_target)}")

        doing.now(f"0 of {len(cells)} cells")
        live = doing.now if console.is_terminal else None
        executor.run(cells, store=store, report=report, say=say, live=live)


def summarise(judged: Sequence[Judged]) -> Iterator[str]:
    """Yield the lines on cells that were judged: counts, then news, then cells that did not run and why."""
    groups = _groups(judged)
    targets = len({result.cell.target.name for result in judged})
    counts = ", ".join(f"{len(found)} {_plural(name, len(found))}" for name, found in groups.items() if found)
    yield f"{_number(len(judged), 'cell')} on {_number(targets, 'target')}: {counts}"
    if ended := _ended(judged):
        yield f"ended as: {ended}"
    for name in ("regressed", "new failure", "varies", "fixed", "not reproduced"):
        yield from _listed(name, groups[name])
    yield from _listed("keeps more than accepted", [each for each in judged if each.judgement.gained])
    for name in ("infrastructure trouble", "not run"):
        yield from by_cause(name, groups[name])


def advice(judged: Sequence[Judged], accept: str, places: Sequence[str]) -> Iterator[str]:
    """Yield the next commands: `accept` is the command that takes these measurements for granted, or ""."""
    groups = _groups(judged)
    bad = groups["regressed"] or groups["new failure"]
    if bad:
        yield f"look into one: {shlex.join(['trt-compat', 'show', bad[0].cell.id, *places])}"
    news = bad or groups["fixed"] or groups["not reproduced"] or groups["newly found to work"]
    if accept and (news or any(result.judgement.gained for result in judged)):
        yield f"to expect these results from now on: {accept}"


def why_nothing_ran(judged: Sequence[Judged]) -> str:
    """Return the commonest reason and the number of others; cells that are not applicable count only if all are."""
    hindered = [result for result in judged if result.outcome.state != "not_applicable"] or judged
    (most, _), *others = Counter(result.judgement.sentence for result in hindered).most_common()
    return one_line(most, 300) + (f", and {_number(len(others), 'other reason')}" if others else "")


def by_cause(
    title: str,
    results: Sequence[Judged],
    cause: Callable[[Judged], str] = lambda result: result.judgement.sentence,
) -> Iterator[str]:
    """Yield a title with a line for each cause of some results, the commonest first."""
    if not results:
        return
    yield f"{_plural(title)}: {len(results)}"
    causes = grouped((cause(result), result) for result in results)
    most = sorted(causes.items(), key=lambda entry: -len(entry[1]))
    for text, found in most[:_MOST_CAUSES]:
        targets = dict.fromkeys(result.cell.target.name for result in found)
        yield f"  {len(found):>4}  {one_line(text, _WIDEST)}: {', '.join(targets)}"
    if rest := most[_MOST_CAUSES:]:
        left = sum(len(found) for _, found in rest)
        yield f"  {left:>4}  by {_number(len(rest), 'other cause')}, which the report lists"


def _groups(judged: Sequence[Judged]) -> dict[str, list[Judged]]:
    """Return the cells that count under each name of `_COUNTED`."""
    found = grouped((_counted(result), result) for result in judged)
    return {name: found.get(name, []) for name in _COUNTED}


def _counted(result: Judged) -> str:
    cls, verdict = result.classification.cls, result.judgement.verdict
    if cls is Class.NOT_APPLICABLE:
        return "not applicable"
    if cls is Class.NOT_RUN:
        return "not run"
    if verdict is Verdict.NEW and cls in GOOD:
        return "newly found to work"
    return next(name for name, each in _COUNTED.items() if each is verdict)


def _ended(judged: Sequence[Judged]) -> str:
    """Return how many cells ended in each class, of those that ran."""
    classes = Counter(result.classification.cls for result in judged)
    return ", ".join(f"{classes[cls]} {cls}" for cls in Class if classes[cls] and cls not in UNJUDGED)


def _listed(title: str, results: Sequence[Judged]) -> Iterator[str]:
    if len(results) > _MOST_LISTED:
        yield from by_cause(title, results, _cause)
    elif results:
        yield f"{_plural(title)}: {len(results)}"
        yield from (f"  {result.cell.id}: {_told(result)}" for result in results)


def _told(result: Judged) -> str:
    if not result.failed:
        return one_line(result.judgement.sentence, _WIDEST)
    why = headline(result)
    told = one_line(f"{result.classification.cls}: {why}", _WIDEST)
    # The claim about a regressed cell is news as well, and an engine's sentence must not push it off the line.
    own = result.judgement.expectation and why != result.judgement.sentence
    return f"{told}; {one_line(claim(result), _WIDEST)}" if own else told


def _cause(result: Judged) -> str:
    known = result.diagnosis.title if result.diagnosis else "no known signature"
    return f"{result.classification.cls}, {known}"


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _plural(name: str, count: int = 2) -> str:
    return f"{name}s" if name.endswith("failure") and count != 1 else name
