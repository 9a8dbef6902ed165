"""`history/suites/<suite>/<date>-<run>-<target>.json`: how each model of a suite ended on a target, run by run.

A file is written where something ends otherwise than in the run before, so that a year of nights that agree is one file
a target; a run without one found what the file before it says. Packed, they are in the archive beside the folder.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.bounded import files_of, parse_json
from harness.errors import HandledError
from harness.history.runs import FOLDER, HISTORY_SCHEMA, write_whole
from harness.record.from_json import check_schema, decode
from harness.record.suites import SUITES

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


@dataclass(frozen=True)
class SuiteRun:
    """One run of a suite on a target: `ended` is class, and signature where there is one, by model."""

    target: str
    version: str
    run: str
    when: str
    ended: dict[str, str] = field(default_factory=dict)

    @property
    def file_name(self) -> str:
        """Return the name under which it is kept."""
        return f"{self.when[:10]}-{self.run}-{self.target}.json"


def suite_history(reports: Path, suite: str) -> tuple[SuiteRun, ...]:
    """Return what is kept of a suite's runs, the oldest first; raises HandledError for a file that cannot be read."""
    found = []
    for path, data in files_of(reports / FOLDER / SUITES / suite, ".json"):
        try:
            found.append(_from_text(data.decode()))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise HandledError(f"{path}: not a suite's history ({error}); mend or delete it") from error
    return tuple(sorted(found, key=_age))


def before(history: Iterable[SuiteRun], fresh: SuiteRun) -> SuiteRun | None:
    """Return what was found on the target by the run before, None where none is kept."""
    earlier = [
        each
        for each in history
        if each.target == fresh.target and each.when < fresh.when and each.run != fresh.run
    ]
    return earlier[-1] if earlier else None


def keep_suite_runs(reports: Path, suite: str, fresh: Iterable[SuiteRun]) -> tuple[Path, ...]:
    """Write those runs that found something else than the one before them; return their paths."""
    history = list(suite_history(reports, suite))
    written = []
    for each in fresh:
        earlier = before(history, each)
        news = earlier is None or (earlier.ended, earlier.version) != (each.ended, each.version)
        if news and each not in history:
            path = reports / FOLDER / SUITES / suite / each.file_name
            write_whole(path, _to_text(each))
            written.append(path)
            history = sorted([*history, each], key=_age)
    return tuple(written)


def take_suite_history(reports: Path, other: Path, suite: str) -> int:
    """Take in the runs that another reports folder keeps; return how many found something else."""
    return len(keep_suite_runs(reports, suite, suite_history(other, suite)))


def _age(run: SuiteRun) -> tuple[str, str, str]:
    return run.when, run.run, run.target


def _to_text(run: SuiteRun) -> str:
    """Return the file's text: a way to end a line, with the models that end so."""
    ways: dict[str, list[str]] = {}
    for model, how in sorted(run.ended.items()):
        ways.setdefault(how, []).append(model)
    head = {"schema": HISTORY_SCHEMA, "target": run.target, "version": run.version}
    head |= {"run": run.run, "when": run.when}
    lines = ",\n".join(f"{json.dumps(how)}: {json.dumps(' '.join(ways[how]))}" for how in sorted(ways))
    return f'{json.dumps(head)[:-1]},\n"ended": {{\n{lines}\n}}}}\n'


def _from_text(text: str) -> SuiteRun:
    data = parse_json(text)
    check_schema(data, HISTORY_SCHEMA)
    ended = {model: how for how, models in data["ended"].items() for model in models.split()}
    return decode(SuiteRun, {**data, "ended": ended})
