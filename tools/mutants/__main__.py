"""Break the code that judges in thousands of small ways and count what the tests notice."""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tools.mutants.areas import AREAS, FLOOR, Area
from tools.mutants.campaign import Result, mutants_of, run
from tools.mutants.mutant import Mutant
from tools.mutants.survivors import FILE, Trouble, read_reasons
from tools.mutants.told import summary

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: Sequence[str] | None = None, root: Path = ROOT, areas: Sequence[Area] = AREAS) -> int:
    """Return 0 where enough mutants were killed, 1 where not, 2 for a mistake, 3 where nothing can be said."""
    options = _options(areas).parse_args(arguments)
    chosen_areas = [area for area in areas if not options.area or area.name in options.area]
    if not options.docker:
        # A mutant of the reaper may remove the containers of others.
        os.environ["DOCKER_HOST"] = "unix:///nonexistent/docker.sock"
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began = time.monotonic()
    try:
        reasons = read_reasons(root / FILE)
        every = mutants_of(root, chosen_areas)
        chosen = _chosen(every, options)
        results = []
        for result in run(root, chosen, options.jobs):
            results.append(result)
            _progress(results, len(chosen), began)
    except Trouble as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        print("mutants: interrupted", file=sys.stderr)
        return 130
    if options.only:
        return _one(results)
    whole = len(chosen) == len(every)
    text, share = summary(results, reasons, chosen_areas, whole=whole)
    print(
        f"\n{text}\n\n{time.monotonic() - began:.0f} s, seed {options.seed}, {len(chosen)} of {len(every)} mutants"
    )
    return int(share < FLOOR)


def _options(areas: Sequence[Area]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument(
        "--area",
        action="append",
        choices=[area.name for area in areas],
        help="only this area (may be repeated)",
    )
    parser.add_argument("--sample", type=int, metavar="N", help="try N mutants at random (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="seed of that choice (default: 1)")
    parser.add_argument(
        "--only",
        metavar="FILE:LINE or ID",
        help="try the mutants of a line, or one by its id, and print what tests said",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=len(os.sched_getaffinity(0)),
        help="mutants at a time (default: one a core)",
    )
    parser.add_argument(
        "--docker",
        action="store_true",
        help="let tests use Docker: mutants of the reaper may remove containers of other runs on this machine",
    )
    return parser


def _chosen(every: Sequence[tuple[Mutant, Area]], options: argparse.Namespace) -> list[tuple[Mutant, Area]]:
    if options.only:
        file, _, line = options.only.rpartition(":")
        found = [
            (mutant, area)
            for mutant, area in every
            if mutant.id == options.only or (mutant.module.file.endswith(file) and str(mutant.line) == line)
        ]
        if not found:
            raise Trouble(f"no mutant is called {options.only} or stands there")
        return found
    if options.sample is not None and options.sample < len(every):
        return random.Random(options.seed).sample(list(every), options.sample)  # noqa: S311
    return list(every)


def _progress(results: Sequence[Result], whole: int, began: float) -> None:
    if len(results) % 100 == 0 or len(results) == whole:
        alive = sum(not result.killed for result in results)
        print(f"{len(results)} of {whole}, {alive} survived, {time.monotonic() - began:.0f} s", flush=True)


def _one(results: Sequence[Result]) -> int:
    for result in results:
        mutant = result.mutant
        print(f"\n{mutant.id}  {mutant.module.file}:{mutant.line} in {mutant.scope}\n{mutant.diff()}")
        print(f"killed: {result.how}" if result.killed else f"survived {result.how}".rstrip())
        print(result.said)
    return int(not all(result.killed for result in results))


if __name__ == "__main__":
    sys.exit(main())
