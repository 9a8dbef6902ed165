"""The options that verbs share, and the places that they name: those given, here, or with the harness.

It loads fast: `--help` of every verb needs it.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

from harness import __version__
from harness.errors import HandledError
from harness.shipped import looked_up
from harness.text import did_you_mean
from harness.words import Part

_T = TypeVar("_T")

EXIT_OK = 0
EXIT_REGRESSION = 1
EXIT_USAGE = 2
EXIT_INFRA = 3

#: Digits of a number that a user may give.
_DIGITS = 9
#: The folder of records and report without --reports.
REPORTS = "reports"
#: The options whose files are looked up, and their usual names.
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
    """Fill in the places that were not given, and name them in `unsaid`; absent ones are told on stderr.

    Matrix and cases are looked up each by itself: an own matrix without own cases is for the known ones, and own cases
    are for all known targets.
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


def places(options: argparse.Namespace, *, reports: bool = True) -> list[str]:
    """Return the options that name other places than those that would be looked up."""
    words = []
    for option, usual in _LOOKED_UP:
        path = str(getattr(options, option))
        if option not in options.unsaid and path != usual:
            words += [f"--{option}", path]
    if reports and str(options.reports) != REPORTS:
        words += ["--reports", str(options.reports)]
    return words


def own(options: argparse.Namespace, what: str) -> bool:
    """Tell whether the `matrix` or the `cases` is the user's own, not the harness's."""
    return what not in options.unsaid or not getattr(options, what).is_absolute()


def add_where(command: argparse.ArgumentParser) -> None:
    """Add `--via`, `--untrusted` and `--trusted`."""
    command.add_argument(
        "--via", choices=("auto", "docker", "venv"), default="auto", help="where engines run (default: auto)"
    )
    add_trust(command)


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


def add_require(command: argparse.ArgumentParser) -> None:
    """Add `--require`."""
    text = "a target that must run here: else exit 3"
    command.add_argument("--require", action="append", default=[], metavar="TARGET", help=text)


def add_selection(command: argparse.ArgumentParser) -> None:
    """Add `-k` and `--target`."""
    command.add_argument(
        "-k",
        dest="expression",
        default="",
        metavar="EXPRESSION",
        help="as pytest's -k: 'mish and not trt86'; a name takes every longer one along, trt101 trt1011 too",
    )
    add_targets(command, "only this target (repeatable)")


def add_targets(command: argparse.ArgumentParser, text: str) -> None:
    """Add `--target`."""
    command.add_argument("--target", dest="targets", action="append", default=[], metavar="NAME", help=text)


#: The parts of a cell that `--fail-on` may name.
PARTS: tuple[str, ...] = get_args(Part)


def add_json(command: argparse.ArgumentParser, what: str) -> None:
    """Add `--json`, which prints this in place of lines for people."""
    command.add_argument("--json", action="store_true", help=f"print a JSON {what}")


def print_json(data: object) -> None:
    """Print plain data, enumerations among it, as JSON."""
    print(json.dumps(data, indent=1, ensure_ascii=False, default=str))


def add_fail_on(command: argparse.ArgumentParser, usual: str) -> None:
    """Add `--fail-on` of the parts of a cell."""
    command.add_argument(
        "--fail-on",
        type=chosen(PARTS),
        default=usual,
        metavar="WHAT",
        help=f"{', '.join(PARTS[:-1])} and {PARTS[-1]}, with commas between, or none (default: {usual})",
    )


def chosen(known: Iterable[str]) -> Callable[[str], frozenset[str]]:
    """Return the type of an option that takes some of the known words, with commas between, or none."""

    def parsed(text: str) -> frozenset[str]:
        words = [each.strip() for each in text.split(",") if each.strip() not in ("", "none")]
        for each in words:
            if each not in (every := list(map(str, known))):
                raise argparse.ArgumentTypeError(
                    f"{each!r} is nothing to fail on; {did_you_mean(each, every)}"
                )
        return frozenset(words)

    return parsed


def positive(text: str) -> int:
    """Return an option's whole number above 0."""
    if not text.isdecimal() or len(text) > _DIGITS or not int(text):
        raise argparse.ArgumentTypeError(f"{text[:80]!r} is no whole number from 1 to {10**_DIGITS - 1}")
    return int(text)


def number(text: str) -> float:
    """Return an option's number."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None


#: The forms of an option that is a field of a dataclass, in argparse's words.
FORMS: dict[str, dict[str, Any]] = {
    "": {},
    "count": {"type": positive, "metavar": "N"},
    "file": {"type": Path, "metavar": "FILE"},
    "number": {"type": number, "metavar": "N"},
    "off": {"action": "store_false"},
    "on": {"action": "store_true"},
    "several": {"action": "append"},
}


def add_fields(command: argparse.ArgumentParser, kind: type) -> None:
    """Add an option for each field of a dataclass that has a help in its metadata."""
    for each in (one for one in fields(kind) if one.metadata):
        words = dict(each.metadata)
        names = [words.pop("short", ""), words.pop("name", f"--{each.name.replace('_', '-')}")]
        words |= FORMS[words.pop("form")]
        default = list(each.default) if each.default == () else each.default
        command.add_argument(*filter(None, names), dest=each.name, default=default, **words)


def of_fields(kind: type[_T], options: argparse.Namespace) -> _T:
    """Return a dataclass whose fields are the options of these names."""
    return kind(**{each.name: getattr(options, each.name) for each in fields(cast("Any", kind))})


def words_of(given: object) -> Iterator[str]:
    """Yield the words of a command line that give the fields of a dataclass, where they are not what is usual."""
    for each in fields(cast("Any", given)):
        value, name = getattr(given, each.name), each.metadata.get("name", f"--{each.name.replace('_', '-')}")
        for one in value if isinstance(value, list | tuple) else (value,):
            yield from () if one == each.default else (name, str(one))


def writable(folder: Path, option: str = "--reports") -> Path:
    """Return a folder, made if missing; raises HandledError if it is read-only."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise HandledError(
            f"{folder}: cannot be written: {error.strerror}; give another folder with {option}"
        ) from error
    return folder


def write_file(path: Path, data: bytes, cure: str = "give another file") -> None:
    """Write a file that the user named; raises HandledError if it cannot be written."""
    try:
        path.write_bytes(data)
    except OSError as error:
        raise HandledError(f"{path}: cannot be written: {error.strerror}; {cure}") from error


def writable_file(path: Path, option: str, models: Sequence[Path] = ()) -> None:
    """Raise HandledError if a file cannot be written, or is one of the models that are read.

    It leaves the file's content, and writes no byte into a pipe.
    """
    if path.is_file() and any(each.is_file() and path.samefile(each) for each in models):
        raise HandledError(f"{option} {path}: is the model itself; give another file")
    try:
        if path.is_dir():
            raise HandledError(f"{option} {path}: is a folder; name a file in it")
        if not path.exists():
            path.open("xb").close()
            path.unlink()
        elif not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise HandledError(
            f"{option} {path}: cannot be written: {error.strerror}; give another file"
        ) from error
