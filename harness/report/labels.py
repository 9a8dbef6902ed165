"""How classes, verdicts and signatures are called and marked for readers; the page's legend is made of these tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from itertools import product

from harness.judge.names import load_names
from harness.judge.signatures import load_signatures, load_texts
from harness.known.listed import State
from harness.known.model import Known
from harness.text import one_line, some
from harness.words import CLASSES, GOOD, Basis, Class, Mark, Role, Verdict

#: The words for what is known of a cell, by state.
STATES = {
    "works": "Works",
    "builds": "Builds, not run",
    "lost": "Loses precision",
    "wrong": "Wrong numbers",
    "fails": "Fails",
    "removed": "Not there",
    "unknown": "Not known",
}
#: The mark of a cell that its version lacks something for that came later (`Known.not_yet`).
NOT_YET = "not_yet"
#: The marks of cells: by class, of a version that lacks what came later, of an engine that was only built and is known
#: to fail when it is run, and of a graph that was not run and has a finding against it.
MARKS: dict[Class | Verdict | State | str, Mark] = {
    Verdict.FAILS_WHEN_RUN: Mark(
        "fails",
        "⊘",
        "tab",
        "Builds, fails when run",
        "built; others report or measured that it fails or errs when it is run",
    ),
    **{cls: CLASSES[cls].mark for cls in Class},
    NOT_YET: Mark(
        "removed",
        "Y",
        "pill",
        "Not there yet",
        "asks for a type, an operator or a call that came with a later version",
    ),
    State.BLOCKED: Mark(
        "fails", "X", "square", "Blocked", "NVIDIA's operator table has no importer for it; not run"
    ),
    State.REPORTED: Mark(
        "unknown", "!", "square", "Holds a known failure", "a part of it is reported to fail; not run"
    ),
    State.IGNORED: Mark(
        "unknown", "I", "square", "Not obeyed", "builds, and the importer ignores an attribute of it; not run"
    ),
    State.RESTRICTED: Mark(
        "unknown", "~", "square", "Restricted", "NVIDIA's table restricts it, and the graph does not decide"
    ),
}

#: The buckets that cells are counted in, each in exactly one, worst news first. Key, name, meaning.
BUCKETS = {
    "regressed": (
        "Regressed",
        "reported or measured to work, fails here; or keeps or asks for less precision than accepted, or is slower",
    ),
    "new": ("New failure", "fails, and that is not claimed, or in another way than claimed"),
    "fixed": ("Fixed", "measured to fail on this target or an earlier version, works here"),
    "not_reproduced": ("Not reproduced", "reported to fail, and this reduction does not show it here"),
    "varies": ("Varies", "loses a precision by a toss-up of the builder's: another build may keep it"),
    "known_failure": ("Known failure", "fails as claimed"),
    "fails_when_run": (
        "Builds, fails when run",
        "builds here; reported or measured elsewhere not to run, or to give wrong numbers",
    ),
    "expected": ("As expected", "works or builds, or lacks an API that this version is known to lack"),
    "new_ok": ("New: works", "works here; until now this was not known"),
    "undecided": (
        "Undecided",
        "only a GPU would show what is claimed: it was built here and not run, or needs one to build",
    ),
    "infra": ("Infrastructure", "could not be judged: the harness or the machine failed"),
    "stale": ("Out of date", "the result is of another model, recipe or engine version, and is not shown"),
    "accepted": (
        "Measured before",
        "not run for this report; measured before, and accepted as what to expect",
    ),
    "reported": ("Reported", "not run for this report; what users, NVIDIA or source code say of it"),
    "listed": ("Listed", "not run for this report; what NVIDIA's operator tables list against its graph"),
    "not_run": ("Not run", "not run for this report, and nobody reports of this very graph on it"),
    "not_applicable": ("Not applicable", "makes no sense on this target"),
}

ROLES = {role: str(role).replace("_", " ") for role in Role}

#: The changes of variants in a step from one target to another: name and meaning by `harness.compare.kinds.Kind`.
KINDS = {
    "broken": ("Breaks", "worked before (built, where not run), fails after"),
    "precision_lost": ("Loses precision", "a node no longer runs in the precision wanted, without any error"),
    "builds_without": (
        "Builds without precision",
        "failed before; builds after, but not in the precision wanted, and nothing says so",
    ),
    "wider": (
        "Wider type",
        "a node that is wanted in no precision ran in INT8, FP8, INT4 or FP4 before, and runs in a float after",
    ),
    "slower": ("Slower", "the median rises beyond what one machine does from run to run, on the same stack"),
    "otherwise": (
        "Fails in another way",
        "failed before, and fails after at another point or for another cause",
    ),
    "fixed": ("Now works", "failed before, works after (builds, where not run)"),
    "precision_gained": ("Keeps precision now", "a node runs in the precision wanted only after"),
    "narrower": (
        "Narrower type",
        "a node that is wanted in no precision ran in a float before, and runs in INT8, FP8, INT4 or FP4 after",
    ),
    "faster": ("Faster", "the median falls beyond what one machine does from run to run, on the same stack"),
    "varies": (
        "Varies",
        "another GPU of the compute capability does otherwise, or two kernels take about one time; not counted",
    ),
    "not_yet": (
        "Not there yet before",
        "asks for a type, an operator or a call that came after the earlier version; no failure that was mended",
    ),
    "newly_unknown": ("Nothing known after", "known before; neither measured nor reported after"),
}

#: The buckets of cells that were not run for this report, by basis.
CLAIMED: dict[Basis | None, str] = {
    Basis.MEASURED: "accepted",
    Basis.REPORTED: "reported",
    Basis.LISTED: "listed",
}


def bucket(cell: Known) -> str:
    """Return the one bucket that a cell is counted in."""
    if cell.stale:
        return "stale"
    if cell.cls is Class.NOT_APPLICABLE:
        return "not_applicable"
    if not cell.measured and cell.verdict is not Verdict.INFRA:
        return CLAIMED.get(cell.basis, "not_run")
    if cell.verdict is Verdict.NOT_RUN:
        return "undecided"
    return "new_ok" if cell.cls in GOOD and cell.verdict is Verdict.NEW else str(cell.verdict)


_MOST_NAMES, _LONGEST_VALUE = 4, 80
#: Blanks whose example would say nothing: another model has other nodes.
_NOUNS = {
    "node": "a layer",
    "op": "the operator",
    "tensor": "a tensor",
    "why": "its last word",
    "lower": "",
    "ir": "N",
    "opset": "N",
    "most": "M",
}


@cache
def examples(signature: str) -> Mapping[str, str]:
    """Return what fills the blanks of an entry: names that a version took away, else the words of its first text."""
    found = _own_words(signature)
    for row in [row for row in load_names() if row.signature == signature][:1]:
        found |= {"name": some(row.names, _MOST_NAMES), "now": row.now, "since": row.since}
    return {**found, **_NOUNS}


def _own_words(signature: str) -> dict[str, str]:
    """Return what the patterns of a signature capture of its texts, the first of each."""
    found: dict[str, str] = {}
    texts = [each.text for each in load_texts() if each.id == signature]
    patterns = {each.id: each.patterns for each in load_signatures()}
    for text, pattern in product(texts, patterns.get(signature, ())):
        match = pattern.regex.search(text)
        groups = match.groupdict(default="") if match else {}
        found = {name: one_line(value, _LONGEST_VALUE) for name, value in groups.items() if value} | found
    return found


def filled(text: str, values: Mapping[str, str]) -> str:
    """Return a text whose blanks, <node>, hold an example, or a noun."""
    said = re.sub(r"<(\w+)>", lambda found: values.get(found[1], f"the {found[1]}"), text)
    return said[:1].upper() + said[1:] if text.startswith(tuple(f"<{name}>" for name in _NOUNS)) else said
