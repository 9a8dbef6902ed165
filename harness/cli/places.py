"""Which matrix and cases a command is about: those given, else those here, else those that come with the harness."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from harness import __version__
from harness.shipped import looked_up

if TYPE_CHECKING:
    import argparse

#: Where records and report are, unless --reports says otherwise.
REPORTS = "reports"
#: What is looked up, by option, and its usual name.
_LOOKED_UP = (("matrix", "matrix.yaml"), ("cases", "cases"))


def add_places(command: argparse.ArgumentParser) -> None:
    """Add `--matrix`, `--cases` and `--reports`."""
    for option, metavar, text in (
        ("--matrix", "FILE", "the targets (default: matrix.yaml here, else that of trt-compat)"),
        (
            "--cases",
            "FOLDER",
            "the case modules and measured.yaml (default: cases here, else those of trt-compat)",
        ),
    ):
        command.add_argument(option, type=Path, metavar=metavar, help=text)
    command.add_argument(
        "--reports",
        type=Path,
        default=Path(REPORTS),
        metavar="FOLDER",
        help=f"records and report (default: {REPORTS})",
    )


def settle(options: argparse.Namespace, *, shipped_too: bool) -> None:
    """Put what was not given into the options, and its name into `unsaid`; what is not here is said on stderr.

    Matrix and cases are looked up each by itself: an own matrix is for the known cases, where there are no own ones,
    and own cases are for all known targets.
    """
    options.unsaid, absent = set(), []
    for option, usual in _LOOKED_UP:
        if getattr(options, option) is not None:
            continue
        options.unsaid.add(option)
        found = looked_up(None, usual) if shipped_too else Path(usual)
        absent += [usual] if found != Path(usual) else []
        setattr(options, option, found)
    if absent:
        what = " and no ".join(absent)
        print(
            f"no {what} here: taking what comes with trt-compat {__version__}; `trt-compat init` writes your own",
            file=sys.stderr,
        )


def named(options: argparse.Namespace) -> dict[str, str]:
    """Return matrix and cases, by option, that would not be looked up."""
    given = {name: str(getattr(options, name)) for name, _ in _LOOKED_UP if name not in options.unsaid}
    return {name: given[name] for name, usual in _LOOKED_UP if given.get(name, usual) != usual}


def places(options: argparse.Namespace, *, reports: bool = True) -> list[str]:
    """Return the options that name other places than those that would be looked up."""
    words = [word for option, path in named(options).items() for word in (f"--{option}", path)]
    if reports and str(options.reports) != REPORTS:
        words += ["--reports", str(options.reports)]
    return words


def own(options: argparse.Namespace, what: str) -> bool:
    """Tell whether the `matrix` or the `cases` is the user's own, not what comes with the harness."""
    return what not in options.unsaid or not getattr(options, what).is_absolute()
