"""The command line: one parser, one function a verb."""

from __future__ import annotations

import argparse
import contextlib
import errno
import importlib
import io
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO, cast

from harness import __version__
from harness.cli.options import EXIT_INFRA, EXIT_OK, EXIT_USAGE, add_places, settle
from harness.errors import SHORT_OF, HandledError, InfraError
from harness.text import did_you_mean, visible

_PROGRAM = "trt-compat"
#: Verbs that write into the cases, are about the project's own checkout, or read neither matrix nor cases.
_OWN_ONLY = frozenset({"accept", "new", "submit", "diff"})
#: Verbs that are about no matrix at all.
_PLACELESS = frozenset({"init", "completion", "explain"})
#: The verb that tells of the options of all.
_OF_ALL = "completion"
#: Verbs for which a process of models loads as they do.
_FORKING = frozenset({"run"})
#: The words after a traceback.
FAULT = (
    "the harness itself failed, not an engine and not your command: please report the lines above, with the command, "
    "in the issue tracker of this project"
)


#: By verb the module of this folder that has it, as `add_VERB`, which adds its options, and `do_VERB`; and its line of
#: help. A module is imported when its verb is called: some take half a second.
VERBS = {
    "run": ("run", "run cells here, record them and write the report"),
    "check": ("check", "say what becomes of your own models on each target"),
    "explain": ("explain", "say what a log, or an error line, means and what to do"),
    "scan": ("scan", "say what of your code a version of TensorRT breaks"),
    "convert": ("convert", "write a model's types into its graph, as an older engine ran it"),
    "reduce": ("reduce", "make a failing model as small as it goes while it fails in the same way"),
    "bisect": ("bisect", "say between which two versions something changed"),
    "new": ("reduce", "write a case of your own model"),
    "list": ("show", "list cells or targets"),
    "show": ("show", "show one cell: graph, recipe, what is known, commands"),
    "share": ("show", "write what a maintainer asks for of a cell, in one archive"),
    "doctor": ("doctor", "say what this machine can run, and why not the rest"),
    "init": ("repository", "write a matrix, a case and a workflow of one's own to begin with"),
    "report": ("results", "write the report from what is recorded"),
    "diff": ("diff", "say what changes from one target or report to another"),
    "accept": ("results", "take what was measured as what to expect from now on"),
    "merge": ("merge", "take in the records of other machines, and what others sent in"),
    "verify": ("results", "check records, logs and report for consistency; exit 3 where there is a fault"),
    "submit": ("merge", "write the file to send in, of what was measured here on a GPU"),
    "ci-matrix": ("repository", "print the jobs of a nightly workflow as JSON"),
    "completion": ("main", "print a script that lets the shell complete verbs, options and targets"),
}

#: A line for the end of a verb's help, if its arguments do not say it all.
EXAMPLES = {
    "run": "-k 'mish and not qdq' --target rtx17",
    "check": "model.onnx --from rtx16 --to rtx17 --html out",
    "explain": "build.log",
    "scan": "src --from 8.6 --to 11.4",
    "convert": "model.onnx --as build.log -o explicit.onnx",
    "reduce": "model.onnx --target rtx16 -o small.onnx",
    "bisect": "model.onnx --good rtx17 --bad rtx14",
    "new": "my_block --from small.onnx",
    "show": "conv_silu.qdq-rtx17",
    "share": "conv_silu.qdq-rtx17 -o issue.zip",
    "diff": "rtx16 rtx17",
    "merge": "../gpu-box/reports",
    "submit": "--target trt102 --account NAME",
}


class Parser(argparse.ArgumentParser):
    """A parser whose complaint is one sentence."""

    def actions(self) -> list[argparse.Action]:
        """Return its arguments and options, for completion."""
        return list(self._actions)

    def error(self, message: str) -> NoReturn:
        """Raise the complaint as a HandledError."""
        raise HandledError(f"{message}; see {self.prog} --help")

    def refuse(self, word: str) -> NoReturn:
        """Raise a HandledError about a superfluous word, with the option that is nearest to a mistyped one."""
        if not word.startswith("-"):
            raise HandledError(
                f"{word!r} is one word too many; quote what holds spaces; see {self.prog} --help"
            )
        name = word.partition("=")[0]
        known = [option for option in self._option_string_actions if option.startswith("--")]
        raise HandledError(f"{self.prog} has no option {name!r}; {did_you_mean(name, known)}")


#: They end a run as an interrupt does, with a report and without its agents: `timeout`, and a terminal that closes.
_ENDING = (signal.SIGTERM, signal.SIGHUP)


class _Terminated(KeyboardInterrupt):
    """One of `_ENDING` came, by its number."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; raises only ImportError, if a verb cannot be loaded.

    A traceback is a fault of the program: it is printed, and the code is that of infrastructure, for Python's own
    would be that of a regression.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        # An engine's messages may hold bytes that are no text.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    with visible_output():
        return _ended(words)


class _Visible:
    """A stream that hands on visible characters: no escape of an engine's reaches a terminal, by whichever print.

    Rich, whose own colours are to reach it, finds the stream itself by `rich_proxied_file`; its own lines go
    through `printer`.
    """

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        self.rich_proxied_file.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  (whatever the stream has)
        return getattr(self.rich_proxied_file, name)


@contextlib.contextmanager
def visible_output() -> Iterator[None]:
    """Make whatever is written to standard output and error within visible."""
    out, err = (cast("TextIO", _Visible(stream)) for stream in (sys.stdout, sys.stderr))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield


def _ended(words: list[str]) -> int:
    try:
        with _heard():
            return _run(words)
    except HandledError as error:
        return _complain("error", error, EXIT_USAGE)
    except InfraError as error:
        return _complain("infrastructure", error, EXIT_INFRA)
    except KeyboardInterrupt as interrupt:
        print("interrupted", file=sys.stderr)
        return 128 + (interrupt.args[0] if isinstance(interrupt, _Terminated) else signal.SIGINT)
    except BrokenPipeError:
        # `list | head`: the reader has enough. The rest of the buffer must have a place to go at exit.
        for stream in (sys.stdout, sys.stderr):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return 128 + signal.SIGPIPE
    except ImportError:
        raise
    except Exception as error:  # noqa: BLE001  (whatever is left is a fault of ours)
        return _complain_of_fault(error)


@contextlib.contextmanager
def _heard() -> Iterator[None]:
    """Make the signals of `_ENDING` interrupt what is within; under nohup a terminal that closes is no end."""
    heard = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, _terminate) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _run(words: list[str]) -> int:
    options = _parse(words)
    if options.called not in _PLACELESS:
        settle(options, shipped_too=options.called not in _OWN_ONLY)
    code = int(options.verb(options))
    # A reader that has gone is to be noticed here, not while the interpreter ends.
    sys.stdout.flush()
    return code


def _complain(kind: str, what: object, code: int) -> int:
    with contextlib.suppress(BrokenPipeError):
        print(f"{kind}: {' '.join(str(what).split())}", file=sys.stderr)
    return code


def _complain_of_fault(error: Exception) -> int:
    if isinstance(error, OSError) and error.errno in SHORT_OF:
        what = f"{error.filename or 'this machine'}: {error.strerror}"
        return _complain("infrastructure", what, EXIT_INFRA)
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        name = f"{str(error.filename)[:80]}..."
        return _complain("error", f"{name}: is too long a name; give a file or folder", EXIT_USAGE)
    with contextlib.suppress(BrokenPipeError):
        traceback.print_exception(error)
    return _complain("fault", FAULT, EXIT_INFRA)


def _terminate(number: int, _: object) -> NoReturn:
    # A process is told, and so is its group: the second must not stop the ending of agents.
    for each in _ENDING:
        signal.signal(each, signal.SIG_IGN)
    raise _Terminated(number)


def _parse(words: list[str]) -> argparse.Namespace:
    called = _called(words)
    parser = Parser(prog=_PROGRAM, description="TensorRT compatibility matrix.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"trt-compat {__version__}")
    commands = parser.add_subparsers(required=True, metavar="VERB")
    for name, (_, text) in VERBS.items():
        epilog = f"example: {_PROGRAM} {name} {EXAMPLES[name]}" if name in EXAMPLES else ""
        command = commands.add_parser(name, help=text, description=text, epilog=epilog, allow_abbrev=False)
        if called not in (name, _OF_ALL):
            continue
        add, work = _loaded(name)
        if name not in _PLACELESS:
            add_places(command)
        add(command)
        command.set_defaults(verb=work, parser=command, called=name, root=parser, verbs=commands.choices)
    options, unknown = parser.parse_known_args(words)
    if unknown:
        options.parser.refuse(unknown[0])
    return options


def _called(words: list[str]) -> str:
    """Return the verb, "" without one; raises HandledError for another word in its place."""
    word = words[0] if words else ""
    if word in VERBS or word in ("", "-h", "--help", "--version"):
        return word
    if word.startswith("-"):
        raise HandledError(f"{word!r} comes before the verb; write `{_PROGRAM} VERB {word} ...`")
    raise HandledError(f"no verb {word!r}; {did_you_mean(word, VERBS)}")


def _loaded(
    name: str,
) -> tuple[Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], int]]:
    """Return the functions of a verb that add its options, if it has any, and do its work."""
    if name in _FORKING:
        child = importlib.import_module("harness.run.child")
        # Whoever needs it says why it cannot be.
        with contextlib.suppress(InfraError):
            child.warm()
    module = importlib.import_module("harness.cli." + VERBS[name][0])
    word = name.replace("-", "_")
    return getattr(module, f"add_{word}", lambda _: None), getattr(module, f"do_{word}")


#: Whose value is a target; `--from` is one of `check` alone.
_OF_TARGETS = frozenset({"--target", "--require", "--good", "--bad", "--from", "--to", "--on"})
#: Lists those of the matrix that is here: in tcsh without a single quote or a slash, in fish without a double one.
_LISTED = 'grep -soE "^  [a-z][a-z0-9_-]*:" matrix.yaml | tr -d " :"'


def add_completion(command: argparse.ArgumentParser) -> None:
    """Add the shell."""
    command.add_argument("shell", choices=("bash", "zsh", "fish", "tcsh"), help="for which shell")


def do_completion(options: argparse.Namespace) -> int:
    """Print shtab's script for verbs, options, files and targets, which never starts the harness."""
    import shtab  # noqa: PLC0415  (no other verb needs it)

    targets = shtab.cmd(_LISTED) | {"fish": "({})".format(_LISTED.replace('"', "'"))}
    for parser in options.verbs.values():
        for action in parser.actions():
            if action.type is Path:
                action.complete = shtab.FILE
            elif _OF_TARGETS.intersection(action.option_strings):
                action.complete = targets
    print(shtab.complete(options.root, options.shell), end="")
    return EXIT_OK
