"""`run`: cells -> records -> report, and the summary at its end; of the cases, or of the models of a suite."""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import json
import os
import shlex
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from harness.cli.options import (
    EXIT_INFRA,
    EXIT_OK,
    EXIT_REGRESSION,
    PARTS,
    add_fail_on,
    add_json,
    add_selection,
    add_where,
    own,
    places,
    positive,
    print_json,
    writable,
)
from harness.cli.project import (
    Project,
    built,
    command_line,
    how_of,
    load_project,
    load_targets,
    required,
    selected,
    write_report,
)
from harness.cli.terminal import Heartbeat, printer
from harness.errors import HandledError, described
from harness.judge.cell import Judged, as_json, claim, headline, is_news, judge_cell
from harness.plan import Cell, select
from harness.record.outcome import Outcome
from harness.record.speaking import todays
from harness.record.store import Store
from harness.run import trace
from harness.run.key import answering, keys_of
from harness.run.local import Here, Runners, longest_first
from harness.run.provision.images import LARGE_GB
from harness.run.provision.requirements import refuse_unconfined
from harness.run.slurm import TASK_FILE, SlurmExecutor
from harness.scratch import reap_scratch
from harness.text import one_line, visible
from harness.words import GOOD, UNJUDGED, Class, Verdict

if TYPE_CHECKING:
    from harness.suites.running import SuiteStore


def add_run(command: argparse.ArgumentParser) -> None:
    """Add the options of `run`."""
    add_selection(command)
    command.add_argument(
        "--fresh",
        action="store_true",
        help="run every cell (default: take what this machine has recorded and nothing has changed for)",
    )
    add_fail_on(command, ",".join(PARTS))
    add_json(command, "list with an entry a cell; the summary goes to standard error")
    add_where(command)
    command.add_argument(
        "--process-per-cell",
        action="store_true",
        help="a process for every cell (default: trusted cells of a target share one, and news is run again alone)",
    )
    command.add_argument(
        "-j",
        "--jobs",
        type=positive,
        default=os.cpu_count() or 1,
        metavar="N",
        help="cells run at the same time (default: one a processor)",
    )
    command.add_argument(
        "--require",
        action="append",
        default=[],
        metavar="TARGET",
        help="a target that must run here: else exit 3",
    )
    command.add_argument(
        "--pull",
        action="store_true",
        help=f"pull large images too: those above {LARGE_GB} GB, or of unknown size",
    )
    command.add_argument(
        "--suite",
        metavar="NAME",
        help="run the models of a suite in place of the cases: onnx-node, or a folder of models with data",
    )
    command.add_argument("--dry-run", action="store_true", help="print what would run, and where, and stop")
    command.add_argument(
        "--executor",
        choices=("local", "slurm"),
        default="local",
        help="who runs the cells: this machine, or the nodes of a Slurm cluster (default: local)",
    )
    # A task of a run, which an executor starts elsewhere; not for people.
    command.add_argument("--task", type=Path, help=argparse.SUPPRESS)


def do_run(options: argparse.Namespace) -> int:
    """Run the selected cells and write the report; returns the exit code."""
    if options.task is not None:
        return _run_task(options)
    if options.suite is not None:
        if options.json:
            raise HandledError(
                "--json is of the cases; the report of a suite has its results as results.json"
            )
        if options.executor != "local":
            raise HandledError(
                f"--executor {options.executor} runs the cases alone; leave that or --suite out"
            )
        return _run_suite(options)
    # Among as many records as a whole run has, looking for garbage takes a third of the time.
    gc.disable()
    try:
        return _run_cells(options)
    finally:
        gc.enable()
        # An agent of a killed run may still have lived at the start, and a run that reuses every record starts none.
        reap_scratch()


def _run_cells(options: argparse.Namespace) -> int:
    project = load_project(options)
    cells = selected(project, options)
    needed = required(project.matrix, cells, options)
    run_id = uuid.uuid4().hex[:12]
    if options.executor == "local":
        refuse_unconfined([cell.target for cell in cells], options.via)
    executor = _executor(options, run_id)
    if options.dry_run:
        for line in executor.plan(cells):
            print(line)
        return EXIT_OK
    reports = writable(options.reports)
    say = printer(_Console(stderr=True))
    say(f"run {run_id}: {len(cells)} cell(s) on {len({cell.target.name for cell in cells})} target(s)")
    with Store(reports, run=run_id) as store:
        # Before any container is started: the models of a case module that hangs take their time here.
        with trace.span("build the models"):
            project = built(project, options, {cell.case.name for cell in cells})
        known = {cell.id: cell for cell in project.cells}
        cells = tuple(known[cell.id] for cell in cells)
        earlier = tuple(store.outcomes())
        reused = _reused(cells, options, earlier)
        judged = {cell.id: judge_cell(cell, reused[cell.id]) for cell in cells if cell.id in reused}
        if len(reused) < len(cells):
            say(f"{len(cells) - len(reused)} of {len(cells)} cells to run")
            left = longest_first((cell for cell in cells if cell.id not in reused), earlier)
            gc.enable()
            try:
                run_shown(left, store, executor, judged)
            except BaseException:
                recorded = f"{len(judged)} of {len(cells)} cells are recorded"
                _report_what_there_is(project, store, options, recorded)
                raise
            gc.disable()
        try:
            results = [judged[cell.id] for cell in cells if cell.id in judged]
            code = _answer(results, needed, len(reused), options)
        finally:
            from harness.report.writer import is_current  # noqa: PLC0415  (after the answer)

            # After the answer: it covers all cells that were ever run, and takes its time.
            if len(reused) < len(cells) or not is_current(reports, [options.matrix, options.cases]):
                with trace.span("write the report"):
                    write_report(built(project, options), store)
    print(f"report: {options.reports / 'index.html'}", file=sys.stderr if options.json else sys.stdout)
    return code


def _reused(
    cells: tuple[Cell, ...], options: argparse.Namespace, earlier: Sequence[Outcome]
) -> dict[str, Outcome]:
    """Return the outcomes of earlier runs that need not be made anew, by cell id; the cells' models are built."""
    # A node of a cluster is another machine.
    if not earlier or options.fresh or options.executor != "local":
        return {}
    today = todays(cells)
    return answering(today, earlier, keys_of(cells, today, options.via))


def _report_what_there_is(project: Project, store: Store, options: argparse.Namespace, recorded: str) -> None:
    """Write the report of a run that did not come to its end; whoever catches the exception reports it."""
    try:
        write_report(built(project, options), store)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  (the run's own trouble is the one to tell)
        again = shlex.join(["trt-compat", "report", *places(options)])
        print(f"{recorded}; no report was written ({described(error)}); {again} shows them", file=sys.stderr)
    else:
        print(f"{recorded}; report: {options.reports / 'index.html'}", file=sys.stderr)


class _Console(Console):
    """Rich answers a reader that has gone with exit code 1, which here means a regression."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def _executor(options: argparse.Namespace, run_id: str) -> Here | SlurmExecutor:
    """Return the executor of the cells; raises HandledError or InfraError if it needs Slurm and there is none."""
    if options.executor == "local":
        return Here(Runners(how_of(options), is_news, run_id))
    words = ["--via", options.via, "--matrix", str(options.matrix.absolute())]
    words += ["--cases", str(options.cases.absolute())]
    words += ["--pull"] if options.pull else []
    words += ["--process-per-cell"] if options.process_per_cell else []
    words += {True: ["--untrusted"], False: ["--trusted"]}.get(options.untrusted, [])
    made = SlurmExecutor(folder=options.reports / "slurm", run_id=run_id, words=words)
    if not options.dry_run:
        made.check()
    return made


def run_shown(
    cells: Sequence[Cell], store: Store, executor: Here | SlurmExecutor, judged: dict[str, Judged]
) -> None:
    """Run cells, judge them as they come, and show how far they are."""
    console = _Console(stderr=True)
    say = printer(console)
    mine: dict[str, Judged] = {}
    # The notes so far, without their targets.
    noted = {""}
    left = Counter(cell.target.name for cell in cells)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
        # Redirected, rich would find the stream of `visible_output` again and have its own escapes written out.
        redirect_stdout=False,
        redirect_stderr=False,
    ) as progress:
        task = progress.add_task("cells", total=len(cells))

        def report(cell: Cell, outcome: Outcome, note: str) -> None:
            result = judge_cell(cell, outcome)
            mine[cell.id] = result
            judged[cell.id] = result
            # A dozen targets have one long sentence if Docker or a registry is out of reach.
            reason = note.removeprefix(cell.target.name)
            if reason not in noted:
                say(note)
                noted.add(reason)
            if result.judgement.verdict in (Verdict.REGRESSED, Verdict.FIXED):
                say(f"{result.judgement.verdict}: {cell.id}")
            progress.update(task, completed=len(mine), description=cell.target.name)
            name = cell.target.name
            left[name] -= 1
            if not (left[name] or console.is_terminal):
                of_target = [each for each in mine.values() if each.cell.target.name == name]
                if any(each.outcome.state == "done" for each in of_target):
                    say(f"{len(mine)} of {len(cells)} cells; {name}: {_ended(of_target)}")

        def live(text: str) -> None:
            progress.update(task, description=escape(visible(text)))

        def status() -> str:
            ended = _ended(list(mine.values()))
            return f"{len(mine)} of {len(cells)} cells{f': {ended}' if ended else ''}"

        beat = contextlib.nullcontext() if console.is_terminal else Heartbeat(status, say)
        with beat:
            executor.run(
                cells, store=store, report=report, say=say, live=live if console.is_terminal else None
            )


def _answer(judged: list[Judged], required: set[str], reused: int, options: argparse.Namespace) -> int:
    """Print the results of the cells, `reused` of which earlier runs had; return the exit code."""
    missed = [r for r in judged if r.cell.target.name in required and r.classification.cls is Class.NOT_RUN]
    accept = command_line("accept", options) if own(options, "cases") else ""
    taken = f"{reused} of {len(judged)} cells taken from earlier runs; --fresh runs all"
    lines = [
        *summarise(judged),
        *([taken] if reused else []),
        *_by_cause("required and not run", missed),
        *advice(judged, accept, places(options)),
    ]
    ran = any(result.outcome.state == "done" for result in judged)
    lines += [] if ran else [f"nothing that was selected ran: {_why_nothing_ran(judged)}"]
    if options.json:
        print_json([as_json(result) for result in judged])
    print(*lines, sep="\n", file=sys.stderr if options.json else sys.stdout)
    sys.stdout.flush()
    verdicts = {result.judgement.verdict for result in judged}
    regressed = (result.judgement for result in judged if result.judgement.verdict is Verdict.REGRESSED)
    if any(each.part in (None, *options.fail_on) for each in regressed):
        return EXIT_REGRESSION
    if not ran:
        return EXIT_INFRA
    return EXIT_INFRA if Verdict.INFRA in verdicts or missed else EXIT_OK


def _why_nothing_ran(judged: list[Judged]) -> str:
    """Return the commonest reason and the number of others; cells that are not applicable count only if all are."""
    hindered = [result for result in judged if result.outcome.state != "not_applicable"] or judged
    (most, _), *others = Counter(result.judgement.sentence for result in hindered).most_common()
    more = f", and {len(others)} other reason{'s' if len(others) > 1 else ''}" if others else ""
    return f"{one_line(most, 300)}{more}"


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


def summarise(judged: Sequence[Judged]) -> Iterator[str]:
    """Yield the lines on cells that were judged: counts, then news, then cells that did not run and why."""
    groups: dict[str, list[Judged]] = {name: [] for name in _COUNTED}
    for result in judged:
        groups[_counted(result)].append(result)
    targets = len({result.cell.target.name for result in judged})
    counts = ", ".join(f"{len(found)} {_plural(name, len(found))}" for name, found in groups.items() if found)
    yield f"{_number(len(judged), 'cell')} on {_number(targets, 'target')}: {counts}"
    if ended := _ended(judged):
        yield f"ended as: {ended}"
    for name in ("regressed", "new failure", "varies", "fixed", "not reproduced"):
        yield from _listed(name, groups[name])
    yield from _listed("keeps more than accepted", [each for each in judged if each.judgement.gained])
    for name in ("infrastructure trouble", "not run"):
        yield from _by_cause(name, groups[name])


def _ended(judged: Sequence[Judged]) -> str:
    """Return how many cells ended in each class, of those that ran."""
    classes = Counter(result.classification.cls for result in judged)
    return ", ".join(f"{classes[cls]} {cls}" for cls in Class if classes[cls] and cls not in UNJUDGED)


def advice(judged: Sequence[Judged], accept: str, places: Sequence[str]) -> Iterator[str]:
    """Yield the next commands: `accept` is the command that takes these measurements for granted, or ""."""
    groups = {name: [result for result in judged if _counted(result) == name] for name in _COUNTED}
    bad = groups["regressed"] or groups["new failure"]
    if bad:
        show = shlex.join(["trt-compat", "show", bad[0].cell.id, *places])
        yield f"look into one: {show}"
    news = groups["fixed"] or groups["not reproduced"] or groups["newly found to work"]
    if accept and (bad or news or any(result.judgement.gained for result in judged)):
        yield f"to expect these results from now on: {accept}"


def _counted(result: Judged) -> str:
    cls, verdict = result.classification.cls, result.judgement.verdict
    if cls is Class.NOT_APPLICABLE:
        return "not applicable"
    if cls is Class.NOT_RUN:
        return "not run"
    if verdict is Verdict.NEW and cls in GOOD:
        return "newly found to work"
    return next(name for name, each in _COUNTED.items() if each is verdict)


def _listed(title: str, results: Sequence[Judged]) -> Iterator[str]:
    if len(results) > _MOST_LISTED:
        yield from _by_cause(title, results, _cause)
    elif results:
        yield f"{_plural(title)}: {len(results)}"
        for result in results:
            yield f"  {result.cell.id}: {_told(result)}"


def _told(result: Judged) -> str:
    if not result.failed:
        return one_line(result.judgement.sentence, _WIDEST)
    why = headline(result)
    told = one_line(f"{result.classification.cls}: {why}", _WIDEST)
    # The claim about a regressed cell is news as well, and an engine's sentence must not push it off the line.
    own = result.judgement.expectation and why != result.judgement.sentence
    return f"{told}; {one_line(claim(result), _WIDEST)}" if own else told


def _by_cause(
    title: str,
    results: Sequence[Judged],
    cause: Callable[[Judged], str] = lambda result: result.judgement.sentence,
) -> Iterator[str]:
    if not results:
        return
    yield f"{_plural(title)}: {len(results)}"
    causes: dict[str, list[Judged]] = {}
    for result in results:
        causes.setdefault(cause(result), []).append(result)
    most = sorted(causes.items(), key=lambda entry: -len(entry[1]))
    for text, found in most[:_MOST_CAUSES]:
        targets = dict.fromkeys(result.cell.target.name for result in found)
        yield f"  {len(found):>4}  {one_line(text, _WIDEST)}: {', '.join(targets)}"
    if len(most) > _MOST_CAUSES:
        rest = sum(len(found) for _, found in most[_MOST_CAUSES:])
        yield f"  {rest:>4}  by {_number(len(most) - _MOST_CAUSES, 'other cause')}, which the report lists"


def _cause(result: Judged) -> str:
    cls = result.classification.cls
    return f"{cls}, {result.diagnosis.title}" if result.diagnosis else f"{cls}, no known signature"


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _plural(name: str, count: int = 2) -> str:
    return f"{name}s" if name.endswith("failure") and count != 1 else name


def _run_suite(options: argparse.Namespace) -> int:
    """Run the selected models on the selected targets and write their report; returns the exit code."""
    # Reading suites takes its time.
    from harness.suites.items import find_suite  # noqa: PLC0415
    from harness.suites.report import build_suite  # noqa: PLC0415
    from harness.suites.running import About, SuitePrepared, SuiteStore  # noqa: PLC0415

    matrix = load_targets(options)
    refuse_unconfined(matrix, options.via)
    suite = find_suite(options.suite)
    targets = matrix.only(options.targets)
    items = tuple(suite.items())
    about = About.of(suite, items)
    whole = about.cells(targets, {item.id: item.model for item in items})
    cells = _selected_of(suite.name, whole, options.expression)
    needed = required(matrix, cells, options)
    run_id = uuid.uuid4().hex[:12]
    here = Here(Runners(how_of(options), is_news, run_id, SuitePrepared(items)))
    if options.dry_run:
        # Without the cells, which are thousands.
        print(*(line for line in here.plan(cells) if not line.startswith("    ")), sep="\n")
        return EXIT_OK
    store = SuiteStore(writable(options.reports), about, run=run_id)
    with store:
        try:
            run_shown(cells, store, here, {})
        finally:
            report = build_suite(matrix, store.path) if store.holds_records else None
    for name, outcome in store.refused.items():
        print(f"{name}: {outcome.state}: {one_line(outcome.reason, 300)}")
    if report is None:
        print("nothing that was selected ran")
        return EXIT_INFRA
    print(*report.lines(frozenset(target.name for target in targets)), f"report: {report.page}", sep="\n")
    if (cases := Store(options.reports)).holds_records:
        # Its page links to those of the suites.
        write_report(built(load_project(options), options), cases)
    if any(cell.stamps == run_id for cell in report.regressed):
        return EXIT_REGRESSION
    return _suite_trouble(store, sorted(needed), {cell.target.name for cell in cells})


def _selected_of(suite: str, cells: Sequence[Cell], expression: str) -> tuple[Cell, ...]:
    """Return the cells of a suite that an expression selects; raises HandledError for an empty selection."""
    if found := select(cells, expression):
        return found
    raise HandledError(f"-k {expression!r} matches no model of {suite}; leave it out to run all")


def _suite_trouble(store: SuiteStore, required: Sequence[str], ran: set[str]) -> int:
    """Tell which targets and models could not be judged; returns the exit code."""
    missed = [name for name in required if name in store.refused]
    if missed:
        print(f"required and not run: {', '.join(missed)}")
    if store.unjudged:
        print(f"{store.unjudged} models could not be judged: the machinery failed")
    trouble = any(outcome.state == "infra_error" for outcome in store.refused.values())
    return EXIT_INFRA if missed or trouble or store.unjudged or ran <= store.refused.keys() else EXIT_OK


def _run_task(options: argparse.Namespace) -> int:
    """Run the cells of a task that have no record in its folder yet.

    A task that was started before, on this node or another, goes on after its last record.
    """
    run_id, names = _read_task(options.task / TASK_FILE)
    store = Store(options.task, run=run_id)
    recorded = {outcome.cell for outcome in store.outcomes()}
    say = functools.partial(print, flush=True)
    say(f"{len(names)} cells, {len(recorded)} of them recorded")
    with store:
        cells = _cells_of_task([name for name in names if name not in recorded], options)
        refuse_unconfined([cell.target for cell in cells], options.via)
        here = Here(Runners(how_of(options), is_news, run_id))
        here.run(cells, store=store, report=lambda cell, *_: say(f"{cell.id}: recorded"), say=say, live=None)
    return EXIT_OK


def _read_task(path: Path) -> tuple[str, list[str]]:
    """Return the run of a task, and its cells by id."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return str(data["run"]), list(map(str, data["cells"]))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise HandledError(f"{path}: cannot be read as a task ({error})") from error


def _cells_of_task(names: list[str], options: argparse.Namespace) -> list[Cell]:
    """Return cells by their ids, with their models built; those of other cases are not."""
    project = load_project(options)
    wanted = set(names)
    project = built(project, options, {cell.case.name for cell in project.cells if cell.id in wanted})
    known = {cell.id: cell for cell in project.cells}
    gone = [name for name in names if name not in known]
    if gone:
        raise HandledError(
            f"there is no cell {gone[0]} any more: matrix or cases have changed since the run began"
        )
    return [known[name] for name in names]
