"""docs/fuzzing.md: what is fuzzed, how long it has been, and what that found; made of the targets and the ledger."""

from __future__ import annotations

from tests.fuzz.corpus import MOST_PACKED
from tests.fuzz.targets import LONGEST, MEMORY, SECONDS, TARGETS
from tools.fuzz.ledger import GOAL, QUIET, Entry, Ledger, read

_HEAD = f"""\
# Fuzzing

<!-- Written by `make docs` from tests/fuzz/targets.py and tests/fuzz/ledger.json; do not edit. -->

Readers of what others wrote are given bytes that nobody thought of. Each promises in its docstring what it raises: for
most that is one sentence (`HandledError`, `InfraError`), for some nothing. A finding is whatever else escapes, and an
input of up to {LONGEST >> 10} KiB that takes more than {SECONDS:.0f} s of the processor, or {MEMORY >> 30} GiB.

The targets are one table, `tests/fuzz/targets.py`. Two programs run them:

- The tests (`pytest tests/fuzz`) give each target its kept inputs and some that hypothesis makes of these, the same in
  every run, and all that was ever found.
- `make fuzz` is the campaign, guided by coverage: atheris, which is libFuzzer for Python and has wheels for Linux on
  x86-64 and a few versions of Python. `make fuzz ARGS="--seconds 600 history"` gives one target ten minutes. What it
  finds is a file in tests/fuzz/findings and a test that fails until it is mended; it keeps corpus and ledger too.

On another machine without a network, a checkout with atheris and what the harness needs will do:
`python -m tools.fuzz --seconds 480 --jobs 16 --out DIR`, and here then `make fuzz ARGS="--take DIR"`.

A target is done when {QUIET / 60:.0f} minutes of fuzzing, over all its processes, have shown no new edge of the code.
Edges are those that its corpus reached in harness/ in the last campaign. All corpora together have at most
{MOST_PACKED // 1_000_000} MB.
"""


def fuzzing_page() -> str:
    """Return the page."""
    ledger = read()
    return "\n".join((_HEAD, _table(ledger), "", _sum(ledger), "", _found(ledger), ""))


def _table(ledger: Ledger) -> str:
    lines = [
        "| target | what it reads | inputs | minutes | edges | last new edge | since then | findings |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [_row(name, ledger[name]) for name in TARGETS]
    return "\n".join(lines)


def _row(name: str, entry: Entry) -> str:
    since = f"{entry.quiet_s / 60:.0f} min{', done' if entry.done else ''}"
    cells = (
        *(
            f"`{name}`",
            TARGETS[name].what,
            f"{entry.inputs:,}",
            f"{entry.seconds / 60:.0f}",
            f"{entry.edges:,}",
        ),
        *(entry.last_new_edge or "-", since, str(len(entry.findings))),
    )
    return f"| {' | '.join(cells)} |"


def _sum(ledger: Ledger) -> str:
    inputs = sum(entry.inputs for entry in ledger.values())
    done = sum(entry.done for entry in ledger.values())
    return f"In all {inputs:,} inputs of the {GOAL:,} that are the goal; {done} of {len(ledger)} targets are done."


def _found(ledger: Ledger) -> str:
    lines = ["## What was found", "", "Each is mended, and its input is read by the tests.", ""]
    found = [
        f"| `{name}` | {day} | `{key}` | {what.replace('|', chr(92) + '|').replace('<', '&lt;')} |"
        for name, entry in ledger.items()
        for key, (day, what) in sorted(entry.findings.items())
    ]
    if not found:
        return "\n".join((lines[0], "", "Nothing yet."))
    return "\n".join((*lines, "| target | day | input | what escaped |", "| --- | --- | --- | --- |", *found))
