"""`scan`: what of somebody's code a version of TensorRT breaks, a line a use."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from harness.cli.options import EXIT_OK, EXIT_REGRESSION
from harness.errors import HandledError
from harness.matrix import load_matrix
from harness.matrix.interface import interfaces, numbers
from harness.scan.files import scanned
from harness.scan.judged import FORMATS, ScanAnswer, judged, runs_on
from harness.scan.uses import Found


def add_scan(command: argparse.ArgumentParser) -> None:
    """Add what to read, the versions, and how the answer is written."""
    command.description = (
        "Say which uses of TensorRT in Python, C++, notebooks, command lines, images and packages a version breaks. "
        "Nothing of the code is run. Without --to: the targets on which it can run at all. A line with `# trt-compat: "
        "ignore` is passed over. The exit code is 1 where something breaks."
    )
    command.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="files or folders of code")
    command.add_argument(
        "--from", dest="lowest", default="", metavar="VERSION", help="the lowest version that must work too"
    )
    command.add_argument(
        "--to", dest="highest", default="", metavar="VERSION", help="the version to upgrade to"
    )
    command.add_argument(
        "--guarded", action="store_true", help="list too what stands behind a test of the version"
    )
    group = command.add_mutually_exclusive_group()
    group.add_argument(
        "--json", action="store_const", const="json", dest="form", help="print one JSON object"
    )
    group.add_argument(
        "--sarif",
        action="store_const",
        const="sarif",
        dest="form",
        help="print SARIF 2.1.0 for code scanning",
    )
    group.add_argument(
        "--markdown", action="store_const", const="markdown", dest="form", help="print a table for a summary"
    )


def do_scan(options: argparse.Namespace) -> int:
    """Print what breaks; returns 1 if something does, or if no target can run the code."""
    for name, version in (("--from", options.lowest), ("--to", options.highest)):
        _check(name, version)
    if options.lowest and options.highest and numbers(options.lowest) > numbers(options.highest):
        raise HandledError(f"--from {options.lowest} is later than --to {options.highest}; swap them")
    found, files = scanned(options.paths)
    answer = _answer(options, found, files)
    print(FORMATS[options.form or "text"](answer))
    breaks = [each for each in answer.findings if each.breaks]
    return EXIT_REGRESSION if (not any(answer.row.values()) if answer.row else breaks) else EXIT_OK


def _answer(options: argparse.Namespace, found: Found, files: int) -> ScanAnswer:
    """Return what a version makes of uses; without one, which targets they run on."""
    targets = {each.name: each.version for each in load_matrix(options.matrix) if each.traits.interface_known}
    named = options.highest or options.lowest
    fine = () if named else runs_on(found, [*targets.values()])
    row = {} if named else {name: version in fine for name, version in targets.items()}
    highest = options.highest or max(targets.values(), key=numbers)
    lowest = options.lowest or ("" if options.highest else min(targets.values(), key=numbers))
    findings = judged(found, _patch(lowest), _patch(highest))
    return ScanAnswer(found, findings, files, highest, row, guarded=options.guarded)


def _patch(version: str) -> str:
    return ".".join(version.split(".")[:3])


def _check(option: str, version: str) -> None:
    if version and not re.fullmatch(r"\d{1,3}\.\d{1,3}(?:\.\d{1,3}){0,2}", version, re.ASCII):
        raise HandledError(f"{option} {version!r} is no version of TensorRT; write it as 10.13 or 11.4.0")
    newest = interfaces()["python"].versions[-1]
    if version and numbers(version)[0] > numbers(newest)[0]:
        raise HandledError(
            f"{option} {version}: the newest interface that is known here is that of {newest}; give that"
        )
