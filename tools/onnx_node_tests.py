"""How much of what engines refuse is diagnosed: ONNX's own node tests, built on some targets, by signature.

    python -m tools.onnx_node_tests --target rtx14 --target rtx17 --records /tmp/node-tests
    python -m tools.onnx_node_tests --rejudge /tmp/node-tests

Ends with 1 where too many failures are without a signature, one signature covers too many, or one names no place.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import HandledError, InfraError
from harness.judge.diagnosis import SIGNATURES, load_signatures
from harness.matrix import load_matrix
from harness.plan import select
from harness.record.store import Store
from harness.run.target import TargetRunner
from harness.words import Class
from tools.diagnosed import count, judge, table
from tools.suite import Unfed, cells_of, node_tests

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.matrix import Target
    from harness.record.outcome import Outcome
    from tools.diagnosed import Coverage

_TOP = Path(__file__).resolve().parents[1]
#: Models between two lines that say how far it is.
_EVERY = 200


def main(arguments: Sequence[str] | None = None) -> int:
    """Run or judge again and print a table a target; as everywhere 2 is a mistake, 3 the machinery."""
    options = _parser().parse_args(arguments)
    try:
        signatures = load_signatures(options.signatures)
        outcomes = list(_outcomes(options))
    except HandledError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except InfraError as error:
        print(f"infrastructure: {error}", file=sys.stderr)
        return 3
    found = []
    for name in dict.fromkeys(outcome.target for outcome in outcomes):
        mine = (judge(outcome, signatures) for outcome in outcomes if outcome.target == name)
        found.append(count(name, mine, signatures))
        print("\n".join(table(found[-1])), end="\n\n")
    if options.json:
        options.json.write_text(json.dumps([coverage.as_dict() for coverage in found], indent=1) + "\n")
    return _close(found)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.onnx_node_tests")
    parser.add_argument("--target", dest="targets", action="append", default=[], metavar="NAME")
    parser.add_argument("-k", dest="expression", default="", help="only these models, as pytest's -k")
    parser.add_argument("--via", choices=("auto", "docker", "venv"), default="auto")
    parser.add_argument("--records", type=Path, metavar="FOLDER", help="keep records and logs there")
    parser.add_argument(
        "--rejudge", type=Path, metavar="FOLDER", help="run nothing, judge what was kept there"
    )
    parser.add_argument(
        "--signatures", type=Path, default=SIGNATURES, metavar="FILE", help="another diagnosis.yaml"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the tables there as well")
    return parser


def _outcomes(options: argparse.Namespace) -> Iterator[Outcome]:
    if options.rejudge:
        latest = Store(options.rejudge).latest()
        if not latest:
            raise HandledError(f"{options.rejudge}: holds no records; make them with --records")
        yield from latest.values()
        return
    if not options.targets:
        raise HandledError("name a target with --target, or a folder of records with --rejudge")
    matrix = load_matrix(_TOP / "matrix.yaml")
    run_id = uuid.uuid4().hex[:12]
    targets = [matrix.target(name) for name in dict.fromkeys(options.targets)]
    with Store(options.records, run=run_id) if options.records else contextlib.nullcontext() as store:
        for target in targets:
            for outcome, log in _built(target, run_id, options):
                yield store.append(outcome, log) if store else outcome


def _built(target: Target, run_id: str, options: argparse.Namespace) -> Iterator[tuple[Outcome, str]]:
    cells = select(cells_of(node_tests(), target), options.expression)
    runner = TargetRunner(target, via=options.via, run_id=run_id, prepared=Unfed())
    try:
        for number, cell in enumerate(cells, start=1):
            outcome, log = runner.run(cell)
            if runner.given_up:
                # No fault of a thousand models.
                raise InfraError(runner.given_up)
            # Nothing is asked of the layers here, and they would be most of the record; the log has them.
            yield dataclasses.replace(outcome, layers=()), log
            if number % _EVERY == 0 or number == len(cells):
                print(f"{target.name}: {number} of {len(cells)}", file=sys.stderr)
    finally:
        runner.close()


def _close(found: Sequence[Coverage]) -> int:
    wanting = [sentence for coverage in found for sentence in coverage.complaints()]
    for sentence in wanting:
        print(sentence)
    unjudged = sum(coverage.classes.get(Class.INFRA_ERROR, 0) for coverage in found)
    if unjudged:
        print(f"{unjudged} models could not be judged: the machinery failed")
    return 1 if wanting else 3 if unjudged or not found else 0


if __name__ == "__main__":
    sys.exit(main())
