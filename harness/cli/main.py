"""The command line: one parser, one function a verb."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from harness import __version__
from harness.cli import ci_matrix, diff, doctor, listing, results, run
from harness.cli.common import EXIT_INFRA, EXIT_USAGE
from harness.errors import HandledError, InfraError
from harness.suggest import did_you_mean

_PROGRAM = "python -m harness"


class Parser(argparse.ArgumentParser):
    """A parser whose complaint is one sentence."""

    def error(self, message: str) -> NoReturn:
        """Raise the complaint as a HandledError, with a guess where a verb or option was mistyped."""
        raise HandledError(f"{message}; see {self.prog} --help")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    # A terminated run must end its containers as an interrupted one does.
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    try:
        options = _parse(words)
        return int(options.verb(options))
    except HandledError as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_USAGE
    except InfraError as error:
        print(f"infrastructure: {error}", file=sys.stderr)
        return EXIT_INFRA
    except KeyboardInterrupt:
        print("interrupted; what was recorded is kept", file=sys.stderr)
        return 128 + signal.SIGINT
    except BrokenPipeError:
        # `list | head`: the reader has enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


def _parse(words: list[str]) -> argparse.Namespace:
    verbs = _verbs()
    if words and not words[0].startswith("-") and words[0] not in verbs:
        raise HandledError(f"no verb {words[0]!r}; {did_you_mean(words[0], verbs)}")
    parser = Parser(prog=_PROGRAM, description="TensorRT compatibility matrix.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"trt-compat-matrix {__version__}")
    commands = parser.add_subparsers(required=True, metavar="VERB")
    for name, (add, verb, text) in verbs.items():
        command = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        _add_places(command)
        add(command)
        command.set_defaults(verb=verb)
    return parser.parse_args(words)


_Verb = tuple[Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], int], str]


def _verbs() -> dict[str, _Verb]:
    return {
        "run": (run.add_arguments, run.run, "run cells here, record them and write the report"),
        "list": (listing.add_list_arguments, listing.list_cells, "list cells, cases or targets"),
        "show": (
            listing.add_show_arguments,
            listing.show,
            "show one cell: graph, recipe, what is known, commands",
        ),
        "doctor": (
            doctor.add_arguments,
            doctor.doctor,
            "say what this machine can run, and why not the rest",
        ),
        "report": (results.add_report_arguments, results.report, "write the report from what is recorded"),
        "diff": (diff.add_arguments, diff.diff, "say what changes from one target or report to another"),
        "accept": (
            results.add_accept_arguments,
            results.accept,
            "take what was measured as what to expect from now on",
        ),
        "merge": (results.add_merge_arguments, results.merge, "take in the records of other machines"),
        "verify": (
            results.add_verify_arguments,
            results.verify,
            "check records, logs and report for consistency",
        ),
        "ci-matrix": (
            ci_matrix.add_arguments,
            ci_matrix.ci_matrix,
            "print the jobs of a nightly workflow as JSON",
        ),
    }


def _add_places(command: argparse.ArgumentParser) -> None:
    command.add_argument("--matrix", type=Path, default=Path("matrix.yaml"), metavar="FILE")
    command.add_argument("--cases", type=Path, default=Path("cases"), metavar="FOLDER")
    command.add_argument("--reports", type=Path, default=Path("reports"), metavar="FOLDER")
