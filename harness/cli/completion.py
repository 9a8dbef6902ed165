"""`completion SHELL`: a script that completes verbs, options and targets without starting the harness.

A library that asks the program at every press of a key would load it each time, which takes a second.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from harness.cli.common import EXIT_OK
from harness.errors import HandledError
from harness.suggest import did_you_mean

if TYPE_CHECKING:
    from harness.cli.main import Parser

_SHELLS = ("bash", "zsh", "fish")
#: Whose value is a target: they are read out of the matrix that is here.
_OF_TARGETS = frozenset({"--target", "--require", "--good", "--bad", "--to"})
#: Of `new` it is a model.
_ALSO = ("check", "--from")
_TARGETS = r"sed -n 's/^  \([a-z][a-z0-9_-]*\):.*/\1/p' matrix.yaml 2>/dev/null"
_BASH = """\
_trt_compat() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} words=
    if [ "$COMP_CWORD" = 1 ]; then
        words={verbs}
    else
        case "${{COMP_WORDS[1]}} $before" in
{values}
        *)
            case "${{COMP_WORDS[1]}}" in
{options}
            esac
            [[ $word == -* ]] || words=
            ;;
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _trt_compat trt-compat
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the shell."""
    command.add_argument("shell", metavar="|".join(_SHELLS), help="for which shell")


def completion(options: argparse.Namespace) -> int:
    """Print the script."""
    if options.shell not in _SHELLS:
        raise HandledError(f"no completion for {options.shell!r}; {did_you_mean(options.shell, _SHELLS)}")
    verbs: Mapping[str, Parser] = options.verbs
    if options.shell == "fish":
        print("\n".join(_fish(verbs)))
        return EXIT_OK
    if options.shell == "zsh":
        print("autoload -U +X bashcompinit && bashcompinit")
    print(_bash(verbs), end="")
    return EXIT_OK


def _bash(verbs: Mapping[str, Parser]) -> str:
    values, options = [], []
    for verb, parser in verbs.items():
        actions = parser.actions()
        for action in actions:
            words = f"$({_TARGETS})" if _of_targets(verb, action) else _choices(action)
            if words:
                values += [f'        "{verb} {name}") words={words} ;;' for name in action.option_strings]
        known = " ".join(name for action in actions for name in action.option_strings)
        options.append(f"            {verb}) words={shlex.quote(known)} ;;")
    quoted = shlex.quote(" ".join(verbs))
    return _BASH.format(verbs=quoted, values="\n".join(values), options="\n".join(options))


def _fish(verbs: Mapping[str, Parser]) -> Iterator[str]:
    first = "complete -c trt-compat -n __fish_use_subcommand -f"
    for verb, parser in verbs.items():
        yield f"{first} -a {verb} -d {shlex.quote(parser.short)}"
        for action in parser.actions():
            names = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                for name in action.option_strings
            )
            words = shlex.quote(f"({_TARGETS})") if _of_targets(verb, action) else _choices(action)
            value = f" -x -a {words}" if words else " -r" * (action.nargs != 0)
            told = shlex.quote((action.help or "").replace("%%", "%"))
            yield f"complete -c trt-compat -n '__fish_seen_subcommand_from {verb}' {names}{value} -d {told}"


def _of_targets(verb: str, action: argparse.Action) -> bool:
    return any(name in _OF_TARGETS or (verb, name) == _ALSO for name in action.option_strings)


def _choices(action: argparse.Action) -> str:
    """Return the words that an option takes, as one word of a shell; "" where it takes any."""
    return shlex.quote(" ".join(map(str, action.choices))) if action.choices else ""
