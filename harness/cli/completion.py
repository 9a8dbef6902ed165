"""`completion SHELL`: shtab's script for verbs, options, files and targets, which never starts the harness."""

from __future__ import annotations

import argparse
from pathlib import Path

import shtab

from harness.cli.common import EXIT_OK

#: Whose value is a target; `--from` is one of `check` alone.
_OF_TARGETS = frozenset({"--target", "--require", "--good", "--bad", "--from", "--to"})
#: Lists those of the matrix that is here: in tcsh without a single quote or a slash, in fish without a double one.
_LISTED = 'grep -soE "^  [a-z][a-z0-9_-]*:" matrix.yaml | tr -d " :"'
_TARGETS = shtab.cmd(_LISTED) | {"fish": "({})".format(_LISTED.replace('"', "'"))}


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the shell."""
    command.add_argument("shell", choices=("bash", "zsh", "fish", "tcsh"), help="for which shell")


def completion(options: argparse.Namespace) -> int:
    """Print the script."""
    for parser in options.verbs.values():
        for action in parser.actions():
            if action.type is Path:
                action.complete = shtab.FILE
            elif _OF_TARGETS.intersection(action.option_strings):
                action.complete = _TARGETS
    print(shtab.complete(options.root, options.shell), end="")
    return EXIT_OK
