"""`submit` writes the file to send in, of records that `run` made; `merge` takes in such files and other folders."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.cli.options import EXIT_INFRA, EXIT_OK, EXIT_REGRESSION, add_selection, writable, write_file
from harness.cli.project import built, current, load_project, selected, write_report
from harness.errors import HandledError
from harness.history import take_history
from harness.known.model import Known, OnGpu
from harness.record.store import Store
from harness.report.model import Results, results_file
from harness.report.verify import record_faults
from harness.run.stamps import TOP
from harness.share.submission import SUFFIX, Archive, Measured, checked_account, read, submission
from harness.suites.report import absorb_suites, build_suites, suite_folders
from harness.suites.running import About
from harness.text import clip, one_line, visible
from harness.words import Verdict


def add_merge(command: argparse.ArgumentParser) -> None:
    """Add the sources, and who sends archives in."""
    command.description = (
        "Take in the records, logs and history of other reports folders, and the records and logs of archives that "
        "`submit` wrote, and write the report anew. Exit code 1 where a cell of the whole regressed and is not "
        "flaky, 3 where a line of a folder is no record."
    )
    command.add_argument(
        "sources",
        nargs="+",
        type=Path,
        metavar="FOLDER|ARCHIVE",
        help="reports folders of other machines, and files that `submit` wrote",
    )
    command.add_argument(
        "--account", default="", metavar="NAME", help="who sends the archives in; must be the one they name"
    )


def do_merge(options: argparse.Namespace) -> int:
    """Take records into the reports folder and write the report anew; name the cells that are flaky or regressed."""
    account = checked_account(options.account)
    archives = [path for path in options.sources if path.is_file()]
    folders = [path for path in options.sources if path not in archives]
    project = built(load_project(options), options)
    for folder in folders:
        _readable(folder)
    sent = [(path, sound(path, account)) for path in archives]
    others = [(folder, Store(folder)) for folder in folders]
    with Store(writable(options.reports)) as store:
        for folder, other in others:
            taken, past = store.absorb(other), take_history(options.reports, folder)
            print(f"{folder}: {taken} records and {past} runs of the past taken in")
        for path, archive in sent:
            print(f"{path}: {store.absorb(archive)} records taken in, of {_provenance(archive)}")
        for folder in folders:
            for sentence in absorb_suites(options.reports, folder):
                print(sentence)
        for line in (
            line for suite in build_suites(project.matrix, options.reports) for line in suite.lines()
        ):
            print(line)
        results = write_report(project, store)
    code = _told(results, options.reports)
    return EXIT_INFRA if any(other.faults for _, other in others) else code


def _readable(folder: Path) -> None:
    """Raise HandledError, before anything is taken in, for a folder that holds no records."""
    if not Store(folder).holds_records and not suite_folders(folder):
        why = ", and no record can be made of a results.json" if results_file(folder).is_file() else ""
        raise HandledError(f"{folder}: holds no records{why}; give the --reports folder of another run")
    for suite in suite_folders(folder):
        About.read(suite)


def _told(results: Results, reports: Path) -> int:
    """Print flaky and regressed cells; returns the exit code."""
    rows = [(cell.id, each) for cell in results.cells for each in cell.by_gpu or (cell,)]
    for name, row in rows:
        if row.flaky:
            print(f"flaky: {name}{_on(row)}: {', '.join(row.flaky)} on the same stack")
    print(f"report: {reports / 'index.html'}")
    # A cell that fails every other night on one stack would make every other night red through no fault of the engine.
    bad = [f"{name}{_on(row)}: {one_line(row.reason, 200)}" for name, row in rows if _regressed(row)]
    for line in bad:
        print(f"regressed: {line}")
    return EXIT_REGRESSION if bad else EXIT_OK


def _regressed(row: Known | OnGpu) -> bool:
    return row.verdict is Verdict.REGRESSED and not row.flaky


def _on(row: Known | OnGpu) -> str:
    """Return the GPU that a row is of, for a sentence; "" without a GPU."""
    return f" on {visible(row.gpu)}" if isinstance(row, OnGpu) and row.gpu else ""


def sound(path: Path, account: str) -> Archive:
    """Return an archive whose records are whole, of whatever cells; raises HandledError for another."""
    archive = read(path, account)
    for fault in (*archive.faults, *(fault for each in archive.records for fault in record_faults(each))):
        raise HandledError(f"{path}: {fault}")
    return archive


def _provenance(archive: Archive) -> str:
    """Return by whom, on which GPUs and with which commit records were made."""
    stamps = (each.stamps for each in archive.records)
    found = {f"{each.account} on {each.environment['gpu']}, commit {each.harness_commit}" for each in stamps}
    return clip(visible("; ".join(sorted(found))), 300)


def add_submit(command: argparse.ArgumentParser) -> None:
    """Add the selection, the account and the file."""
    command.description = (
        "Write one file to send to the project, of the records of one target that `run` made here: without names of "
        "the machine and its user, with their logs."
    )
    add_selection(command)
    command.add_argument(
        "--account", required=True, metavar="NAME", help="your account, that of the pull request"
    )
    command.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="the file to write (default: TARGET-RUN.jsonl.xz)"
    )


def do_submit(options: argparse.Namespace) -> int:
    """Write the file to send; returns the exit code."""
    account = checked_account(options.account)
    for name, given in (("cases", options.cases), ("matrix.yaml", options.matrix)):
        if given.resolve() != (TOP / name).resolve():
            raise HandledError(f"{given}: only the project's own {name} can be submitted; run it in {TOP}")
    measured = _measured(options)
    data = submission(measured, account)
    first = measured[0][0]
    output = options.output or Path(f"{first.target}-{first.stamps.run}{SUFFIX}")
    write_file(output, data, "give another with --output")
    # A file that the project would refuse is not to be sent.
    count = len(sound(output, account).records)
    print(f"{output}: {len(data) / 1e3:.0f} kB, {count} cells of {first.target}")
    print(
        f"look into it (xz -dc {output} | python3 -m json.tool --json-lines), then open a pull request that adds it "
        "under submissions/"
    )
    return EXIT_OK


def _measured(options: argparse.Namespace) -> list[Measured]:
    """Return the records of the selected cells with their logs; raises HandledError for several targets."""
    cells = selected(built(load_project(options), options), options)
    names = {cell.target.name for cell in cells}
    if len(names) != 1:
        raise HandledError(
            f"a submission is of one target, and these are {len(names)}: give one with --target"
        )
    target = cells[0].target
    if target.traits.baseline or not target.traits.builds_apart:
        raise HandledError(
            f"{target.name}: the project measures {target.traits.short} itself; submit TensorRT"
        )
    store = Store(options.reports)
    return [
        (each, store.log(each.log_sha256) if each.log_sha256 else "")
        for _, each in current(cells, store)
        if not each.stamps.account
    ]
