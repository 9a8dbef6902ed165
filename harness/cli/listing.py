"""`list`: what there is."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from harness.cli.common import EXIT_OK, add_selection, load_project, selected
from harness.report.model import load_results, results_file

if TYPE_CHECKING:
    from harness.matrix import Target


_KINDS = ("cells", "variants", "targets")


def add_list_arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of `list`."""
    add_selection(command)
    command.add_argument(
        "what",
        nargs="?",
        type=_what,
        metavar="WHAT",
        default="cells",
        help="cells (default), variants or targets",
    )


def _what(text: str) -> str:
    if text not in _KINDS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is none of {', '.join(_KINDS)} (and quote a -k expression that holds spaces)"
        )
    return text


def list_cells(options: argparse.Namespace) -> int:
    """Print one line for each selected cell, variant or target."""
    project = load_project(options)
    cells = selected(project, options)
    if options.what == "targets":
        for target in {cell.target.name: cell.target for cell in cells}.values():
            doubt = f" ({target.unsourced})" if target.unsourced else ""
            print(f"{target.name:<12} {target.label:<30} {target.platform:<12} {_origin(target)}{doubt}")
    elif options.what == "variants":
        for cell in {(cell.case.name, cell.variant.name): cell for cell in cells}.values():
            print(f"{f'{cell.case.name}.{cell.variant.name}':<44} {cell.variant.title}")
    else:
        last = _last_results(options)
        for cell in cells:
            print(f"{cell.id:<52} {last[cell.id]}" if cell.id in last else cell.id)
    return EXIT_OK


def _last_results(options: argparse.Namespace) -> dict[str, str]:
    """Return what each cell that was run ended as, where there is a report."""
    path = results_file(options.reports)
    cells = load_results(path).cells if path.is_file() else ()
    return {cell.id: f"{cell.cls} ({cell.verdict})" for cell in cells if cell.measured and not cell.stale}


def _origin(target: Target) -> str:
    if target.build is None:
        return target.pull_reference
    if target.build.kind == "packages":
        return " ".join(target.packages)
    return f"docker/{target.build.kind}.Dockerfile on {target.pull_reference}"
