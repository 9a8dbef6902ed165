"""How much of what engines refuse is diagnosed: the records of a suite, by signature.

    python -m harness run --suite onnx-node --target rtx14 --target rtx17 --reports build/node-tests
    python -m tools.diagnosed --reports build/node-tests

Ends with 1 where too many failures are without a signature, one signature covers too many, or one names no place; as
everywhere 2 is a mistake, 3 the machinery.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import HandledError
from harness.judge.classify import Classification, classify
from harness.judge.diagnosis import SIGNATURES, Diagnosis, diagnose, load_signatures
from harness.judge.place import MODEL
from harness.record.speaking import latest
from harness.record.suites import SUITES, SuiteStore
from harness.words import GOOD, UNJUDGED, Class

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from harness.judge.diagnosis import Signature
    from harness.record.outcome import Outcome

#: The most that may be without a signature, and the most that one signature may cover, of a target's failures.
MOST_UNSIGNED = 0.15
MOST_BY_ONE = 0.20
_MOST_LISTED = 25
_WIDEST = 160


@dataclass(frozen=True)
class Judged:
    """One model on one target: what it ended as and why."""

    model: str
    classification: Classification
    diagnosis: Diagnosis | None

    @property
    def failed(self) -> bool:
        """Tell whether the engine refused the model."""
        return self.classification.cls not in GOOD | UNJUDGED


@dataclass(frozen=True)
class Covered:
    """What one signature covers: how many failures, and one of them as a reader is told of it.

    `unplaced` are those whose operator or node it does not name: they count as failures without a signature.
    """

    id: str
    count: int
    unplaced: int
    model: str
    title: str
    place: str


@dataclass(frozen=True)
class Coverage:
    """The failures of one target by signature; `unsigned` are (model, reason) of those without one.

    A generic signature, which says that something failed and not why, counts as none.
    """

    target: str
    classes: dict[str, int]
    failed: int
    signatures: tuple[Covered, ...]
    unsigned: tuple[tuple[str, str], ...]

    def complaints(self) -> list[str]:
        """Return what is wanting, a sentence each."""
        found = []
        if len(self.unsigned) > MOST_UNSIGNED * self.failed:
            share = _share(len(self.unsigned), self.failed)
            found.append(f"{share} of the failures have no signature, more than {MOST_UNSIGNED:.0%}")
        for each in self.signatures:
            if each.count > MOST_BY_ONE * self.failed:
                share = _share(each.count, self.failed)
                found.append(f"{each.id} covers {share} of the failures, more than {MOST_BY_ONE:.0%}")
            if each.count == each.unplaced:
                found.append(f"{each.id} names operator and node in none of its failures")
        return [f"{self.target}: {sentence}" for sentence in found]

    def as_dict(self) -> dict[str, Any]:
        """Return the table as plain JSON data."""
        return {**dataclasses.asdict(self), "complaints": self.complaints()}


def judge(outcome: Outcome, signatures: Sequence[Signature]) -> Judged:
    """Return one model's record with its conclusions, by the functions that judge a cell."""
    classification = classify(outcome, got={})
    return Judged(outcome.variant, classification, diagnose(outcome, classification, signatures))


def count(target: str, judged: Iterable[Judged], signatures: Sequence[Signature]) -> Coverage:
    """Return a target's table."""
    generic = {signature.id for signature in signatures if signature.generic}
    results = list(judged)
    failed = [result for result in results if result.failed]
    groups: dict[str, list[tuple[str, Diagnosis]]] = {}
    unsigned = []
    for result in failed:
        found = result.diagnosis
        if found is not None and found.id not in generic:
            groups.setdefault(found.id, []).append((result.model, found))
        if found is None or found.id in generic or not _placed(found):
            unsigned.append((result.model, result.classification.reason))
    classes = Counter(result.classification.cls for result in results)
    covered = (_covered(name, found) for name, found in groups.items())
    return Coverage(
        target=target,
        classes={str(cls): classes[cls] for cls in Class if classes[cls]},
        failed=len(failed),
        signatures=tuple(sorted(covered, key=lambda each: (-each.count, each.id))),
        unsigned=tuple(unsigned),
    )


def _placed(found: Diagnosis) -> bool:
    return bool((found.node or found.operator == MODEL) and found.operator and found.advice)


def _covered(name: str, found: Sequence[tuple[str, Diagnosis]]) -> Covered:
    model, first = next((one for one in found if _placed(one[1])), found[0])
    unplaced = sum(not _placed(each) for _, each in found)
    return Covered(name, len(found), unplaced, model, first.title, first.place)


def table(coverage: Coverage) -> Iterator[str]:
    """Yield a target's table: classes, signatures by how much they cover, then the failures without one."""
    total = sum(coverage.classes.values())
    ended = ", ".join(f"{number} {cls}" for cls, number in coverage.classes.items())
    yield f"{coverage.target}: {total} models: {ended}"
    yield f"{coverage.failed} failures, {_told(len(coverage.unsigned), coverage.failed)} without a signature"
    for each in coverage.signatures:
        unplaced = f", {each.unplaced} of them without operator and node" if each.unplaced else ""
        told = _cut(f"{each.title} ({each.model}: {each.place})")
        yield f"  {_told(each.count, coverage.failed):>14}  {each.id}{unplaced}: {told}"
    for model, reason in coverage.unsigned[:_MOST_LISTED]:
        yield f"  none  {model}: {_cut(reason)}"
    if len(coverage.unsigned) > _MOST_LISTED:
        yield f"  and {len(coverage.unsigned) - _MOST_LISTED} more, which --json lists"


def _told(part: int, whole: int) -> str:
    return f"{part} ({_share(part, whole)})"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "0.0%"


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge what is recorded and print a table a target."""
    options = _parser().parse_args(arguments)
    try:
        signatures = load_signatures(options.signatures)
        outcomes = _recorded(options.reports / SUITES / options.suite, options.targets)
    except HandledError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    found = []
    for name in dict.fromkeys(outcome.target for outcome in outcomes):
        mine = (judge(outcome, signatures) for outcome in outcomes if outcome.target == name)
        found.append(count(name, mine, signatures))
        print("\n".join(table(found[-1])), end="\n\n")
    if options.json:
        options.json.write_text(json.dumps([coverage.as_dict() for coverage in found], indent=1) + "\n")
    return _close(found)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.diagnosed")
    parser.add_argument("--reports", type=Path, default=Path("reports"), metavar="FOLDER")
    parser.add_argument("--suite", default="onnx-node", metavar="NAME")
    parser.add_argument(
        "--target", dest="targets", action="append", default=[], metavar="NAME", help="only this (repeatable)"
    )
    parser.add_argument(
        "--signatures", type=Path, default=SIGNATURES, metavar="FILE", help="another diagnosis.yaml"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the tables there as well")
    return parser


def _recorded(folder: Path, targets: Sequence[str]) -> list[Outcome]:
    speaks = latest(each.outcome for each in SuiteStore(folder).kept())
    found = [outcome for outcome in speaks.values() if not targets or outcome.target in targets]
    if not found:
        on = f" of {', '.join(targets)}" if targets else ""
        raise HandledError(f"{folder}: holds no records{on}; make them with `trt-compat run --suite`")
    return found


def _close(found: Sequence[Coverage]) -> int:
    wanting = [sentence for coverage in found for sentence in coverage.complaints()]
    for sentence in wanting:
        print(sentence)
    unjudged = sum(coverage.classes.get(Class.INFRA_ERROR, 0) for coverage in found)
    if unjudged:
        print(f"{unjudged} models could not be judged: the machinery failed")
    return 1 if wanting else 3 if unjudged else 0


if __name__ == "__main__":
    sys.exit(main())
