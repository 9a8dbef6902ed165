"""`check MODEL...`: builds and runs own models on each target, and parts and rewrites of them, without a case file."""

from __future__ import annotations

import argparse
import contextlib
import uuid
from pathlib import Path

import onnx

from harness.case import load_cases
from harness.cli.check_lines import lines
from harness.cli.options import (
    EXIT_INFRA,
    EXIT_OK,
    EXIT_REGRESSION,
    EXIT_USAGE,
    add_fields,
    add_require,
    add_where,
    chosen,
    of_fields,
    writable,
    writable_file,
    write_file,
)
from harness.cli.project import load_targets
from harness.cli.terminal import Doing
from harness.errors import HandledError
from harness.known.further import Further
from harness.models.answers import Trouble, verdict
from harness.models.checking import Begun, Behind, Check, Concluded, Event, Now, Unread
from harness.models.graphs import outside
from harness.record.store import Store
from harness.report.writer import build_report, results_json
from harness.run.commands import published_lines
from harness.scratch import Scratch
from harness.text import one_line

_WIDEST = 400


def add_check(command: argparse.ArgumentParser) -> None:
    """Add the options of `check`."""
    command.description = (
        "Build own models on each target, run them where that can be, and say what becomes of them: one line a target, "
        "then what is lost from one to the other, then advice. The exit code is 1 where something in --fail-on gets "
        "worse from A to B or, without --from, occurs on a target that decides: one that --target names, else the "
        "newest of each engine."
    )
    command.add_argument(
        "models", nargs="+", type=Path, metavar="MODEL", help="an .onnx file, or a folder of such"
    )
    command.add_argument(
        "--fail-on",
        type=chosen(Trouble),
        default=frozenset({Trouble.BUILD, Trouble.INT8_LOSS}),
        metavar="WHAT",
        help="build, int8-loss and numbers, with commas between, or none (default: build,int8-loss)",
    )
    command.add_argument(
        "--json", type=Path, metavar="FILE", help="write what was found, as results.json has it"
    )
    command.add_argument(
        "--html", type=Path, metavar="FOLDER", help="write the report page, with records and logs"
    )
    add_require(command)
    command.add_argument(
        "--allow-left-out", action="store_true", help="no exit 3 for what --seconds leaves out"
    )
    add_where(command)
    add_fields(command, Check)
    command.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="write the model that --leave-float or --try-workarounds found",
    )


def do_check(options: argparse.Namespace) -> int:
    """Check the models and print the results; returns the exit code."""
    _refuse_unwritable(options)
    options.matrix = load_targets(options)
    options.targets += [name for name in options.require if options.targets and name not in options.targets]
    # A folder that was named is refused before anything runs; one that was only found costs the hints, no more.
    options.cases = options.cases if "cases" in options.unsaid else load_cases(options.cases)
    check = of_fields(Check, options)
    with Doing() as doing, contextlib.ExitStack() as stack:
        folder = options.html or Path(stack.enter_context(Scratch("check-")))
        shown = _Shown(options, doing, stack.enter_context(Store(folder, run=uuid.uuid4().hex[:12])))
        try:
            check.run(shown.tell, shown.store)
        finally:
            shown.report(folder)
        if options.html:
            doing.say(f"report: {options.html / 'index.html'}")
    return shown.code()


class _Shown:
    """Prints the events of a check as they come, and keeps the ones that its report and its exit code follow from."""

    def __init__(self, options: argparse.Namespace, doing: Doing, store: Store) -> None:
        self._options, self._doing, self.store = options, doing, store
        self._begun: Begun | None = None
        self._concluded: Concluded | None = None
        self._further: dict[str, Further] = {}
        self._unread = False

    def tell(self, event: Event) -> None:
        """Print the lines of an event, and show the work that begins with it."""
        match event:
            case Now():
                self._doing.now(event.text)
            case Unread():
                self._unread = True
            case Begun():
                self._begun = event
            case Concluded():
                self._concluded = event
            case Behind():
                self._further |= {each.judged.cell.id: each.further for each in event.answers}
        for line in lines(event, self._begun, self._options):
            self._doing.say(line)
        if isinstance(event, Behind) and self._options.output:
            self._write(event)

    def report(self, folder: Path) -> None:
        """Write the report that --html or --json asks for, of all that came."""
        wanted = (self._options.html or self._options.json) and (self._concluded or self.store.holds_records)
        if self._begun is None or not wanted:
            return
        self._doing.now("writing the report")
        answers = self._concluded.answers if self._concluded else ()
        results = build_report(
            self._begun.matrix,
            (self._begun.case,),
            self.store,
            folder,
            published_lines(self._begun.matrix),
            listed={each.judged.cell.id: each.static.gravest for each in answers},
            further=self._further.values(),
        )
        if self._options.json:
            write_file(self._options.json, results_json(results).encode(), "give --json another")

    def code(self) -> int:
        """Print which target decides, and return the exit code."""
        if self._begun is None or self._concluded is None:
            return EXIT_INFRA
        options = self._options
        found = verdict(
            self._concluded.answers,
            self._concluded.steps,
            decides=self._begun.decides,
            required=options.require,
            fail_on=options.fail_on,
            allow_left_out=options.allow_left_out,
        )
        print(one_line(found.sentence, _WIDEST))
        if found.broken:
            return EXIT_REGRESSION
        return EXIT_USAGE if self._unread else EXIT_INFRA if found.unknown else EXIT_OK

    def _write(self, event: Behind) -> None:
        """Write the model that an answer found on the target that is meant."""
        goal, (model, *_) = self._options.output, self._options.models
        wanted = self._options.after or self._options.targets[0]
        for each in event.answers:
            made = each.made.get(event.question)
            if made is None or each.target != wanted:
                continue
            try:
                onnx.save(made, goal)
            except (OSError, ValueError) as error:
                raise HandledError(f"--output {goal}: cannot be written ({error})") from error
            self._doing.say(f"  written: {goal}")
            if outside(made) and goal.parent.resolve() != model.parent.resolve():
                self._doing.say(f"  its weights stay in their files: move it to {model.parent}")


def _refuse_unwritable(options: argparse.Namespace) -> None:
    """Raise HandledError for a place that cannot be written."""
    if options.html:
        writable(options.html, "--html")
    for option in ("json", "output"):
        if getattr(options, option):
            writable_file(getattr(options, option), f"--{option}", options.models)
    if options.output:
        _refuse_output(options)


def _refuse_output(options: argparse.Namespace) -> None:
    """Raise HandledError if --output does not say which model is meant."""
    if bool(options.leave_float) == options.workarounds:
        raise HandledError(
            "--output is for what one of --leave-float and --try-workarounds found; give one of them"
        )
    if len(options.models) > 1:
        raise HandledError("--output is of one model, and several are named; check them one by one")
    if not options.after and len(options.targets) != 1:
        raise HandledError("--output is of one target; name it with --to or --target")
