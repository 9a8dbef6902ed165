"""What the verbs share."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.case import Case, load_cases
from harness.matrix import Matrix, load_matrix
from harness.plan import Cell, plan, select

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


def load_project(options: argparse.Namespace) -> Project:
    """Load what `--matrix` and `--cases` name."""
    matrix = load_matrix(options.matrix)
    cases = load_cases(options.cases)
    return Project(matrix, cases, plan(matrix, cases))


def add_selection(command: argparse.ArgumentParser) -> None:
    """Add `-k` and `--target`."""
    command.add_argument("-k", dest="expression", default="", metavar="EXPRESSION", help="as pytest's -k")
    command.add_argument(
        "--target",
        dest="targets",
        action="append",
        default=[],
        metavar="NAME",
        help="only this target (repeatable)",
    )


def selected(project: Project, options: argparse.Namespace) -> tuple[Cell, ...]:
    """Return the cells that the options select."""
    cells: Iterable[Cell] = select(project.cells, options.expression) if options.expression else project.cells
    names = {project.matrix.target(name).name for name in options.targets}
    return tuple(cell for cell in cells if not names or cell.target.name in names)
