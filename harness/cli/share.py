"""`share CELL`: one archive with what a maintainer asks for of a cell that was run."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.cli.common import EXIT_OK, load_project
from harness.community.share import share
from harness.errors import HandledError
from harness.judge.cell import judge_cell
from harness.plan import find
from harness.record.speaking import is_stale, todays
from harness.record.store import Store


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of `share`."""
    command.description = (
        "Write what a maintainer asks for of one cell that was run: the text of an issue, the model, the lines and the "
        "file that reproduce it, the log, versions, and what the same comes to elsewhere. Names of this machine and "
        "its user are taken out; nothing is sent."
    )
    command.add_argument("cell", help="a cell's id, such as conv_silu.qdq-rtx17")
    command.add_argument("-o", "--output", type=Path, metavar="FILE", help="the archive (default: CELL.zip)")


def share_cell(options: argparse.Namespace) -> int:
    """Write the archive and say where it is."""
    project = load_project(options)
    cell = find(project.cells, options.cell.rpartition("::")[2])
    same = [each for each in project.cells if each.variant is cell.variant]
    data = cell.variant.model_bytes()
    today = todays(same, {(cell.case.name, cell.variant.name): data})
    store = Store(options.reports)
    recorded = store.speaking(lambda outcome: is_stale(outcome, today))
    found = {each.id: judge_cell(each, recorded[each.id][0]) for each in same if recorded.get(each.id)}
    if cell.id not in found:
        raise HandledError(
            f"{cell.id}: no result is recorded in {options.reports}; `trt-compat run -k {cell.case.name}` makes one"
        )
    judged = found.pop(cell.id)
    known_by = judged.outcome.log_sha256
    log = store.log(known_by) if known_by else ""
    made = share(judged, log, list(found.values()))
    path = options.output or Path(f"{cell.case.name}-{cell.variant.name}-{cell.target.name}.zip")
    try:
        path.write_bytes(made.archive())
    except OSError as error:
        raise HandledError(f"{path}: cannot be written ({error.strerror})") from error
    print(f"{path}: {', '.join(made.files)}")
    print(f"title: {made.title}")
    return EXIT_OK
