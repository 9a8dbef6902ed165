"""The page that shows which verdict each claim and each measured class make, asked of the code that judges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.case import Expectation, Kind, Level, Link
from harness.judge.classify import Classification
from harness.judge.verdict import LEVELS, judge
from harness.words import Class, Grade, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINK = Link("https://github.com/NVIDIA/TensorRT/issues", "a thread")
#: Rows: what is claimed, in words.
CLAIMED: tuple[tuple[str, Class, Level | None], ...] = (
    *((f"`ok`, level `{level}`", Class.OK, level) for level in LEVELS),
    ("`built`", Class.BUILT, None),
    ("`parse_failed`", Class.PARSE_FAILED, None),
    ("`build_failed`", Class.BUILD_FAILED, None),
    ("`needs_gpu_to_build`", Class.NEEDS_GPU_TO_BUILD, None),
    ("`api_removed`", Class.API_REMOVED, None),
    ("`load_failed`", Class.LOAD_FAILED, None),
    ("`run_failed`", Class.RUN_FAILED, None),
    ("`inaccurate`", Class.INACCURATE, None),
    ("`precision_lost`", Class.PRECISION_LOST, None),
    ("`crashed`", Class.CRASHED, None),
    ("`crashed`, level `runs`", Class.CRASHED, "runs"),
)
#: Columns: what was measured, in words, and whether there was an engine by then.
SEEN: tuple[tuple[str, Class, bool], ...] = (
    ("ok", Class.OK, True),
    ("built", Class.BUILT, True),
    ("parse failed", Class.PARSE_FAILED, False),
    ("build failed", Class.BUILD_FAILED, False),
    ("needs a GPU to build", Class.NEEDS_GPU_TO_BUILD, False),
    ("API removed", Class.API_REMOVED, False),
    ("load failed", Class.LOAD_FAILED, True),
    ("run failed", Class.RUN_FAILED, True),
    ("inaccurate", Class.INACCURATE, True),
    ("precision lost", Class.PRECISION_LOST, True),
    ("crashed in the build", Class.CRASHED, False),
    ("crashed in the run", Class.CRASHED, True),
)
_HEAD = """\
# Which verdict a claim and a measurement make

Asked of `harness/judge/verdict.py`, field by field; `make docs` writes this page, and a test holds it to the code.

A claim is held at a level, each above the one before: the engine `builds`, `runs`, gives the `right numbers`, keeps
the `precision` wanted. A claim of `ok` without a level is one of `precision`, all that the harness looks at. Only what
a claim says can be broken: what breaks a higher level is *new*. A claim of a failure says that the levels below it are
reached; one that an engine crashes, hangs (`timed_out`) or runs out of memory, which are judged alike, does not say
when, unless it has the level `runs`.

*Undecided*: only a GPU would show what is claimed. The engine was built here and not run, or this version cannot build
it on a machine without a GPU. **Fails when run**: it was built here and not run, and somebody reports, or measured on a
GPU, that it does not load, does not run or gives wrong numbers; that it builds may have been measured before. It is
drawn as no good result anywhere, and ends no run with 1: nothing that was seen here broke.

`needs_gpu_to_build` is an answer about the version, not about the machine: others build the same graph without a GPU.
It breaks what was measured without a GPU, and no claim of anybody else, who had one; nor does such a claim say anything
of a cell on a GPU. Between two columns, or two nights, it is compared with what was found without a GPU alone: from it
to `built` is fixed, from `built` to it is broken, and beside a result on a GPU, or a report, nothing is said.

*Disputed* is no field: it is where those
who measured a cell on one GPU architecture disagree. Only **regressed** makes a run end with 1.

Rows are what is claimed, columns what was measured. Where nothing is claimed, what works is expected and what fails is
new."""
_WORDS = {
    Verdict.EXPECTED: "expected",
    Verdict.KNOWN_FAILURE: "known failure",
    Verdict.FIXED: "**fixed**",
    Verdict.NOT_REPRODUCED: "*not reproduced*",
    Verdict.REGRESSED: "**regressed**",
    Verdict.NEW: "new",
    Verdict.FAILS_WHEN_RUN: "**fails when run**",
    Verdict.NOT_RUN: "undecided",
}


@dataclass(frozen=True)
class Table:
    """One table: its title, the grade of its claims, and what to know of it."""

    title: str
    grade: Grade
    text: str


TABLES = (
    Table(
        "A claim that somebody reports",
        Grade.REPORTED,
        "The failure was measured nowhere before. Where it was, on this target or an earlier version of its platform,\n"
        "*not reproduced* is **fixed**. A lost precision that only the graph asks for, where the variant names none,\n"
        "is new instead of regressed.",
    ),
    Table(
        "A claim that was measured",
        Grade.MEASURED,
        "Measured on this target, at this version; on a GPU, on one of the same compute capability.",
    ),
    Table(
        "A guess",
        Grade.GUESSED,
        "A guess that is contradicted was wrong: nothing regresses by it, and nothing is fixed.",
    ),
)


def verdict(claimed: tuple[str, Class, Level | None], seen: tuple[str, Class, bool], table: Table) -> Verdict:
    """Return the verdict of one field of a table."""
    source, note = (None, "measured") if table.grade is Grade.MEASURED else (_LINK, "")
    kind: Kind | None = "users" if table.grade is Grade.REPORTED else None
    claim = Expectation(claimed[1], "", source, table.grade, note, kind=kind, level=claimed[2])
    found = Classification(seen[1], "a reason", built=seen[2])
    return judge(found, [claim]).verdict


def verdicts_page() -> str:
    """Return docs/verdicts.md."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD
    for table in TABLES:
        yield from ("", f"## {table.title}", "", table.text, "")
        yield f"| claimed | {' | '.join(name for name, *_ in SEEN)} |"
        yield f"| --- |{' --- |' * len(SEEN)}"
        for row in CLAIMED:
            fields = (_WORDS[verdict(row, (name, cls, built), table)] for name, cls, built in SEEN)
            yield f"| {row[0]} | {' | '.join(fields)} |"
