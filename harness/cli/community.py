"""`submit` and `intake`: measurements that go to the project, and that come to it."""

from __future__ import annotations

import argparse
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.common import EXIT_OK, Project, add_selection, built, load_project, selected, writable
from harness.community import intake as taking
from harness.community import repository
from harness.community.provenance import is_account
from harness.community.submit import submission
from harness.errors import HandledError, InfraError
from harness.judge.cell import judge_cell
from harness.plan import claims_about, inapplicable_because
from harness.record.store import Store
from harness.report import build_report
from harness.run.commands import published_lines
from harness.run.commit import TOP
from harness.run.local import reap_orphans
from harness.run.provision import Pulling
from harness.run.pull_plan import PullLines, plan_pulls
from harness.run.target import TargetRunner

if TYPE_CHECKING:
    from harness.plan import Cell
    from harness.record.outcome import Outcome

_MINUTES = 10.0


def add_submit_arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of `submit`."""
    command.description = (
        "Measure some cells of one target here, for some ten minutes, and write one file to send to the project: "
        "records and logs without what tells whose machine it was."
    )
    add_selection(command)
    _add_branch(command)
    command.add_argument(
        "--account", default="", metavar="NAME", help="your account, that of the pull request"
    )
    command.add_argument(
        "--output", type=Path, metavar="FILE", help="the file to write (default: TARGET-ID.tar.xz)"
    )
    command.add_argument(
        "--minutes",
        type=float,
        default=_MINUTES,
        metavar="N",
        help=f"start no cell later than N minutes after the first has ended (default: {_MINUTES:g})",
    )
    command.add_argument(
        "--via", choices=("auto", "docker", "venv"), default="auto", help="where the engine runs"
    )
    command.add_argument("--pull", action="store_true", help="pull a large image too")


def submit(options: argparse.Namespace) -> int:
    """Measure some cells of one target and write the file to send; returns the exit code."""
    if options.account and not is_account(options.account):
        raise HandledError(f"{options.account!r:.60} is no account; give --account as GitHub spells it")
    if options.output and not options.output.parent.is_dir():
        raise HandledError(
            f"{options.output}: its folder is not there; make it, or give another with --output"
        )
    _need_own_cases(options)
    commit = repository.clean_commit(repository.main_branch(options.branch))
    project = built(load_project(options), options)
    cells = _suite(project, options)
    measured = _measure(project, cells, options)
    provenance, data = submission(measured, commit=commit, account=options.account)
    output = options.output or Path(f"{provenance.target}-{provenance.run}.tar.xz")
    try:
        output.write_bytes(data)
    except OSError as error:
        raise HandledError(
            f"{output}: cannot be written: {error.strerror}; give another with --output"
        ) from error
    # What intake would refuse is not worth sending.
    checked = taking.check(output, account=options.account or "nobody", branch=options.branch)
    print(
        f"{output}: {len(data) / 1e3:.0f} kB, {len(checked.records)} of {len(cells)} cells of {provenance.target} "
        f"on {provenance.gpu}: {_counted(checked)}"
    )
    print("look into it (tar -tJf, tar -xJf), then open a pull request that adds it under submissions/")
    return EXIT_OK


def _need_own_cases(options: argparse.Namespace) -> None:
    for option, path in (("--cases", TOP / repository.CASES), ("--matrix", TOP / repository.MATRIX)):
        given: Path = getattr(options, option[2:])
        if given.resolve() != path.resolve():
            raise HandledError(f"{option} {given}: only the project's own can be submitted; run it in {TOP}")


def _suite(project: Project, options: argparse.Namespace) -> list[Cell]:
    """Return the cells to measure, those first of which something is claimed.

    Raises HandledError for those of several targets.
    """
    chosen = [cell for cell in selected(project, options) if inapplicable_because(cell) is None]
    names = dict.fromkeys(cell.target.name for cell in chosen)
    if len(names) != 1:
        raise HandledError(
            f"a submission is of one target, and these are {len(names)}: give one with --target"
            if names
            else "nothing that was selected means anything on its target"
        )
    target = chosen[0].target
    if target.traits.baseline or not target.traits.builds_apart:
        raise HandledError(
            f"{target.name}: the project measures {target.traits.short} itself; submit TensorRT"
        )
    return sorted(chosen, key=lambda cell: not claims_about(cell))


def _measure(
    project: Project, cells: list[Cell], options: argparse.Namespace
) -> list[tuple[Cell, Outcome, str]]:
    """Run cells one after the other until all are done or the time is spent; the records are kept here as well."""
    target = cells[0].target
    plan = plan_pulls([target], options.via, large=options.pull)
    for line in plan.lines():
        print(line)
    if lacking := plan.too_little():
        raise InfraError(lacking)
    reap_orphans([target])
    run_id = uuid.uuid4().hex[:12]
    pulling = Pulling(large=options.pull, known=plan.known, tell=PullLines(print))
    runner = TargetRunner(target, via=options.via, run_id=run_id, pulling=pulling)
    measured: list[tuple[Cell, Outcome, str]] = []
    end = None
    with Store(writable(options.reports), run=run_id) as store:
        try:
            for cell in cells:
                if end is not None and time.monotonic() > end:
                    print(f"the time is spent: {len(cells) - len(measured)} cells were not started")
                    break
                outcome, log = runner.run(cell)
                measured.append((cell, store.append(outcome, log), log))
                print(f"{cell.id}: {judge_cell(cell, outcome).classification.cls}")
                if runner.given_up:
                    raise InfraError(f"{target.name}: {runner.given_up}")
                # Not from the start: an image may take longer to pull than its cells to run.
                end = end or time.monotonic() + options.minutes * 60
        finally:
            runner.close()
            lines = published_lines(project.matrix)
            build_report(project.matrix, project.cases, store, options.reports, lines)
    return measured


def _counted(checked: taking.Checked) -> str:
    counts = ", ".join(f"{count} {cls}" for cls, count in sorted(checked.classes.items()))
    return f"{counts}{f'; {checked.contended} timed beside others' if checked.contended else ''}"


def _add_branch(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--branch",
        default="",
        metavar="NAME",
        help=f"the project's main branch here (default: {repository.BRANCH_VARIABLE}, origin/main or main)",
    )


def add_intake_arguments(command: argparse.ArgumentParser) -> None:
    """Add the archives and what to do with them."""
    command.description = (
        "Take in what others measured, without any engine: each file is held against its logs, against the cases "
        "and the matrix of its commit, and against what a submission may be. One that does not hold is refused with a "
        "sentence."
    )
    command.add_argument(
        "archives", nargs="+", type=Path, metavar="ARCHIVE", help="what `trt-compat submit` wrote"
    )
    command.add_argument("--check", action="store_true", help="only look: nothing is written")
    command.add_argument(
        "--account", default="", metavar="NAME", help="who sends them; must be the one they name"
    )
    _add_branch(command)


def intake(options: argparse.Namespace) -> int:
    """Check submissions and add their records to the reports folder; one that does not hold adds nothing."""
    checked = [
        taking.check(path, account=options.account, branch=options.branch) for path in options.archives
    ]
    for path, each in zip(options.archives, checked, strict=True):
        provenance = each.submission.provenance
        said = "holds" if options.check else "taken in"
        if not options.check and not taking.take_in(each, writable(options.reports)):
            said = "was taken in before"
        print(
            f"{path}: submission {each.submission.id} by {each.account} {said}: {len(each.records)} cells of "
            f"{provenance.target} on {provenance.gpu} ({provenance.compute_capability}): {_counted(each)}"
        )
    if not options.check:
        print(f"`trt-compat report --reports {options.reports}` shows them")
    return EXIT_OK
