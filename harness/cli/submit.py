"""`submit`: writes the file to send to the project, of records that `run` made here."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.merge import sound
from harness.cli.options import EXIT_OK, add_selection, write_file
from harness.cli.project import built, current, load_project, selected
from harness.errors import HandledError
from harness.record.store import Store
from harness.run.stamps import TOP
from harness.share.submission import SUFFIX, checked_account, submission

if TYPE_CHECKING:
    from harness.share.submission import Measured


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
        "--output", type=Path, metavar="FILE", help="the file to write (default: TARGET-RUN.jsonl.xz)"
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
