"""What the verbs share."""

from __future__ import annotations

import argparse
import errno
import os
import shlex
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.case import Case, load_cases
from harness.cli.places import places
from harness.errors import HandledError
from harness.matrix import Matrix, load_matrix
from harness.plan import Cell, all_cells, select
from harness.run.prepared import with_models

if TYPE_CHECKING:
    from collections.abc import Iterable

EXIT_OK = 0
EXIT_REGRESSION = 1
EXIT_USAGE = 2
EXIT_INFRA = 3


@dataclass(frozen=True)
class Project:
    """The matrix, the cases and every cell of the two."""

    matrix: Matrix
    cases: tuple[Case, ...]
    cells: tuple[Cell, ...]


def add_trust(command: argparse.ArgumentParser) -> None:
    """Add `--untrusted` and `--trusted`."""
    trust = command.add_mutually_exclusive_group()
    trust.add_argument(
        "--untrusted",
        action="store_const",
        const=True,
        help="the models are a stranger's: a container for each cell, and no virtual environment",
    )
    trust.add_argument(
        "--trusted",
        dest="untrusted",
        action="store_const",
        const=False,
        help="the models are your own (default), whatever matrix.yaml says of its targets",
    )


def load_targets(options: argparse.Namespace) -> Matrix:
    """Load what `--matrix` names, its targets as trusted as the options say."""
    matrix = load_matrix(options.matrix)
    said: bool | None = getattr(options, "untrusted", None)
    if said is None:
        return matrix
    return replace(matrix, targets=tuple(replace(target, untrusted=said) for target in matrix))


def load_project(options: argparse.Namespace) -> Project:
    """Load what `--matrix` and `--cases` name."""
    matrix = load_targets(options)
    cases = load_cases(options.cases)
    return Project(matrix, cases, all_cells(matrix, cases))


def built(project: Project, options: argparse.Namespace) -> Project:
    """Return a project whose models are built, those that can be, by `with_models`."""
    cases = with_models(project.cases, options.cases)
    return Project(project.matrix, cases, all_cells(project.matrix, cases))


def add_selection(command: argparse.ArgumentParser) -> None:
    """Add `-k` and `--target`."""
    command.add_argument(
        "-k", dest="expression", default="", metavar="EXPRESSION", help="as pytest's -k: 'mish and not trt86'"
    )
    command.add_argument(
        "--target",
        dest="targets",
        action="append",
        default=[],
        metavar="NAME",
        help="only this target (repeatable)",
    )


def selected(project: Project, options: argparse.Namespace) -> tuple[Cell, ...]:
    """Return the cells that the options select; raises HandledError where that is none."""
    cells: Iterable[Cell] = select(project.cells, options.expression) if options.expression else project.cells
    names = {target.name for target in project.matrix.only(options.targets)}
    chosen = tuple(cell for cell in cells if cell.target.name in names)
    if not chosen:
        on = f" on {', '.join(sorted(names))}" if options.targets else ""
        raise HandledError(f"-k {options.expression!r} matches no cell{on}; `trt-compat list` shows them all")
    return chosen


def command_line(verb: str, options: argparse.Namespace) -> str:
    """Return a command line for another verb on the same selection and the same places, to paste."""
    words = ["trt-compat", verb]
    if options.expression:
        words += ["-k", options.expression]
    for name in options.targets:
        words += ["--target", name]
    return shlex.join([*words, *places(options)])


def positive(text: str) -> int:
    """Return an option's whole number above 0."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def add_tolerance(command: argparse.ArgumentParser) -> None:
    """Add how far outputs may be off."""
    by_precision = "(default: by the coarsest precision that anything ran in)"
    command.add_argument(
        "--max-rel",
        type=_figure,
        metavar="N",
        help=f"how far an output may be off, of its magnitude {by_precision}",
    )
    command.add_argument(
        "--cosine",
        type=_figure,
        metavar="N",
        help=f"what cosine an output has with what is expected, at least {by_precision}",
    )


def tolerance(options: argparse.Namespace) -> dict[str, Any]:
    """Return what `add_tolerance` was given, by its name in `Wanted`."""
    return {"max_rel": options.max_rel, "cosine": options.cosine}


def _figure(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None


def writable(folder: Path, option: str = "--reports") -> Path:
    """Return a folder, made if missing; raises HandledError where nothing can be written into it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise HandledError(
            f"{folder}: cannot be written: {error.strerror}; give another folder with {option}"
        ) from error
    return folder


def writable_file(path: Path, option: str) -> None:
    """Raise HandledError where a file cannot be written; what is there stays, and a pipe's reader hears nothing."""
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not path.exists():
            path.open("xb").close()
            path.unlink()
        elif not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise HandledError(
            f"{option} {path}: cannot be written: {error.strerror}; give another file"
        ) from error
